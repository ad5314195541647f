// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/types.hpp"

#include <array>

namespace plumb::decoder::gguf {
namespace {

struct NamedType {
    std::uint32_t id;
    TypeTraits traits;
};

constexpr std::array<NamedType, 32> known_types{{
    {0, {"F32", 1, 4}},         {1, {"F16", 1, 2}},         {2, {"Q4_0", 32, 18}},      {3, {"Q4_1", 32, 20}},
    {6, {"Q5_0", 32, 22}},      {7, {"Q5_1", 32, 24}},      {8, {"Q8_0", 32, 34}},      {9, {"Q8_1", 32, 36}},
    {10, {"Q2_K", 256, 84}},    {11, {"Q3_K", 256, 110}},   {12, {"Q4_K", 256, 144}},   {13, {"Q5_K", 256, 176}},
    {14, {"Q6_K", 256, 210}},   {15, {"Q8_K", 256, 292}},   {16, {"IQ2_XXS", 256, 66}}, {17, {"IQ2_XS", 256, 74}},
    {18, {"IQ3_XXS", 256, 98}}, {19, {"IQ1_S", 256, 50}},   {20, {"IQ4_NL", 32, 18}},   {21, {"IQ3_S", 256, 110}},
    {22, {"IQ2_S", 256, 82}},   {23, {"IQ4_XS", 256, 136}}, {24, {"I8", 1, 1}},         {25, {"I16", 1, 2}},
    {26, {"I32", 1, 4}},        {27, {"I64", 1, 8}},        {28, {"F64", 1, 8}},        {29, {"IQ1_M", 256, 56}},
    {30, {"BF16", 1, 2}},       {34, {"TQ1_0", 256, 54}},   {35, {"TQ2_0", 256, 66}},   {39, {"MXFP4", 32, 17}},
}};

constexpr std::array<std::string_view, value_types> value_names{"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                                "bool", "string", "array", "u64", "i64", "f64"};
constexpr std::array<std::uint32_t, value_types> value_sizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

} // namespace

std::optional<TypeTraits> type_traits(std::uint32_t id) noexcept {
    for (const NamedType& type : known_types) {
        if (type.id == id) {
            return type.traits;
        }
    }
    return std::nullopt;
}

std::string type_name(std::uint32_t id) {
    if (const auto traits = type_traits(id)) {
        return std::string(traits->name);
    }
    return "unknown type " + std::to_string(id);
}

std::uint32_t value_size(ValueType type) noexcept { return value_sizes[static_cast<std::uint32_t>(type)]; }

std::string_view value_type_name(ValueType type) noexcept { return value_names[static_cast<std::uint32_t>(type)]; }

} // namespace plumb::decoder::gguf
