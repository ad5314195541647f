// SPDX-License-Identifier: Apache-2.0
// Builds GGUF bytes in memory, right or deliberately wrong, for the reader's tests. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace plumb::decoder::gguf {

class Builder {
  public:
    template <class T>
    Builder& put(T value) {
        char raw[sizeof(T)];
        std::memcpy(raw, &value, sizeof(T));
        bytes_.append(raw, sizeof(T));
        return *this;
    }
    Builder& text(std::string_view value) {
        put(static_cast<std::uint64_t>(value.size()));
        bytes_.append(value);
        return *this;
    }
    Builder& header(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
        bytes_.append("GGUF");
        return put(version).put(tensors).put(entries);
    }
    Builder& number(std::string_view key, std::uint32_t value) { return text(key).put(std::uint32_t{4}).put(value); }
    Builder& tensor(std::string_view name, std::uint64_t cols, std::uint64_t rows, std::uint32_t type,
                    std::uint64_t offset) {
        return text(name).put(std::uint32_t{2}).put(cols).put(rows).put(type).put(offset);
    }
    Builder& pad(std::size_t alignment = 32) {
        bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
        return *this;
    }
    Builder& zeros(std::size_t count) {
        bytes_.append(count, '\0');
        return *this;
    }
    [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

  private:
    std::string bytes_;
};

} // namespace plumb::decoder::gguf
