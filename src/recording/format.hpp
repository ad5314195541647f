// SPDX-License-Identifier: Apache-2.0
// The frame of a .plumb file: preamble, chunk headers, checksums (docs/reference/plumb_format.md says what they mean).
// Pure functions and plain values; no thread rule. Everything read here is hostile input until its checksum holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recording/bytes.hpp"

namespace plumb::recording {

inline constexpr unsigned char file_magic[8] = {'P', 'L', 'U', 'M', 'B', '\r', '\n', 0x1a};
inline constexpr unsigned char chunk_magic[4] = {0x9e, 'P', 'L', 'C'};
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::uint32_t byte_order_mark = 0x01020304;
inline constexpr std::size_t preamble_size = 64;
inline constexpr std::size_t chunk_header_size = 64;
/// Bounds that a reader relies on; a writer never exceeds them.
inline constexpr std::size_t max_chunk_records = 65536;
inline constexpr std::size_t max_chunk_payload = std::size_t{2} << 20;
/// A chunk of n records has at least n / this bytes of payload, so a small file cannot expand without bound.
inline constexpr std::size_t min_payload_share = 16;

/// Append only; a reader skips and counts types it does not know.
enum class ChunkType : std::uint16_t {
    metadata = 1,
    tracks = 2,
    names = 3,
    clock_pairs = 4,
    counters = 5,
    descriptions = 6,
    records = 7,
    removed = 8,      // what max_size= or keep= removed from one track
    carried = 9,      // records of the removed part of one track that the kept part still depends on
    recovered = 10,   // a ring was folded in
    closed = 11,      // the writer ended in good order
    graphs = 12,      // life-cycle rows of captured graphs: the last one of a key counts
    checks = 13,      // fingerprints of tensors; with no entry: those before its number were removed by a limit
    kernels = 14,     // what code hashes stand for
    tiles = 18,       // totals of tiles: the last entry of a key in the last generation counts
    graph_nodes = 19, // what captured graphs consist of, node by node: one entry for each capture
    off_cpu = 20,     // what the kernel had counted for threads at a moment
};

/// How the payload of a chunk is packed.
enum class Codec : std::uint8_t { plain = 0, columns = 1, zstd = 2 };

struct Preamble {
    std::uint32_t version = format_version;
    std::uint64_t recording_id[2] = {0, 0};
};

struct ChunkHeader {
    ChunkType type = ChunkType::metadata;
    Codec codec = Codec::plain;
    std::uint32_t track = 0;
    std::uint32_t count = 0;          // records, or entries
    std::uint64_t first_sequence = 0; // of the records, or checks; generation of the tiles
    std::uint32_t payload_size = 0;
    std::uint32_t bounds_size = 0;    // of the payload so many last bytes are its bounds (chunk_bounds.hpp); 0: none
    std::uint64_t records_before = 0; // in all record chunks ever written to this file before this one
    std::int64_t written_ns = 0;      // CLOCK_MONOTONIC of the writer: only compared with each other
    std::uint64_t payload_checksum = 0;
};

/// XXH3, 64 bits, seed 0.
[[nodiscard]] std::uint64_t checksum(const void* data, std::size_t size);

void append_preamble(Bytes& to, const Preamble& preamble);
enum class PreambleState { good, damaged, foreign };
/// `data` holds preamble_size bytes. `damaged`: a .plumb file whose preamble fails its checksum.
[[nodiscard]] PreambleState read_preamble(const std::byte* data, Preamble& preamble);

/// Writes chunk_header_size bytes, with checksum.
void store_chunk_header(std::byte* at, const ChunkHeader& header);
/// `data` holds chunk_header_size bytes. False unless magic, checksum and bounds hold.
[[nodiscard]] bool read_chunk_header(const std::byte* data, ChunkHeader& header);
/// Appends a whole chunk; sets payload_size and payload_checksum itself.
void append_chunk(Bytes& to, ChunkHeader header, const Bytes& payload);

} // namespace plumb::recording
