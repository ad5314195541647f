// SPDX-License-Identifier: Apache-2.0
// Callback: a function that the caller hands over, as a lambda or anything else that can be called. It stands for
// std::function, whose header alone is half of what plumb.hpp may weigh.
// Owns a copy of what it was made from. Thread rule: as that has it.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace plumb {

template <class Signature>
class Callback;

/// Empty when made from nothing or nullptr; REQUIRES not empty when called.
template <class Returned, class... Arguments>
class Callback<Returned(Arguments...)> {
  public:
    Callback() noexcept = default;
    Callback(std::nullptr_t) noexcept {} // NOLINT: implicit by design
    template <class Function,
              std::enable_if_t<!std::is_same_v<std::decay_t<Function>, Callback> &&
                                   std::is_invocable_r_v<Returned, std::decay_t<Function>&, Arguments...>,
                               int> = 0>
    Callback(Function&& function) // NOLINT: implicit by design
        : held_(new std::decay_t<Function>(std::forward<Function>(function))), type_(&of<std::decay_t<Function>>) {}
    Callback(const Callback& other)
        : held_(other.type_ != nullptr ? other.type_->copy(other.held_) : nullptr), type_(other.type_) {}
    Callback(Callback&& other) noexcept
        : held_(std::exchange(other.held_, nullptr)), type_(std::exchange(other.type_, nullptr)) {}
    Callback& operator=(Callback other) noexcept {
        std::swap(held_, other.held_);
        std::swap(type_, other.type_);
        return *this;
    }
    ~Callback() {
        if (type_ != nullptr) {
            type_->destroy(held_);
        }
    }

    explicit operator bool() const noexcept { return type_ != nullptr; }
    Returned operator()(Arguments... arguments) const {
        return type_->call(held_, std::forward<Arguments>(arguments)...);
    }

  private:
    struct Type {
        Returned (*call)(void* held, Arguments&&... arguments);
        void* (*copy)(const void* held);
        void (*destroy)(void* held);
    };
    template <class Function>
    static constexpr Type of = {
        [](void* held, Arguments&&... arguments) -> Returned {
            return (*static_cast<Function*>(held))(std::forward<Arguments>(arguments)...);
        },
        [](const void* held) -> void* { return new Function(*static_cast<const Function*>(held)); },
        [](void* held) { delete static_cast<Function*>(held); },
    };

    void* held_ = nullptr;
    const Type* type_ = nullptr;
};

} // namespace plumb
