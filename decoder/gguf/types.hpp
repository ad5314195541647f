// SPDX-License-Identifier: Apache-2.0
// The element types a GGUF tensor can have, and the value types of its metadata. Ids are the file format's.
// Pure constants; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumb::decoder::gguf {

/// The tensor types this decoder computes with; a file may hold any other (type_traits knows their sizes).
enum class TensorType : std::uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q4_k = 12, q6_k = 14, bf16 = 30 };

/// A tensor type is stored in blocks: `block` elements take `bytes` bytes.
struct TypeTraits {
    std::string_view name;
    std::uint32_t block = 1;
    std::uint32_t bytes = 0;
};

/// Nothing for an id this program has never heard of.
[[nodiscard]] std::optional<TypeTraits> type_traits(std::uint32_t id) noexcept;
/// "BF16", or "unknown type 99".
[[nodiscard]] std::string type_name(std::uint32_t id);

enum class ValueType : std::uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};
inline constexpr std::uint32_t value_types = 13;

/// Bytes of one value; 0 for string and array, whose length is in the file.
[[nodiscard]] std::uint32_t value_size(ValueType type) noexcept;
[[nodiscard]] std::string_view value_type_name(ValueType type) noexcept;

} // namespace plumb::decoder::gguf
