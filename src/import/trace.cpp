// SPDX-License-Identifier: Apache-2.0
#include "import/trace.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace plumb::imported {
namespace {

constexpr std::uint16_t most_processes = 4096; // what is more than these counts as the last one
constexpr std::uint32_t most_queues = 16384;
constexpr std::int64_t least_clip_ns = 1'000'000'000; // what runs beside others of its queue does so for less
constexpr std::int64_t coarsest_tick_ns = 1000;

auto order_of(const DeviceOp& op) {
    return std::make_tuple(op.start_ns, op.stream, op.correlation, op.node, op.end_ns, op.name);
}

/// Sorted keys get 0, 1, 2 …; returns the new number of each old one.
template <class Key, class Number>
std::vector<Number> by_key(std::map<Key, Number>& numbers) {
    std::vector<Number> moved(numbers.size());
    Number next = 0;
    for (auto& [key, number] : numbers) {
        moved[number] = next;
        number = next++;
    }
    return moved;
}

/// Numbers of names depend on the order of arrival; in the order of the alphabet they do not.
std::vector<std::uint32_t> sort_names(Names& names) {
    std::vector<std::uint32_t> sorted(names.size());
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) { return names[a] < names[b]; });
    std::vector<std::uint32_t> moved(sorted.size());
    Names made;
    for (const std::uint32_t id : sorted) {
        moved[id] = made.intern(names[id]);
    }
    names = std::move(made);
    return moved;
}

void count_in(AnomalyCounts& counts, Anomaly anomaly, std::uint64_t times = 1) {
    counts[static_cast<std::size_t>(anomaly)] += times;
}

void add_counts(AnomalyCounts& to, const AnomalyCounts& counts) {
    for (std::size_t i = 0; i < anomalies; ++i) {
        to[i] += counts[i];
    }
}

/// Of what begins between `first` and `last`. `processes` numbers those of the operations.
void refuse_far_ones(Trace& trace, std::int64_t first, std::int64_t last, const std::vector<std::uint16_t>& processes) {
    if (trace.ops.empty() || static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) <= absurd_ns) {
        return;
    }
    std::vector<std::int64_t> starts;
    starts.reserve(trace.ops.size());
    for (const DeviceOp& op : trace.ops) {
        starts.push_back(op.start_ns);
    }
    const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
    std::nth_element(starts.begin(), middle, starts.end());
    const auto far = [at = *middle](const auto& op) {
        return op.start_ns < at - absurd_ns || op.start_ns > at + absurd_ns;
    };
    const auto refuse = [&](auto& ops) {
        for (const auto& op : ops) {
            if (far(op)) {
                count_in(trace.of_process[processes[op.process]].counts, Anomaly::absurd_time);
            }
        }
        std::erase_if(ops, far);
    };
    refuse(trace.ops);
    refuse(trace.host);
}

/// What other processes call between two calls is no gap.
void number_in_processes(Trace& trace) {
    if (trace.facts.pids.size() < 2) {
        return;
    }
    std::map<std::uint16_t, std::uint32_t> next;
    trace.number_in_process.reserve(trace.host.size());
    for (const HostOp& op : trace.host) {
        trace.number_in_process.push_back(next[op.process]++);
    }
}

void sort_device_ops(Trace& trace) {
    const auto before = [](const DeviceOp& a, const DeviceOp& b) {
        return order_of(a) < order_of(b);
    };
    const auto begin = trace.ops.begin();
    if (std::adjacent_find(begin, trace.ops.end(), std::not_fn(before)) == trace.ops.end()) { // tables of one kind
        return;
    }
    if (!std::is_sorted(begin, trace.ops.end(), before)) {
        std::sort(begin, trace.ops.end(), before);
    }
    const auto same = [](const DeviceOp& a, const DeviceOp& b) {
        return order_of(a) == order_of(b) && a.correlation != no_id;
    };
    for (std::size_t i = 1; i < trace.ops.size(); ++i) {
        if (same(trace.ops[i - 1], trace.ops[i])) {
            count_in(trace.of_process[trace.ops[i].process].counts, Anomaly::duplicate);
        }
    }
    trace.ops.erase(std::unique(begin, trace.ops.end(), same), trace.ops.end());
}

