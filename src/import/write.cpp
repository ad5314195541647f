// SPDX-License-Identifier: Apache-2.0
#include "import/write.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/layout.hpp"
#include "import/host_waits.hpp"
#include "import/input.hpp"
#include "import/quality.hpp"
#include "plumb/backend.hpp"
#include "recording/writer.hpp"

namespace plumb::imported {
namespace {

constexpr std::uint64_t first_tick = std::uint64_t{1} << 40; // of the trace's earliest moment: a tick is 1 ns
constexpr std::size_t slice = 16384;                         // events between two writes
constexpr std::int64_t least_span_ns = 1000;                 // between the clock pairs
constexpr std::size_t most_groups = 64;                      // of ranks
constexpr std::size_t most_ranks_named = 16;                 // ranks in the name of a group

class ImportedWriter {
  public:
    ImportedWriter(const Trace& trace, const EngineSteps& steps, const Labels& labels, const WriteOptions& options)
        : trace_(trace), steps_(steps), labels_(labels), options_(options), source_("imported:" + trace.facts.tool),
          gapless_(hides_gaps(trace, options.process)) {}

    Status write() {
        collect();
        if (events_.empty()) {
            return Error{ErrorCode::corrupt, "the trace holds no operation of a device"};
        }
        recording::WriterOptions to;
        to.path = options_.path;
        to.now_ns = [] { // one trace, one recording
            return std::int64_t{0};
        };
        Result<std::unique_ptr<recording::Writer>> made = recording::Writer::create(std::move(to), metadata());
        if (!made) {
            return made.error();
        }
        writer_ = *std::move(made);
        write_facts();
        replay_causes_.resize(steps_.replays.size());
        std::size_t since = 0;
        for (const Event& event : events_) {
            put(event);
            if (++since == slice) {
                flush();
                since = 0;
            }
            if (!status_.ok()) {
                break;
            }
        }
        flush();
        then(writer_->set_counters(counters()));
        then(writer_->close());
        if (!status_.ok()) {
            std::error_code ignored;
            std::filesystem::remove(options_.path, ignored);
        }
        return status_;
    }

  private:
    // In the order in which a run would have told them; at one moment, as they stand here.
    enum class Kind : std::uint8_t { wait_end, step_end, step_begin, launch, wait_begin, device };
    struct Event {
        std::int64_t at;
        Kind kind;
        std::uint32_t index; // step, op, call, wait
    };
    struct Track {
        std::uint32_t id = 0;
        std::vector<Record> pending;
        std::uint64_t sequence = 0; // of the first pending one
        std::uint32_t step = no_step;
        std::uint32_t layer = 0;
        bool in_context = false;
        std::optional<std::int64_t> stamped_ns; // when its CPU time was told last
        std::int64_t cpu_ns = 0;
    };
    struct Cause {
        std::uint32_t track = 0;
        std::uint64_t sequence = 0;
    };

