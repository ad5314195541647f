// SPDX-License-Identifier: Apache-2.0
#include "decoder/hostile/mutate.hpp"

#include <algorithm>
#include <cstring>

namespace plumb::decoder::hostile {
namespace {

constexpr std::uint64_t telling[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     5,
                                     8,
                                     9,
                                     12,
                                     13,
                                     16,
                                     31,
                                     32,
                                     33,
                                     0x7f,
                                     0xff,
                                     0xffff,
                                     0x10000,
                                     0x10001,
                                     0x100000,
                                     0x100001,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     std::uint64_t{1} << 32,
                                     std::uint64_t{1} << 56,
                                     std::uint64_t{1} << 62,
                                     0x7fffffffffffffff,
                                     std::uint64_t{1} << 63,
                                     0xffffffffffffffe0,
                                     0xfffffffffffffff8,
                                     0xffffffffffffffff};

std::uint64_t read(const Bytes& bytes, std::size_t at, std::size_t width) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, width);
    return value;
}

void store(Bytes& bytes, std::size_t at, std::size_t width, std::uint64_t value) {
    const std::size_t end = std::min(bytes.size(), at + width);
    if (at < end) {
        std::memcpy(bytes.data() + at, &value, end - at);
    }
}

/// Mostly not in the long lists of texts.
Place some_place(const Written& file, Random& random) {
    Place place = random.of(file.places);
    for (int tries = 0; place.element && tries < 40; ++tries) {
        place = random.of(file.places);
    }
    return place;
}

/// Most damage goes where the file says what it is; the rest is weights, of which any bits are values.
std::size_t somewhere(const Written& file, Random& random) {
    if (random.one_in(2)) {
        return std::min(some_place(file, random).at + random.below(12), file.bytes.size() - 1);
    }
    const bool header = !random.one_in(8) && file.header != 0;
    return random.below(header ? std::min(file.header, file.bytes.size()) : file.bytes.size());
}

void move_piece(Bytes& bytes, std::size_t from, Random& random) {
    const std::size_t size = std::min<std::size_t>(1 + random.below(200), bytes.size() - from);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
    const Bytes piece(begin, begin + static_cast<std::ptrdiff_t>(size));
    const std::uint64_t way = random.below(3);
    if (way != 0) {
        bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    const std::size_t to = std::min(bytes.size(), from + random.below(400));
    if (way != 1) {
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(to), piece.begin(), piece.end());
    }
}

/// Anywhere, by a few bytes or by many, or at the end of a page, behind which a read is found at once.
void cut(Bytes& bytes, std::size_t at, Random& random) {
    constexpr std::size_t page = 4096;
    std::size_t end = at;
    if (!random.one_in(3)) {
        end = bytes.size() - std::min(bytes.size(), random.below(std::size_t{16} << random.below(16)));
    }
    if (random.one_in(2)) {
        end = end / page * page;
    }
    bytes.resize(end);
}

void damage_weights(Written& file, Random& random) {
    const std::size_t size = file.bytes.size();
    if (file.header >= size) {
        return;
    }
    // Scales of packed types among them: infinite, not a number, or anything.
    const std::uint64_t filling = random.one_in(2) ? random.bits() : 0xffffffffffffffff;
    const std::size_t count = 1 + random.below(200);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = file.header + random.below(size - file.header);
        store(file.bytes, at, std::size_t{1} << random.below(4), random.one_in(2) ? random.bits() : filling);
    }
}

} // namespace

void lie(Written& file, Random& random) {
    const Place place = some_place(file, random);
    if (place.at + place.width > file.bytes.size() || place.width > 8) {
        return;
    }
    const std::uint64_t was = read(file.bytes, place.at, place.width);
    const std::uint64_t nearby[] = {was - 1, was + 1, was + 8, was * 2, was / 2, was ^ 1, was + 32, was - 32};
    std::uint64_t value = random.one_in(2) ? random.of(nearby) : random.of(telling);
    if (random.one_in(4)) { // what another place says
        const Place other = some_place(file, random);
        if (other.at + other.width <= file.bytes.size() && other.width <= 8) {
            value = read(file.bytes, other.at, other.width);
        }
    }
    store(file.bytes, place.at, place.width, value);
}

void damage(Written& file, Random& random) {
    if (file.bytes.empty()) {
        return;
    }
    const std::size_t at = somewhere(file, random);
    switch (random.below(8)) {
    case 0:
    case 1:
        file.bytes[at] ^= static_cast<std::byte>(1U << random.below(8));
        break;
    case 2:
        file.bytes[at] = static_cast<std::byte>(random.bits());
        break;
    case 3:
        store(file.bytes, at, std::size_t{1} << random.below(4), random.of(telling));
        break;
    case 4:
        move_piece(file.bytes, at, random);
        break;
    case 5:
        cut(file.bytes, at, random);
        break;
    default:
        damage_weights(file, random);
        break;
    }
}

Bytes mutant(const Parts& seed, Random& random) {
    Parts parts = seed;
    // Mostly of one kind, so that it gets deep.
    enum class Kind : std::uint8_t { rewritten, lying, both, damaged, all };
    using enum Kind;
    constexpr Kind kinds[] = {rewritten, rewritten, rewritten, rewritten, rewritten, rewritten,
                              lying,     both,      damaged,   damaged,   all};
    const Kind kind = random.of(kinds);
    if (kind == rewritten || kind == both || kind == all) {
        for (std::size_t i = 1 + random.below(3); i > 0; --i) {
            rewrite(parts, random);
        }
    }
    Written file = put_together(parts);
    if (kind == lying || kind == both || kind == all) {
        for (std::size_t i = 1 + random.below(2); i > 0; --i) {
            lie(file, random);
        }
    }
    if (kind == damaged || kind == all) {
        for (std::size_t i = 1 + random.below(4); i > 0; --i) {
            damage(file, random);
        }
    }
    return std::move(file.bytes);
}

} // namespace plumb::decoder::hostile
