// SPDX-License-Identifier: Apache-2.0
// The cpu backend before the conformance suite (tests/conformance): its calls to the system, made to fail.
#include <atomic>

#include "backends/cpu/queue_timer.hpp"
#include "clock/host_clock.hpp"
#include "conformance/subject.hpp"
#include "mocks/virtual_world.hpp"

namespace plumb::conformance {
namespace {

// The calls are plain function pointers, so what they count is global; one subject lives at a time.
mocks::PlannedFailure failure;
std::atomic<std::size_t> allocations{0};

void* allocate(std::size_t bytes) noexcept {
    if (failure.strikes("allocate")) {
        return nullptr;
    }
    ++allocations;
    return backends::cpu::system_calls().allocate(bytes);
}

void release(void* memory) noexcept {
    --allocations;
    backends::cpu::system_calls().release(memory);
}

bool read_pair(const clock::HostClockSource& source, clock::ClockReading& reading) noexcept {
    return !failure.strikes("read_pair") && backends::cpu::system_calls().read_pair(source, reading);
}

class CpuSubject final : public Subject {
  public:
    CpuSubject() { failure = {}; }

    Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& options) override {
        return backends::cpu::CpuQueueTimer::create(options, {allocate, release, read_pair});
    }
    void work(std::int64_t ns) override {
        const std::int64_t end = clock::monotonic_ns() + ns;
        while (clock::monotonic_ns() < end) {
        }
    }
    void settle() override {}
    std::int64_t host_ns() const override { return clock::monotonic_ns(); }

    std::vector<std::string> calls() const override { return {"allocate", "read_pair"}; }
    void fail(const std::string& call, unsigned use) override { failure.plan(call, use); }
    bool has_failed() const override { return failure.has_struck(); }
    std::size_t resources() const override { return allocations; }
};

} // namespace

std::unique_ptr<Subject> cpu_subject();
std::unique_ptr<Subject> cpu_subject() { return std::make_unique<CpuSubject>(); }

} // namespace plumb::conformance
