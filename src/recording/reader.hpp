// SPDX-License-Identifier: Apache-2.0
// Reads a recording, finished, cut short, damaged, hostile or still growing, with bounded memory. A dead writer's ring is
// merged in, without writing anything. Thread rule: one thread at a time; independent readers may share a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plumb/result.hpp"
#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

/// Whether a second thread decodes ahead of the one that reads. Nothing but time depends on it.
enum class ReadAhead : std::uint8_t { when_it_pays, never, always };

struct ReadOptions {
    bool merge_ring = true; // of a writer that is dead; a live writer's ring is left alone
    ReadAhead ahead = ReadAhead::when_it_pays;
};

class Reader {
  public:
    /// Errors: not_found, permission; corrupt when it is no recording at all; unsupported when a newer version made it.
    static Result<Reader> open(const std::string& path, ReadOptions options = {});
    static Result<Reader> from_bytes(std::shared_ptr<const Bytes> bytes);
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) noexcept;
    ~Reader();

    [[nodiscard]] const Metadata& metadata() const;
    /// In order of first appearance; those known only from a dead writer's ring come last.
    [[nodiscard]] const std::vector<TrackInfo>& tracks() const;
    [[nodiscard]] const std::vector<NameInfo>& names() const;
    [[nodiscard]] const std::vector<ClockPair>& clock_pairs() const;
    [[nodiscard]] const Counters& counters() const;
    /// The last value of each key, in order of first appearance.
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& descriptions() const;
    /// The last row of each captured graph, in order of first appearance.
    [[nodiscard]] const std::vector<GraphInfo>& graphs() const;
    /// Totals of tiles since the last reset(), by level, name, row and column.
    [[nodiscard]] std::vector<TileTotals> tiles() const;
    /// What code hashes stand for; several kernels may have one, and notes() tells of those that should not.
    [[nodiscard]] const std::vector<KernelInfo>& kernels() const;
    /// Losses and damage in plain words, with counts. Empty: everything that was recorded is here.
    [[nodiscard]] const std::vector<std::string>& notes() const;
    /// Whether the writer ended in good order.
    [[nodiscard]] bool closed() const;
    /// Whether the writer was still alive when this reader opened the recording.
    [[nodiscard]] bool being_written() const;

    /// Every record once, per track in sequence order; what the ring held comes last. `take` returns false to stop early.
    /// It must not call this reader: the next chunks may be decoded meanwhile. May be called again. Where records of a track
    /// are missing, the next batch's first_sequence tells.
    Status for_each_batch(const std::function<bool(const RecordBatch&)>& take);
    /// Every check of a tensor once, in the order written; `take` returns false to stop early. May be called again.
    Status for_each_check(const std::function<bool(TensorCheck&&)>& take);
    /// How many of them the file says it holds, known without reading them.
    [[nodiscard]] std::uint64_t checks_count() const;

  private:
    struct State;
    explicit Reader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace plumb::recording
