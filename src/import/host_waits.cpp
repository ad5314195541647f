// SPDX-License-Identifier: Apache-2.0
#include "import/host_waits.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace plumb::imported {
namespace {

/// Overlapping ones of a thread, as a call of the driver inside that of the runtime, become one.
std::vector<HostWaits::Wait> united(std::vector<HostWaits::Wait> waits) {
    std::sort(waits.begin(), waits.end(), [](const HostWaits::Wait& a, const HostWaits::Wait& b) {
        return std::tie(a.thread, a.begin_ns, a.end_ns) < std::tie(b.thread, b.begin_ns, b.end_ns);
    });
    std::vector<HostWaits::Wait> made;
    for (const HostWaits::Wait& wait : waits) {
        if (!made.empty() && made.back().thread == wait.thread && wait.begin_ns <= made.back().end_ns) {
            made.back().end_ns = std::max(made.back().end_ns, wait.end_ns);
        } else if (wait.end_ns > wait.begin_ns) {
            made.push_back(wait);
        }
    }
    return made;
}

} // namespace

bool synchronises(std::string_view call) { return call.find("Synchronize") != call.npos; }

HostWaits find_waits(const Trace& trace, std::uint16_t process) {
    HostWaits found;
    std::vector<HostWaits::Wait> waits;
    std::vector<bool> launching(trace.threads.size());
    std::int64_t busy_until = std::numeric_limits<std::int64_t>::min();
    for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
        const DeviceOp& op = trace.ops[i];
        if (op.process != process) {
            continue;
        }
        if (const std::uint32_t api = trace.launch_of[i]; api != Trace::no_launch) {
            const HostOp& call = trace.host[api];
            launching[call.thread] = true;
            if (op.kind == DeviceOpKind::memcpy && op.end_ns <= call.end_ns && op.start_ns >= call.start_ns) {
                // What the device did before held it up as well.
                const std::int64_t from = busy_until > call.start_ns ? call.start_ns : op.start_ns;
                if (found.from.try_emplace(api, from).second) {
                    waits.push_back({call.thread, from, call.end_ns});
                }
            }
        }
        busy_until = std::max(busy_until, op.end_ns);
    }
    std::vector<bool> waiting(trace.names.size());
    for (std::uint32_t i = 0; i < waiting.size(); ++i) {
        waiting[i] = synchronises(trace.names[i]);
    }
    for (const HostOp& op : trace.host) {
        if (op.kind == HostOpKind::api && op.process == process && waiting[op.name] && launching[op.thread]) {
            waits.push_back({op.thread, op.start_ns, op.end_ns});
        }
    }
    found.calls = united(std::move(waits));
    return found;
}

} // namespace plumb::imported
