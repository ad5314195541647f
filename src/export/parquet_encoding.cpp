// SPDX-License-Identifier: Apache-2.0
#include "export/parquet_encoding.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace plumb::exporting::parquet {

namespace {

constexpr std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::size_t eights(std::size_t values) { return (values + 7) / 8; }

} // namespace

void append_varint(std::string& out, std::uint64_t value) {
    while (value >= 0x80) {
        out.push_back(static_cast<char>(value | 0x80));
        value >>= 7;
    }
    out.push_back(static_cast<char>(value));
}

void append_low_bytes(std::string& out, std::uint64_t value, std::size_t bytes) {
    static_assert(std::endian::native == std::endian::little);
    char all[sizeof value];
    std::memcpy(all, &value, sizeof value);
    out.append(all, bytes);
}

void append_bits(std::string& out, std::span<const std::uint8_t> truths) {
    const std::size_t at = out.size();
    out.resize(at + eights(truths.size()));
    char* const bits = out.data() + at;
    for (std::size_t i = 0; i < truths.size(); ++i) {
        bits[i / 8] = static_cast<char>(bits[i / 8] | ((truths[i] & 1) << (i % 8)));
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

namespace {
enum CompactType : unsigned {
    t_true = 1,
    t_false = 2,
    t_i16 = 4,
    t_i32 = 5,
    t_i64 = 6,
    t_binary = 8,
    t_list = 9,
    t_struct = 12
};
}

void CompactWriter::field(int id, unsigned type) {
    const int step = id - last_ids_.back(); // 1 to 15: of the structs of Parquet no two neighbours are further apart
    out_.push_back(static_cast<char>(static_cast<unsigned>(step) << 4 | type));
    last_ids_.back() = id;
}

void CompactWriter::list(int id, std::size_t count, unsigned type) {
    field(id, t_list);
    if (count < 15) {
        out_.push_back(static_cast<char>(count << 4 | type));
    } else {
        out_.push_back(static_cast<char>(0xF0 | type));
        append_varint(out_, count);
    }
}

void CompactWriter::truth(int id, bool value) { field(id, value ? t_true : t_false); }

void CompactWriter::int16(int id, std::int16_t value) {
    field(id, t_i16);
    append_varint(out_, zigzag(value));
}

void CompactWriter::int32(int id, std::int32_t value) {
    field(id, t_i32);
    append_varint(out_, zigzag(value));
}

void CompactWriter::int64(int id, std::int64_t value) {
    field(id, t_i64);
    append_varint(out_, zigzag(value));
}

void CompactWriter::text(int id, std::string_view value) {
    field(id, t_binary);
    append_varint(out_, value.size());
    out_.append(value);
}

void CompactWriter::begin_struct(int id) {
    field(id, t_struct);
    last_ids_.push_back(0);
}

void CompactWriter::end() {
    out_.push_back('\0');
    last_ids_.pop_back();
}

void CompactWriter::begin_structs(int id, std::size_t count) { list(id, count, t_struct); }

void CompactWriter::begin_element() { last_ids_.push_back(0); }

void CompactWriter::int32s(int id, std::initializer_list<std::int32_t> values) {
    list(id, values.size(), t_i32);
    for (const std::int32_t value : values) {
        append_varint(out_, zigzag(value));
    }
}

void CompactWriter::texts(int id, std::initializer_list<std::string_view> values) {
    list(id, values.size(), t_binary);
    for (const std::string_view value : values) {
        append_varint(out_, value.size());
        out_.append(value);
    }
}

} // namespace plumb::exporting::parquet
