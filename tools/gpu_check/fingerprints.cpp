// SPDX-License-Identifier: Apache-2.0
// Whether the fingerprint kernel gives on this device what the host gives, in a stream and in a graph, for each element
// type; and how fast it reads, against a kernel that does nothing but read.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "fingerprint/cuda/device_prints.hpp"
#include "plumb/fingerprint.hpp"
#include "rates.hpp"
#include "sections.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {
namespace {

using plumb::DType;
using plumb::Fingerprint;
using plumb::Tensor;
using plumb::fingerprint::DevicePrints;

constexpr DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32};

template <class Value>
Value have(plumb::Result<Value> result) {
    expect(result.ok(), result.ok() ? "" : result.error().message);
    return *std::move(result);
}
void have(const plumb::Status& status) { expect(status.ok(), status.ok() ? "" : status.error().message); }

/// Any bits, but no f64 too large to sum; NaN and Inf among them.
std::vector<std::uint8_t> random_bytes(DType type, std::size_t count) {
    std::mt19937_64 random(static_cast<unsigned>(type) + 1);
    std::vector<std::uint8_t> bytes(count * plumb::size_of(type));
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = random();
        if (type == DType::f64) {
            bits = (bits & 0x800fffffffffffffU) | (1000 + bits % 40) << 52;
        }
        std::memcpy(bytes.data() + i * plumb::size_of(type), &bits, plumb::size_of(type));
    }
    return bytes;
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void compare(const Fingerprint& device, const Fingerprint& host, const std::string& what) {
    const bool exact = device.count == host.count && device.hash == host.hash && device.nans == host.nans &&
                       device.positive_infs == host.positive_infs && device.negative_infs == host.negative_infs &&
                       device.first_nonfinite == host.first_nonfinite && device.largest == host.largest &&
                       same_number(device.min, host.min) && same_number(device.max, host.max);
    expect(exact, "the fingerprint of " + what + " is exact: it differs from the host's");
    const double n = static_cast<double>(host.count) + 1;
    const double bound = std::sqrt(host.sum_of_squares) * std::sqrt(n) * n * 2.3e-16;
    bool near = std::abs(device.sum - host.sum) <= bound && device.sketch.size() == host.sketch.size();
    for (std::size_t i = 0; near && i < host.sketch.size(); ++i) {
        near = std::abs(device.sketch[i] - host.sketch[i]) <= bound;
    }
    expect(near, "sum and sketch of " + what + " are within their bound: they are not");
}

DevicePrints prints_on(Gpu& gpu) { return have(DevicePrints::create(gpu.d, gpu.stream, 4)); }

void check_type(Gpu& gpu, DType type, std::size_t count) {
    const std::vector<std::uint8_t> bytes = random_bytes(type, count);
    const OwnedMemory memory = allocate(gpu, bytes.size());
    gpu.must(gpu.d.memcpy_htod_async(memory, bytes.data(), bytes.size(), gpu.stream), "cuMemcpyHtoDAsync");
    gpu.wait();
    const std::size_t rows = count / 64 - 1;
    std::vector<Tensor> there, here;
    for (std::vector<Tensor>* const list : {&there, &here}) {
        const void* const data = list == &here ? static_cast<const void*>(bytes.data())
                                               : reinterpret_cast<const void*>(static_cast<DevicePointer>(memory));
        list->push_back(plumb::tensor(data, type, {count}));
        list->push_back(plumb::tensor(data, type, {40, rows}, {1, 64})); // transposed, with gaps
    }
    std::vector<Fingerprint> wanted;
    for (const Tensor& tensor : here) {
        wanted.push_back(have(plumb::fingerprint_of(tensor)));
    }
    const std::string name = plumb::dtype_word(type);
    DevicePrints eager = prints_on(gpu);
    have(eager.enqueue(there));
    gpu.wait();
    const std::vector<Fingerprint> in_stream = have(eager.read());
    DevicePrints captured = prints_on(gpu);
    gpu.must(gpu.d.stream_begin_capture(gpu.stream, CaptureMode::relaxed), "cuStreamBeginCapture");
    const plumb::Status enqueued = captured.enqueue(there);
    Graph made = nullptr;
    gpu.must(gpu.d.stream_end_capture(gpu.stream, &made), "cuStreamEndCapture");
    OwnedGraph graph(gpu, made);
    have(enqueued);
    OwnedExec exec = instantiate(gpu, graph);
    gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch");
    gpu.wait();
    const std::vector<Fingerprint> in_graph = have(captured.read());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string what = name + (i == 0 ? "" : " with strides");
        compare(in_stream[i], wanted[i], what + " in a stream");
        compare(in_graph[i], wanted[i], what + " in a graph");
    }
}

void measure(Gpu& gpu, const ResultFile& results, std::size_t bytes, int repeats) {
    const OwnedMemory memory = allocate(gpu, bytes), sink = allocate(gpu, 64);
    const auto sms = static_cast<unsigned>(gpu.multiprocessors);
    gpu.launch(gpu.stream, gpu.kernel("check_fill"), sms * 8, 256, static_cast<DevicePointer>(memory),
               std::uint64_t{bytes / 4}, 1U);
    gpu.wait();
    const Json size = {{"bytes", bytes}};
    results.figure("fingerprint.read_floor",
                   rates_of(gpu, static_cast<double>(bytes), repeats,
                            [&] {
                                gpu.launch(gpu.stream, gpu.kernel("check_read"), sms * 8, 512,
                                           static_cast<DevicePointer>(memory), std::uint64_t{bytes / 16},
                                           static_cast<DevicePointer>(sink));
                            }),
                   "GB/s", size);
    DevicePrints prints = prints_on(gpu);
    for (const DType type : types) {
        const Tensor whole = plumb::tensor(reinterpret_cast<const void*>(static_cast<DevicePointer>(memory)), type,
                                           {bytes / plumb::size_of(type)});
        results.figure("fingerprint.rate",
                       rates_of(gpu, static_cast<double>(bytes), repeats, [&] { have(prints.enqueue({whole})); }),
                       "GB/s", {{"bytes", bytes}, {"dtype", plumb::dtype_word(type)}});
    }
}

} // namespace

void run_fingerprints(const ResultFile& results, const Options& options) {
    const bool built = plumb::fingerprint::fingerprint_ptx != nullptr;
    results.figure("fingerprint.kernels", built ? 1 : 0, "modules");
    if (!built) {
        results.absent("fingerprint.rate", "this program was built without nvcc");
        return;
    }
    Gpu gpu;
    for (const DType type : types) {
        check_type(gpu, type, options.tiny ? 5'003 : 3'000'017);
        results.text(std::string("fingerprint.exact.") + plumb::dtype_word(type), "in a stream and in a graph");
    }
    measure(gpu, results, options.tiny ? std::size_t{1} << 16 : std::size_t{1} << 15, options.tiny ? 2 : 15);
    if (!options.tiny) {
        measure(gpu, results, std::size_t{1} << 30, 15);
    }
}

} // namespace gpu_check
