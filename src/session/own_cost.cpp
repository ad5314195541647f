// SPDX-License-Identifier: Apache-2.0
#include "session/own_cost.hpp"

#include <algorithm>
#include <memory>

#include "clock/host_clock.hpp"
#include "plumb/tile.hpp"
#include "record/recorder_access.hpp"

namespace plumb::session {
namespace {

constexpr int rounds = 9;
constexpr int scopes_per_round = 400;

class ScratchRecorder : public Recorder {
  public:
    explicit ScratchRecorder(const StampOptions& stamps) : rings_(record::RingOptions{64 * 1024, "", "", {0, 0}, 16}) {
        RecorderAccess::prepare(*this, stamps);
        RecorderAccess::connect(*this, &rings_);
        RecorderAccess::set_enabled(*this, true);
    }
    /// Forgets what was recorded and gives the records to `each`.
    template <class Each>
    void take(Each each) {
        std::uint64_t version = ~std::uint64_t{0};
        std::vector<std::shared_ptr<record::Ring>> rings;
        rings_.rings(version, rings);
        for (const auto& ring : rings) {
            const std::uint64_t head = ring->header().head.load(std::memory_order_acquire);
            std::uint64_t tail = ring->header().tail.load(std::memory_order_relaxed);
            for (; tail != head; ++tail) {
                each(ring->records()[tail & (ring->capacity() - 1)]);
            }
            ring->header().tail.store(tail, std::memory_order_release);
        }
    }

  private:
    record::RingSet rings_;
};

template <class Body>
double median_ns(ScratchRecorder& recorder, std::vector<double>* empty_scopes, double ns_per_tick, Body body) {
    std::vector<double> costs;
    for (int round = 0; round < rounds; ++round) {
        const std::int64_t begin = clock::monotonic_ns();
        for (int i = 0; i < scopes_per_round; ++i) {
            body();
        }
        costs.push_back(static_cast<double>(clock::monotonic_ns() - begin) / scopes_per_round);
        recorder.take([&](const Record& record) {
            if (empty_scopes != nullptr && kind_of(record) == RecordKind::scope) {
                empty_scopes->push_back(static_cast<double>(payload_of(record)) * ns_per_tick);
            }
        });
    }
    std::nth_element(costs.begin(), costs.begin() + rounds / 2, costs.end());
    return costs[rounds / 2];
}

double measure_ns_per_tick(const Recorder& recorder) {
    const std::int64_t begin_ns = clock::monotonic_ns();
    const std::uint64_t begin = recorder.plain_stamp();
    while (clock::monotonic_ns() - begin_ns < 200'000) {
    }
    const std::int64_t ns = clock::monotonic_ns() - begin_ns;
    return static_cast<double>(ns) / static_cast<double>(recorder.plain_stamp() - begin);
}

} // namespace

std::vector<std::pair<std::string, double>> measure_own_cost(const StampOptions& stamps, bool injected) {
    if (injected) {
        return {};
    }
    ScratchRecorder recorder(stamps);
    const double ns_per_tick = measure_ns_per_tick(recorder);
    std::vector<double> empty;
    const double scope =
        median_ns(recorder, &empty, ns_per_tick, [&] { PLUMB_BRICK(recorder, host, Brick::rms_norm); });
    double lap = 0;
    {
        PLUMB_BRICK(recorder, host, Brick::rms_norm);
        lap = median_ns(recorder, nullptr, ns_per_tick, [&] { PLUMB_LAP(recorder, host, Brick::rope_embedding); });
    }
    const double layer = median_ns(recorder, nullptr, ns_per_tick, [&] { PLUMB_LAYER(recorder, 0); });
    const double cpu_time = median_ns(recorder, nullptr, ns_per_tick, [&] { recorder.thread()->sample_cpu_time(); });
    volatile std::uint64_t sink = 0;
    const double reads = median_ns(recorder, nullptr, ns_per_tick, [&] {
        sink = recorder.stamp();
        sink = recorder.stamp();
    });
    std::vector<std::pair<std::string, double>> costs = {
        {"scope", scope}, {"lap", lap}, {"layer", layer}, {"cpu_time", cpu_time}, {"clock_reads", reads}};
    if (stamps.tiles) {
        costs.emplace_back(
            "tile", median_ns(recorder, nullptr, ns_per_tick, [&] { PLUMB_TILE(recorder, TileLevel::micro, 0, 0); }));
    }
    if (!empty.empty()) {
        std::nth_element(empty.begin(), empty.begin() + static_cast<std::ptrdiff_t>(empty.size() / 2), empty.end());
        costs.emplace_back("floor", empty[empty.size() / 2]);
    }
    return costs;
}

} // namespace plumb::session
