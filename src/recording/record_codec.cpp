// SPDX-License-Identifier: Apache-2.0
#include "recording/record_codec.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "recording/format.hpp"
#include "recording/record_predictor.hpp"

namespace plumb::recording {
namespace {

enum PlaneMode : std::uint8_t { plane_stored = 0, plane_constant = 1, plane_zstd = 2 };

constexpr std::size_t base_size = 8;
constexpr std::size_t plane_head = 5; // mode, length
/// Below this a zstd frame costs more than it saves.
constexpr std::size_t least_compressed = 48;
/// Level 1: higher levels gain a few per cent on noise at several times the cost.
constexpr int compression_level = 1;
/// Chunks this large come from threads that fill their rings fast: there the drain's time counts more than bytes. Half
/// the time at twice the bytes (tiny-llama: 12 ns and 4.1 bytes per record or scope, against 22 ns and 2.2 bytes).
constexpr std::size_t busy_chunk = 8192;
constexpr int busy_level = -10;
/// A plane that zstd could not shorten by a quarter is noise, and stored as it is in so many busy chunks that follow.
constexpr unsigned noise_rest = 15;

std::uint64_t base_of(const Record* records, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (class_of(static_cast<unsigned>(records[i].second >> kind_shift)) != RecordClass::value) {
            return records[i].first;
        }
    }
    return 0;
}

template <class T>
unsigned planes_of(const std::vector<T>& column, std::size_t count) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < count; ++i) {
        all |= column[i];
    }
    unsigned planes = 0;
    while (planes < sizeof(T) && (all >> (8 * planes)) != 0) {
        ++planes;
    }
    return planes;
}

} // namespace

struct RecordEncoder::Columns {
    bool compress;
    ZSTD_CCtx* zstd;
    std::vector<std::uint8_t> tags;
    std::vector<std::uint16_t> ids;
    std::vector<std::uint64_t> payloads, times, values;
    std::vector<std::byte> plane;
    std::size_t time_count = 0, value_count = 0;
    bool busy = false;         // this chunk is a busy one
    unsigned noise[5][8] = {}; // by column and plane: busy chunks in which it is not tried

    void append_plane(std::size_t count, unsigned& rest, Bytes& to) {
        const std::size_t at = to.size();
        const std::byte first = plane[0];
        const bool constant = std::all_of(plane.begin(), plane.begin() + static_cast<std::ptrdiff_t>(count),
                                          [first](std::byte b) { return b == first; });
        std::size_t length = constant ? 1 : count;
        std::uint8_t mode = constant ? plane_constant : plane_stored;
        to.resize(at + plane_head + length);
        const bool resting = busy && rest != 0;
        rest -= resting ? 1 : 0;
        if (!constant && compress && !resting && count >= least_compressed) {
            // No room for more than the plain bytes: zstd then gives up, and they are stored.
            const std::size_t packed = ZSTD_compressCCtx(zstd, to.data() + at + plane_head, count - 1, plane.data(),
                                                         count, busy ? busy_level : compression_level);
            if (ZSTD_isError(packed) == 0) {
                mode = plane_zstd;
                length = packed;
                to.resize(at + plane_head + length);
            }
            rest = busy && length > count - count / 4 ? noise_rest : 0;
        }
        if (mode != plane_zstd) {
            std::memcpy(to.data() + at + plane_head, plane.data(), length);
        }
        store_le(to.data() + at, mode);
        store_le(to.data() + at + 1, static_cast<std::uint32_t>(length));
    }

    template <class T>
    void append_column(unsigned number, const std::vector<T>& column, std::size_t count, Bytes& to) {
        const unsigned planes = count == 0 ? 0 : planes_of(column, count);
        append_le(to, static_cast<std::uint8_t>(planes));
        for (unsigned p = 0; p < planes; ++p) {
            for (std::size_t i = 0; i < count; ++i) {
                plane[i] = static_cast<std::byte>(static_cast<std::uint8_t>(column[i] >> (8 * p)));
            }
            append_plane(count, noise[number][p], to);
        }
    }
};

RecordEncoder::RecordEncoder(bool compress) : columns_(std::make_unique<Columns>()) {
    columns_->compress = compress;
    columns_->zstd = compress ? ZSTD_createCCtx() : nullptr;
    columns_->compress = columns_->zstd != nullptr;
}

RecordEncoder::~RecordEncoder() { ZSTD_freeCCtx(columns_->zstd); }

