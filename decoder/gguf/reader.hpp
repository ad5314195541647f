// SPDX-License-Identifier: Apache-2.0
// A GGUF file (versions 2 and 3, little-endian) as validated, immutable data that points into the mapped bytes.
// The file is hostile input: every count, length, offset, alignment and extent is checked before use; nothing larger
// than a small multiple of the file is allocated; what is returned can be used without further checks.
// Owned by the caller; may be read from any thread while it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/gguf/file_map.hpp"
#include "decoder/gguf/types.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder::gguf {

/// Bounds of a believable model; a file beyond them is refused, not read.
inline constexpr std::uint64_t max_entries = 65536; // metadata entries, and tensors
inline constexpr std::uint32_t max_dimensions = 4;
inline constexpr int max_array_depth = 4;

/// One metadata value, still in the file.
struct Value {
    ValueType type = ValueType::u8;
    ValueType element = ValueType::u8;  // of an array
    std::uint64_t count = 0;            // of an array
    std::span<const std::byte> payload; // the value, the characters, or the array's elements as stored

    /// Nothing if the value is of another kind or does not fit.
    [[nodiscard]] std::optional<std::uint64_t> as_unsigned() const noexcept;
    [[nodiscard]] std::optional<double> as_number() const noexcept;
    [[nodiscard]] std::optional<bool> as_bool() const noexcept;
    [[nodiscard]] std::optional<std::string_view> as_string() const noexcept;
    /// The next element of an array's payload; `at` moves on. Only for arrays, at most `count` times.
    [[nodiscard]] Value next_element(std::size_t& at) const noexcept;
};

struct MetadataEntry {
    std::string_view key;
    Value value;
};

struct TensorInfo {
    std::string_view name;
    std::uint32_t type = 0;
    std::uint32_t dimensions = 0;
    std::uint64_t size[max_dimensions] = {1, 1, 1, 1}; // elements; size[0] is contiguous
    std::uint64_t offset = 0;                          // from the start of the file
    std::uint64_t elements = 0;
    std::optional<std::uint64_t> bytes; // nothing for unknown types
    std::span<const std::byte> data;    // empty for unknown types

    [[nodiscard]] bool is(TensorType wanted) const noexcept { return type == static_cast<std::uint32_t>(wanted); }
};

struct Contents {
    std::uint32_t version = 0;
    std::uint64_t alignment = 32;
    std::uint64_t data_offset = 0;
    std::vector<MetadataEntry> metadata; // in file order
    std::vector<TensorInfo> tensors;     // in file order

    [[nodiscard]] const Value* find(std::string_view key) const noexcept;
    [[nodiscard]] const TensorInfo* tensor(std::string_view name) const noexcept;

  private:
    friend Result<Contents> parse(std::span<const std::byte> bytes, std::string_view name);
    std::vector<std::uint32_t> by_key_; // indices sorted by name
    std::vector<std::uint32_t> by_name_;
};

/// Validates `bytes`; `name` opens the error sentences. The result points into `bytes`. Errors: corrupt, unsupported.
[[nodiscard]] Result<Contents> parse(std::span<const std::byte> bytes, std::string_view name);

/// A mapped file and its contents.
class File {
  public:
    static Result<File> open(const std::string& path);
    /// Of what lies in the map already; `name` is what path() says.
    static Result<File> from(FileMap map, const std::string& name);
    [[nodiscard]] const Contents& contents() const noexcept { return contents_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const FileMap& map() const noexcept { return map_; }

  private:
    std::string path_;
    FileMap map_;
    Contents contents_;
};

} // namespace plumb::decoder::gguf
