// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/cuda/tensor_device.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <list>
#include <memory>
#include <string>

#include "fingerprint/cuda/row_math.hpp"

namespace plumb::fingerprint {

using namespace backends::cuda;

namespace {

constexpr std::size_t chunk_bytes = std::size_t{2} << 20;
constexpr std::size_t slot_alignment = 64;
constexpr const char* not_checked = "this tensor was not checked; the work itself goes on";

struct Devices {
    std::mutex mutex;
    std::list<std::unique_ptr<TensorDevice>> known;
};

// Never destroyed: threads may still check while the process exits.
Devices& devices() {
    static Devices& only = *new Devices;
    return only;
}

Error refused(const Driver& driver, CuResult result, const char* call) {
    const char* advice = "tensors on this device are not checked";
    if (result == CuResult::jit_compiler_not_found) {
        advice =
            "install the driver's PTX compiler (libnvidia-ptxjitcompiler), or tensors on this device are not checked";
    }
    Error error = error_of(driver, result, call, advice);
    if (error.code != ErrorCode::out_of_memory && !is_sticky(result)) {
        error.code = ErrorCode::unsupported;
    }
    return error;
}

// The device writes these words while we look at them.
std::uint64_t load_word(const std::uint64_t* word) noexcept { return __atomic_load_n(word, __ATOMIC_RELAXED); }

double number_of(std::uint64_t bits) noexcept { return same_bits<double>(bits); }

void fill(const std::uint64_t* words, std::uint32_t buckets, SlotResult& result) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    const Seen seen = load_seen([&](unsigned word) { return words[word]; });
    Fingerprint& found = result.fingerprint;
    found.nans = seen.nans;
    found.positive_infs = seen.positive_infs;
    found.negative_infs = seen.negative_infs;
    found.first_nonfinite = seen.first_nonfinite;
    found.largest = seen.largest;
    found.hash = seen.hash;
    found.min = seen.largest == no_place ? none : seen.min + 0.0;
    found.max = seen.largest == no_place ? none : seen.max + 0.0;
    found.sum = seen.sum;
    found.sum_of_squares = seen.squares;
    found.sketch.resize(buckets);
    for (std::uint32_t i = 0; i < buckets; ++i) {
        found.sketch[i] = number_of(words[words_before_buckets + i]);
    }
    result.tag = words[word_tag];
    result.argmax = seen.logit;
    const bool two = seen.logit != no_place && is_finite(seen.logit_second);
    result.margin = two ? seen.logit_value - seen.logit_second : none;
}

} // namespace

SlotState read_slot(const SlotBlock& slots, std::uint64_t number, SlotResult& result) {
    const std::uint64_t* const slot = slots.slot(number);
    const std::uint64_t sequence = __atomic_load_n(slot, __ATOMIC_ACQUIRE); // pairs with the device's fence before it
    if (sequence == 0) {
        return SlotState::empty;
    }
    result.number = (sequence - 1) / 2;
    if (sequence % 2 != 0) {
        return SlotState::torn;
    }
    std::uint64_t copy[words_before_buckets + kernel_buckets];
    for (std::uint32_t i = 0; i < words_of_slot(slots.buckets); ++i) {
        copy[i] = __atomic_load_n(slot + i, __ATOMIC_ACQUIRE); // the sequence is read again after each of them
    }
    if (const std::uint64_t now = load_word(slot); now != sequence) {
        result.number = (now - 1) / 2;
        return SlotState::torn;
    }
    fill(copy, slots.buckets, result);
    return SlotState::complete;
}

Result<TensorDevice*> TensorDevice::of(const Driver& driver, Stream stream, KernelText image) {
    if (image == nullptr) {
        return Error{ErrorCode::unsupported,
                     "this library was built without nvcc, so that tensors on a CUDA device are "
                     "not checked; build it where nvcc is found"};
    }
    backends::cuda::Context context = nullptr;
    if (const CuResult asked = driver.context_of(stream, &context); asked != CuResult::success) {
        return error_of(driver, asked, "cuStreamGetCtx", not_checked);
    }
    unsigned long long id = 0;
    if (driver.ctx_get_id != nullptr) {
        if (const CuResult asked = driver.ctx_get_id(context, &id); asked != CuResult::success) {
            return error_of(driver, asked, "cuCtxGetId", not_checked); // which one is it then?
        }
    }
    const std::lock_guard lock(devices().mutex);
    for (const auto& known : devices().known) {
        if (&known->driver_ == &driver && known->context_ == context && known->context_id_ == id) {
            return known.get();
        }
    }
    std::unique_ptr<TensorDevice> made(new TensorDevice(driver, context, id));
    if (Status loaded = made->load(image().c_str()); !loaded) {
        return loaded.error();
    }
    devices().known.push_back(std::move(made));
    return devices().known.back().get();
}

