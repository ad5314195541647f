// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as a graph cache uses it: knows when the context is lost, names the call in every error, and gives
// objects back. Owned by one cache. Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "plumb/result.hpp"

namespace plumb::cudagraph {

namespace cuda = backends::cuda;

enum class Owned : std::uint8_t { graph, executable, event, device_memory, pinned_memory };
inline constexpr std::size_t owned_kinds = 5;

/// The context was destroyed: what belonged to it is gone, and other contexts may live on.
bool context_gone(cuda::CuResult result) noexcept;

class GuardedDriver {
  public:
    static constexpr const char* default_advice = "nothing was changed; run the step eagerly";

    /// `driver` null: there is none, and `why_missing` says what to do.
    GuardedDriver(const cuda::Driver* driver, Error why_missing);

    [[nodiscard]] bool there() const noexcept { return driver_ != nullptr; }
    [[nodiscard]] const cuda::Driver& calls() const noexcept { return *driver_; }
    /// False after a sticky error, and where there is no driver: make no call.
    [[nodiscard]] bool usable() const noexcept { return there() && !lost(); }
    [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
    /// Ok while usable.
    [[nodiscard]] Status status() const;

    /// Success, or an error that names call and CUDA error; a sticky one loses the context.
    Status check(cuda::CuResult result, const char* call, const char* advice = default_advice);
    void lose(const Error& error);
    /// Asks whether the context still works, after a failure whose code is not known; a sticky error loses it.
    void look() noexcept;

    /// Gives an object back. Where its context cannot be made current it is kept for sweep(); where the context is gone
    /// the object went with it; once the context is lost it is counted as left behind.
    void release(Owned kind, std::uint64_t handle, cuda::Context context) noexcept;
    template <class T>
    void release(Owned kind, T* handle, cuda::Context context) noexcept {
        if (handle != nullptr) {
            release(kind, reinterpret_cast<std::uintptr_t>(handle), context);
        }
    }
    /// Tries again what could not be given back.
    void sweep() noexcept;
    /// "3 graphs, 3 executables": what stays until the process ends; empty: nothing.
    [[nodiscard]] std::string left_behind() const;

  private:
    struct Item {
        Owned kind;
        std::uint64_t handle;
        cuda::Context context;
    };
    enum class Given : std::uint8_t { back, not_yet };
    Given give_back(const Item& item) noexcept;
    void leave(Owned kind) noexcept;

    const cuda::Driver* const driver_;
    const Error missing_;
    std::atomic<bool> lost_{false}; // release in lose(), acquire in lost(): who sees it sees the error
    mutable std::mutex mutex_;      // guards what follows; never held around a driver call
    Error lost_error_;
    std::vector<Item> kept_;
    std::size_t left_[owned_kinds] = {};
};

/// One object of the driver, given back when it goes out of scope.
template <class T, Owned kind>
class Holder {
  public:
    Holder(GuardedDriver& driver, T handle, cuda::Context context) noexcept
        : driver_(&driver), handle_(handle), context_(context) {}
    Holder(Holder&& other) noexcept
        : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)), context_(other.context_) {}
    Holder& operator=(Holder&& other) noexcept {
        std::swap(driver_, other.driver_);
        std::swap(handle_, other.handle_);
        std::swap(context_, other.context_);
        return *this;
    }
    ~Holder() { driver_->release(kind, handle_, context_); }
    [[nodiscard]] T get() const noexcept { return handle_; }

  private:
    GuardedDriver* driver_;
    T handle_;
    cuda::Context context_;
};
using GraphHolder = Holder<cuda::Graph, Owned::graph>;
using ExecHolder = Holder<cuda::GraphExec, Owned::executable>;

} // namespace plumb::cudagraph
