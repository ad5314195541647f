// SPDX-License-Identifier: Apache-2.0
// Conversions of metadata values to the types the decoder asks for.
#include <cmath>
#include <limits>

#include "decoder/gguf/cursor.hpp"
#include "decoder/gguf/reader.hpp"

namespace plumb::decoder::gguf {
namespace {

template <class T>
T load(std::span<const std::byte> payload) noexcept {
    return Cursor(payload).read<T>();
}

/// Any integer or floating value as a signed integer and a double; `integral` says which one is exact.
struct Number {
    bool negative = false;
    bool integral = false;
    std::uint64_t magnitude = 0;
    double real = 0;
};

Number from_signed(std::int64_t value) noexcept {
    return {value < 0, true, value < 0 ? 0 : static_cast<std::uint64_t>(value), static_cast<double>(value)};
}

Number from_unsigned(std::uint64_t value) noexcept { return {false, true, value, static_cast<double>(value)}; }

std::optional<Number> number(const Value& value) noexcept {
    switch (value.type) {
    case ValueType::u8:
        return from_unsigned(load<std::uint8_t>(value.payload));
    case ValueType::u16:
        return from_unsigned(load<std::uint16_t>(value.payload));
    case ValueType::u32:
        return from_unsigned(load<std::uint32_t>(value.payload));
    case ValueType::u64:
        return from_unsigned(load<std::uint64_t>(value.payload));
    case ValueType::i8:
        return from_signed(load<std::int8_t>(value.payload));
    case ValueType::i16:
        return from_signed(load<std::int16_t>(value.payload));
    case ValueType::i32:
        return from_signed(load<std::int32_t>(value.payload));
    case ValueType::i64:
        return from_signed(load<std::int64_t>(value.payload));
    case ValueType::f32:
        return Number{false, false, 0, static_cast<double>(load<float>(value.payload))};
    case ValueType::f64:
        return Number{false, false, 0, load<double>(value.payload)};
    case ValueType::boolean:
    case ValueType::string:
    case ValueType::array:
        break;
    }
    return std::nullopt;
}

} // namespace

std::optional<std::uint64_t> Value::as_unsigned() const noexcept {
    const auto parsed = number(*this);
    if (!parsed || !parsed->integral || parsed->negative) {
        return std::nullopt;
    }
    return parsed->magnitude;
}

std::optional<double> Value::as_number() const noexcept {
    const auto parsed = number(*this);
    if (!parsed || !std::isfinite(parsed->real)) {
        return std::nullopt;
    }
    return parsed->real;
}

std::optional<bool> Value::as_bool() const noexcept {
    if (type != ValueType::boolean) {
        return std::nullopt;
    }
    return load<std::uint8_t>(payload) != 0;
}

std::optional<std::string_view> Value::as_string() const noexcept {
    if (type != ValueType::string) {
        return std::nullopt;
    }
    return std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size());
}

Value Value::next_element(std::size_t& at) const noexcept {
    Cursor cursor(payload.subspan(at));
    Value out;
    out.type = element;
    if (element == ValueType::string) {
        const std::string_view text = cursor.string();
        out.payload = std::as_bytes(std::span(text));
    } else if (element == ValueType::array) {
        // An array inside an array is shown by its length only; its elements are stepped over.
        out.element = static_cast<ValueType>(cursor.read<std::uint32_t>());
        out.count = cursor.read<std::uint64_t>();
        const std::uint64_t begin = cursor.position();
        Value inner = out;
        inner.payload = payload.subspan(at + begin);
        std::size_t length = 0;
        if (const std::uint32_t size = value_size(out.element); size != 0) {
            length = static_cast<std::size_t>(out.count * size);
        } else {
            for (std::uint64_t i = 0; i < out.count; ++i) {
                (void)inner.next_element(length);
            }
        }
        out.payload = cursor.take(length);
    } else {
        out.payload = cursor.take(value_size(element));
    }
    at += static_cast<std::size_t>(cursor.position());
    return out;
}

} // namespace plumb::decoder::gguf