/// What is to be seen of the sorted operations from the first to the last, in one go: there may be millions.
class OpChecks {
  public:
    explicit OpChecks(Trace& trace) : trace_(trace), queues_(trace.streams.size()), checked_(trace.facts.pids.size()) {}

    void check() {
        order_calls();
        trace_.launch_of.reserve(trace_.ops.size());
        for (DeviceOp& op : trace_.ops) {
            check_stream(op);
            find_launch(op);
            check_id(op);
        }
        finish();
    }

  private:
    using Call = std::tuple<std::uint16_t, std::uint64_t, std::uint32_t>; // process, correlation, index in Trace::host
    struct Order {
        std::uint64_t pairs = 0, falling = 0;
        std::uint64_t last = 0;

        void next(std::uint64_t id) {
            ++pairs;
            falling += id < std::exchange(last, id) ? 1 : 0;
        }
        [[nodiscard]] bool falls() const { return 100 * falling > pairs; } // two threads may call at one moment
    };
    struct Queue {
        DeviceOp* last = nullptr;
        std::int64_t end = std::numeric_limits<std::int64_t>::min(); // of all before the one at hand
        Order ids;
    };

    struct Checked {
        AnomalyCounts counts{};
        std::uint64_t followers = 0, abutting = 0;
    };

    void count(const DeviceOp& op, Anomaly anomaly, bool it_is) {
        count_in(checked_[op.process].counts, anomaly, it_is ? 1 : 0);
    }

    void order_calls() {
        for (std::uint32_t i = 0; i < trace_.host.size(); ++i) {
            const HostOp& op = trace_.host[i];
            if (op.kind == HostOpKind::api && op.correlation != no_id) {
                calls_.emplace_back(op.process, op.correlation, i);
                orders_[op.process].next(op.correlation);
            }
        }
        std::sort(calls_.begin(), calls_.end());
        next_ = calls_.begin();
        for (const auto& [id, order] : orders_) {
            calling_.resize(std::max<std::size_t>(calling_.size(), std::size_t{id} + 1));
            calling_[id] = true;
        }
    }

    /// Ends that lie beyond the whole of the next operation of a stream, and seconds beyond its begin, cannot be: tools are known to
    /// write some. What lies inside another for less ran at the same time, as on a queue that does not wait: it counts as an overlap.
    void check_stream(DeviceOp& op) {
        Queue& queue = queues_[op.stream];
        if (DeviceOp* last = std::exchange(queue.last, &op); last != nullptr) {
            if (last->end_ns > op.start_ns) {
                const bool clip = last->end_ns > op.end_ns && last->end_ns - op.start_ns > least_clip_ns;
                last->end_ns = clip ? op.start_ns : last->end_ns;
                count(op, clip ? Anomaly::clipped : Anomaly::overlap, true);
            }
            queue.end = std::max(queue.end, last->end_ns);
            ++checked_[op.process].followers;
            checked_[op.process].abutting += op.start_ns >= queue.end && op.start_ns - queue.end <= abut_ns ? 1 : 0;
        } else {
            trace_.processes.insert(op.process);
        }
    }

    /// Most have the call of the one before, or the next one.
    void find_launch(const DeviceOp& op) {
        const auto is_its = [&](auto call) {
            return call != calls_.end() && std::get<0>(*call) == op.process && std::get<1>(*call) == op.correlation;
        };
        if (op.correlation != no_id && !is_its(next_) && (next_ == calls_.end() || !is_its(++next_))) {
            next_ = std::lower_bound(calls_.begin(), calls_.end(), Call(op.process, op.correlation, 0));
        }
        const bool is_there = op.correlation != no_id && is_its(next_);
        const std::uint32_t call = is_there ? std::get<2>(*next_) : Trace::no_launch;
        trace_.launch_of.push_back(call);
        count(op, Anomaly::no_launch, !is_there);
        count(op, Anomaly::before_launch, is_there && op.start_ns < trace_.host[call].start_ns);
    }

