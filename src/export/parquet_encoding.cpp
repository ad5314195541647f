// SPDX-License-Identifier: Apache-2.0
#include "export/parquet_encoding.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "export/parquet_thrift.hpp"

namespace plumb::exporting::parquet {

namespace {

constexpr std::size_t eights(std::size_t values) { return (values + 7) / 8; }

template <class T>
bool all_alike(std::span<const T> values) {
    return std::all_of(values.begin(), values.end(), [&](T value) { return value == values[0]; });
}

} // namespace

void append_low_bytes(std::string& out, std::uint64_t value, std::size_t bytes) {
    static_assert(std::endian::native == std::endian::little);
    char all[sizeof value];
    std::memcpy(all, &value, sizeof value);
    out.append(all, bytes);
}

void append_bits(std::string& out, std::span<const std::uint8_t> truths, std::size_t count) {
    if (truths.size() < count) {
        out.append(count / 8, static_cast<char>(truths[0] != 0 ? 0xff : 0));
        if (count % 8 != 0) {
            out.push_back(static_cast<char>(truths[0] != 0 ? (1U << count % 8) - 1 : 0));
        }
        return;
    }
    const std::size_t at = out.size();
    out.resize(at + eights(count));
    char* bits = out.data() + at;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) { // the lowest bit of each byte, gathered by one product
        std::uint64_t eight = 0;
        std::memcpy(&eight, truths.data() + i, sizeof eight);
        *bits++ = static_cast<char>((eight & 0x0101010101010101U) * 0x0102040810204080U >> 56);
    }
    if (i < count) {
        unsigned rest = 0;
        for (std::size_t k = 0; i + k < count; ++k) {
            rest |= (truths[i + k] & 1U) << k;
        }
        *bits = static_cast<char>(rest);
    }
}

void append_levels(std::string& out, std::span<const std::uint8_t> present, std::size_t count) {
    const std::size_t at = out.size();
    out.append(4, '\0');
    if (all_alike(present)) {
        append_varint(out, count << 1);
        out.push_back(static_cast<char>(present[0]));
    } else {
        append_varint(out, eights(count) << 1 | 1);
        append_bits(out, present, count);
    }
    const auto length = static_cast<std::uint32_t>(out.size() - at - 4);
    std::memcpy(out.data() + at, &length, sizeof length);
}

void append_plain(std::string& out, std::span<const std::int64_t> values) {
    out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void append_plain(std::string& out, std::span<const double> values) {
    out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void append_plain(std::string& out, std::string_view text) {
    append_low_bytes(out, text.size(), 4);
    out.append(text);
}

namespace {

constexpr std::size_t delta_block = 128;
constexpr std::size_t delta_pieces = 4; // of a block
constexpr std::size_t delta_piece = delta_block / delta_pieces;
using Piece = std::uint64_t[delta_piece];

void append_bytes_of(std::string& out, const Piece& values, std::size_t bytes) {
    const std::size_t to = out.size();
    out.resize(to + bytes * delta_piece + sizeof(std::uint64_t)); // room for the last one's high bytes
    for (std::size_t i = 0; i < delta_piece; ++i) {
        std::memcpy(out.data() + to + i * bytes, &values[i], sizeof values[i]);
    }
    out.resize(to + bytes * delta_piece);
}

void append_bits_of(std::string& out, const Piece& values, unsigned bits) {
    std::uint64_t words[delta_piece + 1] = {};
    for (std::size_t i = 0, at = 0; i < delta_piece; ++i, at += bits) {
        words[at / 64] |= values[i] << at % 64;
        if (at % 64 + bits > 64) {
            words[at / 64 + 1] = values[i] >> (64 - at % 64);
        }
    }
    out.append(reinterpret_cast<const char*>(words), bits * delta_piece / 8);
}

} // namespace

void append_deltas(std::string& out, std::span<const std::int64_t> values, std::size_t count, Width width) {
    append_varint(out, delta_block);
    append_varint(out, delta_pieces);
    append_varint(out, count);
    append_varint(out, zigzag(values.empty() ? 0 : values[0]));
    if (values.size() < count) { // no difference anywhere: of each block a least one and a width for each piece, all 0
        out.append((count - 1 + delta_block - 1) / delta_block * (1 + delta_pieces), '\0');
        return;
    }
    for (std::size_t at = 1; at < count; at += delta_block) {
        const std::size_t some = std::min(delta_block, count - at);
        std::int64_t deltas[delta_block];
        for (std::size_t i = 0; i < some; ++i) { // modulo 2^64, as readers add them up
            deltas[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(values[at + i]) -
                                                  static_cast<std::uint64_t>(values[at + i - 1]));
        }
        const std::int64_t least = *std::min_element(deltas, deltas + some);
        append_varint(out, zigzag(least));
        const std::size_t widths = out.size();
        out.append(delta_pieces, '\0');
        for (std::size_t begin = 0; begin < some; begin += delta_piece) {
            Piece above = {}; // a piece is always whole
            std::uint64_t all = 0;
            for (std::size_t i = begin; i < std::min(begin + delta_piece, some); ++i) {
                above[i - begin] = static_cast<std::uint64_t>(deltas[i]) - static_cast<std::uint64_t>(least);
                all |= above[i - begin];
            }
            auto bits = static_cast<unsigned>(std::bit_width(all));
            if (width == Width::bytes) {
                bits = (bits + 7) / 8 * 8;
                append_bytes_of(out, above, bits / 8);
            } else {
                append_bits_of(out, above, bits);
            }
            out[widths + begin / delta_piece] = static_cast<char>(bits);
        }
    }
}

void append_indices(std::string& out, std::span<const std::uint32_t> indices, std::size_t count, std::size_t entries) {
    const std::size_t bytes = entries <= 0x100 ? 1 : entries <= 0x10000 ? 2 : 4;
    out.push_back(static_cast<char>(8 * bytes));
    if (indices.empty()) {
        return;
    }
    if (all_alike(indices)) {
        append_varint(out, count << 1);
        append_low_bytes(out, indices[0], bytes);
        return;
    }
    append_varint(out, eights(count) << 1 | 1);
    const std::size_t at = out.size();
    out.resize(at + 8 * eights(count) * bytes + sizeof(std::uint32_t));
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(out.data() + at + i * bytes, &indices[i], sizeof indices[i]);
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(at + count * bytes), out.end(), '\0');
    out.resize(at + 8 * eights(count) * bytes);
}

} // namespace plumb::exporting::parquet
