// SPDX-License-Identifier: Apache-2.0
// The first pass: nothing but step records, and how far in time each batch lets its reader be sure.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "recording/drop_reasons.hpp"
#include "recording/frame_stack.hpp"
#include "resolve/duration_reader.hpp"
#include "resolve/first_steps.hpp"
#include "resolve/step_table.hpp"

namespace plumb::resolve {
namespace {

using recording::FrameKind;
using recording::FrameStack;

constexpr std::size_t max_breaks = 65536;
constexpr std::uint64_t largest_value = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

constexpr std::uint64_t bit_of(RecordKind kind) { return std::uint64_t{1} << static_cast<unsigned>(kind); }

/// All others only part a long duration from the record it is meant for.
constexpr std::uint64_t kinds_that_tell = bit_of(RecordKind::step_begin) | bit_of(RecordKind::step_value) |
                                          bit_of(RecordKind::step_end) | bit_of(RecordKind::mark) |
                                          bit_of(RecordKind::long_value) | bit_of(RecordKind::context) |
                                          bit_of(RecordKind::context_end) | bit_of(RecordKind::graph_launch) |
                                          bit_of(RecordKind::device_scope) | bit_of(RecordKind::cause);

struct OpenStep {
    ResolvedStep step;
    std::uint64_t first_sequence = 0;
    bool phase_known = true; // false: the record holds none of the phases
    std::optional<std::uint32_t> kernels_ns, kernel_stretch_ns;
};

struct TrackScan {
    FrameStack<OpenStep> open;
    FrameStack<std::uint64_t> places; // id + 1 of the steps that what follows belongs to, 0 for none
    DurationReader duration;
    std::optional<std::uint64_t> next_sequence; // none: no batch yet
    bool behind_removed = false;                // its first record is behind removed ones, and none are missing since
};

class Scanner {
  public:
    /// `packed` (may be null): where steps go instead of into a table; then nothing is learned of periods. `only` (may be null):
    /// the steps that go there. `lossy`: some records found no room, at no known place.
    Scanner(TrackTable& tracks, std::uint64_t warmup_steps, PackedSteps* packed, Losses& losses,
            const recording::StepRanges* only, bool lossy)
        : tracks_(tracks), warmup_steps_(warmup_steps), packed_(packed), only_(only), losses_(losses), lossy_(lossy) {}

    void batch(const recording::RecordBatch& batch) {
        const std::size_t index = tracks_.index_of(batch.track);
        if (packed_ == nullptr) {
            first_ends_.push_back(never);
        }
        if (index == no_track) {
            return;
        }
        while (scans_.size() <= index) {
            scans_.push_back(std::make_unique<TrackScan>());
        }
        if (batch.begins_anew) {
            *scans_[index] = TrackScan();
        }
        TrackScan& scan = *scans_[index];
        scan.behind_removed = scan.next_sequence ? scan.behind_removed && *scan.next_sequence == batch.first_sequence
                                                 : tracks_.begins_behind_removed(batch.first_sequence);
        lossy_ = lossy_ || (scan.next_sequence && *scan.next_sequence != batch.first_sequence);
        scan.next_sequence = batch.first_sequence + batch.count;
        const bool timed = tracks_[index].line != nullptr;
        lossy_ = lossy_ || (timed && !tracks_[index].line->jumped().empty());
        const bool sampled = tracks_[index].info.sampled_every > 1;
        // A queue that is timed in some steps only, and replays, would end steps sometimes with the device, sometimes without.
        const bool queue = tracks_[index].info.kind == recording::TrackKind::device_queue;
        const bool ends_steps = packed_ == nullptr && timed && !sampled && queue;
        const bool bounds = timed && packed_ == nullptr;
        const std::uint64_t kinds = kinds_that_tell | (sampled || queue ? bit_of(RecordKind::scope) : 0) |
                                    (bounds ? bit_of(RecordKind::span) : 0);
        if (bounds) {
            first_ends_.back() = first_end(batch, *tracks_[index].line);
        }
        for (std::size_t i = 0; i < batch.count; ++i) {
            if ((kinds >> static_cast<unsigned>(kind_of(batch.records[i])) & 1) == 0) [[likely]] {
                scan.duration.forget();
                continue;
            }
            causes_ = causes_ || kind_of(batch.records[i]) == RecordKind::cause;
            queue_scopes_ = queue_scopes_ || (queue && kind_of(batch.records[i]) == RecordKind::scope);
            disturbance(batch.records[i], scan, sampled);
            if (ends_steps && kind_of(batch.records[i]) == RecordKind::scope) {
                device_end(batch.records[i], scan, *tracks_[index].line);
            }
            if (bounds && kind_of(batch.records[i]) == RecordKind::span) {
                first_ends_.back() =
                    std::min(first_ends_.back(), end_bound(batch.records[i], *tracks_[index].line).value_or(never));
            }
            if (timed) {
                record(batch.records[i], batch.first_sequence + i, index);
            }
        }
    }

