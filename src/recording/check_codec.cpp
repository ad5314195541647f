// SPDX-License-Identifier: Apache-2.0
#include "recording/check_codec.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace plumb::recording {
namespace {

constexpr int check_compression_level = 1;
constexpr std::size_t size_head = sizeof(std::uint32_t); // before a zstd frame
constexpr std::size_t place_size = 38;
constexpr std::size_t values_size = 56;

// Field numbers, append-only.
enum CheckField : std::uint16_t {
    field_place = 1,
    field_values = 2,
    field_sketch = 3,
    field_shape = 4,
    field_position = 5,
    field_first_index = 6,
    field_graph_key = 7,
    field_replay = 8,
    field_nans = 9,
    field_positive_infs = 10,
    field_negative_infs = 11,
    field_first_nonfinite = 12,
    field_argmax = 13,
    field_margin = 14,
};

bool valid_buckets(std::size_t buckets) {
    return buckets == 0 || buckets == 32 || buckets == 64 || buckets == 128 || buckets == 256;
}

void append_double(Bytes& to, double value) { append_le(to, std::bit_cast<std::uint64_t>(value)); }

template <class T>
void append_all(Bytes& to, const std::vector<T>& values) {
    std::size_t at = to.size();
    to.resize(at + values.size() * sizeof(std::uint64_t));
    for (const T value : values) {
        store_le(to.data() + at, std::bit_cast<std::uint64_t>(value));
        at += sizeof(std::uint64_t);
    }
}

double load_double(const std::byte* at) { return std::bit_cast<double>(load_le<std::uint64_t>(at)); }

const std::byte* bytes_of(std::string_view text) { return reinterpret_cast<const std::byte*>(text.data()); }

void append_place(Bytes& to, const TensorCheck& check) {
    append_le(to, check.order);
    append_le(to, check.step_plus_one);
    append_le(to, check.layer_plus_one);
    append_le(to, check.name);
    append_le(to, static_cast<std::uint8_t>(check.phase));
    append_le(to, static_cast<std::uint8_t>(check.role));
    append_le(to, static_cast<std::uint8_t>(check.level));
    append_le(to, static_cast<std::uint8_t>(check.dtype));
    append_le(to, check.occurrence);
    append_le(to, check.sequence);
    append_le(to, check.track);
}

/// False when it says something that this version does not know.
bool take_place(std::string_view content, TensorCheck& to) {
    if (content.size() < place_size) {
        return false;
    }
    const std::byte* at = bytes_of(content);
    to.order = load_le<std::uint64_t>(at);
    to.step_plus_one = load_le<std::uint64_t>(at + 8);
    to.layer_plus_one = load_le<std::uint32_t>(at + 16);
    to.name = load_le<std::uint16_t>(at + 20);
    const auto phase = load_le<std::uint8_t>(at + 22);
    const auto role = load_le<std::uint8_t>(at + 23);
    const auto level = load_le<std::uint8_t>(at + 24);
    const auto dtype = load_le<std::uint8_t>(at + 25);
    to.phase = phase <= static_cast<std::uint8_t>(Phase::mixed) ? static_cast<Phase>(phase) : Phase::none;
    to.role = static_cast<TensorRole>(role);
    to.level = static_cast<CheckLevel>(level);
    to.dtype = static_cast<DType>(dtype);
    to.occurrence = load_le<std::uint32_t>(at + 26);
    to.sequence = load_le<std::uint32_t>(at + 30);
    to.track = load_le<std::uint32_t>(at + 34);
    return role <= static_cast<std::uint8_t>(TensorRole::input) &&
           level <= static_cast<std::uint8_t>(CheckLevel::full) && dtype < dtype_count;
}

void append_values(Bytes& to, const Fingerprint& print) {
    append_le(to, print.count);
    append_le(to, print.hash);
    append_le(to, print.largest);
    append_double(to, print.min);
    append_double(to, print.max);
    append_double(to, print.sum);
    append_double(to, print.sum_of_squares);
}

bool take_values(std::string_view content, Fingerprint& to) {
    if (content.size() < values_size) {
        return false;
    }
    const std::byte* at = bytes_of(content);
    to.count = load_le<std::uint64_t>(at);
    to.hash = load_le<std::uint64_t>(at + 8);
    to.largest = load_le<std::uint64_t>(at + 16);
    to.min = load_double(at + 24);
    to.max = load_double(at + 32);
    to.sum = load_double(at + 40);
    to.sum_of_squares = load_double(at + 48);
    return true;
}

bool take_sketch(std::string_view content, std::vector<double>& to) {
    const std::size_t buckets = content.size() / sizeof(double);
    if (content.size() % sizeof(double) != 0 || !valid_buckets(buckets)) {
        return false;
    }
    to.clear();
    for (std::size_t i = 0; i < buckets; ++i) {
        to.push_back(load_double(bytes_of(content) + i * sizeof(double)));
    }
    return true;
}

bool take_shape(std::string_view content, std::vector<std::uint64_t>& to) {
    constexpr std::size_t size = sizeof(std::uint64_t);
    if (content.size() % size != 0 || content.size() / size > max_rank) {
        return false;
    }
    to.clear();
    for (std::size_t at = 0; at < content.size(); at += size) {
        to.push_back(load_le<std::uint64_t>(bytes_of(content) + at));
    }
    return true;
}

/// False: a field that this version knows says what it cannot understand.
bool take_field(const Field& field, TensorCheck& to) {
    const auto number = [&field](std::uint64_t& value) {
        value = field.as_number();
        return field.content.size() == sizeof value;
    };
    std::uint64_t bits = 0;
    switch (field.number) {
    case field_place:
        return take_place(field.content, to);
    case field_values:
        return take_values(field.content, to.fingerprint);
    case field_sketch:
        return take_sketch(field.content, to.fingerprint.sketch);
    case field_shape:
        return take_shape(field.content, to.shape);
    case field_position:
        to.position = static_cast<std::int64_t>(field.as_number());
        return field.content.size() == sizeof bits;
    case field_first_index:
        return number(to.first_index);
    case field_graph_key:
        to.in_graph = true;
        return number(to.graph_key);
    case field_replay:
        return number(to.replay);
    case field_nans:
        return number(to.fingerprint.nans);
    case field_positive_infs:
        return number(to.fingerprint.positive_infs);
    case field_negative_infs:
        return number(to.fingerprint.negative_infs);
    case field_first_nonfinite:
        return number(to.fingerprint.first_nonfinite);
    case field_argmax:
        return number(to.argmax);
    case field_margin:
        to.margin = std::bit_cast<double>(field.as_number());
        return field.content.size() == sizeof bits;
    default:
        return true;
    }
}

void encode_numbers(const TensorCheck& from, FieldWriter& fields) {
    const auto number = [&fields](CheckField field, std::uint64_t value, std::uint64_t absent) {
        if (value != absent) {
            fields.number(field, value);
        }
    };
    number(field_position, static_cast<std::uint64_t>(from.position), static_cast<std::uint64_t>(std::int64_t{-1}));
    number(field_first_index, from.first_index, 0);
    if (from.in_graph) {
        fields.number(field_graph_key, from.graph_key);
    }
    number(field_replay, from.replay, 0);
    number(field_nans, from.fingerprint.nans, 0);
    number(field_positive_infs, from.fingerprint.positive_infs, 0);
    number(field_negative_infs, from.fingerprint.negative_infs, 0);
    number(field_first_nonfinite, from.fingerprint.first_nonfinite, no_index);
    number(field_argmax, from.argmax, no_index);
    if (!std::isnan(from.margin)) {
        fields.number(field_margin, std::bit_cast<std::uint64_t>(from.margin));
    }
}

} // namespace

