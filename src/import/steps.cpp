// SPDX-License-Identifier: Apache-2.0
#include "import/steps.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "import/rules/step_name.hpp"

namespace plumb::imported {
namespace {

constexpr std::size_t least_replay = 8; // kernels that share a launch
constexpr double whole_share = 0.6;     // of the longest replay: shorter ones are parts of a step
constexpr double stretch_share = 0.5;   // of the shortest whole replay: so much between two is a step of its own

void set_phase(EngineStep& step, Phase phase) {
    step.phase = phase;
    step.phase_known = true;
}

bool read_word(std::string_view name, EngineStep& step) {
    for (const auto& [word, phase] :
         {std::pair{std::string_view("decode"), Phase::decode}, {"prefill", Phase::prefill}}) {
        if (name.starts_with(word) &&
            (name.size() == word.size() || name[word.size()] == ' ' || name[word.size()] == '_')) {
            set_phase(step, phase);
            return true;
        }
    }
    return false;
}

/// Whether that is what an engine calls a step.
bool names_step(std::string_view name, EngineStep& step) {
    const std::optional<StepName> read = read_step_name(name);
    if (!read) {
        return read_word(name, step);
    }
    if (read->phase != Phase::none) {
        set_phase(step, read->phase);
    }
    step.prefill_tokens = read->values.prefill_tokens;
    step.decode_tokens = read->values.decode_tokens;
    step.sequences = read->values.sequences;
    return true;
}

struct StepRange {
    std::int64_t begin, end;
    EngineStep step;
    bool profiler = false;
};

/// What stands for an operation on the host: its launch, or itself where no launch is known.
struct Launched {
    std::int64_t at;
    std::int64_t end;
    std::uint32_t thread;
};
using Ops = std::vector<std::uint32_t>; // in Trace::ops

class StepFinder {
  public:
    StepFinder(const Trace& trace, const StepOptions& options) : trace_(trace), options_(options) {
        made_.of_op.assign(trace.ops.size(), no_step);
        name_hashes_.assign(trace.names.size(), 0);
    }

    EngineSteps find() {
        find_replays();
        for (const auto& [process, id] : trace_.facts.pids) {
            of_process(process);
        }
        finish();
        return std::move(made_);
    }

  private:
    void find_replays() {
        const auto launch = [this](std::uint32_t op) {
            return std::make_pair(trace_.ops[op].process, trace_.ops[op].correlation);
        };
        Ops found;
        bool sorted = true; // as most are
        found.reserve(trace_.ops.size());
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            if (trace_.ops[i].correlation != no_id) {
                sorted = sorted && (found.empty() || launch(found.back()) <= launch(i));
                found.push_back(i);
            }
        }
        if (!sorted) {
            std::stable_sort(found.begin(), found.end(),
                             [&](std::uint32_t a, std::uint32_t b) { return launch(a) < launch(b); });
        }
        for (auto at = found.begin(); at != found.end();) {
            const auto end =
                std::find_if(at, found.end(), [&, of = launch(*at)](std::uint32_t op) { return launch(op) != of; });
            if (end - at >= static_cast<std::ptrdiff_t>(least_replay) || trace_.ops[*at].kind == DeviceOpKind::graph) {
                Replay replay;
                std::tie(replay.process, replay.correlation) = launch(*at);
                replay.ops.assign(at, end);
                add_replay(std::move(replay));
            }
            at = end;
        }
        std::sort(made_.replays.begin(), made_.replays.end(), [this](const Replay& a, const Replay& b) {
            return std::make_tuple(a.process, begin_of(a)) < std::make_tuple(b.process, begin_of(b));
        });
        made_.replay_of.assign(trace_.ops.size(), no_replay);
        for (std::uint32_t i = 0; i < made_.replays.size(); ++i) {
            for (const std::uint32_t op : made_.replays[i].ops) {
                made_.replay_of[op] = i;
            }
        }
    }

    void add_replay(Replay replay) {
        const auto kernels = std::count_if(replay.ops.begin(), replay.ops.end(), [this](std::uint32_t op) {
            return trace_.ops[op].kind == DeviceOpKind::kernel;
        });
        replay.launch = trace_.launch_of[replay.ops.front()];
        const bool graph = replay.launch == Trace::no_launch || is_graph_launch(trace_.host[replay.launch]);
        if (is_in_one_piece(replay) || (graph && kernels >= static_cast<std::ptrdiff_t>(least_replay))) {
            replay.key = graph_key(replay);
            made_.replays.push_back(std::move(replay));
        }
    }

