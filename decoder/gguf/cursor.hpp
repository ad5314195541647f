// SPDX-License-Identifier: Apache-2.0
// A bounds-checked read position in the bytes of a GGUF file. Internal to the reader; one thread.
// After a failed read the cursor stays failed: callers may check once after several reads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace plumb::decoder::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place on little-endian machines only");

class Cursor {
  public:
    explicit Cursor(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

    template <class T>
    [[nodiscard]] T read() noexcept {
        T value{};
        const auto raw = take(sizeof(T));
        if (raw.size() == sizeof(T)) {
            std::memcpy(&value, raw.data(), sizeof(T));
        }
        return value;
    }

    /// `count` bytes, or an empty span and the failed state.
    [[nodiscard]] std::span<const std::byte> take(std::uint64_t count) noexcept {
        if (failed_ || count > remaining()) {
            failed_ = true;
            return {};
        }
        const auto part = bytes_.subspan(at_, static_cast<std::size_t>(count));
        at_ += static_cast<std::size_t>(count);
        return part;
    }

    [[nodiscard]] std::string_view string() noexcept {
        const auto raw = take(read<std::uint64_t>());
        return {reinterpret_cast<const char*>(raw.data()), raw.size()};
    }

    [[nodiscard]] bool failed() const noexcept { return failed_; }
    [[nodiscard]] std::uint64_t position() const noexcept { return at_; }
    [[nodiscard]] std::uint64_t remaining() const noexcept { return bytes_.size() - at_; }

  private:
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    bool failed_ = false;
};

} // namespace plumb::decoder::gguf
