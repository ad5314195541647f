// SPDX-License-Identifier: Apache-2.0
// A buffer before a stream, made for many short pieces: reserve room once, then copy without checks.
// Owned by one exporter call; one thread.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::exporting {

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
    void put(std::string_view text) {
        std::memcpy(at_, text.data(), text.size());
        at_ += text.size();
    }
    void put(char character) { *at_++ = character; }
    template <std::integral T>
    void put_integer(T value) {
        at_ = std::to_chars(at_, buffer_.data() + size, value).ptr;
    }
    /// Nanoseconds, not negative, as microseconds with three decimals: nothing is cut.
    void put_microseconds(std::int64_t ns) {
        put_integer(static_cast<std::uint64_t>(ns) / 1000);
        const auto rest = static_cast<unsigned>(static_cast<std::uint64_t>(ns) % 1000);
        at_[0] = '.';
        at_[1] = static_cast<char>('0' + rest / 100);
        at_[2] = static_cast<char>('0' + rest / 10 % 10);
        at_[3] = static_cast<char>('0' + rest % 10);
        at_ += 4;
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
        at_ = std::to_chars(at_, buffer_.data() + size, value).ptr;
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