    void collect() {
        std::vector<std::int64_t> latest(trace_.streams.size(), std::numeric_limits<std::int64_t>::min());
        std::vector<std::uint32_t> last(trace_.streams.size(), 0);
        std::uint32_t last_api = Trace::no_launch;
        events_.reserve(trace_.ops.size());
        overlaps_.assign(trace_.ops.size(), false);
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            const DeviceOp& op = trace_.ops[i];
            if (op.process != options_.process) {
                continue;
            }
            events_.push_back({op.end_ns, Kind::device, i});
            first_ = std::min(first_, op.start_ns);
            last_ = std::max(last_, op.end_ns);
            if (latest[op.stream] == std::numeric_limits<std::int64_t>::min()) {
                streams_.push_back(op.stream);
            }
            if (op.start_ns < latest[op.stream]) {
                overlaps_[i] = overlaps_[last[op.stream]] = true;
            }
            if (op.end_ns >= latest[op.stream]) {
                latest[op.stream] = op.end_ns;
                last[op.stream] = i;
            }
            const std::uint32_t api = trace_.launch_of[i];
            const bool as_before = api == std::exchange(last_api, api);
            if (!as_before && api != Trace::no_launch && launched_.try_emplace(api, i).second) {
                events_.push_back({trace_.host[api].start_ns, Kind::launch, api});
                first_ = std::min(first_, trace_.host[api].start_ns);
                last_ = std::max(last_, trace_.host[api].end_ns);
            }
        }
        waits_ = find_waits(trace_, options_.process);
        for (std::uint32_t i = 0; i < waits_.calls.size(); ++i) {
            const HostWaits::Wait& wait = waits_.calls[i];
            if (wait.begin_ns >= first_ && wait.begin_ns < last_) {
                events_.push_back({wait.begin_ns, Kind::wait_begin, i});
                events_.push_back({wait.end_ns, Kind::wait_end, i});
            }
        }
        for (std::uint32_t i = 0; i < steps_.steps.size(); ++i) {
            const EngineStep& step = steps_.steps[i];
            if (step.process == options_.process) {
                first_step_ = std::min(first_step_, i);
                events_.push_back({step.begin_ns, Kind::step_begin, i});
                events_.push_back({end_of(step), Kind::step_end, i});
            }
        }
        const auto before = [](const Event& a, const Event& b) {
            return std::tie(a.at, a.kind, a.index) < std::tie(b.at, b.kind, b.index);
        };
        // Ends of operations are sorted but for overlaps.
        const auto others = std::stable_partition(events_.begin(), events_.end(),
                                                  [](const Event& e) { return e.kind == Kind::device; });
        if (!std::is_sorted(events_.begin(), others, before)) {
            std::sort(events_.begin(), others, before);
        }
        std::sort(others, events_.end(), before);
        std::inplace_merge(events_.begin(), others, events_.end(), before);
    }

    static std::int64_t end_of(const EngineStep& step) { return std::max(step.end_ns, step.begin_ns + 1); }

    [[nodiscard]] std::uint64_t ticks(std::int64_t ns) const {
        return first_tick + static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(first_);
    }

    [[nodiscard]] std::string device_word(std::uint32_t device) const { return "gpu:" + std::to_string(device); }

    recording::Metadata metadata() {
        recording::Metadata made;
        const TraceFacts& facts = trace_.facts;
        std::uint64_t hash = 0xcbf29ce484222325U;
        for (const Event& event : events_) {
            hash = (hash ^ static_cast<std::uint64_t>(event.at - first_) ^
                    (static_cast<std::uint64_t>(event.kind) << 56)) *
                   0x100000001b3U;
        }
        made.recording_id[0] = hash;
        made.recording_id[1] = static_cast<std::uint64_t>(facts.base_realtime_ns) ^ static_cast<std::uint64_t>(first_);
        made.start_realtime_ns = realtime(first_);
        made.host = facts.host;
        const auto pid = facts.pids.find(options_.process);
        made.pid = pid != facts.pids.end() ? static_cast<std::uint32_t>(pid->second) : 0;
        made.rank = facts.rank;
        made.world = std::strtoull(facts.world_size.c_str(), nullptr, 10); // 0 where it is no number
        made.groups = groups();
        made.sync_mode = "deferred";
        made.warmup_steps = 0;
        made.identity = {{"tool", facts.tool}, {"tool.version", facts.version}, {"plumb", PLUMB_BUILD_VERSION}};
        made.comparability = {{"source", source_},
                              {"gpu", gpu()},
                              {"world_size", facts.world_size},
                              {"gaps", gapless_ ? "inside of durations" : "between operations"}};
        made.costs = {{"floor." + source_, static_cast<double>(trace_.tick_ns)}};
        made.clocks = {{0, "trace"}};
        for (const std::uint32_t stream : streams_) {
            clocks_.try_emplace(trace_.streams[stream].device, 0);
        }
        std::uint32_t next = 0;
        for (auto& [device, clock] : clocks_) {
            clock = ++next;
            made.clocks.push_back({clock, device_word(device)});
        }
        return made;
    }

    /// Of several ranks, but not of all.
    [[nodiscard]] bool is_part(const TraceGroup& group) const {
        return group.ranks.size() > 1 && std::to_string(group.ranks.size()) != trace_.facts.world_size;
    }

