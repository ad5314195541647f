// SPDX-License-Identifier: Apache-2.0
// The encodings of Parquet that our files use, and the compact protocol of Thrift in which its headers are written: the subset that we
// need, by hand, for Debian 12 has no library for it. Source: apache/parquet-format, Encodings.md and parquet.thrift. Bytes are appended
// to a string of the caller; pure functions; one thread per writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::exporting::parquet {

/// Of parquet.thrift, which numbers them.
enum class Encoding : std::uint8_t { plain = 0, rle = 3, delta_binary_packed = 5, rle_dictionary = 8 };

void append_varint(std::string& out, std::uint64_t value);

/// The low `bytes` bytes of a value, the lowest first.
void append_low_bytes(std::string& out, std::uint64_t value, std::size_t bytes);

/// Definition levels of a page: one bit a row, set where there is a value. With the length in front. REQUIRES: there are rows.
void append_levels(std::string& out, std::span<const std::uint8_t> present);

/// PLAIN: 8 bytes each.
void append_plain(std::string& out, std::span<const std::int64_t> values);
void append_plain(std::string& out, std::span<const double> values);
void append_plain(std::string& out, std::string_view text);
/// PLAIN: a bit each.
void append_bits(std::string& out, std::span<const std::uint8_t> truths);

/// DELTA_BINARY_PACKED, in whole bytes: zstd finds more in those than in differences packed bit by bit.
void append_deltas(std::string& out, std::span<const std::int64_t> values);

/// RLE_DICTIONARY, in whole bytes for the same reason. REQUIRES: each index is below `entries`.
void append_indices(std::string& out, std::span<const std::uint32_t> indices, std::size_t entries);

/// Structs of Thrift. Fields of a struct in the order of their ids.
class CompactWriter {
  public:
    explicit CompactWriter(std::string& out) : out_(out) {}

    void truth(int id, bool value);
    void int16(int id, std::int16_t value);
    void int32(int id, std::int32_t value);
    void int64(int id, std::int64_t value);
    void text(int id, std::string_view value);
    void begin_struct(int id);
    /// Of the struct, or of an element that is one.
    void end();

    void begin_structs(int id, std::size_t count);
    void begin_element();
    void int32s(int id, std::initializer_list<std::int32_t> values);
    void texts(int id, std::initializer_list<std::string_view> values);

  private:
    void field(int id, unsigned type);
    void list(int id, std::size_t count, unsigned type);

    std::string& out_;
    std::vector<int> last_ids_{0}; // of the structs that are open
};

} // namespace plumb::exporting::parquet
