// SPDX-License-Identifier: Apache-2.0
#include "recording/format.hpp"

#include <xxhash.h>

namespace plumb::recording {
namespace {

constexpr std::size_t preamble_checked = preamble_size - 8;
constexpr std::size_t header_checked = chunk_header_size - 8;

} // namespace

std::uint64_t checksum(const void* data, std::size_t size) { return XXH3_64bits(data, size); }

void append_preamble(Bytes& to, const Preamble& preamble) {
    const std::size_t start = to.size();
    to.resize(start + preamble_size);
    std::byte* at = to.data() + start;
    std::memcpy(at, file_magic, sizeof file_magic);
    store_le(at + 8, preamble.version);
    store_le(at + 12, byte_order_mark);
    store_le(at + 16, preamble.recording_id[0]);
    store_le(at + 24, preamble.recording_id[1]);
    store_le(at + 32, static_cast<std::uint32_t>(preamble_size));
    store_le(at + preamble_checked, checksum(at, preamble_checked));
}

PreambleState read_preamble(const std::byte* data, Preamble& preamble) {
    if (std::memcmp(data, file_magic, sizeof file_magic) != 0) {
        return PreambleState::foreign;
    }
    preamble.version = load_le<std::uint32_t>(data + 8);
    preamble.recording_id[0] = load_le<std::uint64_t>(data + 16);
    preamble.recording_id[1] = load_le<std::uint64_t>(data + 24);
    const bool whole = load_le<std::uint32_t>(data + 12) == byte_order_mark &&
                       load_le<std::uint32_t>(data + 32) == preamble_size &&
                       load_le<std::uint64_t>(data + preamble_checked) == checksum(data, preamble_checked);
    return whole ? PreambleState::good : PreambleState::damaged;
}

void store_chunk_header(std::byte* at, const ChunkHeader& header) {
    std::memcpy(at, chunk_magic, sizeof chunk_magic);
    store_le(at + 4, static_cast<std::uint16_t>(header.type));
    store_le(at + 6, static_cast<std::uint8_t>(header.codec));
    store_le(at + 7, std::uint8_t{0});
    store_le(at + 8, header.track);
    store_le(at + 12, header.count);
    store_le(at + 16, header.first_sequence);
    store_le(at + 24, header.payload_size);
    store_le(at + 28, header.bounds_size);
    store_le(at + 32, header.records_before);
    store_le(at + 40, header.written_ns);
    store_le(at + 48, header.payload_checksum);
    store_le(at + header_checked, checksum(at, header_checked));
}

bool read_chunk_header(const std::byte* data, ChunkHeader& header) {
    if (std::memcmp(data, chunk_magic, sizeof chunk_magic) != 0 ||
        load_le<std::uint64_t>(data + header_checked) != checksum(data, header_checked)) {
        return false;
    }
    header.type = static_cast<ChunkType>(load_le<std::uint16_t>(data + 4));
    header.codec = static_cast<Codec>(load_le<std::uint8_t>(data + 6));
    header.track = load_le<std::uint32_t>(data + 8);
    header.count = load_le<std::uint32_t>(data + 12);
    header.first_sequence = load_le<std::uint64_t>(data + 16);
    header.payload_size = load_le<std::uint32_t>(data + 24);
    header.bounds_size = load_le<std::uint32_t>(data + 28);
    header.records_before = load_le<std::uint64_t>(data + 32);
    header.written_ns = load_le<std::int64_t>(data + 40);
    header.payload_checksum = load_le<std::uint64_t>(data + 48);
    return header.payload_size <= max_chunk_payload;
}

void append_chunk(Bytes& to, ChunkHeader header, const Bytes& payload) {
    header.payload_size = static_cast<std::uint32_t>(payload.size());
    header.payload_checksum = checksum(payload.data(), payload.size());
    const std::size_t start = to.size();
    to.resize(start + chunk_header_size + payload.size());
    store_chunk_header(to.data() + start, header);
    if (!payload.empty()) {
        std::memcpy(to.data() + start + chunk_header_size, payload.data(), payload.size());
    }
}

} // namespace plumb::recording
