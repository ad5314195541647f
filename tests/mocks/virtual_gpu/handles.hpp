// SPDX-License-Identifier: Apache-2.0
// Handles as a driver gives them out: opaque addresses that nobody may follow, of which a destroyed one is the next to be
// given out again. Owned by the Gpu; under its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace plumb::vgpu {

template <class T, class Handle>
class Handles {
  public:
    /// Kinds have different bases: a handle of the wrong kind is never found.
    explicit Handles(std::uintptr_t kind) : base_(std::uintptr_t{0x7a} << 40 | kind << 32) {}

    Handle give(std::shared_ptr<T> object) {
        std::size_t index = slots_.size();
        if (reuse_ && !free_.empty()) {
            index = free_.back();
            free_.pop_back();
            slots_[index] = std::move(object);
        } else {
            slots_.push_back(std::move(object));
        }
        ++alive_;
        return handle_of(index);
    }

    std::shared_ptr<T> find(Handle handle) const {
        const std::size_t index = index_of(handle);
        return index < slots_.size() ? slots_[index] : nullptr;
    }
    /// It was one of ours once, and is no more.
    bool was_destroyed(Handle handle) const {
        const std::size_t index = index_of(handle);
        return index < slots_.size() && !slots_[index];
    }
    std::shared_ptr<T> take(Handle handle) {
        const std::size_t index = index_of(handle);
        if (index >= slots_.size() || !slots_[index]) {
            return nullptr;
        }
        free_.push_back(index);
        --alive_;
        return std::exchange(slots_[index], nullptr);
    }

    std::size_t alive() const { return alive_; }
    void set_reuse(bool reuse) { reuse_ = reuse; }
    template <class F>
    void for_each(F&& f) const {
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i]) {
                f(handle_of(i), *slots_[i]);
            }
        }
    }

  private:
    static constexpr std::size_t stride = 64;
    Handle handle_of(std::size_t index) const { return reinterpret_cast<Handle>(base_ + index * stride); }
    std::size_t index_of(Handle handle) const {
        const auto value = reinterpret_cast<std::uintptr_t>(handle);
        if (value < base_ || (value - base_) % stride != 0) {
            return static_cast<std::size_t>(-1);
        }
        return (value - base_) / stride;
    }

    std::uintptr_t base_;
    bool reuse_ = true;
    std::size_t alive_ = 0;
    std::vector<std::shared_ptr<T>> slots_;
    std::vector<std::size_t> free_;
};

} // namespace plumb::vgpu
