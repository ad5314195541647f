// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/decode_states.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace plumb::cudagraph {

using cuda::CuResult;

namespace {

const char* const again = "the state in device memory is undefined: set it again before the next replay";

Status check_position(std::int32_t position) {
    if (position >= 0 && position < std::numeric_limits<std::int32_t>::max()) {
        return {};
    }
    return Error{ErrorCode::invalid_argument,
                 "position " + std::to_string(position) + " is no place in a sequence: give one from 0 to 2147483646."};
}

} // namespace

DecodeStates::DecodeStates(GuardedDriver& driver, std::size_t max_batch, std::size_t slots)
    : driver_(driver), max_batch_(std::clamp<std::size_t>(max_batch, 1, std::size_t{1} << 20)),
      slots_(std::clamp<std::size_t>(slots, 1, 4096)) {}

DecodeStates::~DecodeStates() { abandon(); }

void DecodeStates::abandon() {
    std::map<StateOwner, std::shared_ptr<Arrays>> all;
    {
        std::lock_guard lock(mutex_);
        all.swap(arrays_);
    }
    for (auto& [owner, arrays] : all) {
        free(*arrays);
    }
}

StateOwner DecodeStates::owner_of(cuda::Stream stream) const noexcept {
    unsigned long long id = 0;
    if (driver_.usable() && driver_.calls().stream_get_id != nullptr &&
        driver_.calls().stream_get_id(stream, &id) != CuResult::success) {
        id = 0;
    }
    return {false, reinterpret_cast<std::uintptr_t>(stream), id};
}

Result<bool> DecodeStates::alive(const Arrays& arrays) noexcept {
    const cuda::Driver& calls = driver_.calls();
    unsigned long long id = arrays.context_id;
    const CuResult asked = calls.ctx_get_id != nullptr ? calls.ctx_get_id(arrays.context, &id)
                                                       : cuda::CurrentContext(calls, arrays.context).status();
    if (context_gone(asked)) {
        return false;
    }
    const Status status = driver_.check(asked, calls.ctx_get_id != nullptr ? "cuCtxGetId" : "cuCtxPushCurrent");
    return status ? Result<bool>(id == arrays.context_id) : Result<bool>(status.error());
}

Status DecodeStates::allocate(Arrays& arrays, cuda::Stream stream) {
    const cuda::Driver& calls = driver_.calls();
    const cuda::RelaxedCapture relaxed(calls);
    if (Status status = driver_.check(calls.context_of(stream, &arrays.context), "cuStreamGetCtx"); !status) {
        return status;
    }
    if (calls.ctx_get_id != nullptr) {
        Status status = driver_.check(calls.ctx_get_id(arrays.context, &arrays.context_id), "cuCtxGetId");
        if (!status) {
            return status;
        }
    }
    const cuda::CurrentContext current(calls, arrays.context);
    if (Status status = driver_.check(current.status(), "cuCtxPushCurrent"); !status) {
        return status;
    }
    const std::size_t bytes = 3 * max_batch_ * sizeof(std::int32_t);
    if (Status status = driver_.check(calls.mem_alloc(&arrays.device, bytes), "cuMemAlloc",
                                      "lower CudaGraphOptions::max_batch or free device memory");
        !status) {
        arrays.device = 0;
        return status;
    }
    void* pinned = nullptr;
    if (Status status = driver_.check(calls.mem_host_alloc(&pinned, bytes * slots_, cuda::memory_host_portable),
                                      "cuMemHostAlloc", "lower CudaGraphOptions::state_slots");
        !status) {
        return status;
    }
    arrays.pinned = static_cast<std::int32_t*>(pinned);
    for (std::size_t i = 0; i < slots_; ++i) {
        Slot slot;
        if (Status status = driver_.check(calls.event_create(&slot.event, cuda::event_disable_timing), "cuEventCreate");
            !status) {
            return status;
        }
        arrays.slots.push_back(slot);
    }
    return {};
}

