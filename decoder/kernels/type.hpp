// SPDX-License-Identifier: Apache-2.0
// The types of values a backend is given: of matrices any, of activations f32 or bf16. Rows of a packed type are blocks
// that hold their own scales, as in a GGUF file. Pure constants; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plumb::decoder {

enum class Type : std::uint8_t { f32, bf16, f16, q8_0, q4_0, q4_k, q6_k };

inline constexpr std::array all_types{Type::f32, Type::bf16, Type::f16, Type::q8_0, Type::q4_0, Type::q4_k, Type::q6_k};

/// `block` values take `bytes` bytes.
struct TypeLayout {
    std::string_view word; // "q8_0": as on command lines
    std::size_t block;
    std::size_t bytes;
    std::uint32_t file_id; // in a GGUF file
};

[[nodiscard]] constexpr TypeLayout layout_of(Type type) noexcept {
    switch (type) {
    case Type::f32:
        return {"f32", 1, 4, 0};
    case Type::bf16:
        return {"bf16", 1, 2, 30};
    case Type::f16:
        return {"f16", 1, 2, 1};
    case Type::q8_0:
        return {"q8_0", 32, 34, 8};
    case Type::q4_0:
        return {"q4_0", 32, 18, 2};
    case Type::q4_k:
        return {"q4_k", 256, 144, 12};
    case Type::q6_k:
        return {"q6_k", 256, 210, 14};
    }
    return {"", 1, 0, 0};
}

/// Of one value. REQUIRES a type whose blocks hold one.
[[nodiscard]] constexpr std::size_t size_of(Type type) noexcept { return layout_of(type).bytes; }

/// Of a row of `cols` values. REQUIRES whole blocks.
[[nodiscard]] constexpr std::size_t row_bytes(Type type, std::size_t cols) noexcept {
    return cols / layout_of(type).block * layout_of(type).bytes;
}

} // namespace plumb::decoder
