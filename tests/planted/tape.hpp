// SPDX-License-Identifier: Apache-2.0
// For tests: a recording that a test writes by hand, so that it knows the truth. It gives records, is read as a
// RecordedRun, or is saved as a file. One tick is 2 ns unless the test says otherwise, so that ticks taken for nanoseconds show. Owned by the
// test; one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "recording/recorded_run.hpp"
#include "recording/writer.hpp"
#include "resolve/node.hpp"

namespace plumb::planted {

inline constexpr std::int64_t us = 1'000, ms = 1'000'000; // in ns

class Tape final {
  public:
    using NodeKey = resolve::NodeKey;
    static constexpr std::uint64_t first_tick = 1'000'000'000;

    Tape() {
        metadata_.warmup_steps = 0;
        metadata_.clocks = {{0, "caller"}};
        clock_pairs_ = {{0, first_tick, 0, 0, 0}, {0, first_tick + 500'000'000, 1'000'000'000, 0, 0}};
    }

    /// Ticks of a moment in ns.
    static std::uint64_t at(std::int64_t ns) { return first_tick + static_cast<std::uint64_t>(ns) / 2; }
    static std::uint64_t lasting(std::int64_t ns) { return static_cast<std::uint64_t>(ns) / 2; }

    void track(std::uint32_t id, const std::string& name = "main", const std::string& source = "cpu_tsc") {
        tracks_.push_back({id, recording::TrackKind::host_thread, 0, 1, name, source});
    }
    void peaks(Peaks peaks) { metadata_.peaks.push_back(std::move(peaks)); }
    void raw(std::uint32_t id, Record record) { pending_[id].push_back(record); }
    void raw(std::uint32_t id, const std::vector<Record>& records) {
        pending_[id].insert(pending_[id].end(), records.begin(), records.end());
    }
    void scope(std::uint32_t id, Name name, std::int64_t begin, std::int64_t end, std::uint64_t flags = 0) {
        raw(id, {at(begin), pack(RecordKind::scope, name.id, lasting(end - begin)) | flags});
    }
    void lap(std::uint32_t id, Name name, std::int64_t begin, std::int64_t end) {
        scope(id, name, begin, end, flag_lap);
    }
    void span(std::uint32_t id, Name name, std::int64_t begin, std::int64_t end) {
        raw(id, {at(begin), pack(RecordKind::span, name.id, lasting(end - begin))});
    }
    void work(std::uint32_t id, Name name, WorkQuantity quantity, double value) {
        raw(id, {std::bit_cast<std::uint64_t>(value),
                 pack(RecordKind::work, name.id, static_cast<std::uint64_t>(quantity))});
    }
    void step_begin(std::uint32_t id, std::uint64_t step, Phase phase, std::int64_t begin) {
        raw(id, {at(begin), pack(RecordKind::step_begin, static_cast<std::uint16_t>(phase), step)});
    }
    void step_value(std::uint32_t id, StepValue which, std::uint64_t value) {
        raw(id, {value, pack(RecordKind::step_value, static_cast<std::uint16_t>(which))});
    }
    void step_end(std::uint32_t id, Phase phase, std::int64_t begin, std::int64_t end) {
        raw(id, {at(begin), pack(RecordKind::step_end, static_cast<std::uint16_t>(phase), lasting(end - begin))});
    }
    void layer_begin(std::uint32_t id, std::uint16_t layer, std::int64_t begin) {
        raw(id, {at(begin), pack(RecordKind::layer_begin, layer)});
    }
    void layer_end(std::uint32_t id, std::uint16_t layer, std::int64_t begin, std::int64_t end) {
        raw(id, {at(begin), pack(RecordKind::layer_end, layer, lasting(end - begin))});
    }
    void context(std::uint32_t id, std::uint64_t step, int layer = -1) {
        raw(id, {step + 1, pack(RecordKind::context, static_cast<std::uint16_t>(layer + 1))});
    }
    void context_end(std::uint32_t id) { raw(id, {0, pack(RecordKind::context_end)}); }
    void label(std::uint32_t id, Name name, std::uint64_t ns) { raw(id, {ns, pack(RecordKind::label, name.id)}); }
    void cpu_time(std::uint32_t id, std::int64_t time, std::int64_t cpu_ns) {
        raw(id, {at(time), (static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift) |
                               (static_cast<std::uint64_t>(cpu_ns) & cpu_time_mask)});
    }
    /// A mark of a request, as a recorder writes it.
    void request(std::uint32_t id, std::uint64_t request, RequestMark mark, std::int64_t time,
                 const std::vector<std::pair<RequestPart, std::uint64_t>>& parts = {}) {
        raw(id, {at(time), pack(RecordKind::request_part, static_cast<std::uint16_t>(RequestPart::ticks))});
        for (const auto& [part, value] : parts) {
            raw(id, {value, pack(RecordKind::request_part, static_cast<std::uint16_t>(part))});
        }
        raw(id, {request, pack(RecordKind::request, static_cast<std::uint16_t>(mark))});
    }
    /// It is in the batch of the step that is open on that track.
    void step_request(std::uint32_t id, std::uint64_t request) {
        raw(id, {request, pack(RecordKind::request, static_cast<std::uint16_t>(RequestMark::in_step))});
    }
    /// A queue or captured graph with a clock of its own: device ticks are host ticks plus an offset, at the same rate.
    static constexpr std::uint64_t device_ahead = 77'777;
    void device_track(recording::TrackInfo info, const std::string& clock = "cuda:0") {
        std::uint32_t id = 1;
        while (id < metadata_.clocks.size() && metadata_.clocks[id].name != clock) {
            ++id;
        }
        info.clock = id;
        tracks_.push_back(std::move(info));
        if (metadata_.clocks.size() == id) {
            metadata_.clocks.push_back({id, clock});
            clock_pairs_.push_back({id, first_tick + device_ahead, 0, 0, 0});
            clock_pairs_.push_back({id, first_tick + device_ahead + 500'000'000, 1'000'000'000, 0, 0});
        }
    }
    /// A scope that was submitted in that step and layer, as the drain writes it.
    void device_scope(std::uint32_t id, Name name, std::uint64_t step, int layer, std::int64_t begin, std::int64_t end,
                      std::uint64_t bits = 0, std::uint16_t quality = 0) {
        context(id, step, layer);
        if (quality != 0) {
            raw(id, {0, pack(RecordKind::span_quality, quality)});
        }
        raw(id, {at(begin) + device_ahead, pack(RecordKind::scope, name.id, lasting(end - begin)) | bits});
        context_end(id);
    }
    /// Before a device_scope() of the same track: what began it, as submit_scope() or launch() returned it. Recordings of older writers
    /// do not say it.
    void cause(std::uint32_t id, NodeKey submission) {
        raw(id, {submission.sequence, pack(RecordKind::cause, 0, submission.track)});
    }
    /// Before a scope() of the same track.
    void barrier_wait(std::uint32_t id, std::int64_t ns) { raw(id, {lasting(ns), pack(RecordKind::barrier_wait)}); }
    /// Before a scope() or device_scope() of that name on the same track.
    void collective(std::uint32_t id, Name name, std::uint64_t sequence, Name group = {}) {
        raw(id, {sequence + 1, pack(RecordKind::collective, group.id, name.id)});
    }
    /// Before a device_scope() of the same track.
    void lead(std::uint32_t id, std::uint64_t queued_ticks, std::uint64_t submitted_ticks) {
        raw(id, {queued_ticks, pack(RecordKind::span_lead, 0, submitted_ticks)});
    }
    void submit(std::uint32_t id, std::int64_t begin, std::int64_t end) {
        raw(id, {at(begin), pack(RecordKind::device_submit, 0, lasting(end - begin))});
    }
    NodeKey submit_scope(std::uint32_t id, Name name, std::uint32_t queue, std::int64_t begin, std::int64_t end) {
        submit(id, begin, end);
        raw(id, {++tokens_, pack(RecordKind::device_scope, name.id, queue)});
        return {id, written(id) - 1};
    }
    NodeKey launch(std::uint32_t id, std::uint64_t key, std::uint16_t flags, std::uint32_t queue, std::int64_t begin,
                   std::int64_t end) {
        submit(id, begin, end);
        raw(id, {key, pack(RecordKind::graph_launch, flags, queue)});
        return {id, written(id) - 1};
    }
    /// Nodes, as a recorder writes them; `end` below 0: only told at `begin`.
    NodeKey kernel(std::uint32_t id, Name name, std::int64_t begin, std::int64_t end = -1, std::uint64_t hash = 0,
                   Extent grid = {}, Extent block = {}, std::uint32_t shared = 0, std::uint64_t flags = 0) {
        raw(id, {hash, pack(RecordKind::kernel_code, name.id, shared)});
        raw(id, {grid.x | std::uint64_t{grid.y} << 32, pack(RecordKind::kernel_extent, 0, grid.z)});
        raw(id, {block.x | std::uint64_t{block.y} << 32, pack(RecordKind::kernel_extent, 1, block.z)});
        return node(id, pack(RecordKind::kernel, name.id) | flags, begin, end);
    }
    NodeKey transfer(std::uint32_t id, std::uint64_t source, std::uint64_t target, std::uint64_t bytes,
                     TransferDirection direction, std::int64_t begin, std::int64_t end = -1) {
        const std::uint64_t parts[] = {source, target, bytes};
        for (std::uint16_t i = 0; i < 3; ++i) {
            raw(id, {parts[i], pack(RecordKind::transfer_part, i)});
        }
        return node(id, pack(RecordKind::transfer, static_cast<std::uint16_t>(direction)), begin, end);
    }
    NodeKey task(std::uint32_t id, Name name, std::uint64_t polls, std::uint64_t yields, std::uint64_t polled_ns,
                 std::int64_t told) {
        const std::uint64_t parts[] = {polls, yields, polled_ns};
        for (std::uint16_t i = 0; i < 3; ++i) {
            raw(id, {parts[i], pack(RecordKind::task_part, i)});
        }
        return node(id, pack(RecordKind::task, name.id), told, -1);
    }
    void depend(std::uint32_t id, NodeKey earlier, NodeKey later) {
        raw(id, {earlier.sequence, pack(RecordKind::dependency, 0, earlier.track)});
        raw(id, {later.sequence, pack(RecordKind::dependency, 1, later.track)});
    }
    /// Ends the batch of a track: what follows of it arrives later.
    void deliver(std::uint32_t id) {
        auto& records = pending_[id];
        if (records.empty()) {
            return;
        }
        batches_.push_back({id, sequence_[id], records});
        sequence_[id] += records.size();
        records.clear();
    }
    void deliver_all() {
        for (const auto& [id, records] : pending_) {
            deliver_later_.push_back(id);
        }
        for (const std::uint32_t id : deliver_later_) {
            deliver(id);
        }
        deliver_later_.clear();
    }
    /// The next records of this track are not the next ones that were written.
    void lose(std::uint32_t id, std::uint64_t records) {
        deliver(id);
        sequence_[id] += records;
    }
    [[nodiscard]] std::uint64_t written(std::uint32_t id) { return sequence_[id] + pending_[id].size(); }

    /// As planted so far. REQUIRES: the tape outlives it.
    operator recording::RecordedRun() { // NOLINT(google-explicit-constructor): tests hand a tape to whatever reads runs
        deliver_all();
        recording::RecordedRun run;
        *run.facts = facts();
        run.for_each_batch = [this](const auto& visit) {
            return for_each_batch(visit);
        };
        run.for_each_check = [this](const auto& take) {
            for (const auto& chunk : checks_) {
                for (recording::TensorCheck check : chunk) {
                    if (!take(std::move(check))) {
                        return Status();
                    }
                }
            }
            return Status();
        };
        return run;
    }
    [[nodiscard]] recording::RunFacts facts() const {
        recording::RunFacts facts;
        facts.metadata = metadata_;
        facts.tracks = tracks_;
        facts.names = names_;
        facts.clock_pairs = clock_pairs_;
        facts.counters = counters_;
        facts.descriptions = descriptions_;
        facts.graphs = graphs_;
        facts.kernels = kernels_;
        facts.notes = notes_;
        facts.off_cpu = off_cpu_;
        return facts;
    }
    Status for_each_batch(const std::function<bool(const recording::RecordBatch&)>& visit) {
        ++passes_;
        deliver_all();
        for (const Batch& batch : batches_) {
            if (!visit({batch.track, batch.first_sequence, batch.records.data(), batch.records.size()})) {
                break;
            }
        }
        return {};
    }
    /// As a file: facts, then records in the order of their delivery, then checks and tiles.
    Status save(recording::WriterOptions options) { return write(std::move(options)).status; }
    Status save(const std::string& path) {
        recording::WriterOptions options;
        options.path = path;
        return save(std::move(options));
    }
    /// The same in memory; options.path is empty.
    Result<recording::Bytes> bytes(recording::WriterOptions options = {}) {
        const Written made = write(std::move(options));
        return made.status.ok() ? Result<recording::Bytes>(*made.writer->snapshot()) : made.status.error();
    }

    struct Tiles {
        std::uint64_t generation; // each reset() begins another one
        std::vector<recording::TileTotals> totals;
    };

    // What a test sets as it likes.
    recording::Metadata metadata_;
    std::vector<recording::TrackInfo> tracks_;
    std::vector<recording::NameInfo> names_;
    std::vector<recording::ClockPair> clock_pairs_;
    recording::Counters counters_;
    bool counted_ = true; // whether a file holds them
    std::vector<std::pair<std::string, std::string>> descriptions_;
    std::vector<recording::GraphInfo> graphs_;
    std::vector<recording::KernelInfo> kernels_;
    std::vector<recording::OffCpuSample> off_cpu_;
    std::vector<std::string> notes_;
    int passes_ = 0;                                          // over the records
    std::vector<std::vector<recording::TensorCheck>> checks_; // chunk by chunk
    std::vector<Tiles> tiles_;                                // in a file only

  private:
    struct Written {
        Status status;
        std::unique_ptr<recording::Writer> writer;
    };
    Written write(recording::WriterOptions options) {
        deliver_all();
        auto made = recording::Writer::create(std::move(options), metadata_);
        if (!made) {
            return {made.error(), nullptr};
        }
        Written done{{}, *std::move(made)};
        recording::Writer& writer = *done.writer;
        const auto then = [&done](const Status& next) {
            done.status = done.status.ok() ? next : done.status;
        };
        const auto all = [&then](const auto& list, auto&& add) {
            for (const auto& one : list) {
                then(add(one));
            }
        };
        all(tracks_, [&](const auto& track) { return writer.add_track(track); });
        all(names_, [&](const auto& name) { return writer.add_name(name); });
        all(clock_pairs_, [&](const auto& pair) { return writer.add_clock_pair(pair); });
        all(kernels_, [&](const auto& kernel) { return writer.add_kernel(kernel); });
        all(graphs_, [&](const auto& row) { return writer.add_graph(row); });
        all(off_cpu_, [&](const auto& sample) { return writer.add_off_cpu(sample); });
        all(descriptions_, [&](const auto& entry) { return writer.describe(entry.first, entry.second); });
        all(batches_, [&](const Batch& batch) {
            return writer.append({batch.track, batch.first_sequence, batch.records.data(), batch.records.size()});
        });
        all(checks_, [&](const auto& some) { return writer.add_checks(some.data(), some.size()); });
        all(tiles_, [&](const Tiles& some) {
            return writer.add_tiles(some.generation, some.totals.data(), some.totals.size());
        });
        if (counted_) {
            then(writer.set_counters(counters_));
        }
        then(writer.close());
        return done;
    }
    NodeKey node(std::uint32_t id, std::uint64_t bits, std::int64_t begin, std::int64_t end) {
        raw(id, {at(begin), end < 0 ? bits | flag_moment : bits | lasting(end - begin)});
        return {id, written(id) - 1};
    }

    struct Batch {
        std::uint32_t track;
        std::uint64_t first_sequence;
        std::vector<Record> records;
    };
    std::map<std::uint32_t, std::vector<Record>> pending_;
    std::map<std::uint32_t, std::uint64_t> sequence_;
    std::vector<Batch> batches_;
    std::uint64_t tokens_ = 0;
    std::vector<std::uint32_t> deliver_later_;
};

} // namespace plumb::planted