    /// Ids of calls, and where no call is there of operations of one stream, grow with time: they number what was lost too.
    void check_id(const DeviceOp& op) {
        if (op.correlation != no_id && (op.process >= calling_.size() || !calling_[op.process])) {
            queues_[op.stream].ids.next(op.correlation);
        }
    }

    void finish() {
        for (const auto& [process, order] : orders_) {
            if (order.falls()) {
                trace_.unordered_ids.insert(process);
            }
        }
        for (std::size_t i = 0; i < queues_.size(); ++i) {
            if (queues_[i].ids.falls()) {
                trace_.unordered_ids.insert(trace_.streams[i].process);
            }
        }
        for (const std::uint16_t process : trace_.processes) {
            ProcessQuality& quality = trace_.of_process[process];
            const Checked& found = checked_[process];
            add_counts(quality.counts, found.counts);
            quality.abutting =
                found.followers == 0 ? 0 : static_cast<double>(found.abutting) / static_cast<double>(found.followers);
        }
    }

    Trace& trace_;
    std::vector<Queue> queues_; // by stream
    std::vector<Call> calls_;   // sorted
    std::vector<Call>::const_iterator next_;
    std::map<std::uint16_t, Order> orders_; // of calls, by process
    std::vector<bool> calling_;             // by process: whether it has calls
    std::vector<Checked> checked_;          // by process
};

void count_shared_ids(Trace& trace) {
    std::vector<std::pair<std::uint64_t, std::uint16_t>> owners;
    for (const DeviceOp& op : trace.ops) {
        if (trace.facts.pids.size() > 1 && op.correlation != no_id) {
            owners.emplace_back(op.correlation, op.process);
        }
    }
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    for (std::size_t i = 0; i < owners.size(); ++i) {
        const bool shared = (i > 0 && owners[i].first == owners[i - 1].first) ||
                            (i + 1 < owners.size() && owners[i].first == owners[i + 1].first);
        count_in(trace.of_process[owners[i].second].counts, Anomaly::shared_id, shared ? 1 : 0);
    }
}

/// Whose process has no recording is told in all of them.
void move_counts_without_recording(Trace& trace) {
    std::erase_if(trace.of_process, [&trace](const auto& of) {
        const bool without = !trace.processes.contains(of.first);
        if (without) {
            add_counts(trace.counts, of.second.counts);
        }
        return without;
    });
}

std::int64_t tick_of(const Trace& trace) {
    std::int64_t tick = 0;
    for (const DeviceOp& op : trace.ops) {
        tick = std::gcd(tick, op.start_ns - trace.ops.front().start_ns);
        tick = std::gcd(tick, op.duration_ns());
        if (tick == 1) {
            return 1;
        }
    }
    return tick == 0 ? 1 : std::gcd(tick, coarsest_tick_ns);
}

} // namespace

const char* anomaly_words(Anomaly anomaly) {
    static constexpr const char* words[anomalies] = {
        "could not be read",
        "had no begin, left out",
        "had a time that is no number or beyond 63 bits, left out",
        "had a negative duration, left out",
        "had a time that cannot be, left out",
        "stood there twice, counted once",
        "took no time",
        "began before the one before on the same stream ended",
        "ended after the whole of the next one on the same stream, cut at its begin",
        "stood behind a later one of the same stream",
        "held numbers as text",
        "had an id beyond 63 bits",
        "had no launch in the trace",
        "had an id that another process used too",
        "began before the launch",
    };
    return words[static_cast<std::size_t>(anomaly)];
}

std::uint64_t Trace::launch_number(std::uint32_t op) const {
    if (!unordered_ids.contains(ops[op].process)) {
        return ops[op].correlation == no_id ? 0 : ops[op].correlation;
    }
    const std::uint32_t call = launch_of[op]; // calls stand in their order
    return call == no_launch ? 0 : std::uint64_t{number_in_process.empty() ? call : number_in_process[call]} + 1;
}

void TraceBuilder::count(Anomaly anomaly, std::uint64_t times) { count_in(trace_.counts, anomaly, times); }

void TraceBuilder::count_of(std::uint64_t process, Anomaly anomaly) {
    const bool too_many = counts_.size() == most_processes && !counts_.contains(process);
    count_in(too_many ? trace_.counts : counts_[process], anomaly);
}