    void finish_packed() {
        finish_tracks();
        for (const auto& scan : scans_) {
            losses_.count(Loss::step_cut_short, scan->open.size());
        }
        losses_.count(Loss::step_id_reused, packed_->finish());
        if (warmup_steps() != 0) {
            for (const auto& [end, id] : first_.all()) {
                packed_->set_warmup(id);
            }
        }
        for (StepIds* ids : {&disturbed_.by_launches, &disturbed_.by_device}) {
            for (const std::uint64_t id : ids->sorted()) {
                packed_->set_left_out(id);
            }
        }
        packed_->keep_phases_that_have_no_other_steps();
    }

    FirstPass finish() {
        finish_tracks();
        for (const auto& scan : scans_) {
            losses_.count(Loss::step_cut_short, scan->open.size());
        }
        FirstPass result;
        result.steps = StepTable::build(std::move(found_), phaseless_.sorted(), std::move(breaks_), warmup_steps(),
                                        std::move(disturbed_), std::move(device_ends_), losses_, lossy_);
        result.no_earlier_than = std::move(first_ends_);
        std::int64_t earliest = never;
        for (std::size_t i = result.no_earlier_than.size(); i > 0; --i) {
            std::swap(earliest, result.no_earlier_than[i - 1]);
            earliest = std::min(earliest, result.no_earlier_than[i - 1]);
        }
        return result;
    }

  private:
    // Warm-up is the beginning of the run, which max_size= or keep= may have removed, with some tracks as a whole. Steps are
    // numbered one by one, so the first number tells how many are gone.
    [[nodiscard]] std::uint64_t warmup_steps() const {
        return tracks_.records_removed() && first_id_ >= warmup_steps_ ? 0 : warmup_steps_;
    }

    // A scope without a cause is of an older writer only where none has one: else the record was lost.
    void finish_tracks() { tracks_.set_tells_launches(causes_ || !queue_scopes_); }

    // Records of a track stand in the order of their ends, so the first one that has an end bounds the others. Spans stand
    // where they were told, so each is a bound of its own.
    static std::int64_t first_end(const recording::RecordBatch& batch, const TickConversion& line) {
        for (std::size_t i = 0; i < batch.count; ++i) {
            const Record& record = batch.records[i];
            const RecordKind kind = kind_of(record);
            const bool has_end =
                kind == RecordKind::scope || kind == RecordKind::step_end || kind == RecordKind::layer_end;
            const bool has_stamp = has_end || kind == RecordKind::step_begin || kind == RecordKind::layer_begin ||
                                   kind == RecordKind::cpu_time || kind == RecordKind::mark;
            if (!has_stamp) {
                continue;
            }
            if (const std::optional<std::int64_t> end = end_bound(record, line, has_end)) {
                return *end;
            }
        }
        return never;
    }

    // A duration above 40 bits stands elsewhere; the begin is a bound as well, only a looser one.
    static std::optional<std::int64_t> end_bound(const Record& record, const TickConversion& line,
                                                 bool has_end = true) {
        const std::uint64_t duration = has_end && payload_of(record) != payload_mask ? payload_of(record) : 0;
        return line.contains(record.first, duration) ? std::optional(line.to_ns(record.first + duration))
                                                     : std::nullopt;
    }

