// SPDX-License-Identifier: Apache-2.0
// Whose the operations of a trace are that says a process for calls alone.
#include <algorithm>
#include <set>

#include "import/trace.hpp"

namespace plumb::imported {
namespace {

constexpr std::int64_t clocks_differ_ns = 100'000; // those of host and device, by less
constexpr double about_as_many = 0.9;              // of the operations that the likeliest process may have launched

struct CallOfProcess {
    std::uint64_t correlation = 0, process = 0;
    std::int64_t start_ns = 0;
    auto key() const { return std::tie(correlation, process, start_ns); }
};

bool is_known(std::uint64_t correlation) { return correlation != no_id && correlation != 0; }

/// Of one device: how many of its operations each process may have launched.
using Launchers = std::map<std::uint64_t, std::size_t>;

/// The processes that may have launched what ran on a device.
std::set<std::uint64_t> likely(const Launchers& launchers) {
    std::size_t most = 0;
    for (const auto& [process, ops] : launchers) {
        most = std::max(most, ops);
    }
    std::set<std::uint64_t> found;
    for (const auto& [process, ops] : launchers) {
        if (static_cast<double>(ops) >= about_as_many * static_cast<double>(most)) {
            found.insert(process);
        }
    }
    return found;
}

/// Where there are as many devices as processes, a process that must have launched on one device launched on no other.
void leave_out_the_known(std::vector<std::set<std::uint64_t>>& devices) {
    for (bool changed = true; changed;) {
        changed = false;
        for (const std::set<std::uint64_t>& known : devices) {
            for (std::set<std::uint64_t>& other : devices) {
                changed = changed || (known.size() == 1 && other.size() > 1 && other.erase(*known.begin()) > 0);
            }
        }
    }
}

} // namespace

TraceBuilder::Settled TraceBuilder::settle_processes() {
    std::vector<std::uint64_t> process_of_thread(threads_.size());
    for (const auto& [key, number] : threads_) {
        process_of_thread[number] = key.first;
    }
    std::set<std::uint64_t> callers;
    for (const HostOp& op : trace_.host) {
        if (op.kind == HostOpKind::api && is_known(op.correlation) && is_unsettled(process_of_thread[op.thread])) {
            callers.insert(process_of_thread[op.thread]);
        }
    }
    if (callers.size() < 2) {
        move_processes([](std::uint64_t) { return std::uint64_t{0}; }, {});
        return Settled::one_process;
    }
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> devices; // by process and device of the file
    std::vector<std::size_t> device_of_stream(streams_.size(), 0);
    for (const auto& [key, number] : streams_) {
        if (is_unsettled(key[0])) {
            device_of_stream[number] = devices.try_emplace({key[0], key[1]}, devices.size()).first->second;
        } else {
            device_of_stream[number] = streams_.size(); // none
        }
    }
    std::vector<CallOfProcess> calls;
    for (const HostOp& op : trace_.host) {
        if (op.kind == HostOpKind::api && is_known(op.correlation)) {
            calls.push_back({op.correlation, process_of_thread[op.thread], op.start_ns});
        }
    }
    std::sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
    std::vector<Launchers> launchers(devices.size());
    for (const DeviceOp& op : trace_.ops) {
        const std::size_t device = device_of_stream[op.stream];
        if (device >= launchers.size() || !is_known(op.correlation)) {
            continue;
        }
        auto call = std::lower_bound(calls.begin(), calls.end(), op.correlation,
                                     [](const CallOfProcess& a, std::uint64_t id) { return a.correlation < id; });
        for (auto before = calls.end(); call != calls.end() && call->correlation == op.correlation; before = call++) {
            const bool first = before == calls.end() || before->process != call->process;
            if (first && call->start_ns - clocks_differ_ns <= op.start_ns) {
                ++launchers[device][call->process];
            }
        }
    }
    std::vector<std::set<std::uint64_t>> may_have;
    for (const Launchers& of_device : launchers) {
        may_have.push_back(likely(of_device));
    }
    if (devices.size() == callers.size()) {
        leave_out_the_known(may_have);
    }
    const bool known = std::all_of(may_have.begin(), may_have.end(), [](const auto& some) { return some.size() == 1; });
    if (!known) {
        for (DeviceOp& op : trace_.ops) {
            op.correlation = device_of_stream[op.stream] < devices.size() ? no_id : op.correlation;
        }
        move_processes([](std::uint64_t) { return std::uint64_t{0}; }, {});
        return Settled::not_known;
    }
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> launched_by;
    for (const auto& [key, number] : devices) {
        launched_by[key] = settled(*may_have[number].begin());
    }
    move_processes(settled, launched_by);
    return Settled::several;
}

/// Unsettled ones: of calls by `to`, of operations of a device as `launched_by` has it, else by `to`.
void TraceBuilder::move_processes(const std::function<std::uint64_t(std::uint64_t)>& to,
                                  const std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>& launched_by) {
    const auto old_streams = std::exchange(streams_, {});
    const auto old_threads = std::exchange(threads_, {});
    trace_.streams.clear();
    trace_.threads.clear();
    processes_.clear();
    latest_.clear();
    std::vector<std::uint32_t> streams(old_streams.size());
    for (const auto& [key, number] : old_streams) {
        const auto launcher = launched_by.find({key[0], key[1]});
        const std::uint64_t process = !is_unsettled(key[0])           ? key[0]
                                      : launcher != launched_by.end() ? launcher->second
                                                                      : to(key[0]);
        streams[number] = stream(key[1], key[2], process, key[3]);
    }
    std::vector<std::uint32_t> threads(old_threads.size());
    for (const auto& [key, number] : old_threads) {
        threads[number] = thread(key.second, is_unsettled(key.first) ? to(key.first) : key.first);
    }
    for (DeviceOp& op : trace_.ops) {
        op.stream = streams[op.stream];
        op.process = trace_.streams[op.stream].process;
    }
    for (HostOp& op : trace_.host) {
        op.thread = threads[op.thread];
        op.process = trace_.threads[op.thread].process;
    }
}

} // namespace plumb::imported
