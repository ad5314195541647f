// SPDX-License-Identifier: Apache-2.0
#include "import/trace.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace plumb::imported {
namespace {

constexpr std::uint16_t most_processes = 4096; // what is more than these counts as the last one
constexpr std::uint32_t most_queues = 16384;
constexpr std::int64_t least_clip_ns = 1'000'000; // programmatic overlaps last microseconds
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

void refuse_far_ones(Trace& trace) {
    if (trace.ops.empty()) {
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
    trace.counts[static_cast<std::size_t>(Anomaly::absurd_time)] +=
        std::erase_if(trace.ops, far) + std::erase_if(trace.host, far);
}

void sort_device_ops(Trace& trace) {
    const auto before = [](const DeviceOp& a, const DeviceOp& b) {
        return order_of(a) < order_of(b);
    };
    if (!std::is_sorted(trace.ops.begin(), trace.ops.end(), before)) { // tables of one kind are
        std::sort(trace.ops.begin(), trace.ops.end(), before);
    }
    const auto same = [](const DeviceOp& a, const DeviceOp& b) {
        return order_of(a) == order_of(b) && a.correlation != no_id;
    };
    const auto end = std::unique(trace.ops.begin(), trace.ops.end(), same);
    trace.counts[static_cast<std::size_t>(Anomaly::duplicate)] += static_cast<std::uint64_t>(trace.ops.end() - end);
    trace.ops.erase(end, trace.ops.end());
}

/// Ends that lie beyond the whole of the next operation of a stream cannot be: tools are known to write some, seconds too late.
void check_streams(Trace& trace) {
    std::vector<DeviceOp*> before(trace.streams.size(), nullptr);
    for (DeviceOp& op : trace.ops) {
        DeviceOp*& last = before[op.stream];
        if (last != nullptr && last->end_ns > op.start_ns) {
            if (last->end_ns > op.end_ns && last->end_ns - op.start_ns > least_clip_ns) {
                last->end_ns = op.start_ns;
                ++trace.counts[static_cast<std::size_t>(Anomaly::clipped)];
            } else {
                ++trace.counts[static_cast<std::size_t>(Anomaly::overlap)];
            }
        }
        last = &op;
    }
}

void find_launches(Trace& trace) {
    using Call = std::tuple<std::uint16_t, std::uint64_t, std::uint32_t>; // process, correlation, index
    std::vector<Call> calls;
    for (std::uint32_t i = 0; i < trace.host.size(); ++i) {
        const HostOp& op = trace.host[i];
        if (op.kind == HostOpKind::api && op.correlation != no_id) {
            calls.emplace_back(op.process, op.correlation, i);
        }
    }
    std::sort(calls.begin(), calls.end());
    trace.launch_of.reserve(trace.ops.size());
    for (const DeviceOp& op : trace.ops) {
        const auto found = std::lower_bound(calls.begin(), calls.end(), Call(op.process, op.correlation, 0));
        const bool is_there = op.correlation != no_id && found != calls.end() && std::get<0>(*found) == op.process &&
                              std::get<1>(*found) == op.correlation;
        trace.launch_of.push_back(is_there ? std::get<2>(*found) : Trace::no_launch);
        trace.counts[static_cast<std::size_t>(Anomaly::no_launch)] += is_there ? 0 : 1;
        trace.counts[static_cast<std::size_t>(Anomaly::before_launch)] +=
            is_there && op.start_ns < trace.host[std::get<2>(*found)].start_ns ? 1 : 0;
    }
}

/// Ids of calls, and where no call is there of operations of one stream, grow with time: they number what was lost too.
void check_order_of_ids(Trace& trace) {
    struct Order {
        std::uint64_t pairs = 0, falling = 0;
        std::uint64_t last = 0;
    };
    std::map<std::uint16_t, Order> calls;
    std::map<std::uint32_t, Order> streams;
    const auto next = [](Order& order, std::uint64_t id) {
        ++order.pairs;
        order.falling += id < std::exchange(order.last, id) ? 1 : 0;
    };
    for (const HostOp& op : trace.host) {
        if (op.kind == HostOpKind::api && op.correlation != no_id) {
            next(calls[op.process], op.correlation);
        }
    }
    for (const DeviceOp& op : trace.ops) {
        if (op.correlation != no_id && !calls.contains(op.process)) {
            next(streams[op.stream], op.correlation);
        }
    }
    const auto falls = [](const Order& order) {
        return 100 * order.falling > order.pairs; // two threads may call at one moment
    };
    for (const auto& [process, order] : calls) {
        if (falls(order)) {
            trace.unordered_ids.insert(process);
        }
    }
    for (const auto& [stream, order] : streams) {
        if (falls(order)) {
            trace.unordered_ids.insert(trace.streams[stream].process);
        }
    }
}

void count_shared_ids(Trace& trace) {
    std::vector<std::pair<std::uint64_t, std::uint16_t>> owners;
    for (const DeviceOp& op : trace.ops) {
        if (trace.facts.pids.size() > 1 && op.correlation != no_id) {
            owners.emplace_back(op.correlation, op.process);
        }
    }
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    for (std::size_t i = 1; i < owners.size(); ++i) {
        trace.counts[static_cast<std::size_t>(Anomaly::shared_id)] += owners[i].first == owners[i - 1].first ? 1 : 0;
    }
}

/// Tools write 0 where they do not know the launch. It is one only where a call has it.
void forget_zero_ids(Trace& trace) {
    if (std::none_of(trace.host.begin(), trace.host.end(), [](const HostOp& op) { return op.correlation == 0; })) {
        for (DeviceOp& op : trace.ops) {
            op.correlation = op.correlation == 0 ? no_id : op.correlation;
        }
    }
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
        "have no begin and are left out",
        "have a time that is no number and are left out",
        "have a negative duration and are left out",
        "have a time that cannot be and are left out",
        "stand there twice and count once",
        "take no time",
        "begin before the one before them on their stream ends",
        "ended after the whole of the next one on their stream and are cut at its begin",
        "stand behind a later one of their stream",
        "hold numbers as text",
        "have an id beyond 63 bits",
        "have no launch in the trace",
        "have an id that another process uses too",
        "begin before the call that launched them",
    };
    return words[static_cast<std::size_t>(anomaly)];
}

std::uint64_t Trace::launch_number(std::uint32_t op) const {
    if (!unordered_ids.contains(ops[op].process)) {
        return ops[op].correlation == no_id ? 0 : ops[op].correlation;
    }
    return launch_of[op] == no_launch ? 0 : std::uint64_t{launch_of[op]} + 1; // calls stand in their order
}

void TraceBuilder::count(Anomaly anomaly, std::uint64_t times) {
    const std::lock_guard<std::mutex> lock(mutex_);
    trace_.counts[static_cast<std::size_t>(anomaly)] += times;
}

std::uint32_t TraceBuilder::intern(std::string_view name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return trace_.names.intern(name);
}

std::uint16_t TraceBuilder::process(std::uint64_t id) {
    if (processes_.size() == most_processes && !processes_.contains(id)) {
        return most_processes - 1;
    }
    return processes_.try_emplace(id, static_cast<std::uint16_t>(processes_.size())).first->second;
}

std::uint32_t TraceBuilder::stream(const RawDeviceOp& raw) {
    if (!streams_.empty() && last_stream_->first == std::tie(raw.process, raw.device, raw.stream)) {
        return last_stream_->second;
    }
    if (streams_.size() == most_queues && !streams_.contains({raw.process, raw.device, raw.stream})) {
        return most_queues - 1;
    }
    const auto [found, is_new] =
        streams_.try_emplace({raw.process, raw.device, raw.stream}, static_cast<std::uint32_t>(streams_.size()));
    if (is_new) {
        trace_.streams.push_back({raw.stream, static_cast<std::uint32_t>(raw.device), process(raw.process)});
        latest_.emplace_back().fill(std::numeric_limits<std::int64_t>::min());
    }
    last_stream_ = found;
    return found->second;
}

std::uint32_t TraceBuilder::thread(const RawHostOp& raw) {
    if (threads_.size() == most_queues && !threads_.contains({raw.process, raw.thread})) {
        return most_queues - 1;
    }
    const auto [found, is_new] =
        threads_.try_emplace({raw.process, raw.thread}, static_cast<std::uint32_t>(threads_.size()));
    if (is_new) {
        trace_.threads.push_back({raw.thread, process(raw.process)});
    }
    return found->second;
}

bool TraceBuilder::acceptable(const DeviceOp& op) {
    const auto no = [this](Anomaly why) {
        ++trace_.counts[static_cast<std::size_t>(why)];
        return false;
    };
    if (op.end_ns < op.start_ns) {
        return no(Anomaly::negative_duration);
    }
    // Of a range that starts below 0 and ends above the difference may not fit.
    if (op.start_ns < -absurd_ns || op.duration_ns() > absurd_ns) {
        return no(Anomaly::absurd_time);
    }
    trace_.counts[static_cast<std::size_t>(Anomaly::zero_duration)] += op.end_ns == op.start_ns ? 1 : 0;
    return true;
}

void TraceBuilder::add(std::vector<RawDeviceOp>& ops, std::vector<RawHostOp>& host) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (RawDeviceOp& raw : ops) {
        if (!acceptable(raw.op)) {
            continue;
        }
        DeviceOp& op = trace_.ops.emplace_back(raw.op);
        op.name = raw.name.empty() ? op.name : trace_.names.intern(raw.name);
        op.module = raw.module.empty() ? no_name : trace_.names.intern(raw.module);
        op.stream = stream(raw);
        op.process = trace_.streams[op.stream].process;
        std::int64_t& latest = latest_[op.stream][static_cast<std::size_t>(op.kind)];
        trace_.counts[static_cast<std::size_t>(Anomaly::unsorted)] += op.start_ns < latest ? 1 : 0;
        latest = std::max(latest, op.start_ns);
    }
    for (RawHostOp& raw : host) {
        if (raw.op.end_ns < raw.op.start_ns || raw.op.start_ns < -absurd_ns || raw.op.duration_ns() > absurd_ns) {
            continue;
        }
        HostOp& op = trace_.host.emplace_back(raw.op);
        op.name = raw.name.empty() ? op.name : trace_.names.intern(raw.name);
        op.target = raw.target.empty() ? no_name : trace_.names.intern(raw.target);
        op.thread = thread(raw);
        op.process = process(raw.process);
    }
    ops.clear();
    host.clear();
}

