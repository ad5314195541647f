// SPDX-License-Identifier: Apache-2.0
// A recording followed while it grows: each look reads what was appended since the last one, and nothing again. Records are
// handed out as places, and decoded by whoever wants them. Owned by its caller; one thread. Memory does not grow with the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/byte_source.hpp"
#include "recording/index.hpp"
#include "recording/record_codec.hpp"

namespace plumb::recording {

class Follower {
  public:
    struct Chunk {
        RecordPlace place;
        std::shared_ptr<ByteSource> file; // that it lies in: a limit (max_size=, keep=) replaces the file now and then
    };
    enum class Writer : std::uint8_t {
        alive,
        closed, // it ended in good order
        gone,   // it ended without closing the recording
    };

    /// Nothing is read yet. Errors: as Reader::open().
    static Result<Follower> open(const std::string& path);

    /// Reads what is new. Errors: corrupt, when the file is no recording, became shorter, or is another run's by now; not_found, when
    /// it was removed. An unfinished chunk at the end is left for the next look.
    Status look();
    /// Chunks of records that came since the last call, in file order; their first `skip` records were there before.
    [[nodiscard]] std::vector<Chunk> take_chunks();
    /// All `place.count` records; false where they cannot be read any more.
    bool decode(const Chunk& chunk, std::vector<Record>& records);

    /// As of the last look. The same object throughout.
    [[nodiscard]] const std::shared_ptr<RunFacts>& facts() const { return facts_; }
    [[nodiscard]] Writer writer() const { return writer_; }
    /// By all looks together.
    [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

  private:
    Follower(std::string path, std::shared_ptr<ByteSource> file) : path_(std::move(path)), file_(std::move(file)) {}

    Status reopen_if_replaced();
    void take_over(Index& index);
    void ask_for_writer(bool grew);

    std::string path_;
    std::shared_ptr<ByteSource> file_;
    GrowingIndex index_;
    RecordDecoder decoder_;
    std::shared_ptr<RunFacts> facts_ = std::make_shared<RunFacts>();
    std::vector<Chunk> chunks_;
    std::unordered_map<std::uint32_t, std::uint64_t> next_sequence_; // of each track, over all files
    Writer writer_ = Writer::alive;
    std::uint64_t bytes_read_ = 0;
};

} // namespace plumb::recording
