// SPDX-License-Identifier: Apache-2.0
#include "record/subject.hpp"

#include <memory>
#include <string>

#include "plumb/backend.hpp"
#include "record/loops.hpp"

namespace bench {

Stage stage;

namespace {

/// A device queue whose calls do next to nothing, so that what is left is the host part of a device scope.
class FreeTimer final : public plumb::QueueTimer {
  public:
    plumb::Result<plumb::DeviceToken> begin() noexcept override { return plumb::DeviceToken{++last_}; }
    plumb::Status end(plumb::DeviceToken) noexcept override { return {}; }
    plumb::Result<plumb::DeviceSpan> collect(plumb::DeviceToken token) noexcept override {
        return plumb::DeviceSpan{token.value, token.value + 1, 0};
    }
    void cancel(plumb::DeviceToken) noexcept override {}
    plumb::Status wait(plumb::DeviceToken) noexcept override { return {}; }
    bool immediate() const noexcept override { return false; }
    const char* source() const noexcept override { return "caller"; }
    std::string clock_name() const override { return "free"; }
    bool clock_is_host() const noexcept override { return true; }
    plumb::Result<plumb::DeviceClockPair> clock_pair() noexcept override { return plumb::DeviceClockPair{}; }
    plumb::Result<plumb::Elapsed> duration(const plumb::DeviceSpan&) override { return plumb::Elapsed{}; }
    plumb::Result<double> floor_ns() override { return 0.0; }
    std::vector<plumb::Capability> capabilities() const override { return {}; }
    std::size_t in_flight() const noexcept override { return 0; }

  private:
    std::uint64_t last_ = 0;
};

std::unique_ptr<plumb::Profiler> profiler;

const char* open(const char* path) {
    static plumb::Profiler off;
    static std::string why;
    plumb::Config config;
    config.on = true;
    config.out = path;
    profiler = std::make_unique<plumb::Profiler>(config);
    stage.on = profiler.get();
    stage.off = &off;
    stage.name = profiler->intern("fused_rope_attention", plumb::Category::attention);
    if (const plumb::Status status = profiler->status(); !status.ok()) {
        why = status.error().message;
        return why.c_str();
    }
    return nullptr;
}

bool flush() { return profiler->flush(60).ok(); }
bool close() { return profiler->close().ok(); }

plumb::detail::RingHeader& ring() { return *profiler->thread()->ring; }
std::uint64_t written() { return ring().head.load(std::memory_order_relaxed); }
std::uint64_t waiting() { return written() - ring().tail.load(std::memory_order_acquire); }
std::uint64_t dropped() {
    std::uint64_t sum = 0;
    for (const auto& count : ring().drops) {
        sum += count.load(std::memory_order_relaxed);
    }
    return sum;
}
std::uint64_t capacity() { return profiler->thread()->mask + 1; }

} // namespace

plumb::Queue free_queue() {
    struct alignas(128) Mine { // no cache line shared with what the drain writes
        FreeTimer timer;
        plumb::Queue queue;
        const plumb::Profiler* owner = nullptr;
    };
    static thread_local auto* mine = new Mine; // the drain may collect from it after its thread ended
    if (mine->owner != stage.on) {
        mine->queue = stage.on->add_queue(mine->timer, "free");
        mine->owner = stage.on;
    }
    return mine->queue;
}

} // namespace bench

const bench::Subject* plumb_bench_subject() {
    using namespace bench;
    static const Subject subject = {
        {plumb_bench_empty, plumb_bench_floor, plumb_bench_on, plumb_bench_work, plumb_bench_named, plumb_bench_lap,
         plumb_bench_device, plumb_bench_kernel, plumb_bench_transfer, plumb_bench_off, plumb_bench_compiled_out},
        {plumb_bench_stamps_empty, plumb_bench_stamps_floor, plumb_bench_stamps_on, nullptr, nullptr,
         plumb_bench_stamps_lap, nullptr, nullptr, nullptr, nullptr, nullptr},
        plumb_bench_body_between_reads,
        plumb_bench_body_in_scope,
        plumb_bench_decode_like,
        open,
        flush,
        close,
        written,
        waiting,
        dropped,
        capacity,
    };
    return &subject;
}