Trace TraceBuilder::finish() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Trace trace = std::move(trace_);
    trace.facts = std::move(facts);
    const std::vector<std::uint32_t> streams = by_key(streams_);
    const std::vector<std::uint32_t> threads = by_key(threads_);
    const std::vector<std::uint16_t> processes = by_key(processes_);
    for (const auto& [id, number] : processes_) {
        trace.facts.pids.emplace(number, id);
    }
    std::vector<Stream> moved_streams(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) {
        moved_streams[streams[i]] = trace.streams[i];
        moved_streams[streams[i]].process = processes[trace.streams[i].process];
    }
    trace.streams = std::move(moved_streams);
    std::vector<Thread> moved_threads(threads.size());
    for (std::size_t i = 0; i < threads.size(); ++i) {
        moved_threads[threads[i]] = trace.threads[i];
        moved_threads[threads[i]].process = processes[trace.threads[i].process];
    }
    trace.threads = std::move(moved_threads);

    refuse_far_ones(trace);
    forget_zero_ids(trace);
    const std::vector<std::uint32_t> names = sort_names(trace.names);
    for (DeviceOp& op : trace.ops) {
        op.name = names[op.name];
        op.module = op.module == no_name ? no_name : names[op.module];
        op.stream = streams[op.stream];
        op.process = processes[op.process];
    }
    for (HostOp& op : trace.host) {
        op.name = names[op.name];
        op.target = op.target == no_name ? no_name : names[op.target];
        op.thread = threads[op.thread];
        op.process = processes[op.process];
    }
    std::sort(trace.host.begin(), trace.host.end(), [](const HostOp& a, const HostOp& b) {
        return std::make_tuple(a.start_ns, -a.end_ns, a.thread, a.correlation, a.name) <
               std::make_tuple(b.start_ns, -b.end_ns, b.thread, b.correlation, b.name);
    });
    sort_device_ops(trace);
    check_streams(trace);
    find_launches(trace);
    check_order_of_ids(trace);
    count_shared_ids(trace);
    trace.tick_ns = tick_of(trace);
    return trace;
}

} // namespace plumb::imported
