// SPDX-License-Identifier: Apache-2.0
// Reads a recording, finished, cut short, damaged, hostile or still growing, with bounded memory. A dead writer's ring is
// merged in, without writing anything. Thread rule: one thread at a time; independent readers may share a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/result.hpp"
#include "recording/bytes.hpp"
#include "recording/recording.hpp"
#include "recording/run_facts.hpp"
#include "recording/step_ranges.hpp"

namespace plumb::recording {

/// Whether threads of their own decode and resolve ahead of the one that reads. Nothing but time depends on it.
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
    Reader(Reader&&) noexcept = default;
    Reader& operator=(Reader&&) noexcept = default;

    /// Lives as long as anybody holds it; its notes grow where reading finds damage.
    [[nodiscard]] const std::shared_ptr<RunFacts>& facts() const { return facts_; }
    [[nodiscard]] const Metadata& metadata() const { return facts_->metadata; }
    [[nodiscard]] const std::vector<TrackInfo>& tracks() const { return facts_->tracks; }
    [[nodiscard]] const std::vector<NameInfo>& names() const { return facts_->names; }
    [[nodiscard]] const std::vector<ClockPair>& clock_pairs() const { return facts_->clock_pairs; }
    [[nodiscard]] const Counters& counters() const { return facts_->counters; }
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& descriptions() const {
        return facts_->descriptions;
    }
    [[nodiscard]] const std::vector<GraphInfo>& graphs() const { return facts_->graphs; }
    [[nodiscard]] const std::vector<TileTotals>& tiles() const { return facts_->tiles; }
    [[nodiscard]] const std::vector<KernelInfo>& kernels() const { return facts_->kernels; }
    [[nodiscard]] const std::vector<std::string>& notes() const { return facts_->notes; }
    [[nodiscard]] bool closed() const { return facts_->closed; }
    [[nodiscard]] bool being_written() const { return facts_->being_written; }

    /// Whether it decodes ahead, with these options and this many records: then it is worth a thread to resolve ahead, too.
    [[nodiscard]] bool reads_ahead() const;

    /// Every record once, per track in sequence order; what the ring held comes last. `take` returns false to stop early.
    /// It must not call this reader: the next chunks may be decoded meanwhile. May be called again. Where records of a track
    /// are missing, the next batch's first_sequence tells.
    Status for_each_batch(const std::function<bool(const RecordBatch&)>& take);
    /// The same of a part of the chunks; the ring's records are always there. nullopt: that part is all of them. For as long as
    /// this reader lives.
    using Batches = std::function<Status(const std::function<bool(const RecordBatch&)>& take)>;
    [[nodiscard]] std::optional<Batches> batches_of(const StepRanges& steps, std::uint64_t first_decode_steps);
    /// Every check of a tensor once, in the order written; `take` returns false to stop early. May be called again.
    Status for_each_check(const std::function<bool(TensorCheck&&)>& take);
    /// How many of them the file says it holds, known without reading them.
    [[nodiscard]] std::uint64_t checks_count() const;

  private:
    struct State;
    explicit Reader(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
    std::shared_ptr<RunFacts> facts_; // in the state
};

} // namespace plumb::recording
