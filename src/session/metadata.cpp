// SPDX-License-Identifier: Apache-2.0
#include "session/metadata.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/os.hpp"
#include "clock/host_clock.hpp"
#include "plumb/selftest.hpp"
#include "recording/redact.hpp"
#include "session/own_cost.hpp"
#include "session/rank_identity.hpp"

namespace plumb::session {
namespace {

/// CLOCK_MONOTONIC as an injected clock: for machines whose counter is not sound.
class MonotonicClock final : public HostClock {
  public:
    [[nodiscard]] std::uint64_t now_ticks() const noexcept override {
        return static_cast<std::uint64_t>(clock::monotonic_ns());
    }
    [[nodiscard]] std::int64_t now_ns() const noexcept override { return clock::monotonic_ns(); }
    [[nodiscard]] std::int64_t thread_cpu_ns() const noexcept override { return base::thread_cpu_ns(); }
};

const HostClock* clock_for(const Config& config) {
    static const MonotonicClock monotonic;
    if (config.clock != nullptr) {
        return config.clock;
    }
    return clock::machine_clock().kind == clock::HostClockKind::monotonic ? &monotonic : nullptr;
}

const char* name_of(SyncMode mode) {
    switch (mode) {
    case SyncMode::immediate:
        return "immediate";
    case SyncMode::per_layer:
        return "per_layer";
    case SyncMode::none:
        return "none";
    case SyncMode::deferred:
        break;
    }
    return "deferred";
}

/// The settings as the recording keeps them.
std::string recorded_spec(Config config) {
    if (config.redact) {
        config.out = "redacted";
        config.tensors.dump = config.tensors.dump.empty() ? "" : "redacted";
        config.metrics = config.metrics.empty() ? "" : "redacted";
    }
    return config.spec();
}

} // namespace

StampOptions stamps_for(const Config& config) {
    StampOptions stamps;
    stamps.clock = clock_for(config);
    stamps.serialise = config.sync == SyncMode::immediate;
    stamps.serialise_layers = config.sync == SyncMode::per_layer;
    stamps.host_only = config.sync == SyncMode::none;
    stamps.device_every = config.device_every;
    stamps.tiles = config.tiles != 0;
    stamps.hide_traces = config.redact;
    return stamps;
}

recording::Metadata metadata_of(const Config& config, const std::uint64_t (&recording_id)[2],
                                const RingFilePath& rings) {
    recording::Metadata m;
    std::copy(std::begin(recording_id), std::end(recording_id), m.recording_id);
    m.start_realtime_ns = clock::realtime_ns();
    m.host = base::host_name();
    m.pid = base::process_id();
    const Result<std::uint64_t> start = base::process_start_time(m.pid);
    m.process_start = start.ok() ? *start : 0;
    m.boot_id = base::boot_id();
    RankIdentity identity = rank_identity(config.rank);
    m.rank = std::move(identity.rank);
    m.world = identity.world;
    m.groups = std::move(identity.groups);
    m.time_namespace = base::time_namespace();
    m.ring_path = rings.path;
    m.ring_reason = rings.reason;
    m.config = recorded_spec(config);
    m.sync_mode = name_of(config.sync);
    m.warmup_steps = config.warmup_steps;
    m.identity.emplace_back("command", base::command_line());
    m.identity.emplace_back("plumb", PLUMB_BUILD_VERSION);
    // Momentary: shown beside a comparison, never part of what must be equal.
    for (const auto& [key, value] : base::cpu_conditions()) {
        m.identity.emplace_back(key, value);
    }
    m.comparability.emplace_back("cpu", base::cpu_model());
    m.comparability.emplace_back("cpus", std::to_string(base::usable_cpus()));
    m.comparability.emplace_back("sync", m.sync_mode);
    m.comparability.emplace_back("tensors", config.tensors.spec());
    const clock::HostClockSource source = clock::host_clock(config.clock);
    m.clocks.push_back({0, clock::name_of(source.kind)});
    m.costs = measure_own_cost(stamps_for(config), config.clock != nullptr);
    // Never measured here: that takes all cores for seconds. Durations of an injected clock are not this machine's.
    if (Result<std::vector<Peaks>> peaks = stored_peaks(); config.clock == nullptr && peaks.ok()) {
        m.peaks = *std::move(peaks);
    }
    if (config.redact) {
        recording::redact(m);
    }
    return m;
}

} // namespace plumb::session
