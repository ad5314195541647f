// SPDX-License-Identifier: Apache-2.0
// Writes a GGUF v3 file front to back: metadata and tensor names first, then the data of each tensor in order.
// The file appears under its name only when finish() succeeded; until then, and after any error, only a temporary
// neighbour exists, which the destructor removes. A link is followed. One thread; owned by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/gguf/types.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder::gguf {

class GgufWriter {
  public:
    static constexpr std::uint64_t alignment = 32;

    explicit GgufWriter(std::string path) : path_(std::move(path)) {}
    GgufWriter(const GgufWriter&) = delete;
    GgufWriter& operator=(const GgufWriter&) = delete;
    ~GgufWriter();

    // Before begin(). Keys and names are not checked for duplicates: the reader is.
    void add(std::string_view key, std::string_view text);
    void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
    void add(std::string_view key, std::uint32_t value);
    void add(std::string_view key, float value);
    void add(std::string_view key, bool value);
    void add(std::string_view key, std::span<const std::string> texts);
    void add(std::string_view key, std::span<const std::int32_t> values);
    /// REQUIRES a type known to type_traits and at least one dimension.
    void add_tensor(std::string_view name, std::span<const std::uint64_t> size, std::uint32_t type);

    /// All that lies before the data, for who puts the bytes elsewhere; then begin() is not called.
    [[nodiscard]] std::string header() const;
    /// Where the data of a tensor begins, counted in the order of add_tensor.
    [[nodiscard]] std::uint64_t offset_of(std::size_t tensor) const noexcept {
        return header_size() + extents_[tensor].begin;
    }

    /// Creates the temporary file, takes its room on the disk and writes everything before the data.
    /// Errors: already_exists (unless `replace`), no_space, permission, failed.
    [[nodiscard]] Status begin(bool replace);
    /// Appends data; together exactly the tensors' bytes in the order of add_tensor. Padding is added here.
    [[nodiscard]] Status write(std::span<const std::byte> data);
    /// Flushes and gives the file its name. An error if data is missing.
    [[nodiscard]] Status finish();

    [[nodiscard]] std::uint64_t file_bytes() const noexcept { return header_size() + data_bytes_; }

  private:
    struct Extent {
        std::uint64_t begin = 0; // relative to the data
        std::uint64_t bytes = 0;
    };

    [[nodiscard]] std::uint64_t header_size() const noexcept;
    [[nodiscard]] Status put(std::span<const std::byte> data);
    [[nodiscard]] Status flush();
    [[nodiscard]] Error io_error(int code) const;
    void discard() noexcept;

    std::string path_;
    std::string target_; // what it leads to
    std::string temporary_;
    int descriptor_ = -1;
    std::string metadata_;
    std::string table_;
    std::vector<Extent> extents_;
    std::uint64_t entries_ = 0;
    std::uint64_t data_bytes_ = 0; // padded
    std::size_t current_ = 0;      // extent being written
    std::uint64_t written_ = 0;    // bytes of it
    std::vector<std::byte> buffer_;
};

} // namespace plumb::decoder::gguf
