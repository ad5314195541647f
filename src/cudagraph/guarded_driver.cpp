// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/guarded_driver.hpp"

#include <optional>
#include <utility>

namespace plumb::cudagraph {

using cuda::CuResult;

bool context_gone(CuResult result) noexcept {
    return result == CuResult::context_is_destroyed || result == CuResult::invalid_context;
}

namespace {

const char* const owned_names[owned_kinds][2] = {{"graph", "graphs"},
                                                 {"executable", "executables"},
                                                 {"event", "events"},
                                                 {"device buffer", "device buffers"},
                                                 {"pinned buffer", "pinned buffers"}};

} // namespace

GuardedDriver::GuardedDriver(const cuda::Driver* driver, Error why_missing)
    : driver_(driver), missing_(std::move(why_missing)) {}

Status GuardedDriver::status() const {
    if (!there()) {
        return missing_;
    }
    if (!lost()) {
        return {};
    }
    std::lock_guard lock(mutex_);
    return lost_error_;
}

Status GuardedDriver::check(CuResult result, const char* call, const char* advice) {
    if (result == CuResult::success) {
        return {};
    }
    Error error = cuda::error_of(*driver_, result, call, advice);
    if (cuda::is_sticky(result) && !context_gone(result)) {
        lose(error);
    }
    return error;
}

void GuardedDriver::lose(const Error& error) {
    std::lock_guard lock(mutex_);
    if (lost_.load(std::memory_order_relaxed)) {
        return;
    }
    lost_error_ = error;
    lost_.store(true, std::memory_order_release);
}

void GuardedDriver::look() noexcept {
    if (!usable()) {
        return;
    }
    const cuda::RelaxedCapture relaxed(*driver_);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    (void)check(driver_->mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo", "the cache makes no more calls");
}

void GuardedDriver::leave(Owned kind) noexcept {
    std::lock_guard lock(mutex_);
    ++left_[static_cast<std::size_t>(kind)];
}

GuardedDriver::Given GuardedDriver::give_back(const Item& item) noexcept {
    // A context's end takes its events and memory along, but no graph and no executable: these need no context either.
    const bool in_context = item.kind != Owned::graph && item.kind != Owned::executable;
    std::optional<cuda::CurrentContext> current;
    if (in_context && item.context != nullptr) {
        current.emplace(*driver_, item.context);
        if (current->status() != CuResult::success) {
            return context_gone(current->status()) ? Given::back : Given::not_yet;
        }
    }
    CuResult result = CuResult::success;
    const auto address = static_cast<std::uintptr_t>(item.handle);
    switch (item.kind) {
    case Owned::graph:
        result = driver_->graph_destroy(reinterpret_cast<cuda::Graph>(address));
        break;
    case Owned::executable:
        result = driver_->graph_exec_destroy(reinterpret_cast<cuda::GraphExec>(address));
        break;
    case Owned::event:
        result = driver_->event_destroy(reinterpret_cast<cuda::Event>(address));
        break;
    case Owned::device_memory:
        result = driver_->mem_free(item.handle);
        break;
    case Owned::pinned_memory:
        result = driver_->mem_free_host(reinterpret_cast<void*>(address));
        break;
    }
    // An error here is mostly that of earlier work, and the object is gone all the same: never a second time, the handle
    // may be somebody else's by then.
    (void)check(result, "giving a CUDA object back");
    return Given::back;
}

void GuardedDriver::release(Owned kind, std::uint64_t handle, cuda::Context context) noexcept {
    if (handle == 0) {
        return;
    }
    if (!usable()) {
        leave(kind);
        return;
    }
    const cuda::RelaxedCapture relaxed(*driver_);
    const Item item{kind, handle, context};
    if (give_back(item) != Given::not_yet) {
        return;
    }
    if (lost()) {
        leave(kind);
        return;
    }
    std::lock_guard lock(mutex_);
    kept_.push_back(item);
}

void GuardedDriver::sweep() noexcept {
    std::vector<Item> again;
    {
        std::lock_guard lock(mutex_);
        again.swap(kept_);
    }
    for (const Item& item : again) {
        release(item.kind, item.handle, item.context);
    }
}

std::string GuardedDriver::left_behind() const {
    std::lock_guard lock(mutex_);
    std::size_t counts[owned_kinds] = {};
    for (std::size_t kind = 0; kind < owned_kinds; ++kind) {
        counts[kind] = left_[kind];
    }
    for (const Item& item : kept_) {
        ++counts[static_cast<std::size_t>(item.kind)];
    }
    std::string text;
    for (std::size_t kind = 0; kind < owned_kinds; ++kind) {
        if (counts[kind] == 0) {
            continue;
        }
        text += (text.empty() ? "" : ", ") + std::to_string(counts[kind]) + ' ' +
                owned_names[kind][counts[kind] == 1 ? 0 : 1];
    }
    return text;
}

} // namespace plumb::cudagraph
