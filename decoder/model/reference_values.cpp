// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/reference_values.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace plumb::decoder::reference {
namespace {

/// The bytes of a tensor, seen from one block.
struct Bytes {
    const std::byte* begin;

    int at(std::size_t i) const { return std::to_integer<int>(begin[i]); }
    int signed_at(std::size_t i) const { return at(i) < 128 ? at(i) : at(i) - 256; }
    Bytes from(std::size_t i) const { return {begin + i}; }

    /// Sign, 5 bits of exponent, 10 of fraction.
    double half(std::size_t i) const {
        const int bits = at(i) | at(i + 1) << 8;
        const int exponent = bits >> 10 & 31;
        const int fraction = bits & 1023;
        const double size = exponent == 0    ? std::ldexp(fraction, -24)
                            : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                             : std::ldexp(1024 + fraction, exponent - 25);
        return bits >> 15 != 0 ? -size : size;
    }
    double single(const int (&order)[4]) const {
        unsigned bits = 0;
        for (int i = 0; i < 4; ++i) {
            bits |= order[i] < 0 ? 0U : static_cast<unsigned>(at(static_cast<std::size_t>(order[i]))) << (8 * i);
        }
        float value = 0;
        std::memcpy(&value, &bits, 4);
        return static_cast<double>(value);
    }
};

double q8_0(Bytes block, std::size_t i) { return block.half(0) * block.signed_at(2 + i); }

double q4_0(Bytes block, std::size_t i) {
    const int byte = block.at(2 + i % 16);
    return block.half(0) * ((i < 16 ? byte % 16 : byte / 16) - 8);
}

double q4_k(Bytes block, std::size_t i) {
    const std::size_t run = i / 32;
    const Bytes packed = block.from(4);
    int scale = 0, least = 0;
    if (run < 4) {
        scale = packed.at(run) % 64;
        least = packed.at(run + 4) % 64;
    } else {
        scale = packed.at(run + 4) % 16 + packed.at(run - 4) / 64 * 16;
        least = packed.at(run + 4) / 16 + packed.at(run) / 64 * 16;
    }
    const int byte = block.at(16 + i / 64 * 32 + i % 32);
    const int value = run % 2 == 0 ? byte % 16 : byte / 16;
    return block.half(0) * scale * value - block.half(2) * least;
}

double q6_k(Bytes block, std::size_t i) {
    const std::size_t part = i / 128, run = i % 128 / 32, l = i % 32;
    const int lower = block.at(64 * part + 32 * (run % 2) + l);
    const int upper = block.at(128 + 32 * part + l) >> (2 * run) & 3;
    const int value = (run < 2 ? lower % 16 : lower / 16) + 16 * upper - 32;
    return block.half(208) * block.signed_at(192 + i / 16) * value;
}

double value_of(std::uint32_t type, Bytes data, std::size_t i) {
    switch (type) {
    case 0:
        return data.from(4 * i).single({0, 1, 2, 3});
    case 1:
        return data.half(2 * i);
    case 2:
        return q4_0(data.from(i / 32 * 18), i % 32);
    case 8:
        return q8_0(data.from(i / 32 * 34), i % 32);
    case 12:
        return q4_k(data.from(i / 256 * 144), i % 256);
    case 14:
        return q6_k(data.from(i / 256 * 210), i % 256);
    case 30:
        return data.from(2 * i).single({-1, -1, 0, 1});
    default:
        std::abort();
    }
}

} // namespace

std::vector<double> values_of(std::uint32_t type, std::span<const std::byte> data, std::size_t count) {
    std::vector<double> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = value_of(type, {data.data()}, i);
    }
    return out;
}

} // namespace plumb::decoder::reference