    // Which steps profiling made different. Scopes on the track of a queue count, and also their submission on the host:
    // a scope whose time never came disturbed its step just the same.
    void disturbance(const Record& record, TrackScan& scan, bool sampled) {
        const std::uint64_t* place = nullptr;
        switch (kind_of(record)) {
        case RecordKind::step_begin:
            (void)scan.places.push(FrameKind::step, record.first, payload_of(record) + 1);
            return;
        case RecordKind::context:
            (void)scan.places.push(FrameKind::context, 0, record.first);
            return;
        case RecordKind::step_end:
            (void)scan.places.pop(FrameKind::step, record.first);
            return;
        case RecordKind::context_end:
            (void)scan.places.pop_innermost(FrameKind::context);
            return;
        case RecordKind::mark:
            if (id_of(record) == static_cast<std::uint16_t>(Mark::slowed_step)) {
                if (place = scan.places.innermost(); place != nullptr && *place != 0) {
                    disturbed_.by_launches.add(*place - 1);
                }
            } else if (id_of(record) == static_cast<std::uint16_t>(Mark::cut_step)) {
                (void)scan.places.pop_innermost(FrameKind::step);
            }
            return;
        case RecordKind::graph_launch:
            place = scan.places.innermost();
            if (place != nullptr && *place != 0 &&
                (id_of(record) & (launch_instrumented | launch_first | launch_beside_build)) != 0) {
                disturbed_.by_launches.add(*place - 1);
            }
            return;
        case RecordKind::device_scope: {
            const std::size_t queue = tracks_.find(static_cast<std::uint32_t>(payload_of(record)));
            if (queue == no_track || tracks_[queue].info.sampled_every <= 1) {
                return;
            }
            break;
        }
        case RecordKind::scope:
            if (!sampled) {
                return;
            }
            break;
        default:
            return;
        }
        place = scan.places.innermost();
        if (place != nullptr && *place != 0) {
            disturbed_.by_device.add(*place - 1);
        }
    }

    void device_end(const Record& record, TrackScan& scan, const TickConversion& line) {
        const std::uint64_t* place = scan.places.innermost();
        const std::optional<std::uint64_t> duration = scan.duration.take(record);
        if (place != nullptr && *place != 0 && duration && line.contains(record.first, *duration)) {
            device_ends_.add(*place - 1, line.to_ns(record.first + *duration));
        }
    }

    void record(const Record& record, std::uint64_t sequence, std::size_t index) {
        TrackScan& scan = *scans_[index];
        switch (kind_of(record)) {
        case RecordKind::step_begin:
            begin(record, sequence, index);
            break;
        case RecordKind::step_value:
            value(record, scan);
            break;
        case RecordKind::step_end:
            end(record, scan, index);
            return;
        case RecordKind::mark:
            mark(record, scan, index);
            break;
        case RecordKind::long_value:
            scan.duration.announce(record.first);
            return;
        default:
            break;
        }
        scan.duration.forget();
    }

    void begin(const Record& record, std::uint64_t sequence, std::size_t index) {
        OpenStep open;
        open.first_sequence = sequence;
        open.step.id = payload_of(record);
        first_id_ = std::min(first_id_, open.step.id);
        open.step.track = static_cast<std::uint32_t>(index);
        const std::uint16_t phase = id_of(record);
        open.phase_known = phase <= static_cast<std::uint16_t>(Phase::mixed);
        open.step.phase = open.phase_known ? static_cast<Phase>(phase) : Phase::none;
        if (!scans_[index]->open.push(FrameKind::step, record.first, open)) {
            losses_.count(Loss::step_cut_short);
        }
    }

    void value(const Record& record, TrackScan& scan) {
        OpenStep* open = scan.open.innermost_of(FrameKind::step);
        if (open == nullptr) {
            return;
        }
        if (record.first > largest_value) {
            losses_.count(Loss::bad_value);
            return;
        }
        switch (static_cast<StepValue>(id_of(record))) {
        case StepValue::prefill_tokens:
            open->step.prefill_tokens = static_cast<std::uint32_t>(record.first);
            break;
        case StepValue::decode_tokens:
            open->step.decode_tokens = static_cast<std::uint32_t>(record.first);
            break;
        case StepValue::sequences:
            open->step.sequences = static_cast<std::uint32_t>(record.first);
            break;
        case StepValue::kv_length:
            open->step.kv_length = static_cast<std::uint32_t>(record.first);
            open->step.has_kv_length = true;
            break;
        case StepValue::kernels:
            open->kernels_ns = static_cast<std::uint32_t>(record.first);
            break;
        case StepValue::kernel_stretch:
            open->kernel_stretch_ns = static_cast<std::uint32_t>(record.first);
            break;
        default:
            losses_.count(Loss::unknown_kind);
            break;
        }
    }

