// SPDX-License-Identifier: Apache-2.0
// How fast the device reads its memory, and copies it: what memory-bound kernels are held against. The best of several
// launch shapes; random data, larger than any cache.
#include <algorithm>
#include <functional>
#include <string>

#include "base/peak_fields.hpp"
#include "plumb/backend.hpp"
#include "rates.hpp"
#include "sections.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {
namespace {

double best_rate(Gpu& gpu, double bytes, int repeats, const std::function<void()>& enqueue, Spread& best) {
    const Spread spread = rates_of(gpu, bytes, repeats, enqueue);
    if (spread.median > best.median) {
        best = spread;
    }
    return spread.median;
}

std::size_t buffer_bytes(Gpu& gpu, bool tiny) {
    std::size_t free_bytes = 0, total_bytes = 0;
    gpu.must(gpu.d.mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    const std::size_t wanted = tiny ? std::size_t{1} << 20 : std::size_t{4} << 30;
    return std::min(wanted, free_bytes / 4) / 4096 * 4096;
}

/// What `plumb selftest --peaks` would keep of this device: beside the figures of this section's own kernels.
void add_measured_peaks(const ResultFile& results, const Options& options) {
    if (options.tiny) {
        return; // seconds, and no kernels of ours run on the virtual GPU
    }
    const plumb::Result<plumb::Backend*> cuda = plumb::find_backend("cuda");
    const plumb::Result<plumb::Peaks> peaks =
        cuda ? (*cuda)->measure_peaks(0, {}) : plumb::Result<plumb::Peaks>(cuda.error());
    if (!peaks) {
        results.absent("selftest.peaks", peaks.error().message);
        return;
    }
    for (const plumb::PeakField& field : plumb::peak_fields) {
        const plumb::Figure& figure = (*peaks).*field.figure;
        const std::string name = std::string("selftest.") + field.name;
        if (figure.value) {
            results.figure(name, *figure.value, "");
        } else {
            results.absent(name, figure.reason);
        }
    }
}

} // namespace

void run_peaks(const ResultFile& results, const Options& options) {
    Gpu gpu;
    const std::size_t bytes = buffer_bytes(gpu, options.tiny);
    const OwnedMemory from = allocate(gpu, bytes), to = allocate(gpu, bytes), sink = allocate(gpu, 64);
    const auto sms = static_cast<unsigned>(gpu.multiprocessors);
    for (const DevicePointer at : {static_cast<DevicePointer>(from), static_cast<DevicePointer>(to)}) {
        gpu.launch(gpu.stream, gpu.kernel("check_fill"), sms * 8, 256, at, std::uint64_t{bytes / 4}, 1U);
    }
    gpu.wait();
    results.figure("buffer", static_cast<double>(bytes), "bytes");
    const int repeats = options.tiny ? 3 : 15;
    const auto size = static_cast<double>(bytes);
    Spread read, copy, engine;
    for (const unsigned blocks : {2U, 4U, 8U, 16U, 32U}) {
        for (const unsigned threads : {256U, 512U, 1024U}) {
            const Json shape = {{"blocks_per_sm", blocks}, {"threads", threads}};
            const double read_rate = best_rate(
                gpu, size, repeats,
                [&] {
                    gpu.launch(gpu.stream, gpu.kernel("check_read"), sms * blocks, threads,
                               static_cast<DevicePointer>(from), std::uint64_t{bytes / 16},
                               static_cast<DevicePointer>(sink));
                },
                read);
            results.figure("read.shape", read_rate, "GB/s", shape);
            const double copy_rate = best_rate(
                gpu, 2 * size, repeats,
                [&] {
                    gpu.launch(gpu.stream, gpu.kernel("check_copy"), sms * blocks, threads,
                               static_cast<DevicePointer>(to), static_cast<DevicePointer>(from),
                               std::uint64_t{bytes / 16});
                },
                copy);
            results.figure("copy.shape", copy_rate, "GB/s", shape);
        }
    }
    best_rate(
        gpu, 2 * size, repeats,
        [&] { gpu.must(gpu.d.memcpy_dtod_async(to, from, bytes, gpu.stream), "cuMemcpyDtoDAsync"); }, engine);
    add_measured_peaks(results, options);
    results.figure("read", read, "GB/s");
    results.figure("copy", copy, "GB/s", {{"by", "kernel, bytes read and written"}});
    results.figure("copy", engine, "GB/s", {{"by", "cuMemcpyDtoDAsync, bytes read and written"}});
}

} // namespace gpu_check
