// SPDX-License-Identifier: Apache-2.0
#include "recording/record_codec.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

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
constexpr int record_compression_level = 1;
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
                                                         count, busy ? busy_level : record_compression_level);
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
    std::array<std::vector<std::byte>, 8> planes; // of the column being read
    const std::byte* at = nullptr;
    std::size_t left = 0;

    Columns() = default;
    Columns(const Columns&) = delete;
    Columns& operator=(const Columns&) = delete;
    ~Columns() { ZSTD_freeDCtx(zstd); }

    /// The `count` bytes of the next plane, in the payload or in `room`; null where it cannot be one.
    const std::byte* next_plane(std::size_t count, std::vector<std::byte>& room) {
        if (left < plane_head) {
            return nullptr;
        }
        const auto mode = load_le<std::uint8_t>(at);
        const std::size_t length = load_le<std::uint32_t>(at + 1);
        at += plane_head;
        left -= plane_head;
        if (length > left) {
            return nullptr;
        }
        const std::byte* content = at;
        at += length;
        left -= length;
        if (mode == plane_stored) {
            return length == count ? content : nullptr;
        }
        room.resize(std::max(room.size(), count));
        if (mode == plane_constant && length == 1) {
            std::fill_n(room.begin(), count, content[0]);
            return room.data();
        }
        const bool unpacked = mode == plane_zstd && zstd != nullptr &&
                              ZSTD_decompressDCtx(zstd, room.data(), count, content, length) == count;
        return unpacked ? room.data() : nullptr;
    }

    template <class T>
    bool read_column(std::vector<T>& column, std::size_t count, unsigned most_planes) {
        if (left < 1) {
            return false;
        }
        const auto given = load_le<std::uint8_t>(at);
        ++at;
        --left;
        if (given > most_planes || (count == 0 && given != 0)) {
            return false;
        }
        column.resize(std::max(column.size(), count));
        PlanePointers from{};
        for (unsigned p = 0; p < given; ++p) {
            from[p] = next_plane(count, planes[p]);
            if (from[p] == nullptr) {
                return false;
            }
        }
        join_some(std::make_index_sequence<sizeof(T) + 1>(), given, from, count, column.data());
        return true;
    }

  private:
    using PlanePointers = std::array<const std::byte*, 8>;

    /// As many planes as the compiler knows of, and a fixed number of values at once: then it uses vectors.
    template <unsigned given, class T>
    static void join(const PlanePointers& from, std::size_t count, T* to) {
        using Word = std::conditional_t<(given <= 4 && sizeof(T) > 4), std::uint32_t, T>;
        constexpr std::size_t at_once = 16;
        std::size_t i = 0;
        for (; i + at_once <= count; i += at_once) {
            Word words[at_once] = {};
            for (unsigned p = 0; p < given; ++p) {
                std::uint8_t bytes[at_once];
                std::memcpy(bytes, from[p] + i, at_once);
                for (std::size_t j = 0; j < at_once; ++j) {
                    words[j] = static_cast<Word>(words[j] | static_cast<Word>(static_cast<Word>(bytes[j]) << (8 * p)));
                }
            }
            std::copy_n(words, at_once, to + i);
        }
        for (; i < count; ++i) {
            to[i] = 0;
            for (unsigned p = 0; p < given; ++p) {
                to[i] = static_cast<T>(to[i] | static_cast<T>(static_cast<T>(from[p][i]) << (8 * p)));
            }
        }
    }

    template <std::size_t... numbers, class T>
    static void join_some(std::index_sequence<numbers...>, unsigned given, const PlanePointers& from, std::size_t count,
                          T* to) {
        ((given == numbers ? join<numbers>(from, count, to) : void()), ...);
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
    if (!c.read_column(c.tags, count, 1) || !c.read_column(c.ids, count, 2) || !c.read_column(c.payloads, count, 5)) {
        return false;
    }
    const auto value_count = static_cast<std::size_t>(
        std::count_if(c.tags.begin(), c.tags.begin() + static_cast<std::ptrdiff_t>(count),
                      [](std::uint8_t tag) { return class_of(tag >> 2) == RecordClass::value; }));
    if (!c.read_column(c.times, count - value_count, 8) || !c.read_column(c.values, value_count, 8)) {
        return false;
    }
    RecordPredictor predictor(load_le<std::uint64_t>(payload));
    const std::uint64_t* time = c.times.data();
    const std::uint64_t* value = c.values.data();
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned kind = c.tags[i] >> 2;
        const bool is_value = kind != static_cast<unsigned>(RecordKind::scope) && class_of(kind) == RecordClass::value;
        to[i] = predictor.decode({c.tags[i], c.ids[i], c.payloads[i], is_value ? *value++ : *time++});
    }
    return true;
}

} // namespace plumb::recording