void DecodeStates::free(Arrays& arrays) noexcept {
    const Result<bool> there = driver_.usable() && arrays.context != nullptr ? alive(arrays) : Result<bool>(true);
    if (!there || *there) { // else these handles may be another context's by now
        // cuMemFreeHost waits for the copies that still read the slots, cuMemFree for the kernels.
        for (const Slot& slot : arrays.slots) {
            driver_.release(Owned::event, slot.event, arrays.context);
        }
        driver_.release(Owned::pinned_memory, arrays.pinned, arrays.context);
        driver_.release(Owned::device_memory, arrays.device, arrays.context);
    }
    arrays.slots.clear();
    arrays.pinned = nullptr;
    arrays.device = 0;
}

Result<std::shared_ptr<DecodeStates::Arrays>> DecodeStates::find_or_make(const StateOwner& owner, cuda::Stream stream) {
    std::shared_ptr<Arrays> arrays;
    {
        std::lock_guard lock(mutex_);
        std::shared_ptr<Arrays>& known = arrays_[owner];
        if (known == nullptr) {
            if (arrays_.size() > max_owners) {
                arrays_.erase(owner);
                return Error{ErrorCode::out_of_memory,
                             "4096 streams and keys have decode state already: use one CudaGraphCache per engine."};
            }
            known = std::make_shared<Arrays>();
        }
        arrays = known;
    }
    std::lock_guard lock(arrays->mutex);
    if (arrays->device != 0) {
        const Result<bool> there = alive(*arrays);
        if (!there) {
            return there.error();
        }
        if (!*there) {
            free(*arrays);
        }
    }
    if (arrays->device == 0) {
        if (Status status = allocate(*arrays, stream); !status) {
            free(*arrays);
            return status.error();
        }
    }
    return arrays;
}

Result<CudaDecodeState> DecodeStates::arrays(const StateOwner& owner, cuda::Stream stream) {
    if (Status status = driver_.status(); !status) {
        return status.error();
    }
    Result<std::shared_ptr<Arrays>> found = find_or_make(owner, stream);
    if (!found) {
        return found.error();
    }
    const Arrays& arrays = **found;
    return CudaDecodeState{part(arrays, 0), part(arrays, 1), part(arrays, 2), max_batch_};
}

Status DecodeStates::refuse_while_capturing(cuda::Stream stream) {
    if (Status status = driver_.status(); !status) {
        return status;
    }
    cuda::CaptureStatus capturing = cuda::CaptureStatus::none;
    Status status = driver_.check(driver_.calls().stream_is_capturing(stream, &capturing), "cuStreamIsCapturing");
    if (status && capturing != cuda::CaptureStatus::none) {
        return Error{ErrorCode::invalid_argument,
                     "the stream is being captured: set the decode state outside of captures; "
                     "captured kernels read it from the arrays of decode_state()."};
    }
    return status;
}