    /// "tp"; "ranks 0 1 2 3" where the tool has no word.
    static std::string word_of(const TraceGroup& group) {
        std::string word = group.word.empty() ? "ranks" : group.word;
        for (std::size_t i = 0; i < group.ranks.size() && i < most_ranks_named && group.word.empty(); ++i) {
            word += ' ' + std::to_string(group.ranks[i]);
        }
        return word + (group.word.empty() && group.ranks.size() > most_ranks_named ? " …" : "");
    }

    /// Those that this rank is in, each once.
    [[nodiscard]] std::vector<recording::RankGroup> groups() const {
        std::vector<recording::RankGroup> all;
        for (const auto& [name, group] : trace_.facts.groups) {
            const auto own = std::find_if(group.ranks.begin(), group.ranks.end(), [this](std::uint32_t rank) {
                return std::to_string(rank) == trace_.facts.rank;
            });
            if (!is_part(group) || own == group.ranks.end() || all.size() == most_groups) {
                continue;
            }
            recording::RankGroup made{word_of(group), static_cast<std::uint32_t>(own - group.ranks.begin()),
                                      static_cast<std::uint32_t>(group.ranks.size()), group.ranks};
            if (std::find(all.begin(), all.end(), made) == all.end()) {
                all.push_back(std::move(made));
            }
        }
        return all;
    }

    [[nodiscard]] std::string gpu() const {
        for (const std::uint32_t stream : streams_) {
            const auto found = trace_.facts.devices.find(trace_.streams[stream].device);
            if (found != trace_.facts.devices.end()) {
                return found->second;
            }
        }
        return {};
    }

    [[nodiscard]] std::int64_t realtime(std::int64_t ns) const {
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
        const std::int64_t base = trace_.facts.base_realtime_ns;
        return base < most && ns < most ? base + ns : 0;
    }

    void then(const Status& status) {
        if (status_.ok()) {
            status_ = status;
        }
    }

    void write_facts() {
        for (const auto& [key, text] : options_.descriptions) {
            then(writer_->describe(key, text));
        }
        const std::int64_t end = std::max({last_, events_.back().at, first_ + least_span_ns});
        for (std::uint32_t clock = 0; clock <= clocks_.size(); ++clock) {
            for (const std::int64_t at : {first_, end}) {
                then(writer_->add_clock_pair({clock, ticks(at), at - first_, realtime(at), 0}));
            }
        }
        for (std::uint32_t i = 0; i < labels_.bricks.size(); ++i) {
            names_.push_back(name_of(labels_.bricks[i]));
        }
    }

    /// The group of ranks that a collective says, as the metadata has it; 0: none, or all ranks of the job.
    std::uint16_t group_of(const DeviceOp& op) {
        const auto [found, is_new] = group_names_.try_emplace(op.group, std::uint16_t{0});
        if (is_new && op.group != no_name) {
            const auto group = trace_.facts.groups.find(std::string(trace_.names[op.group]));
            if (group != trace_.facts.groups.end() && is_part(group->second)) {
                found->second = next_name_++;
                then(writer_->add_name({found->second, Category::collective, word_of(group->second)}));
            }
        }
        return found->second;
    }

    std::uint16_t name_of(const BrickName& brick) {
        if (brick.well_known != 0) {
            return brick.well_known;
        }
        const std::uint16_t id = next_name_++;
        then(writer_->add_name({id, brick.category, brick.name}));
        return id;
    }

    Track& host_track(std::uint32_t thread) {
        const auto [found, is_new] = threads_.try_emplace(thread);
        if (is_new) {
            found->second.id = next_track_++;
            recording::TrackInfo info;
            info.id = found->second.id;
            const bool none = thread == no_step;
            info.os_thread = none ? 0 : trace_.threads[thread].id;
            info.name = none ? "no host side in the trace" : "thread " + std::to_string(info.os_thread);
            info.source = source_;
            then(writer_->add_track(info));
        }
        return found->second;
    }