TensorCheck bounded(TensorCheck check) {
    if (check.shape.size() > max_rank) {
        check.shape.resize(max_rank);
    }
    if (!valid_buckets(check.fingerprint.sketch.size())) {
        check.fingerprint.sketch.clear();
    }
    return check;
}

void encode(const TensorCheck& from, Bytes& to) {
    FieldWriter fields(to);
    fields.made(field_place, [&](Bytes& content) { append_place(content, from); });
    fields.made(field_values, [&](Bytes& content) { append_values(content, from.fingerprint); });
    if (!from.shape.empty()) {
        fields.made(field_shape, [&](Bytes& content) { append_all(content, from.shape); });
    }
    encode_numbers(from, fields);
    if (!from.fingerprint.sketch.empty()) {
        fields.made(field_sketch, [&](Bytes& content) { append_all(content, from.fingerprint.sketch); });
    }
}

bool decode(const std::byte* data, std::size_t size, TensorCheck& to) {
    FieldReader reader(data, size);
    Field field;
    bool placed = false;
    while (reader.next(field)) {
        if (!take_field(field, to)) {
            return false;
        }
        placed = placed || field.number == field_place;
    }
    return reader.intact() && placed;
}

CheckEncoder::CheckEncoder(bool compress) : zstd_(compress ? ZSTD_createCCtx() : nullptr) {}
CheckEncoder::~CheckEncoder() { ZSTD_freeCCtx(zstd_); }

