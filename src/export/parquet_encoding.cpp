// SPDX-License-Identifier: Apache-2.0
#include "export/parquet_encoding.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "export/parquet_thrift.hpp"

namespace plumb::exporting::parquet {

namespace {

constexpr std::size_t eights(std::size_t values) { return (values + 7) / 8; }

} // namespace

void append_low_bytes(std::string& out, std::uint64_t value, std::size_t bytes) {
    static_assert(std::endian::native == std::endian::little);
    char all[sizeof value];
    std::memcpy(all, &value, sizeof value);
    out.append(all, bytes);
}

void append_bits(std::string& out, std::span<const std::uint8_t> truths) {
    const std::size_t at = out.size();
    out.resize(at + eights(truths.size()));
    char* bits = out.data() + at;
    for (std::size_t i = 0; i < truths.size(); i += 8) {
        unsigned eight = 0;
        for (std::size_t k = 0; k < std::min<std::size_t>(8, truths.size() - i); ++k) {
            eight |= (truths[i + k] & 1U) << k;
        }
        *bits++ = static_cast<char>(eight);
    }
}

void append_levels(std::string& out, std::span<const std::uint8_t> present) {
    const std::size_t at = out.size();
    out.append(4, '\0');
    const bool same = std::all_of(present.begin(), present.end(), [&](std::uint8_t p) { return p == present[0]; });
    if (same) {
        append_varint(out, present.size() << 1);
        out.push_back(static_cast<char>(present[0]));
    } else {
        append_varint(out, eights(present.size()) << 1 | 1);
        append_bits(out, present);
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

void append_deltas(std::string& out, std::span<const std::int64_t> values) {
    constexpr std::size_t block = 128;
    constexpr std::size_t pieces = 4;
    constexpr std::size_t piece = block / pieces;
    append_varint(out, block);
    append_varint(out, pieces);
    append_varint(out, values.size());
    append_varint(out, zigzag(values.empty() ? 0 : values[0]));
    for (std::size_t at = 1; at < values.size(); at += block) {
        const std::size_t count = std::min(block, values.size() - at);
        std::int64_t deltas[block];
        for (std::size_t i = 0; i < count; ++i) { // modulo 2^64, as readers add them up
            deltas[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(values[at + i]) -
                                                  static_cast<std::uint64_t>(values[at + i - 1]));
        }
        const std::int64_t least = *std::min_element(deltas, deltas + count);
        append_varint(out, zigzag(least));
        const std::size_t widths = out.size();
        out.append(pieces, '\0');
        for (std::size_t begin = 0; begin < count; begin += piece) {
            std::uint64_t above[piece] = {}; // a piece is always whole
            std::uint64_t all = 0;
            for (std::size_t i = begin; i < std::min(begin + piece, count); ++i) {
                above[i - begin] = static_cast<std::uint64_t>(deltas[i]) - static_cast<std::uint64_t>(least);
                all |= above[i - begin];
            }
            const std::size_t bytes = eights(static_cast<std::size_t>(std::bit_width(all)));
            out[widths + begin / piece] = static_cast<char>(8 * bytes);
            const std::size_t to = out.size();
            out.resize(to + bytes * piece + sizeof(std::uint64_t)); // room for the last one's high bytes
            for (std::size_t i = 0; i < piece; ++i) {
                std::memcpy(out.data() + to + i * bytes, &above[i], sizeof above[i]);
            }
            out.resize(to + bytes * piece);
        }
    }
}

void append_indices(std::string& out, std::span<const std::uint32_t> indices, std::size_t entries) {
    const std::size_t bytes = entries <= 0x100 ? 1 : entries <= 0x10000 ? 2 : 4;
    out.push_back(static_cast<char>(8 * bytes));
    if (indices.empty()) {
        return;
    }
    const bool same = std::all_of(indices.begin(), indices.end(), [&](std::uint32_t i) { return i == indices[0]; });
    if (same) {
        append_varint(out, indices.size() << 1);
        append_low_bytes(out, indices[0], bytes);
        return;
    }
    append_varint(out, eights(indices.size()) << 1 | 1);
    const std::size_t at = out.size();
    out.resize(at + 8 * eights(indices.size()) * bytes + sizeof(std::uint32_t));
    for (std::size_t i = 0; i < indices.size(); ++i) {
        std::memcpy(out.data() + at + i * bytes, &indices[i], sizeof indices[i]);
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(at + indices.size() * bytes), out.end(), '\0');
    out.resize(at + 8 * eights(indices.size()) * bytes);
}

} // namespace plumb::exporting::parquet
