// SPDX-License-Identifier: Apache-2.0
// The encodings of Parquet that our files use: by hand, for Debian 12 has no library for it. Source: apache/parquet-format, Encodings.md.
// Bytes are appended to a string of the caller; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plumb::exporting::parquet {

/// Of parquet.thrift, which numbers them.
enum class Encoding : std::uint8_t { plain = 0, rle = 3, delta_binary_packed = 5, rle_dictionary = 8 };

/// The low `bytes` bytes of a value, the lowest first.
void append_low_bytes(std::string& out, std::uint64_t value, std::size_t bytes);

// Where a function takes a `count`, it is given that many values, or one that all of them have.

/// Definition levels of a page: one bit a row, set where there is a value. With the length in front. REQUIRES: there are rows.
void append_levels(std::string& out, std::span<const std::uint8_t> present, std::size_t count);

/// PLAIN: 8 bytes each.
void append_plain(std::string& out, std::span<const std::int64_t> values);
void append_plain(std::string& out, std::span<const double> values);
void append_plain(std::string& out, std::string_view text);
/// PLAIN: a bit each.
void append_bits(std::string& out, std::span<const std::uint8_t> truths, std::size_t count);

/// What the differences of a piece are as wide as.
enum class Width : std::uint8_t {
    bytes, // in which zstd finds what comes again
    bits,  // which are less where nothing does
};
/// DELTA_BINARY_PACKED.
void append_deltas(std::string& out, std::span<const std::int64_t> values, std::size_t count, Width width);

/// RLE_DICTIONARY, in whole bytes: zstd finds more in those. REQUIRES: each index is below `entries`.
void append_indices(std::string& out, std::span<const std::uint32_t> indices, std::size_t count, std::size_t entries);

} // namespace plumb::exporting::parquet
