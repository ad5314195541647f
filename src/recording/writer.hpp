// SPDX-License-Identifier: Apache-2.0
// Writes a recording, as a .plumb file or in memory with the same bytes. What append() accepted survives a kill of the
// process at any later moment; it is not forced to the disk, so a power cut may lose the last seconds.
// Thread rule: one thread at a time. Owned by whoever records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"
#include "recording/bytes.hpp"
#include "recording/recording.hpp"
#include "recording/store.hpp"

namespace plumb::recording {

class RecordingObserver;

struct WriterOptions {
    std::string path = {};       // empty: in memory
    std::uint64_t max_bytes = 0; // 0: no limit; the disk never holds more than about 1.5 times this
    std::int64_t keep_ns = 0;    // 0: for ever; else records of the last keep_ns stay, and up to half of that more
    bool compress = true;        // false: readable without zstd, about three times as large
    WriteFunction write = {};    // empty: pwrite
    std::function<std::int64_t()> now_ns = {}; // empty: CLOCK_MONOTONIC; dates chunks for keep_ns
    RecordingObserver* observer = nullptr;     // told of what was written; null: nobody is
};

class Writer {
  public:
    /// Errors: already_exists names the pid of a live writer; no_space, permission, not_found name path and fix.
    static Result<std::unique_ptr<Writer>> create(WriterOptions options, const Metadata& metadata);
    /// Closes, without a word about failures: call close() to hear of them.
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    /// One system call for all of it. After an error (no_space) nothing of the batch is in the recording: call again
    /// with the same batch, later. An empty batch is no error.
    Status append(const RecordBatch& batch);
    /// Append no more records at once: max_bytes is kept between two appends, not within one.
    [[nodiscard]] std::uint64_t most_at_once() const;
    /// One small write each. After an error (no_space) the entry is not in the recording: call again, later.
    Status add_track(const TrackInfo& given);
    /// Its thread ended, and all its records are here: nothing more is kept in memory for those to come.
    void end_track(std::uint32_t track);
    Status add_name(const NameInfo& name);
    Status add_clock_pair(const ClockPair& pair);
    /// One small write each, as above. A recording with a limit keeps 4096 of them at most, in an eighth of max_bytes, and thins
    /// out the older ones.
    Status add_off_cpu(const OffCpuSample& sample);
    Status set_counters(const Counters& counters);
    /// The last row of a key counts. Lists beyond the bounds of graph_codec.hpp are cut; lists that did not change since
    /// the row before take no room.
    Status add_graph(const GraphInfo& row);
    /// What kernel_codec.hpp bounds is cut; a source text that would take more than its share of max_bytes is left out.
    Status add_kernel(const KernelInfo& kernel);
    /// One system call for all of it, in chunks of bounded size. After an error (no_space) nothing of the batch is in the
    /// recording: call again with the same batch, later. A sketch or shape that no fingerprint has is left out.
    Status add_checks(const TensorCheck* checks, std::size_t count);
    /// Totals so far, by key; the last of a key counts. Those of a later generation take the place of all before: with no
    /// tiles at all it says that nothing came since the reset. One system call; after an error (no_space) nothing of it is in
    /// the recording.
    Status add_tiles(std::uint64_t generation, const TileTotals* tiles, std::size_t count);
    /// The last value of a key counts. Texts beyond `most_text` bytes are cut, here and in tracks and metadata.
    Status describe(std::string_view key, std::string_view value);
    /// Ends the recording in good order: readers then know that nothing is missing. Later calls are errors.
    Status close();
    /// In a forked child: lets go of the file, which stays the parent's.
    void forget() noexcept;

    [[nodiscard]] const std::string& path() const;
    [[nodiscard]] std::uint64_t size() const;
    /// A copy of the recording so far, in memory mode; empty for a file.
    [[nodiscard]] std::shared_ptr<const Bytes> snapshot() const;
    /// What max_bytes and keep_ns took out so far.
    [[nodiscard]] std::uint64_t records_removed() const;

  private:
    struct State;
    explicit Writer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace plumb::recording
