// SPDX-License-Identifier: Apache-2.0
// Writes protocol buffers front to back, without objects for messages: numbers, bytes, and messages whose length is filled in
// when they end. No checks: there must be room. Used within one function; one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace plumb::exporting {

class ProtoPen {
  public:
    explicit ProtoPen(char* to) : at_(to) {}
    [[nodiscard]] char* at() const { return at_; }

    void varint(std::uint64_t value) {
        while (value >= 0x80) {
            *at_++ = static_cast<char>(value | 0x80);
            value >>= 7;
        }
        *at_++ = static_cast<char>(value);
    }
    void number(unsigned field, std::uint64_t value) {
        varint(std::uint64_t{field} << 3);
        varint(value);
    }
    void real(unsigned field, double value) {
        varint(std::uint64_t{field} << 3 | 1);
        const auto bits = std::bit_cast<std::uint64_t>(value);
        for (unsigned i = 0; i < 8; ++i) {
            *at_++ = static_cast<char>(bits >> (8 * i));
        }
    }
    void text(unsigned field, std::string_view value) {
        varint(std::uint64_t{field} << 3 | 2);
        varint(value.size());
        raw(value);
    }
    /// Bytes that are fields already.
    void raw(std::string_view fields) {
        std::memcpy(at_, fields.data(), fields.size());
        at_ += fields.size();
    }
    /// A message of at most 127 bytes: what `write` writes.
    template <class Write>
    void message(unsigned field, Write&& write) {
        varint(std::uint64_t{field} << 3 | 2);
        char* const length = at_++;
        write();
        *length = static_cast<char>(at_ - length - 1);
    }

  private:
    char* at_;
};

/// The same into a string, for what is written seldom and may be of any length.
class ProtoText {
  public:
    ProtoText& number(unsigned field, std::uint64_t value) {
        char room[20];
        ProtoPen pen(room);
        pen.number(field, value);
        return add(room, pen);
    }
    ProtoText& real(unsigned field, double value) {
        char room[20];
        ProtoPen pen(room);
        pen.real(field, value);
        return add(room, pen);
    }
    /// What is no UTF-8 in it is replaced: a text must be.
    ProtoText& text(unsigned field, std::string_view value) { return part(field, base::valid_utf8(value)); }
    /// Bytes that are fields already.
    ProtoText& append(std::string_view fields) {
        bytes_.append(fields);
        return *this;
    }
    ProtoText& message(unsigned field, const ProtoText& inside) { return part(field, inside.bytes_); }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

  private:
    ProtoText& part(unsigned field, std::string_view bytes) {
        char room[20];
        ProtoPen pen(room);
        pen.varint(std::uint64_t{field} << 3 | 2);
        pen.varint(bytes.size());
        add(room, pen);
        bytes_.append(bytes);
        return *this;
    }
    ProtoText& add(const char* from, const ProtoPen& pen) {
        bytes_.append(from, static_cast<std::size_t>(pen.at() - from));
        return *this;
    }
    std::string bytes_;
};

} // namespace plumb::exporting