    [[nodiscard]] bool is_graph_launch(const HostOp& call) const {
        return trace_.names[call.name].find("GraphLaunch") != std::string::npos;
    }

    [[nodiscard]] bool is_in_one_piece(const Replay& replay) const {
        return trace_.ops[replay.ops.front()].kind == DeviceOpKind::graph;
    }

    [[nodiscard]] std::int64_t begin_of(const Replay& replay) const {
        return replay.launch != Trace::no_launch ? trace_.host[replay.launch].start_ns
                                                 : trace_.ops[replay.ops.front()].start_ns;
    }

    /// Replays of one graph run the same operations in the same order.
    [[nodiscard]] std::uint64_t graph_key(const Replay& replay) const {
        const DeviceOp& first = trace_.ops[replay.ops.front()];
        if (first.graph != 0) {
            return first.graph;
        }
        std::uint64_t hash = 0xcbf29ce484222325U;
        for (const std::uint32_t op : replay.ops) {
            hash = (hash ^ hash_of_name(trace_.ops[op].name)) * 0x100000001b3U;
        }
        return hash;
    }

    /// Of the text: numbers of names depend on what else the trace holds.
    [[nodiscard]] std::uint64_t hash_of_name(std::uint32_t name) const {
        std::uint64_t& hash = name_hashes_[name];
        if (hash == 0) {
            hash = 0xcbf29ce484222325U;
            for (const char c : trace_.names[name]) {
                hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
            }
        }
        return hash;
    }

    void of_process(std::uint16_t process) {
        Ops ops;
        Ops launched;
        ops.reserve(trace_.ops.size());
        launched.reserve(trace_.ops.size());
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            if (trace_.ops[i].process == process) {
                ops.push_back(i);
                if (trace_.launch_of[i] != Trace::no_launch) {
                    launched.push_back(i);
                }
            }
        }
        std::vector<StepRange> ranges = options_.annotations ? annotated(process) : std::vector<StepRange>();
        host_ = are_launches_traced(process, ops, launched, ranges);
        if (host_) { // else times on the device stand for those on the host
            ops = std::move(launched);
        }
        const auto earlier = [this](std::uint32_t a, std::uint32_t b) {
            return launched_of(a).at < launched_of(b).at;
        };
        if (!std::is_sorted(ops.begin(), ops.end(), earlier)) {
            std::stable_sort(ops.begin(), ops.end(), earlier);
        }
        eager_attention_ = has_eager_attention(process);
        leave_cut(process, ops, ranges);
        const auto usable = [this, process](const Replay& replay) {
            return is_usable(replay, process);
        };
        const auto whole = [this, process](const Replay& replay) {
            return is_whole(replay, process);
        };
        if (host_ && !ranges.empty() && !(ranges.front().profiler && several_replays(ranges, process))) {
            by_ranges(ranges, ops, process);
        } else if (std::any_of(made_.replays.begin(), made_.replays.end(), whole)) {
            by_replays(ops, process);
        } else if (!ops.empty()) {
            all_of(ops, process);
        }
        if (host_) {
            place_without_launch(process);
        }
        // Replays whose launch lies before the begin of the trace.
        made_.cut[process].partial += static_cast<std::uint64_t>(
            std::count_if(made_.replays.begin(), made_.replays.end(), [&](const Replay& replay) {
                return replay.process == process && !replay.cut && !usable(replay);
            }));
        made_.cut[process].unfinished += unfinished_ ? 1 : 0;
    }

    /// Whether calls of at least half of the kernels are in the trace: a tool may know those of copies alone. Where launches
    /// tell steps, what began before the first of them counts for neither side: its own may lie before the trace.
    [[nodiscard]] bool are_launches_traced(std::uint16_t process, const Ops& ops, const Ops& launched,
                                           const std::vector<StepRange>& ranges) const {
        if (launched.empty()) {
            return false;
        }
        const bool tell_steps =
            std::any_of(made_.replays.begin(), made_.replays.end(),
                        [process](const Replay& replay) {
                            return replay.process == process && replay.launch != Trace::no_launch;
                        }) ||
            std::any_of(launched.begin(), launched.end(), [this, &ranges](std::uint32_t op) {
                const std::int64_t at = trace_.host[trace_.launch_of[op]].start_ns;
                const auto behind = std::upper_bound(ranges.begin(), ranges.end(), at,
                                                     [](std::int64_t t, const StepRange& r) { return t < r.begin; });
                return behind != ranges.begin() && at < std::prev(behind)->end;
            });
        const auto is_kernel = [this](std::uint32_t op) {
            return trace_.ops[op].kind == DeviceOpKind::kernel || trace_.ops[op].kind == DeviceOpKind::graph;
        };
        const bool copies_alone = std::none_of(ops.begin(), ops.end(), is_kernel);
        const auto count = [&](auto begin, auto end) {
            return copies_alone ? end - begin : std::count_if(begin, end, is_kernel);
        };
        const auto known = count(launched.begin(), launched.end());
        const auto first = tell_steps ? std::find(ops.begin(), ops.end(), launched.front()) : ops.begin();
        return known > 0 && 2 * known >= count(first, ops.end());
    }