void RecordEncoder::encode(const Record* records, std::size_t count, Bytes& to) {
    Columns& c = *columns_;
    if (c.tags.size() < count) {
        c.tags.resize(count);
        c.ids.resize(count);
        c.payloads.resize(count);
        c.times.resize(count);
        c.values.resize(count);
        c.plane.resize(count);
    }
    const std::size_t start = to.size();
    const std::uint64_t base = base_of(records, count);
    RecordPredictor predictor(base);
    c.time_count = 0;
    c.value_count = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const CodedRecord coded = predictor.encode(records[i]);
        c.tags[i] = coded.tag;
        c.ids[i] = coded.id;
        c.payloads[i] = coded.payload;
        if (class_of(coded.tag >> 2) == RecordClass::value) {
            c.values[c.value_count++] = coded.first;
        } else {
            c.times[c.time_count++] = coded.first;
        }
    }
    c.busy = count >= busy_chunk;
    append_le(to, base);
    c.append_column(0, c.tags, count, to);
    c.append_column(1, c.ids, count, to);
    c.append_column(2, c.payloads, count, to);
    c.append_column(3, c.times, c.time_count, to);
    c.append_column(4, c.values, c.value_count, to);
    const std::size_t least = count / min_payload_share + 1;
    if (to.size() - start < least) {
        to.resize(start + least);
    }
}

struct RecordDecoder::Columns {
    ZSTD_DCtx* zstd = ZSTD_createDCtx();
    std::vector<std::uint8_t> tags;
    std::vector<std::uint16_t> ids;
    std::vector<std::uint64_t> payloads, times, values;
    std::vector<std::byte> plane;
    const std::byte* at = nullptr;
    std::size_t left = 0;

    Columns() = default;
    Columns(const Columns&) = delete;
    Columns& operator=(const Columns&) = delete;
    ~Columns() { ZSTD_freeDCtx(zstd); }

    /// Points `bytes` at the `count` bytes of the next plane, or leaves it null for a constant one.
    bool next_plane(std::size_t count, const std::byte*& bytes, std::byte& constant) {
        if (left < plane_head) {
            return false;
        }
        const auto mode = load_le<std::uint8_t>(at);
        const std::size_t length = load_le<std::uint32_t>(at + 1);
        at += plane_head;
        left -= plane_head;
        if (length > left) {
            return false;
        }
        const std::byte* content = at;
        at += length;
        left -= length;
        bytes = nullptr;
        switch (mode) {
        case plane_constant:
            if (length != 1) {
                return false;
            }
            constant = content[0];
            return true;
        case plane_stored:
            bytes = content;
            return length == count;
        case plane_zstd:
            bytes = plane.data();
            return zstd != nullptr && ZSTD_decompressDCtx(zstd, plane.data(), count, content, length) == count;
        default:
            return false;
        }
    }

    template <class T>
    bool read_column(std::vector<T>& column, std::size_t count, unsigned most_planes) {
        if (left < 1) {
            return false;
        }
        const auto planes = load_le<std::uint8_t>(at);
        ++at;
        --left;
        if (planes > most_planes || (count == 0 && planes != 0)) {
            return false;
        }
        column.assign(count, T{0});
        for (unsigned p = 0; p < planes; ++p) {
            const std::byte* bytes = nullptr;
            std::byte constant{0};
            if (!next_plane(count, bytes, constant)) {
                return false;
            }
            if (bytes == nullptr && constant == std::byte{0}) {
                continue;
            }
            for (std::size_t i = 0; i < count; ++i) {
                const auto byte = static_cast<std::uint64_t>(bytes != nullptr ? bytes[i] : constant);
                column[i] = static_cast<T>(column[i] | static_cast<T>(byte << (8 * p)));
            }
        }
        return true;
    }
};

RecordDecoder::RecordDecoder() : columns_(std::make_unique<Columns>()) {}
RecordDecoder::~RecordDecoder() = default;
RecordDecoder::RecordDecoder(RecordDecoder&&) noexcept = default;
RecordDecoder& RecordDecoder::operator=(RecordDecoder&&) noexcept = default;

bool RecordDecoder::decode(const std::byte* payload, std::size_t size, std::size_t count, Record* to) {
    if (count == 0 || count > max_chunk_records || size < base_size || size < count / min_payload_share + 1) {
        return false;
    }
    Columns& c = *columns_;
    c.at = payload + base_size;
    c.left = size - base_size;
    c.plane.resize(std::max(c.plane.size(), count));
    if (!c.read_column(c.tags, count, 1) || !c.read_column(c.ids, count, 2) || !c.read_column(c.payloads, count, 5)) {
        return false;
    }
    const auto value_count = static_cast<std::size_t>(std::count_if(
        c.tags.begin(), c.tags.end(), [](std::uint8_t tag) { return class_of(tag >> 2) == RecordClass::value; }));
    if (!c.read_column(c.times, count - value_count, 8) || !c.read_column(c.values, value_count, 8)) {
        return false;
    }
    RecordPredictor predictor(load_le<std::uint64_t>(payload));
    const std::uint64_t* time = c.times.data();
    const std::uint64_t* value = c.values.data();
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_value = class_of(c.tags[i] >> 2) == RecordClass::value;
        to[i] = predictor.decode({c.tags[i], c.ids[i], c.payloads[i], is_value ? *value++ : *time++});
    }
    return true;
}

} // namespace plumb::recording
