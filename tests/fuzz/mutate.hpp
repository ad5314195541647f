// SPDX-License-Identifier: Apache-2.0
// Damage as fuzzers and the hostile-input test do it, and the repair of checksums, without which damage never gets past the
// first line of defence. Plain functions; no thread rule.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "recording/bytes.hpp"

namespace plumb::fuzz {

using recording::Bytes;

/// Recordings to start from: every kind of chunk and record, with and without zstd, shortened, damaged, empty.
std::vector<Bytes> recording_seeds();
/// Ring files to start from. Their recording id is golden::metadata()'s.
std::vector<Bytes> ring_seeds();

/// One to eight changes: bits, bytes, numbers, pieces cut out, doubled or moved, the end cut off.
void mutate(Bytes& bytes, std::mt19937_64& random);
/// Makes the checksums of preamble and chunks hold again, as a hostile writer would.
void repair_checksums(std::byte* data, std::size_t size);

/// Reads it as far as any reader would; the result is only there to be used. Never fails.
std::uint64_t read_recording(Bytes bytes);
std::uint64_t read_ring(const std::byte* data, std::size_t size);

} // namespace plumb::fuzz
