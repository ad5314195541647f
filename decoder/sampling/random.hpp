// SPDX-License-Identifier: Apache-2.0
// A counter-based generator: the n-th number of a stream is a function of seed and n alone, the same on every machine.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumb::decoder {

/// 64 well-mixed bits of a counter (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/// The start of the stream that belongs to a seed and a name.
[[nodiscard]] constexpr std::uint64_t stream_key(std::uint64_t seed, std::string_view name) noexcept {
    std::uint64_t key = mix(seed);
    for (const char c : name) {
        key = mix(key ^ static_cast<unsigned char>(c));
    }
    return key;
}

[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) noexcept {
    return mix(key + counter * 0xd1342543de82ef95U);
}

} // namespace plumb::decoder