    [[nodiscard]] Launched launched_of(std::uint32_t op) const {
        if (host_) {
            const HostOp& api = trace_.host[trace_.launch_of[op]];
            return {api.start_ns, api.end_ns, api.thread};
        }
        return {trace_.ops[op].start_ns, trace_.ops[op].end_ns, 0};
    }

    /// Whether it can be a step: its launch is known, or none is.
    [[nodiscard]] bool is_usable(const Replay& replay, std::uint16_t process) const {
        return replay.process == process && !replay.cut && (replay.launch != Trace::no_launch || !host_);
    }

    /// Takes out of `ops` and `ranges` what belongs to the replays that the ends of the trace cut: they begin, or end, as others do.
    void leave_cut(std::uint16_t process, Ops& ops, std::vector<StepRange>& ranges) {
        unfinished_ = false;
        std::uint32_t first = no_step, last = no_step; // ops
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            if (trace_.ops[i].process == process) {
                first = std::min(first, i);
                last = i;
            }
        }
        if (last == no_step) {
            return;
        }
        const Replay end = launched_with(last), begin = launched_with(first);
        if (is_part(end, true)) {
            leave_from(launched_of(end.ops.front()).at, ops, ranges);
            mark_cut(end);
        } else if (const std::optional<std::int64_t> lost = lost_launch(process, ops, ranges)) {
            leave_from(*lost, ops, ranges);
        }
        if (!host_ && is_part(begin, false)) {
            const std::int64_t until = trace_.ops[begin.ops.back()].start_ns;
            std::erase_if(ops, [this, until](std::uint32_t op) { return launched_of(op).at <= until; });
            made_.cut[process].partial += 1;
            mark_cut(begin);
        }
    }

    /// With all of the range that it lies in.
    void leave_from(std::int64_t from, Ops& ops, std::vector<StepRange>& ranges) {
        unfinished_ = true;
        for (const StepRange& range : ranges) {
            from = range.begin <= from && from < range.end ? range.begin : from;
        }
        std::erase_if(ranges, [from](const StepRange& range) { return range.begin >= from; });
        std::erase_if(ops, [this, from](std::uint32_t op) { return launched_of(op).at >= from; });
    }

    /// A launch in the last range, behind those of all operations: what it began is not in the trace any more.
    [[nodiscard]] std::optional<std::int64_t> lost_launch(std::uint16_t process, const Ops& ops,
                                                          const std::vector<StepRange>& ranges) const {
        if (!host_ || ranges.empty() || launched_of(ops.front()).at >= ranges.back().begin) {
            return std::nullopt; // where no step before it has operations, launches may be captured
        }
        const std::int64_t last = launched_of(ops.back()).at;
        for (const HostOp& op : trace_.host) {
            if (op.process == process && op.kind == HostOpKind::api && op.start_ns > last &&
                op.start_ns >= ranges.back().begin && op.end_ns <= ranges.back().end &&
                trace_.names[op.name].find("LaunchKernel") != std::string::npos) {
                return op.start_ns;
            }
        }
        return std::nullopt;
    }

    void mark_cut(const Replay& part) {
        for (Replay& replay : made_.replays) {
            replay.cut |= replay.process == part.process && replay.correlation == part.correlation;
        }
    }

    /// All that one launch began, be it too little for a replay.
    [[nodiscard]] Replay launched_with(std::uint32_t op) const {
        if (made_.replay_of[op] != no_replay) {
            return made_.replays[made_.replay_of[op]];
        }
        Replay found;
        found.process = trace_.ops[op].process;
        found.correlation = trace_.ops[op].correlation;
        found.launch = trace_.launch_of[op];
        for (std::uint32_t i = 0; i < trace_.ops.size() && found.correlation != no_id; ++i) {
            if (trace_.ops[i].process == found.process && trace_.ops[i].correlation == found.correlation) {
                found.ops.push_back(i);
            }
        }
        if (!found.ops.empty()) {
            found.key = graph_key(found);
        }
        return found;
    }

    /// By stream: those of one are in the same order in each replay.
    [[nodiscard]] std::map<std::uint32_t, std::vector<std::uint32_t>> names_of(const Replay& replay) const {
        std::map<std::uint32_t, std::vector<std::uint32_t>> names;
        for (const std::uint32_t op : replay.ops) {
            names[trace_.ops[op].stream].push_back(trace_.ops[op].name);
        }
        return names;
    }

    /// Whether another replay begins (or ends) as all of this one, and none is the same.
    [[nodiscard]] bool is_part(const Replay& part, bool begin) const {
        if (part.ops.empty() || is_in_one_piece(part) ||
            (part.launch == Trace::no_launch ? host_ || part.ops.size() < 2
                                             : !is_graph_launch(trace_.host[part.launch]))) {
            return false;
        }
        const bool numbered = trace_.ops[part.ops.front()].graph != 0;
        const auto names = names_of(part);
        bool found = false;
        for (const Replay& replay : made_.replays) {
            if (replay.process != part.process || replay.correlation == part.correlation ||
                (numbered && replay.key != part.key)) {
                continue;
            }
            if (replay.ops.size() == part.ops.size() && replay.key == part.key) {
                return false;
            }
            if (found || replay.ops.size() <= part.ops.size() || !is_whole(replay, part.process)) {
                continue;
            }
            auto whole = names_of(replay);
            found = std::all_of(names.begin(), names.end(), [&](const auto& stream) {
                const std::vector<std::uint32_t>&all = whole[stream.first], &some = stream.second;
                return some.size() <= all.size() && (begin ? std::equal(some.begin(), some.end(), all.begin())
                                                           : std::equal(some.rbegin(), some.rend(), all.rbegin()));
            });
        }
        return found;
    }

    [[nodiscard]] bool is_attention(std::uint32_t op) const {
        const std::uint32_t name = trace_.ops[op].name;
        return name < options_.attention.size() && options_.attention[name];
    }
    [[nodiscard]] bool has_eager_attention(std::uint16_t process) const {
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            if (made_.replay_of[i] == no_replay && trace_.ops[i].process == process && is_attention(i)) {
                return true;
            }
        }
        return false;
    }
    /// Graphs captured between attentions, which are launched one by one, are pieces of a step.
    [[nodiscard]] bool is_whole(const Replay& replay, std::uint16_t process) const {
        return is_usable(replay, process) && (!eager_attention_ || is_in_one_piece(replay) ||
                                              std::any_of(replay.ops.begin(), replay.ops.end(),
                                                          [this](std::uint32_t op) { return is_attention(op); }));
    }

    /// Ranges that the engine calls steps, else those of the profiler; of nested ones the outermost.
    std::vector<StepRange> annotated(std::uint16_t process) {
        std::vector<StepRange> engine;
        std::vector<StepRange> profiler;
        for (const HostOp& op : trace_.host) {
            if (op.process != process) {
                continue;
            }
            StepRange range{op.start_ns, op.end_ns, {}, false};
            range.step.name = trace_.names[op.name];
            if (op.kind == HostOpKind::annotation && names_step(range.step.name, range.step)) {
                add_outermost(engine, std::move(range));
            } else if (op.kind == HostOpKind::profiler_step) {
                range.profiler = true;
                add_outermost(profiler, std::move(range));
            }
        }
        return engine.empty() ? profiler : engine;
    }

    static void add_outermost(std::vector<StepRange>& to, StepRange range) {
        if (!to.empty() && range.end <= to.back().end) {
            EngineStep& outer = to.back().step; // what is inside may say more
            if (!outer.phase_known && range.step.phase_known) {
                range.step.name = outer.name;
                outer = std::move(range.step);
            } else if (outer.prefill_tokens == 0) {
                outer.prefill_tokens = range.step.prefill_tokens;
            }
            return;
        }
        if (!to.empty()) { // one that was scheduled ahead begins before the other ends
            range.begin = std::max(range.begin, to.back().end);
        }
        to.push_back(std::move(range));
    }

    /// Profiler steps are what the user called so: one may hold many passes.
    [[nodiscard]] bool several_replays(const std::vector<StepRange>& ranges, std::uint16_t process) const {
        auto range = ranges.begin();
        std::size_t inside = 0; // of the range
        for (const Replay& replay : made_.replays) {
            if (replay.process != process) {
                continue;
            }
            for (; range != ranges.end() && range->end <= begin_of(replay); ++range) {
                inside = 0;
            }
            if (range != ranges.end() && range->begin <= begin_of(replay) && ++inside > 1) {
                return true;
            }
        }
        return false;
    }

    std::uint32_t open(EngineStep step, std::uint16_t process, StepEvidence evidence) {
        step.process = process;
        step.evidence = evidence;
        step.begin_ns = std::numeric_limits<std::int64_t>::max();
        step.end_ns = std::numeric_limits<std::int64_t>::min();
        made_.steps.push_back(std::move(step));
        return static_cast<std::uint32_t>(made_.steps.size() - 1);
    }

    void put(std::uint32_t op, std::uint32_t index) {
        EngineStep& step = made_.steps[index];
        const Launched launched = launched_of(op);
        made_.of_op[op] = index;
        if (step.begin_ns > step.end_ns) { // its first
            step.thread = launched.thread;
        }
        step.launched = host_;
        step.begin_ns = std::min(step.begin_ns, launched.at);
        step.end_ns = std::max(step.end_ns, launched.end);
    }

    void by_ranges(std::vector<StepRange>& ranges, const Ops& ops, std::uint16_t process) {
        std::size_t next = 0;
        for (StepRange& range : ranges) {
            while (next < ops.size() && launched_of(ops[next]).at < range.begin) {
                ++next;
            }
            if (next == ops.size() || launched_of(ops[next]).at >= range.end) {
                continue;
            }
            const std::uint32_t step = open(std::move(range.step), process, StepEvidence::annotation);
            for (; next < ops.size() && launched_of(ops[next]).at < range.end; ++next) {
                put(ops[next], step);
            }
        }
    }

    /// A step is a replay and what is launched behind it; so much that it is no tail is one of its own.
    void by_replays(const Ops& ops, std::uint16_t process) {
        // Of what is there in one piece the number of operations is not known: their time stands for it.
        const bool by_time = std::any_of(made_.replays.begin(), made_.replays.end(), [&](const Replay& replay) {
            return is_whole(replay, process) && is_in_one_piece(replay);
        });
        const auto amount = [&](std::uint32_t op) {
            return by_time ? static_cast<double>(trace_.ops[op].duration_ns()) : 1.0;
        };
        const auto amount_of = [&](const Ops& some) {
            return std::accumulate(some.begin(), some.end(), 0.0,
                                   [&](double sum, std::uint32_t op) { return sum + amount(op); });
        };
        double longest = 0;
        for (const Replay& replay : made_.replays) {
            longest = is_whole(replay, process) ? std::max(longest, amount_of(replay.ops)) : longest;
        }
        std::vector<bool> whole(made_.replays.size(), false);
        double shortest = longest;
        for (const Replay& replay : made_.replays) {
            if (is_whole(replay, process) && amount_of(replay.ops) >= whole_share * longest) {
                shortest = std::min(shortest, amount_of(replay.ops));
                whole[static_cast<std::size_t>(&replay - made_.replays.data())] = true;
            }
        }
        Ops between;
        std::uint32_t last = no_step;
        std::uint32_t current = no_replay;
        const auto is_stretch = [&] {
            return amount_of(between) >= stretch_share * shortest;
        };
        const auto close_between = [&](std::uint32_t step) {
            if (!between.empty() && is_stretch()) {
                step = open({}, process, StepEvidence::place);
                made_.steps[step].phase = Phase::prefill;
            }
            for (const std::uint32_t op : between) {
                put(op, step);
            }
            between.clear();
        };
        for (const std::uint32_t op : ops) {
            const std::uint32_t replay = made_.replay_of[op];
            if (replay == no_replay || !whole[replay]) {
                between.push_back(op);
                continue;
            }
            if (replay != current) {
                current = replay;
                // What stands before the first replay is its head; what stands behind one is its tail.
                if (last != no_step || is_stretch()) {
                    close_between(last);
                }
                last = open({}, process, StepEvidence::replay);
                set_phase(made_.steps[last], Phase::decode);
                close_between(last);
            }
            put(op, last);
        }
        close_between(last);
    }

    void all_of(const Ops& ops, std::uint16_t process) {
        const std::uint32_t step = open({}, process, StepEvidence::place);
        for (const std::uint32_t op : ops) {
            put(op, step);
        }
    }

    /// An operation whose call is lost belongs to the step of its neighbours on the stream, where that is one: on a stream
    /// that no call is known of, of those on any. What none stands before may have been launched before the trace.
    void place_without_launch(std::uint16_t process) {
        struct Between {
            std::uint32_t before = no_step; // of the last operation with a launch
            Ops since;
        };
        std::vector<Between> streams(trace_.streams.size() + 1); // the last one is all of them
        std::vector<bool> launching(trace_.streams.size(), false);
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            launching[trace_.ops[i].stream] =
                launching[trace_.ops[i].stream] || trace_.launch_of[i] != Trace::no_launch;
        }
        const auto settle = [this](Between& between, std::uint32_t next) {
            for (const std::uint32_t op : between.since) {
                made_.of_op[op] = between.before == next ? next : no_step;
            }
            between = {next, {}};
        };
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            const std::uint32_t stream = trace_.ops[i].stream;
            if (trace_.ops[i].process != process) {
                continue;
            }
            if (trace_.launch_of[i] != Trace::no_launch) {
                settle(streams[stream], made_.of_op[i]);
                settle(streams.back(), made_.of_op[i]);
            } else if (made_.replay_of[i] == no_replay) { // a replay without its launch is a step that is not known
                (launching[stream] ? streams[stream] : streams.back()).since.push_back(i);
            }
        }
        for (Between& between : streams) {
            settle(between, between.before);
        }
    }

    void finish() {
        for (Replay& replay : made_.replays) {
            replay.step = made_.of_op[replay.ops.front()];
            if (replay.step != no_step) {
                ++made_.steps[replay.step].replays;
            }
        }
        for (EngineStep& step : made_.steps) {
            const bool named = step.evidence == StepEvidence::annotation && step.phase_known;
            if (options_.phase && !named) {
                set_phase(step, *options_.phase);
            }
            if (options_.tokens && step.prefill_tokens == 0 && step.decode_tokens == 0) {
                (step.phase == Phase::prefill ? step.prefill_tokens : step.decode_tokens) = *options_.tokens;
            }
        }
        sort();
    }

    void sort() {
        std::vector<std::uint32_t> order(made_.steps.size());
        for (std::uint32_t i = 0; i < order.size(); ++i) {
            order[i] = i;
        }
        std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
            const EngineStep& x = made_.steps[a];
            const EngineStep& y = made_.steps[b];
            return std::make_tuple(x.process, x.begin_ns) < std::make_tuple(y.process, y.begin_ns);
        });
        std::vector<EngineStep> sorted;
        std::vector<std::uint32_t> moved(order.size());
        for (std::uint32_t i = 0; i < order.size(); ++i) {
            moved[order[i]] = i;
            sorted.push_back(std::move(made_.steps[order[i]]));
        }
        made_.steps = std::move(sorted);
        part_steps();
        for (std::uint32_t& step : made_.of_op) {
            step = step == no_step ? no_step : moved[step];
        }
        for (Replay& replay : made_.replays) {
            replay.step = replay.step == no_step ? no_step : moved[replay.step];
        }
    }

    /// Those of one thread follow each other: what still runs when the next begins belongs to the step that launched it, beyond its end.
    void part_steps() {
        for (std::size_t i = 1; i < made_.steps.size(); ++i) {
            EngineStep& before = made_.steps[i - 1];
            const EngineStep& step = made_.steps[i];
            if (before.process == step.process && before.launched == step.launched && before.thread == step.thread) {
                before.end_ns = std::clamp(before.end_ns, before.begin_ns, step.begin_ns);
            }
        }
    }

    const Trace& trace_;
    const StepOptions& options_;
    mutable std::vector<std::uint64_t> name_hashes_; // by name; 0: not needed yet
    bool host_ = false;                              // of the process at hand, launches are known
    bool eager_attention_ = false;                   // of that process, outside of replays
    bool unfinished_ = false;                        // of that process, the last step
    EngineSteps made_;
};

} // namespace

const char* evidence_word(StepEvidence evidence) {
    static constexpr const char* words[] = {"annotation", "replay", "place"};
    return words[static_cast<std::size_t>(evidence)];
}

EngineSteps find_steps(const Trace& trace, const StepOptions& options) { return StepFinder(trace, options).find(); }

} // namespace plumb::imported