    Track& device_track(std::uint32_t stream) {
        const auto [found, is_new] = queues_.try_emplace(stream);
        if (is_new) {
            const Stream& about = trace_.streams[stream];
            found->second.id = next_track_++;
            recording::TrackInfo info;
            info.id = found->second.id;
            info.kind = recording::TrackKind::device_queue;
            info.clock = clocks_[about.device];
            info.name = device_word(about.device) + " stream " + std::to_string(about.id) +
                        (about.namesakes == 0 ? "" : " (" + std::to_string(about.namesakes + 1) + ")");
            info.source = source_;
            then(writer_->add_track(info));
        }
        return found->second;
    }

    static void raw(Track& track, std::uint64_t first, std::uint64_t second) {
        track.pending.push_back({first, second});
    }

    /// With what a duration beyond 40 bits needs.
    void timed(Track& track, std::int64_t begin, std::int64_t end, RecordKind kind, std::uint16_t id) {
        const auto duration = static_cast<std::uint64_t>(end - begin);
        if (duration >= payload_mask) {
            raw(track, duration, pack(RecordKind::long_value));
        }
        raw(track, ticks(begin), pack(kind, id, std::min(duration, payload_mask)));
    }

    void put(const Event& event) {
        switch (event.kind) {
        case Kind::step_begin:
            begin_step(event.index);
            break;
        case Kind::step_end:
            end_step(event.index);
            break;
        case Kind::launch:
            launch(event.index);
            break;
        case Kind::wait_begin:
        case Kind::wait_end:
            wait(event);
            break;
        case Kind::device:
            device(event.index);
            break;
        }
    }

    /// A thread that waits for a device is told as one that is off the CPU: it does no work.
    void wait(const Event& event) {
        Track& track = host_track(waits_.calls[event.index].thread);
        if (event.kind == Kind::wait_begin) {
            track.cpu_ns += event.at - track.stamped_ns.value_or(event.at);
        }
        track.stamped_ns = event.at;
        raw(track, ticks(event.at),
            (static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift) |
                (static_cast<std::uint64_t>(track.cpu_ns) & cpu_time_mask));
    }

    /// Within this recording.
    [[nodiscard]] std::uint64_t number(std::uint32_t step) const { return step - first_step_; }

    Track& track_of(const EngineStep& step) { return host_track(step.launched ? step.thread : no_step); }

    void begin_step(std::uint32_t index) {
        const EngineStep& step = steps_.steps[index];
        Track& track = track_of(step);
        raw(track, ticks(step.begin_ns),
            pack(RecordKind::step_begin, static_cast<std::uint16_t>(step.phase), number(index)));
        const std::pair<StepValue, std::uint64_t> values[] = {{StepValue::prefill_tokens, step.prefill_tokens},
                                                              {StepValue::decode_tokens, step.decode_tokens},
                                                              {StepValue::sequences, step.sequences}};
        for (const auto& [which, value] : values) {
            if (value != 0) {
                raw(track, value, pack(RecordKind::step_value, static_cast<std::uint16_t>(which)));
            }
        }
        track.step = index;
    }

    void end_step(std::uint32_t index) {
        const EngineStep& step = steps_.steps[index];
        Track& track = track_of(step);
        timed(track, step.begin_ns, end_of(step), RecordKind::step_end, static_cast<std::uint16_t>(step.phase));
        track.step = no_step;
    }

    void launch(std::uint32_t api) {
        const HostOp& call = trace_.host[api];
        const std::uint32_t op = launched_[api];
        Track& track = host_track(call.thread);
        const std::uint32_t queue = device_track(trace_.ops[op].stream).id;
        const std::uint32_t step = steps_.of_op[op];
        const bool elsewhere = step != track.step; // launched by a thread that did not begin the step
        if (elsewhere) {
            raw(track, step == no_step ? 0 : number(step) + 1, pack(RecordKind::context));
        }
        const auto waited = waits_.from.find(api);
        timed(track, call.start_ns, waited == waits_.from.end() ? call.end_ns : waited->second,
              RecordKind::device_submit, 0);
        if (const std::uint32_t replay = steps_.replay_of[op]; replay != no_replay) {
            replay_causes_[replay] = {track.id, track.sequence + track.pending.size()};
            const auto flags = static_cast<std::uint16_t>(launch_linked | (gapless_ ? launch_gapless : 0));
            raw(track, steps_.replays[replay].key, pack(RecordKind::graph_launch, flags, queue));
        } else {
            causes_[op] = {track.id, track.sequence + track.pending.size()};
            raw(track, op, pack(RecordKind::device_scope, names_[labels_.brick_of[op]], queue));
        }
        if (elsewhere) {
            raw(track, 0, pack(RecordKind::context_end));
        }
    }

