// SPDX-License-Identifier: Apache-2.0
// Little-endian numbers and tagged fields in byte buffers: the alphabet of the .plumb format (docs/reference/plumb_format.md).
// Pure functions and plain values; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace plumb::recording {

using Bytes = std::vector<std::byte>;

template <class T>
void store_le(std::byte* at, T value) {
    using Unsigned = std::make_unsigned_t<T>;
    auto bits = static_cast<Unsigned>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        at[i] = static_cast<std::byte>((bits >> (8 * i)) & 0xff);
    }
}

template <class T>
[[nodiscard]] T load_le(const std::byte* at) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        bits |= static_cast<std::uint64_t>(at[i]) << (8 * i);
    }
    return static_cast<T>(bits);
}

template <class T>
void append_le(Bytes& to, T value) {
    const std::size_t at = to.size();
    to.resize(at + sizeof(T));
    store_le(to.data() + at, value);
}

inline void append_bytes(Bytes& to, const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    to.insert(to.end(), begin, begin + size);
}

/// Appends fields of the form number (2 bytes), length (4 bytes), content.
class FieldWriter {
  public:
    explicit FieldWriter(Bytes& to) : to_(to) {}

    void number(std::uint16_t field, std::uint64_t value) {
        head(field, sizeof value);
        append_le(to_, value);
    }
    void text(std::uint16_t field, std::string_view value) {
        head(field, value.size());
        append_bytes(to_, value.data(), value.size());
    }
    /// Content: what `append` appends to the bytes it is given.
    template <class F>
    void made(std::uint16_t field, F&& append) {
        head(field, 0);
        const std::size_t begin = to_.size();
        append(to_);
        store_le(to_.data() + begin - sizeof(std::uint32_t), static_cast<std::uint32_t>(to_.size() - begin));
    }
    /// Content: length of the key (4 bytes), key, value.
    void pair(std::uint16_t field, std::string_view key, std::string_view value) {
        head(field, sizeof(std::uint32_t) + key.size() + value.size());
        append_le(to_, static_cast<std::uint32_t>(key.size()));
        append_bytes(to_, key.data(), key.size());
        append_bytes(to_, value.data(), value.size());
    }
    /// Content as pair(), the value 8 bytes.
    void named_number(std::uint16_t field, std::string_view key, std::uint64_t value) {
        std::byte bytes[sizeof value];
        store_le(bytes, value);
        pair(field, key, {reinterpret_cast<const char*>(bytes), sizeof bytes});
    }

  private:
    void head(std::uint16_t field, std::size_t size) {
        append_le(to_, field);
        append_le(to_, static_cast<std::uint32_t>(size));
    }

    Bytes& to_;
};

/// One field, pointing into the buffer it was read from.
struct Field {
    std::uint16_t number = 0;
    std::string_view content;

    /// 0 when the content is not 8 bytes.
    [[nodiscard]] std::uint64_t as_number() const {
        return content.size() == 8 ? load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(content.data())) : 0;
    }
    [[nodiscard]] std::string as_text() const { return std::string(content); }
    /// False when the content is no pair.
    [[nodiscard]] bool as_pair(std::string_view& key, std::string_view& value) const {
        if (content.size() < sizeof(std::uint32_t)) {
            return false;
        }
        const auto size = load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(content.data()));
        if (size > content.size() - sizeof(std::uint32_t)) {
            return false;
        }
        key = content.substr(sizeof(std::uint32_t), size);
        value = content.substr(sizeof(std::uint32_t) + size);
        return true;
    }
};

/// Walks over fields; stops at the end or at the first field that does not fit.
class FieldReader {
  public:
    FieldReader(const std::byte* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

    [[nodiscard]] bool next(Field& field) {
        constexpr std::size_t head = sizeof(std::uint16_t) + sizeof(std::uint32_t);
        if (rest_.size() < head) {
            intact_ = intact_ && rest_.empty();
            return false;
        }
        const auto* at = reinterpret_cast<const std::byte*>(rest_.data());
        const auto size = load_le<std::uint32_t>(at + sizeof(std::uint16_t));
        if (size > rest_.size() - head) {
            intact_ = false;
            return false;
        }
        field.number = load_le<std::uint16_t>(at);
        field.content = rest_.substr(head, size);
        rest_.remove_prefix(head + size);
        return true;
    }
    /// After next() returned false: whether the fields ended where the buffer did.
    [[nodiscard]] bool intact() const { return intact_; }

  private:
    std::string_view rest_;
    bool intact_ = true;
};

} // namespace plumb::recording