    void end(const Record& record, TrackScan& scan, std::size_t index) {
        const std::optional<std::uint64_t> duration = scan.duration.take(record);
        const TickConversion& line = *tracks_[index].line;
        OpenStep open;
        const std::size_t depth = scan.open.size();
        if (!scan.open.pop(FrameKind::step, record.first, &open)) {
            losses_.count(Loss::step_cut_short, std::exchange(scan.behind_removed, false) ? 0 : 1);
            return;
        }
        losses_.count(Loss::step_cut_short, depth - scan.open.size() - 1); // those inside it have no end
        if (!duration || !line.contains(record.first, *duration)) {        // its reason is counted with its sample
            losses_.count(Loss::step_cut_short);
            return;
        }
        if (open.kernels_ns && open.kernel_stretch_ns && *open.kernels_ns <= *open.kernel_stretch_ns) {
            open.step.kernels_ns = *open.kernels_ns;
            open.step.kernel_stretch_ns = *open.kernel_stretch_ns;
        } else { // one alone tells nothing
            losses_.count(Loss::bad_value, (open.kernels_ns ? 1U : 0U) + (open.kernel_stretch_ns ? 1U : 0U));
        }
        open.step.begin_ns = line.to_ns(record.first);
        open.step.end_ns = open.step.host_end_ns = line.to_ns(record.first + *duration);
        keep(open, index);
    }

    void keep(const OpenStep& open, std::size_t index) {
        const std::size_t known = packed_ != nullptr ? packed_->size() : found_.size();
        if (!open.phase_known) {
            losses_.count(Loss::step_without_phase);
        } else if (open.step.phase == Phase::none) {
            if (open.first_sequence >= tracks_[index].cut) {
                phaseless_.add(open.step.id);
            }
        } else if (known == StepTable::max_steps) {
            losses_.count(Loss::too_many_steps);
        } else if (packed_ != nullptr) {
            const ResolvedStep& step = open.step;
            if (step.phase == Phase::decode) {
                first_.add(step.host_end_ns, step.id);
            }
            if (open.first_sequence >= tracks_[index].cut && (only_ == nullptr || only_->contains(step.id))) {
                packed_->add(step.id, {step.kv_length, step.phase, step.has_kv_length, false, false});
            }
        } else if (only_ == nullptr || only_->contains(open.step.id)) {
            found_.push_back(open.step);
            found_.back().counted = open.first_sequence >= tracks_[index].cut;
        }
    }

    void mark(const Record& record, TrackScan& scan, std::size_t index) {
        const bool cut = id_of(record) == static_cast<std::uint16_t>(Mark::cut_step);
        if (!cut && id_of(record) != static_cast<std::uint16_t>(Mark::resumed)) {
            return;
        }
        if (cut && scan.open.pop_innermost(FrameKind::step)) {
            losses_.count(Loss::step_cut_short);
        }
        const TickConversion& line = *tracks_[index].line;
        if (line.contains(record.first) && breaks_.size() < max_breaks) {
            breaks_.push_back(line.to_ns(record.first));
        }
    }

    TrackTable& tracks_;
    std::uint64_t warmup_steps_;
    std::uint64_t first_id_ = std::numeric_limits<std::uint64_t>::max(); // the least of all steps
    PackedSteps* packed_;
    const recording::StepRanges* only_;
    FirstSteps first_{packed_ != nullptr ? warmup_steps_ : 0};
    Losses& losses_;
    bool lossy_;
    std::vector<std::unique_ptr<TrackScan>> scans_;
    Steps found_;
    std::vector<std::int64_t> breaks_;
    std::vector<std::int64_t> first_ends_;
    StepIds phaseless_;
    Disturbed disturbed_;
    DeviceEnds device_ends_{StepTable::max_steps};
    bool causes_ = false;       // some scope says what began it
    bool queue_scopes_ = false; // there are scopes that may say so
};

} // namespace

Result<FirstPass> scan_steps(const recording::RecordedRun& run, TrackTable& tracks, std::uint64_t warmup_steps,
                             Losses& losses, const std::function<void(const recording::RecordBatch&)>& also,
                             const recording::StepRanges* only) {
    Scanner scanner(tracks, warmup_steps, nullptr, losses, only, recording::lost_records(run.facts->counters));
    const Status read = run.for_each_batch([&](const recording::RecordBatch& batch) {
        scanner.batch(batch);
        if (also) {
            also(batch);
        }
        return true;
    });
    if (!read.ok()) {
        return read.error();
    }
    return scanner.finish();
}

Result<PackedSteps> scan_step_facts(const recording::RecordedRun& run, TrackTable& tracks, std::uint64_t warmup_steps,
                                    Losses& losses, const recording::StepRanges* only) {
    PackedSteps packed;
    Scanner scanner(tracks, warmup_steps, &packed, losses, only, false);
    const Status read = run.for_each_batch([&](const recording::RecordBatch& batch) {
        scanner.batch(batch);
        return true;
    });
    if (!read.ok()) {
        return read.error();
    }
    scanner.finish_packed();
    return packed;
}

} // namespace plumb::resolve