Codec CheckEncoder::pack(const Bytes& entries, Bytes& to) {
    const std::size_t start = to.size();
    if (zstd_ != nullptr && entries.size() > size_head) {
        to.resize(start + entries.size());
        // No room for more than the plain bytes: zstd then gives up, and they are stored.
        const std::size_t packed =
            ZSTD_compressCCtx(zstd_, to.data() + start + size_head, entries.size() - size_head - 1, entries.data(),
                              entries.size(), check_compression_level);
        if (ZSTD_isError(packed) == 0 && entries.size() <= check_unfolding * (packed + size_head)) {
            store_le(to.data() + start, static_cast<std::uint32_t>(entries.size()));
            to.resize(start + size_head + packed);
            return Codec::zstd;
        }
        to.resize(start);
    }
    append_bytes(to, entries.data(), entries.size());
    return Codec::plain;
}

std::size_t unfolded_size(Codec codec, const std::byte* payload, std::size_t size) {
    if (codec == Codec::plain) {
        return size;
    }
    if (codec != Codec::zstd || size <= size_head) {
        return 0;
    }
    const std::size_t plain = load_le<std::uint32_t>(payload);
    return plain <= max_chunk_payload && plain <= check_unfolding * size ? plain : 0;
}

void CheckDecoder::Free::operator()(ZSTD_DCtx_s* zstd) const { ZSTD_freeDCtx(zstd); }

bool CheckDecoder::unfold(Codec codec, const std::byte*& payload, std::size_t& size) {
    if (codec == Codec::plain) {
        return true;
    }
    const std::size_t plain = unfolded_size(codec, payload, size);
    if (plain == 0) {
        return false;
    }
    if (!zstd_) {
        zstd_.reset(ZSTD_createDCtx());
    }
    plain_.resize(plain);
    if (!zstd_ ||
        ZSTD_decompressDCtx(zstd_.get(), plain_.data(), plain, payload + size_head, size - size_head) != plain) {
        return false;
    }
    payload = plain_.data();
    size = plain;
    return true;
}

CheckDecoder::Outcome CheckDecoder::decode(Codec codec, const std::byte* payload, std::size_t size, std::uint32_t count,
                                           std::uint32_t skip, const Take& take) {
    Outcome outcome;
    if (!unfold(codec, payload, size)) {
        return outcome;
    }
    for (std::uint32_t i = 0; i < count && size >= sizeof(std::uint32_t); ++i) {
        const std::size_t length = load_le<std::uint32_t>(payload);
        payload += sizeof(std::uint32_t);
        size -= sizeof(std::uint32_t);
        if (length > size) {
            break;
        }
        TensorCheck check;
        if (i >= skip && plumb::recording::decode(payload, length, check)) {
            ++outcome.read;
            if (!take(std::move(check))) {
                outcome.stopped = true;
                return outcome;
            }
        }
        payload += length;
        size -= length;
    }
    return outcome;
}

} // namespace plumb::recording
