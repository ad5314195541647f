// SPDX-License-Identifier: Apache-2.0
// A buffer before a stream, made for many short pieces: reserve room once, then copy without checks.
// Owned by one exporter call; one thread.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::exporting {

/// Writes short pieces where there is room for them: no checks. A plain pointer, to be kept in a local variable: what a sink
/// remembers has to be loaded again after every character stored.
class TextPen {
  public:
    explicit TextPen(char* to) : at_(to) {}
    [[nodiscard]] char* at() const { return at_; }

    void put(std::string_view text) {
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }
    void put(char character) { *at_++ = character; }
    template <std::integral T>
    void put_integer(T value) {
        if constexpr (std::is_signed_v<T>) {
            at_ = std::to_chars(at_, at_ + number_room, value).ptr;
        } else {
            at_ = groups_of_three(at_, value);
        }
    }
    /// Nanoseconds, not negative, as microseconds with three decimals: nothing is cut. One byte behind it must be free.
    void put_microseconds(std::int64_t ns) {
        const auto value = static_cast<std::uint64_t>(ns);
        char* at = groups_of_three(at_, value / 1000);
        *at = '.';
        std::memcpy(at + 1, groups[value % 1000].data(), 4);
        at_ = at + 4;
    }
    /// Finite; an integer is printed as one.
    void put_number(double value) {
        constexpr double exact = 9007199254740992.0; // 2^53
        if (value >= 0 && value < exact) {
            if (const auto whole = static_cast<std::uint64_t>(value); static_cast<double>(whole) == value) {
                put_integer(whole);
                return;
            }
        }
        at_ = std::to_chars(at_, at_ + number_room, value).ptr;
    }

  private:
    static constexpr std::size_t number_room = 32; // no number is longer
    static constexpr auto groups = [] {            // 000 to 999, in four bytes each
        std::array<std::array<char, 4>, 1000> all{};
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] = {static_cast<char>('0' + i / 100), static_cast<char>('0' + i / 10 % 10),
                      static_cast<char>('0' + i % 10), 0};
        }
        return all;
    }();

    // Most of a trace is numbers, and std::to_chars takes two digits a step after it has counted them.
    static char* groups_of_three(char* at, std::uint64_t value) {
        if (value < 1000) {
            const std::size_t zeros = (value < 100 ? 1 : 0) + (value < 10 ? 1 : 0);
            std::memcpy(at, groups[value].data() + zeros, 2);
            at[2 - zeros] = groups[value][2];
            return at + 3 - zeros;
        }
        at = groups_of_three(at, value / 1000);
        std::memcpy(at, groups[value % 1000].data(), 3);
        return at + 3;
    }

    char* at_;
};

class TextSink {
  public:
    explicit TextSink(std::ostream& out) : out_(out), buffer_(size), at_(buffer_.data()) {}

    /// Makes room for `bytes` (at most max_reserve) of the calls below that do not check.
    void reserve(std::size_t bytes) {
        if (static_cast<std::size_t>(buffer_.data() + size - at_) < bytes) {
            drain();
        }
    }

    // These need room reserved before.
    [[nodiscard]] TextPen pen() const { return TextPen(at_); }
    void take(const TextPen& pen) { at_ = pen.at(); }
    template <class T>
    void put(const T& text) {
        with_pen([&](TextPen& pen) { pen.put(text); });
    }
    template <std::integral T>
    void put_integer(T value) {
        with_pen([&](TextPen& pen) { pen.put_integer(value); });
    }
    void put_microseconds(std::int64_t ns) {
        with_pen([&](TextPen& pen) { pen.put_microseconds(ns); });
    }
    void put_number(double value) {
        with_pen([&](TextPen& pen) { pen.put_number(value); });
    }

    /// Any length; needs no room reserved.
    void append(std::string_view text) {
        while (!text.empty()) {
            reserve(max_reserve);
            const std::string_view part = text.substr(0, max_reserve);
            put(part);
            text.remove_prefix(part.size());
        }
    }

    /// False once the stream refused data: what follows is thrown away.
    [[nodiscard]] bool good() const { return out_.good(); }

    /// Hands everything to the stream. Error no_space where it refused any of it.
    Status flush() {
        drain();
        out_.flush();
        if (!out_.good()) {
            return Error{ErrorCode::no_space,
                         "the output refused more data: free space where it lies, or write to another place"};
        }
        return {};
    }

    static constexpr std::size_t max_reserve = std::size_t{64} << 10;

  private:
    static constexpr std::size_t size = std::size_t{256} << 10;

    template <class Write>
    void with_pen(Write write) {
        TextPen pen(at_);
        write(pen);
        at_ = pen.at();
    }

    void drain() {
        if (out_.good()) {
            out_.write(buffer_.data(), at_ - buffer_.data());
        }
        at_ = buffer_.data();
    }

    std::ostream& out_;
    std::vector<char> buffer_;
    char* at_;
};

} // namespace plumb::exporting