    void device(std::uint32_t index) {
        const DeviceOp& op = trace_.ops[index];
        Track& track = device_track(op.stream);
        const std::uint32_t step = steps_.of_op[index];
        const std::uint16_t layer = labels_.layer_of[index];
        if (!track.in_context || track.step != step || track.layer != layer) {
            if (track.in_context) {
                raw(track, 0, pack(RecordKind::context_end));
            }
            raw(track, step == no_step ? 0 : number(step) + 1, pack(RecordKind::context, layer));
            track.in_context = true;
            track.step = step;
            track.layer = layer;
        }
        if (const std::uint32_t replay = steps_.replay_of[index]; replay != no_replay) {
            began(track, replay_causes_[replay]);
        } else if (const auto cause = causes_.find(index); cause != causes_.end()) {
            began(track, cause->second);
            causes_.erase(cause);
        }
        const std::uint32_t quality =
            (overlaps_[index] ? span_may_overlap : 0) | (op.duration_ns() < trace_.tick_ns ? span_below_floor : 0);
        if (quality != 0) {
            raw(track, 0, pack(RecordKind::span_quality, static_cast<std::uint16_t>(quality)));
        }
        if (const std::uint16_t group = group_of(op); group != 0) {
            raw(track, 0, pack(RecordKind::collective, group, names_[labels_.brick_of[index]]));
        }
        timed(track, op.start_ns, op.end_ns, RecordKind::scope, names_[labels_.brick_of[index]]);
    }

    static void began(Track& track, const Cause& cause) {
        if (cause.track != 0) { // its launch was written
            raw(track, cause.sequence, pack(RecordKind::cause, 0, cause.track));
        }
    }

    /// Host threads first: a submission stands before its scope.
    void flush() {
        if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) {
            then(stopped_error(options_.path));
        }
        for (auto* tracks : {&threads_, &queues_}) {
            for (auto& [key, track] : *tracks) {
                if (track.pending.empty()) {
                    continue;
                }
                then(writer_->append({track.id, track.sequence, track.pending.data(), track.pending.size()}));
                track.sequence += track.pending.size();
                written_ += track.pending.size();
                track.pending.clear();
            }
        }
    }

    [[nodiscard]] recording::Counters counters() const {
        recording::Counters made;
        made.records = written_;
        return made;
    }

    const Trace& trace_;
    const EngineSteps& steps_;
    const Labels& labels_;
    const WriteOptions& options_;
    std::string source_;
    const bool gapless_; // durations hold the gaps between operations
    std::unique_ptr<recording::Writer> writer_;
    Status status_;
    std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t last_ = std::numeric_limits<std::int64_t>::min();
    std::uint32_t first_step_ = no_step;
    std::vector<Event> events_;
    std::vector<bool> overlaps_;                      // of each op
    std::vector<std::uint32_t> streams_;              // of the process, as they begin
    std::map<std::uint32_t, std::uint32_t> launched_; // by api call: the first op it began
    HostWaits waits_;
    std::vector<Cause> replay_causes_;                   // by replay
    std::map<std::uint32_t, Cause> causes_;              // by op, until it is written
    std::map<std::uint32_t, std::uint32_t> clocks_;      // by device
    std::map<std::uint32_t, Track> threads_;             // by thread
    std::map<std::uint32_t, Track> queues_;              // by stream
    std::vector<std::uint16_t> names_;                   // by brick
    std::map<std::uint32_t, std::uint16_t> group_names_; // by DeviceOp::group
    std::uint16_t next_name_ = first_interned_id;
    std::uint32_t next_track_ = 1;
    std::uint64_t written_ = 0;
};

} // namespace

Status write_recording(const Trace& trace, const EngineSteps& steps, const Labels& labels,
                       const WriteOptions& options) {
    return ImportedWriter(trace, steps, labels, options).write();
}

} // namespace plumb::imported
