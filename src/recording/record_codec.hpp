// SPDX-License-Identifier: Apache-2.0
// Records to and from the payload of a record chunk: columns of surprises (record_predictor.hpp), cut into byte planes,
// each plane constant, stored or zstd. Owned by one writer or reader; one thread at a time. Decoding takes hostile input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/layout.hpp"
#include "recording/bytes.hpp"

namespace plumb::recording {

class RecordEncoder {
  public:
    /// Without compression every plane is constant or stored, so a reader needs no zstd.
    explicit RecordEncoder(bool compress);
    ~RecordEncoder();
    RecordEncoder(const RecordEncoder&) = delete;
    RecordEncoder& operator=(const RecordEncoder&) = delete;

    /// Appends the payload for `count` records, 1 to max_chunk_records.
    void encode(const Record* records, std::size_t count, Bytes& to);

  private:
    struct Columns;
    std::unique_ptr<Columns> columns_;
};

class RecordDecoder {
  public:
    RecordDecoder();
    ~RecordDecoder();
    RecordDecoder(RecordDecoder&&) noexcept;
    RecordDecoder& operator=(RecordDecoder&&) noexcept;

    /// Writes `count` records. False when the payload cannot be one of so many; what was written then means nothing.
    [[nodiscard]] bool decode(const std::byte* payload, std::size_t size, std::size_t count, Record* to);

  private:
    struct Columns;
    std::unique_ptr<Columns> columns_;
};

} // namespace plumb::recording