Status TensorDevice::load(const char* image) {
    const RelaxedCapture relaxed(driver_);
    const CurrentContext current(driver_, context_);
    if (current.status() != CuResult::success) {
        return refused(driver_, current.status(), "cuCtxPushCurrent");
    }
    if (const CuResult loaded = driver_.module_load_data(&module_, image); loaded != CuResult::success) {
        return refused(driver_, loaded, "cuModuleLoadData");
    }
    CuResult found = driver_.module_get_function(&kernel_, module_, kernel_name);
    if (found == CuResult::success) {
        found = driver_.module_get_function(&tag_kernel_, module_, tag_kernel_name);
    }
    if (found != CuResult::success) {
        static_cast<void>(driver_.module_unload(module_));
        return refused(driver_, found, "cuModuleGetFunction");
    }
    return {};
}

TensorDevice::Presence TensorDevice::presence() const noexcept {
    const RelaxedCapture relaxed(driver_);
    const CurrentContext current(driver_, context_);
    const CuResult status = current.status();
    if (status == CuResult::invalid_context || status == CuResult::context_is_destroyed) {
        return Presence::gone;
    }
    unsigned long long id = context_id_;
    if (status != CuResult::success ||
        (driver_.ctx_get_id != nullptr && driver_.ctx_get_id(context_, &id) != CuResult::success)) {
        return Presence::unknown;
    }
    return id == context_id_ ? Presence::there : Presence::gone;
}

std::vector<DeviceSite>::iterator TensorDevice::free_site(std::uint32_t blocks, bool scratch_left) {
    const auto worse = [&](const DeviceSite& a, const DeviceSite& b) {
        const bool fits = a.blocks <= blocks;
        return fits != (b.blocks <= blocks) ? !fits : fits ? a.blocks < b.blocks : a.blocks > b.blocks;
    };
    const auto best = std::max_element(free_sites_.begin(), free_sites_.end(), worse);
    if (best == free_sites_.end() || best->blocks == blocks || sites_ == most_sites) {
        return best;
    }
    return best->blocks < blocks && !scratch_left ? best : free_sites_.end(); // a new one would get a single block
}

Result<DeviceSite> TensorDevice::take_site(std::uint32_t blocks, std::uint32_t buckets) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t words = std::uint64_t{blocks} * words_of_slot(buckets);
    const bool scratch_left = blocks > 1 && scratch_ + words <= scratch_words;
    const auto fits = free_site(blocks, scratch_left);
    if (fits != free_sites_.end()) {
        const DeviceSite site = *fits;
        free_sites_.erase(fits);
        return site;
    }
    if (sites_ == most_sites) {
        return Error{ErrorCode::out_of_memory, "more than " + std::to_string(most_sites) +
                                                   " checks were captured into graphs in this process; check fewer "
                                                   "bricks (tensors=all;bricks=...) or capture less often"};
    }
    DeviceSite site;
    site.number = sites_++;
    if (scratch_left) {
        site.blocks = blocks;
        site.scratch = scratch_;
        scratch_ += static_cast<std::uint32_t>(words);
    }
    return site;
}

void TensorDevice::return_site(const DeviceSite& site) {
    const std::lock_guard lock(mutex_);
    free_sites_.push_back(site);
}

Result<std::uint32_t> TensorDevice::take_group() {
    const std::lock_guard lock(mutex_);
    if (groups_ == most_groups) {
        return Error{ErrorCode::out_of_memory, "more than " + std::to_string(most_groups) +
                                                   " graphs with checks were captured in this process; capture less "
                                                   "often"};
    }
    return groups_++;
}

Status TensorDevice::add_chunk(std::size_t bytes) {
    Chunk chunk;
    chunk.bytes = std::max(bytes, chunk_bytes);
    if (pinned_ + chunk.bytes > most_pinned) {
        return Error{ErrorCode::out_of_memory, "the results of checks take more than " +
                                                   std::to_string(most_pinned >> 20) +
                                                   " MiB of pinned memory; check fewer bricks, or capture less often"};
    }
    const RelaxedCapture relaxed(driver_);
    const CurrentContext current(driver_, context_);
    if (current.status() != CuResult::success) {
        return error_of(driver_, current.status(), "cuCtxPushCurrent", not_checked);
    }
    void* memory = nullptr;
    CuResult made = driver_.mem_host_alloc(&memory, chunk.bytes, memory_host_portable | memory_host_device_map);
    if (made != CuResult::success) {
        return error_of(driver_, made, "cuMemHostAlloc", not_checked);
    }
    made = driver_.mem_host_get_device_pointer(&chunk.device, memory, 0);
    if (made != CuResult::success) {
        static_cast<void>(driver_.mem_free_host(memory));
        return error_of(driver_, made, "cuMemHostGetDevicePointer", not_checked);
    }
    std::memset(memory, 0, chunk.bytes);
    chunk.host = static_cast<std::uint64_t*>(memory);
    pinned_ += chunk.bytes;
    chunks_.push_back(chunk);
    return {};
}

