// SPDX-License-Identifier: Apache-2.0
// What a chunk of records says of itself, so that a reader who wants some steps finds them without decoding the others: which
// steps and what time it holds, and now and then all that a reader who begins there has to know of what came before.
// Its place in the file: docs/reference/plumb_format.md. A BoundsTracker is owned by one writer; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recording/bytes.hpp"
#include "recording/frame_stack.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

struct ChunkBounds {
    static constexpr std::size_t size = 40; // in the file, without carried records

    std::uint64_t first_step_plus_one = 0; // of the steps that its records belong to, by number; 0: to none
    std::uint64_t last_step_plus_one = 0;
    std::uint64_t first_ticks = 0; // of the clock of its track; first > last: no record has a time
    std::uint64_t last_ticks = 0;
    std::uint32_t decode_steps = 0; // that end in it
    /// A reader may begin here: the carried records, put before those of the chunk, are all that still applies.
    bool entry = false;
};

/// Appends the bounds; `carried` only where they say `entry`.
void append_bounds(Bytes& to, const ChunkBounds& bounds, const std::vector<Record>& carried);
/// `at` points at the last `size` bytes of a payload. False where they cannot be bounds.
[[nodiscard]] bool read_bounds(const std::byte* at, std::size_t size, ChunkBounds& bounds);
[[nodiscard]] std::vector<Record> read_carried(const std::byte* at, std::size_t size);

/// Follows the records of all tracks as they are written.
class BoundsTracker {
  public:
    /// Of the next chunk of its track, whose columns take `bytes`: appends its bounds. Nothing where a part of it was given before.
    void append(const RecordBatch& chunk, std::size_t bytes, Bytes& to);
    /// No more records of it come.
    void end_track(std::uint32_t track) { tracks_.erase(track); }

  private:
    struct Frame {
        Record begin;
        std::uint64_t step_plus_one;
    };
    struct Track {
        FrameStack<Frame> frames;
        std::map<std::pair<std::uint16_t, std::uint64_t>, Record> work; // by name and quantity
        std::uint64_t long_value = 0;                                   // duration of the next record
        std::size_t bytes_since_entry = 0;
        std::uint64_t next_sequence = 0;
        bool begun = false;
    };

    static void follow(Track& track, const RecordBatch& chunk, ChunkBounds& bounds);

    std::unordered_map<std::uint32_t, Track> tracks_;
};

} // namespace plumb::recording