std::uint32_t TraceBuilder::intern(std::string_view name) { return trace_.names.intern(name); }

std::uint16_t TraceBuilder::process(std::uint64_t id) {
    if (processes_.size() == most_processes && !processes_.contains(id)) {
        return most_processes - 1;
    }
    return processes_.try_emplace(id, static_cast<std::uint16_t>(processes_.size())).first->second;
}

std::uint32_t TraceBuilder::stream(std::uint64_t device, std::uint64_t stream, std::uint64_t of,
                                   std::uint64_t numbering) {
    const std::array<std::uint64_t, 4> key = {of, device, stream, numbering};
    if (!streams_.empty() && last_stream_->first == key) {
        return last_stream_->second;
    }
    if (streams_.size() == most_queues && !streams_.contains(key)) {
        return most_queues - 1;
    }
    const auto [found, is_new] = streams_.try_emplace(key, static_cast<std::uint32_t>(streams_.size()));
    if (is_new) {
        trace_.streams.push_back({stream, static_cast<std::uint32_t>(device), process(of), 0});
        latest_.emplace_back().fill(std::numeric_limits<std::int64_t>::min());
    }
    last_stream_ = found;
    return found->second;
}

std::uint32_t TraceBuilder::thread(std::uint64_t thread, std::uint64_t of) {
    if (threads_.size() == most_queues && !threads_.contains({of, thread})) {
        return most_queues - 1;
    }
    const auto [found, is_new] = threads_.try_emplace({of, thread}, static_cast<std::uint32_t>(threads_.size()));
    if (is_new) {
        trace_.threads.push_back({thread, process(of)});
    }
    return found->second;
}

bool TraceBuilder::acceptable(const DeviceOp& op, std::uint64_t process) {
    const auto no = [this, process](Anomaly why) {
        count_of(process, why);
        return false;
    };
    if (op.end_ns < op.start_ns) {
        return no(Anomaly::negative_duration);
    }
    // Of a range that starts below 0 and ends above the difference may not fit.
    if (op.start_ns < -absurd_ns || op.duration_ns() > absurd_ns) {
        return no(Anomaly::absurd_time);
    }
    if (op.end_ns == op.start_ns) {
        count_of(process, Anomaly::zero_duration);
    }
    return true;
}

bool TraceBuilder::acceptable(const HostOp& op) {
    return op.end_ns >= op.start_ns && op.start_ns >= -absurd_ns && op.duration_ns() <= absurd_ns;
}

void TraceBuilder::put(const DeviceOp& raw, std::uint64_t device, std::uint64_t stream_id, std::uint64_t process_id,
                       std::uint64_t numbering) {
    DeviceOp& op = trace_.ops.emplace_back(raw);
    op.stream = stream(device, stream_id, process_id, numbering);
    op.process = trace_.streams[op.stream].process;
    std::int64_t& latest = latest_[op.stream][static_cast<std::size_t>(op.kind)];
    if (op.start_ns < latest) {
        count_of(process_id, Anomaly::unsorted);
    }
    latest = std::max(latest, op.start_ns);
    first_ = std::min(first_, op.start_ns);
    last_ = std::max(last_, op.start_ns);
}

void TraceBuilder::put(const HostOp& raw, std::uint64_t thread_id, std::uint64_t process_id) {
    HostOp& op = trace_.host.emplace_back(raw);
    op.thread = thread(thread_id, process_id);
    op.process = process(process_id);
    first_ = std::min(first_, op.start_ns);
    last_ = std::max(last_, op.start_ns);
}

void TraceBuilder::add(const DeviceOp& op, std::uint64_t device, std::uint64_t stream_id, std::uint64_t process_id,
                       std::uint64_t numbering) {
    if (acceptable(op, process_id)) {
        put(op, device, stream_id, process_id, numbering);
    }
}

void TraceBuilder::add(const HostOp& op, std::uint64_t thread_id, std::uint64_t process_id) {
    if (acceptable(op)) {
        put(op, thread_id, process_id);
    }
}

