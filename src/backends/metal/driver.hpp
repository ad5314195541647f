// SPDX-License-Identifier: Apache-2.0
// Metal as a table of functions, found at run time in the Objective-C runtime and Metal.framework: C++ that sends messages
// needs no SDK, no Objective-C compiler, and builds and runs its tests anywhere. Nothing is linked. Owned by the process;
// any thread.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "backends/metal/driver_calls.hpp"
#include "backends/metal/driver_types.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::metal {

struct MetalDriver {
#define PLUMB_METAL_MEMBER(member, symbol, library, need, result, parameters) result(*member) parameters = nullptr;
    PLUMB_METAL_CALLS(PLUMB_METAL_MEMBER)
#undef PLUMB_METAL_MEMBER
    void* stack_block = nullptr; // &_NSConcreteStackBlock

    struct Words {
#define PLUMB_METAL_WORDS(member, words) Selector member = nullptr;
        PLUMB_METAL_MESSAGES(PLUMB_METAL_WORDS)
#undef PLUMB_METAL_WORDS
    };
    Words words;

    /// Up to three arguments, each an integer or a pointer (an NSRange is two integers). A method that takes fewer ignores
    /// the registers of the rest: so it is on every machine that has Metal.
    template <class... Arguments>
    std::uint64_t ask(Id receiver, Selector message, Arguments... arguments) const {
        static_assert(sizeof...(Arguments) <= 3);
        const std::uint64_t all[3] = {word(arguments)...};
        return send(receiver, message, all[0], all[1], all[2]);
    }
    template <class... Arguments>
    Id object(Id receiver, Selector message, Arguments... arguments) const {
        return reinterpret_cast<Id>(ask(receiver, message, arguments...));
    }
    template <class... Arguments>
    bool yes(Id receiver, Selector message, Arguments... arguments) const {
        return (ask(receiver, message, arguments...) & 0xFF) != 0; // a BOOL leaves the rest of its register open
    }

    /// Fills `words`.
    void register_words();

  private:
    template <class T>
    static std::uint64_t word(T value) {
        if constexpr (std::is_null_pointer_v<T>) {
            return 0;
        } else if constexpr (std::is_pointer_v<T>) {
            return reinterpret_cast<std::uint64_t>(value);
        } else {
            return static_cast<std::uint64_t>(value);
        }
    }
};

/// The framework of this process, opened at the first call. Error unavailable says what is missing and what to do.
const Result<MetalDriver>& driver();

/// One reference to an object, given back when it goes.
class Held {
  public:
    Held() = default;
    /// `object` has a reference already, which is ours now.
    Held(const MetalDriver& driver, Id object) : driver_(&driver), object_(object) {}
    Held(Held&& other) noexcept;
    Held& operator=(Held&& other) noexcept;
    ~Held();
    static Held retained(const MetalDriver& driver, Id object);

    [[nodiscard]] Id get() const noexcept { return object_; }

  private:
    const MetalDriver* driver_ = nullptr;
    Id object_ = nullptr;
};

/// What is autoreleased inside goes with it. Must be destroyed by its thread, in reverse order.
class AutoreleasePool {
  public:
    explicit AutoreleasePool(const MetalDriver& driver) : driver_(driver), pool_(driver.push_pool()) {}
    ~AutoreleasePool() { driver_.pop_pool(pool_); }
    AutoreleasePool(const AutoreleasePool&) = delete;
    AutoreleasePool& operator=(const AutoreleasePool&) = delete;

  private:
    const MetalDriver& driver_;
    void* pool_;
};

/// Every device, in the system's order: their places are our device indices. Error unavailable where there is none.
Result<std::vector<Held>> devices_of(const MetalDriver& driver);
/// An NSString's text; empty for none.
std::string text_of(const MetalDriver& driver, Id string);
/// "metal:0"
std::string clock_name_of(const MetalDriver& driver, Id device);

} // namespace plumb::backends::metal