Result<SlotBlock> TensorDevice::take_slots(std::uint32_t count, std::uint32_t buckets) {
    const std::lock_guard lock(mutex_);
    const std::size_t exact = std::size_t{count} * words_of_slot(buckets) * sizeof(std::uint64_t);
    const auto fits = std::find_if(free_slots_.begin(), free_slots_.end(), [&](const SlotBlock& block) {
        return block.count == count && block.buckets == buckets;
    });
    if (fits != free_slots_.end()) {
        const SlotBlock block = *fits;
        free_slots_.erase(fits);
        std::memset(block.host, 0, exact);
        return block;
    }
    const std::size_t bytes = (exact + slot_alignment - 1) / slot_alignment * slot_alignment;
    if (chunks_.empty() || chunks_.back().bytes - chunks_.back().used < bytes) {
        if (Status added = add_chunk(bytes); !added) {
            return added.error();
        }
    }
    Chunk& chunk = chunks_.back();
    SlotBlock block;
    block.host = chunk.host + chunk.used / sizeof(std::uint64_t);
    block.device = chunk.device + chunk.used;
    block.count = count;
    block.buckets = buckets;
    chunk.used += bytes;
    return block;
}

void TensorDevice::return_slots(const SlotBlock& slots) {
    const std::lock_guard lock(mutex_);
    free_slots_.push_back(slots);
}

CuResult TensorDevice::launch(Stream stream, Function kernel, std::uint32_t blocks, std::uint32_t threads,
                              void** parameters) const noexcept {
    const auto call = [&] {
        return driver_.launch_kernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
    };
    const CuResult result = call();
    if (result != CuResult::invalid_context) {
        return result;
    }
    const CurrentContext lent(driver_, context_); // a thread without a context of its own
    return lent.status() == CuResult::success ? call() : lent.status();
}

CuResult TensorDevice::launch(Stream stream, const KernelParameters& parameters, std::uint32_t blocks) const noexcept {
    KernelParameters by_value = parameters;
    void* pointers[] = {&by_value};
    return launch(stream, kernel_, blocks, kernel_threads, pointers);
}

CuResult TensorDevice::launch_tag(Stream stream, std::uint32_t group, std::uint64_t tag) const noexcept {
    void* pointers[] = {&group, &tag};
    return launch(stream, tag_kernel_, 1, 1, pointers);
}

Result<KernelTensor> kernel_tensor_of(const Tensor& tensor, std::uint64_t first_index, bool logits) {
    KernelTensor made;
    made.count = tensor.rank <= max_rank ? tensor.count() : 0;
    if (tensor.rank > max_rank || (made.count != 0 && tensor.data == nullptr)) {
        return Error{ErrorCode::invalid_argument, "a tensor to check has no data or more than " +
                                                      std::to_string(max_rank) + " dimensions; give another"};
    }
    made.data = reinterpret_cast<std::uintptr_t>(tensor.data);
    made.first_index = first_index;
    made.dtype = static_cast<std::uint32_t>(tensor.dtype);
    if (logits && made.count != 0) {
        made.logits_begin = made.count - tensor.shape[tensor.rank - 1];
    }
    for (unsigned i = 0; i < tensor.rank; ++i) {
        if (tensor.shape[i] == 1) {
            continue;
        }
        const auto stride = static_cast<std::int64_t>(tensor.strides[i]);
        const auto size = static_cast<std::int64_t>(tensor.shape[i]);
        if (made.rank > 0 && made.strides[made.rank - 1] == stride * size) {
            made.shape[made.rank - 1] *= tensor.shape[i];
            made.strides[made.rank - 1] = stride;
        } else {
            made.shape[made.rank] = tensor.shape[i];
            made.strides[made.rank++] = stride;
        }
    }
    if (made.rank == 0) {
        made.rank = 1;
        made.shape[0] = made.count;
        made.strides[0] = 1;
    }
    return made;
}

std::uint32_t blocks_for(const KernelTensor& tensor) noexcept {
    constexpr std::uint64_t rows_of_block = 4 * kernel_warps * rows_of_turn; // four turns
    const std::uint64_t rows = tensor.count / lanes_of_row + 1;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rows / rows_of_block, 1, most_blocks));
}

} // namespace plumb::fingerprint