void TraceBuilder::add(std::vector<RawDeviceOp>& ops, std::vector<RawHostOp>& host) {
    for (RawDeviceOp& raw : ops) {
        if (acceptable(raw.op, raw.process)) {
            raw.op.name = raw.name.empty() ? raw.op.name : trace_.names.intern(raw.name);
            raw.op.module = raw.module.empty() ? no_name : trace_.names.intern(raw.module);
            raw.op.group = raw.group.empty() ? no_name : trace_.names.intern(raw.group);
            put(raw.op, raw.device, raw.stream, raw.process, raw.numbering);
        }
    }
    for (RawHostOp& raw : host) {
        if (acceptable(raw.op)) {
            raw.op.name = raw.name.empty() ? raw.op.name : trace_.names.intern(raw.name);
            raw.op.target = raw.target.empty() ? no_name : trace_.names.intern(raw.target);
            put(raw.op, raw.thread, raw.process);
        }
    }
    ops.clear();
    host.clear();
}

Trace TraceBuilder::finish() {
    Trace trace = std::move(trace_);
    trace.facts = std::move(facts);
    const std::vector<std::uint32_t> streams = by_key(streams_);
    const std::vector<std::uint32_t> threads = by_key(threads_);
    const std::vector<std::uint16_t> processes = by_key(processes_);
    for (const auto& [id, number] : processes_) {
        trace.facts.pids.emplace(number, id);
    }
    for (const auto& [id, counts] : counts_) {
        const auto found = processes_.find(id);
        add_counts(found == processes_.end() ? trace.counts : trace.of_process[found->second].counts, counts);
    }
    std::vector<Stream> moved_streams(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) {
        moved_streams[streams[i]] = trace.streams[i];
        moved_streams[streams[i]].process = processes[trace.streams[i].process];
    }
    for (std::size_t i = 1; i < moved_streams.size(); ++i) {
        const Stream& before = moved_streams[i - 1];
        Stream& stream = moved_streams[i];
        const bool same =
            std::tie(stream.id, stream.device, stream.process) == std::tie(before.id, before.device, before.process);
        stream.namesakes = same ? before.namesakes + 1 : 0;
    }
    trace.streams = std::move(moved_streams);
    std::vector<Thread> moved_threads(threads.size());
    for (std::size_t i = 0; i < threads.size(); ++i) {
        moved_threads[threads[i]] = trace.threads[i];
        moved_threads[threads[i]].process = processes[trace.threads[i].process];
    }
    trace.threads = std::move(moved_threads);

    refuse_far_ones(trace, first_, last_, processes);
    // Tools write 0 where they do not know the launch. It is one only where a call has it.
    const bool zero =
        std::any_of(trace.host.begin(), trace.host.end(), [](const HostOp& op) { return op.correlation == 0; });
    const std::vector<std::uint32_t> names = sort_names(trace.names);
    for (DeviceOp& op : trace.ops) {
        op.name = names[op.name];
        op.module = op.module == no_name ? no_name : names[op.module];
        op.group = op.group == no_name ? no_name : names[op.group];
        op.stream = streams[op.stream];
        op.process = processes[op.process];
        op.correlation = op.correlation == 0 && !zero ? no_id : op.correlation;
    }
    for (HostOp& op : trace.host) {
        op.name = names[op.name];
        op.target = op.target == no_name ? no_name : names[op.target];
        op.thread = threads[op.thread];
        op.process = processes[op.process];
    }
    const auto earlier = [](const HostOp& a, const HostOp& b) {
        return std::make_tuple(a.start_ns, -a.end_ns, a.thread, a.correlation, a.name) <
               std::make_tuple(b.start_ns, -b.end_ns, b.thread, b.correlation, b.name);
    };
    if (!std::is_sorted(trace.host.begin(), trace.host.end(), earlier)) { // as a table is
        std::sort(trace.host.begin(), trace.host.end(), earlier);
    }
    number_in_processes(trace);
    sort_device_ops(trace);
    OpChecks(trace).check();
    count_shared_ids(trace);
    move_counts_without_recording(trace);
    trace.tick_ns = tick_of(trace);
    return trace;
}

} // namespace plumb::imported
