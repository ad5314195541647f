// SPDX-License-Identifier: Apache-2.0
// One pass over a recording: everything but the records, where the records lie, and what is missing.
// Owned by a reader or by recovery; plain data; no thread rule. Size is bounded by the file's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plumb/result.hpp"
#include "recording/byte_source.hpp"
#include "recording/chunk_bounds.hpp"
#include "recording/format.hpp"
#include "recording/graph_codec.hpp"
#include "recording/metadata_codec.hpp"
#include "recording/record_codec.hpp"
#include "recording/recording.hpp"
#include "recording/run_facts.hpp"
#include "recording/tile_codec.hpp"

namespace plumb::recording {

/// A chunk of records of which the last `count - skip` are new.
struct RecordPlace {
    std::uint64_t offset = 0; // of the payload
    std::uint64_t checksum = 0;
    std::uint64_t first_sequence = 0;
    std::uint32_t payload_size = 0;
    std::uint32_t track = 0;
    std::uint32_t count = 0;
    std::uint32_t skip = 0; // already in an earlier chunk
    std::int64_t written_ns = 0;
    std::uint32_t bounds_size = 0; // so many last bytes of the payload; 0: it does not say
    ChunkBounds bounds;
};

/// A chunk of checks of which the last `count - skip` are new.
struct CheckChunk {
    std::uint64_t offset = 0; // of the payload
    std::uint64_t checksum = 0;
    std::uint32_t payload_size = 0;
    std::uint32_t count = 0;
    std::uint32_t skip = 0; // already in an earlier chunk
    Codec codec = Codec::plain;
};

struct Index : RunFacts {
    bool has_metadata = false;
    std::vector<RecordPlace> places;
    std::unordered_map<std::uint32_t, std::uint64_t> next_sequence; // of each track that has records
    std::vector<CheckChunk> check_places;
    std::uint64_t checks = 0; // in these
    std::uint64_t checks_removed = 0;
    TileMap tile_map; // of the last generation
    std::uint64_t tile_generation = 0;
    std::uint64_t records_written = 0; // by the writer, as far as the file tells, lost and removed ones included
    std::uint64_t records_removed = 0;
    std::uint64_t records_recovered = 0;
    bool recovered = false;       // a dead process's ring was folded in
    std::uint64_t end = 0;        // where to go on writing: behind everything but an unfinished chunk
    std::uint64_t torn_bytes = 0; // of that chunk

    [[nodiscard]] const TrackInfo* track(std::uint32_t id) const;
    [[nodiscard]] std::string track_name(std::uint32_t id) const;
};

/// Errors: corrupt when `path` (only named) is no recording; unsupported when a newer version made it.
Result<Index> read_index(ByteSource& source, const std::string& path);

/// The same of a file that grows: what read_index() gives, look by look, of which each reads what came since the one before.
class GrowingIndex {
  public:
    GrowingIndex();
    GrowingIndex(GrowingIndex&&) noexcept;
    GrowingIndex& operator=(GrowingIndex&&) noexcept;
    ~GrowingIndex();

    /// Up to the size that the source has. Errors: as read_index().
    Status grow(ByteSource& source, const std::string& path);
    /// Its owner may take places out of it.
    [[nodiscard]] Index& index();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// The records of a chunk, all `place.count` of them; false where they are not (or no longer) there as they were written.
[[nodiscard]] bool read_records(ByteSource& source, RecordDecoder& decoder, const RecordPlace& place, Record* to);

} // namespace plumb::recording
