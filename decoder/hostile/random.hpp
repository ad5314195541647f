// SPDX-License-Identifier: Apache-2.0
// What the mutations draw from: the same numbers for the same seed and file on every machine. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "decoder/sampling/random.hpp"

namespace plumb::decoder::hostile {

class Random {
  public:
    Random(std::uint64_t seed, std::uint64_t file) : key_(stream_key(seed, "file " + std::to_string(file))) {}

    std::uint64_t bits() noexcept { return random_bits(key_, next_++); }
    /// REQUIRES count > 0.
    std::size_t below(std::size_t count) noexcept { return static_cast<std::size_t>(bits() % count); }
    bool one_in(std::size_t count) noexcept { return below(count) == 0; }
    template <class List>
    const auto& of(const List& list) noexcept {
        return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
    }

  private:
    std::uint64_t key_;
    std::uint64_t next_ = 0;
};

} // namespace plumb::decoder::hostile