Status DecodeStates::write(const Arrays& arrays, const std::int32_t (&values)[3], cuda::Stream stream) {
    const cuda::Driver& calls = driver_.calls();
    if (calls.stream_batch_mem_op != nullptr && memory_operations_.load(std::memory_order_relaxed)) {
        cuda::WriteValueOp operations[3] = {};
        for (std::size_t i = 0; i < 3; ++i) {
            operations[i].operation = cuda::mem_op_write_value_32;
            operations[i].address = part(arrays, i);
            operations[i].value = static_cast<std::uint32_t>(values[i]);
        }
        const CuResult result = calls.stream_batch_mem_op(stream, 3, operations, 0);
        if (result != CuResult::not_supported) {
            return driver_.check(result, "cuStreamBatchMemOp", again);
        }
        memory_operations_.store(false, std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < 3; ++i) {
        const CuResult result =
            calls.memset_d32_async(part(arrays, i), static_cast<std::uint32_t>(values[i]), 1, stream);
        if (Status status = driver_.check(result, "cuMemsetD32Async", again); !status) {
            return status;
        }
    }
    return {};
}

Result<std::shared_ptr<DecodeStates::Arrays>> DecodeStates::arrays_to_set(const StateOwner& owner,
                                                                          cuda::Stream stream) {
    if (Status status = refuse_while_capturing(stream); !status) {
        return status.error();
    }
    return find_or_make(owner, stream);
}

Status DecodeStates::set(const StateOwner& owner, std::int32_t token, std::int32_t position, cuda::Stream stream) {
    if (Status status = check_position(position); !status) {
        return status;
    }
    Result<std::shared_ptr<Arrays>> found = arrays_to_set(owner, stream);
    if (!found) {
        return found.error();
    }
    std::lock_guard lock((*found)->mutex);
    return write(**found, {token, position, position + 1}, stream);
}

Result<std::size_t> DecodeStates::free_slot(Arrays& arrays) {
    const cuda::RelaxedCapture relaxed(driver_.calls());
    for (std::size_t tried = 0; tried < arrays.slots.size(); ++tried) {
        const std::size_t index = (arrays.next + tried) % arrays.slots.size();
        const Slot& slot = arrays.slots[index];
        if (slot.spoilt) {
            continue;
        }
        if (slot.used) {
            const CuResult result = driver_.calls().event_query(slot.event);
            if (result == CuResult::not_ready) {
                continue;
            }
            if (Status status = driver_.check(result, "cuEventQuery"); !status) {
                return status.error();
            }
        }
        arrays.next = (index + 1) % arrays.slots.size();
        return index;
    }
    return Error{ErrorCode::pending, "the device has not read the last " + std::to_string(arrays.slots.size()) +
                                         " decode states yet: run fewer steps ahead of it, or raise "
                                         "CudaGraphOptions::state_slots."};
}

Status DecodeStates::copy(Arrays& arrays, std::size_t slot, std::size_t count, cuda::Stream stream) {
    const cuda::Driver& calls = driver_.calls();
    const std::int32_t* const from = arrays.pinned + slot * 3 * max_batch_;
    Status copied;
    for (std::size_t i = 0; i < 3 && copied; ++i) {
        copied = driver_.check(
            calls.memcpy_htod_async(part(arrays, i), from + i * max_batch_, count * sizeof(std::int32_t), stream),
            "cuMemcpyHtoDAsync", again);
    }
    if (driver_.lost()) {
        return copied;
    }
    // Recorded after a failure too: copies before it read the slot.
    Slot& used = arrays.slots[slot];
    Status recorded = driver_.check(calls.event_record(used.event, stream), "cuEventRecord", again);
    used.used = recorded.ok();
    used.spoilt = !recorded.ok();
    return copied ? recorded : copied;
}

Status DecodeStates::set(const StateOwner& owner, const std::int32_t* tokens, const std::int32_t* positions,
                         std::size_t count, cuda::Stream stream) {
    if (count == 0 || count > max_batch_ || tokens == nullptr || positions == nullptr) {
        return Error{ErrorCode::invalid_argument, "a decode state has from 1 to " + std::to_string(max_batch_) +
                                                      " rows, not " + std::to_string(count) +
                                                      ": raise CudaGraphOptions::max_batch for larger batches."};
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (Status status = check_position(positions[i]); !status) {
            return status;
        }
    }
    Result<std::shared_ptr<Arrays>> found = arrays_to_set(owner, stream);
    if (!found) {
        return found.error();
    }
    Arrays& arrays = **found;
    std::lock_guard lock(arrays.mutex);
    const Result<std::size_t> slot = free_slot(arrays);
    if (!slot) {
        return slot.error();
    }
    std::int32_t* const to = arrays.pinned + *slot * 3 * max_batch_;
    std::copy_n(tokens, count, to);
    std::copy_n(positions, count, to + max_batch_);
    std::transform(positions, positions + count, to + 2 * max_batch_, [](std::int32_t at) { return at + 1; });
    return copy(arrays, *slot, count, stream);
}

} // namespace plumb::cudagraph
