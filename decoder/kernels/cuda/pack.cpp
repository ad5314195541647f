// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/pack.hpp"

#include <cstring>
#include <span>

namespace plumb::decoder::cuda {
namespace {

/// Bytes of a block that become a plane; planes lie in this order.
struct Plane {
    std::size_t begin;
    std::size_t bytes;
};

std::span<const Plane> planes(Type type) noexcept {
    static constexpr Plane q8_0[] = {{2, 32}, {0, 2}};
    static constexpr Plane q4_0[] = {{2, 16}, {0, 2}};
    static constexpr Plane q6_k[] = {{0, 128}, {128, 64}, {192, 16}, {208, 2}};
    switch (type) {
    case Type::q8_0:
        return q8_0;
    case Type::q4_0:
        return q4_0;
    case Type::q6_k:
        return q6_k;
    default:
        return {};
    }
}

} // namespace

bool lies_as_in_file(Type type) noexcept { return planes(type).empty(); }

std::vector<std::byte> planes_of(Type type, const void* data, std::size_t bytes) {
    const std::size_t block = layout_of(type).bytes;
    const std::size_t blocks = bytes / block;
    const auto* from = static_cast<const std::byte*>(data);
    std::vector<std::byte> out(bytes);
    std::byte* to = out.data();
    for (const Plane& plane : planes(type)) {
        for (std::size_t i = 0; i < blocks; ++i, to += plane.bytes) {
            std::memcpy(to, from + i * block + plane.begin, plane.bytes);
        }
    }
    return out;
}

} // namespace plumb::decoder::cuda
