// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/completion.hpp"

#include <cmath>
#include <new>
#include <string>

namespace plumb::backends::metal {
namespace {

std::uint64_t nanoseconds(double seconds) noexcept {
    const double ns = seconds * 1e9;
    return ns > 0 && ns < 9e18 ? static_cast<std::uint64_t>(std::llround(ns)) : 0;
}

} // namespace

const ObjcBlock::Layout Completion::layout{0, sizeof(ObjcBlock), copy, dispose};

void Completion::copy(ObjcBlock* to, const ObjcBlock* from) {
    to->captured = from->captured;
    static_cast<Completion*>(to->captured)->uses_.fetch_add(1, std::memory_order_relaxed); // the owner's use keeps it
}

void Completion::invoke(ObjcBlock* block, Id command_buffer) {
    Completion& note = *static_cast<Completion*>(block->captured);
    const MetalDriver& driver = note.pool_->driver();
    const std::uint64_t status = driver.ask(command_buffer, driver.words.status);
    State state = State::failed;
    if (status == status_completed) {
        note.begin_ns_ = nanoseconds(driver.send_double(command_buffer, driver.words.gpu_start));
        note.end_ns_ = nanoseconds(driver.send_double(command_buffer, driver.words.gpu_end));
        state = State::timed;
    }
    note.error_ = status;
    note.state_.store(state, std::memory_order_release); // pairs with look() and over()
}

// The runtime disposes of a block after its call, or with a command buffer that was never committed.
void Completion::dispose(ObjcBlock* block) {
    Completion& note = *static_cast<Completion*>(block->captured);
    State pending = State::pending;
    note.state_.compare_exchange_strong(pending, State::abandoned, std::memory_order_release);
    note.drop_use();
}

Status Completion::look() const noexcept {
    switch (state_.load(std::memory_order_acquire)) {
    case State::pending:
        return Error{ErrorCode::pending, "the device has not finished this command buffer; ask later"};
    case State::failed:
        return Error{ErrorCode::failed, "the device ended this command buffer with status " + std::to_string(error_) +
                                            ", so that it has no time; see its error property"};
    case State::abandoned:
        return Error{ErrorCode::failed, "this command buffer was released before it was committed, so that it has no "
                                        "time; commit what you attach"};
    case State::timed:
        break;
    }
    if (begin_ns_ == 0 || end_ns_ == 0) {
        return Error{ErrorCode::unsupported, "this system leaves GPUStartTime or GPUEndTime at 0, so that there is no "
                                             "time; use another version of the system, or the host's own timing"};
    }
    if (end_ns_ < begin_ns_) {
        return Error{ErrorCode::corrupt,
                     "GPUEndTime lies before GPUStartTime, so that there is no time; report this system"};
    }
    return {};
}

void Completion::drop_use() noexcept {
    if (uses_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        Completions* pool = pool_;
        pool->notes_.release(place_);
        pool->drop_use();
    }
}

Result<Completions::Handle> Completions::create(const MetalDriver& driver, std::uint32_t capacity) {
    void* memory = ::operator new(TokenPool<Completion>::bytes(capacity), std::align_val_t{64}, std::nothrow);
    Completions* pool = memory != nullptr ? new (std::nothrow) Completions(driver, memory, capacity) : nullptr;
    if (pool == nullptr) {
        Free()(memory);
        return Error{ErrorCode::out_of_memory,
                     "there is no memory for " + std::to_string(capacity) + " command buffers; lower max_in_flight"};
    }
    return Handle(pool);
}

void Completions::drop_use() noexcept {
    if (uses_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete this;
    }
}

Result<Completion*> Completions::watch(Id command_buffer) noexcept {
    if (command_buffer == nullptr || driver_.ask(command_buffer, driver_.words.status) >= status_committed) {
        return Error{ErrorCode::invalid_argument, "this command buffer is null or committed already; attach each one "
                                                  "before its commit"};
    }
    DeviceToken place;
    Completion* note = notes_.acquire(place);
    if (note == nullptr) {
        return Error{ErrorCode::out_of_memory, "too many command buffers are timed and not completed; collect or "
                                               "cancel some first"};
    }
    uses_.fetch_add(1, std::memory_order_relaxed); // the timer's use keeps the pool
    note->pool_ = this;
    note->place_ = place;
    note->begin_ns_ = note->end_ns_ = note->error_ = 0;
    note->state_.store(Completion::State::pending, std::memory_order_relaxed);
    note->expected_.store(0, std::memory_order_relaxed);
    note->read_.store(0, std::memory_order_relaxed);
    note->part_ticks_.store(0, std::memory_order_relaxed);
    note->uses_.store(1, std::memory_order_relaxed);
    note->owners_.store(1, std::memory_order_relaxed);
    // Adding it hands the note to another thread; the runtime copies the block from our stack.
    ObjcBlock block{driver_.stack_block, block_has_copy_dispose, 0, Completion::invoke, &Completion::layout, note};
    driver_.ask(command_buffer, driver_.words.add_completed, &block);
    return note;
}

} // namespace plumb::backends::metal
