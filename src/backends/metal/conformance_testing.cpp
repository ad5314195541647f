// SPDX-License-Identifier: Apache-2.0
// The metal backend before the conformance suite (tests/conformance): on Metal in virtual time, whose every message can be
// made to fail. Nothing of it has run on Apple hardware (docs/reference/backends.md).
#include "backends/metal/queue_timer.hpp"
#include "conformance/subject.hpp"
#include "mocks/virtual_metal.hpp"

namespace plumb::conformance {
namespace {

class MetalSubject final : public Subject {
  public:
    MetalSubject() : queue_((vmetal::reset(slow_host()), vmetal::make_queue())), held_before_(vmetal::references()) {}
    ~MetalSubject() override {
        vmetal::settle();
        vmetal::release(queue_);
    }

    Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& given) override {
        TimerOptions options = given;
        options.host_clock = &vmetal::host_clock();
        auto made = backends::metal::MetalQueueTimer::create(vmetal::driver(), queue_, options);
        return made ? Result<std::unique_ptr<QueueTimer>>(std::move(*made)) : made.error();
    }
    void work(std::int64_t ns) override { vmetal::run(queue_, ns); }
    void settle() override { vmetal::settle(); }
    std::int64_t host_ns() const override { return vmetal::now_ns(); }

    // Left out: messages that answer nothing (retain, the event's, the handler's), and those of counters
    // (counter_timer_test.cpp).
    std::vector<std::string> calls() const override {
        return {"commandBuffer",        "commit",     "status",   "device",
                "GPUStartTime",         "GPUEndTime", "newEvent", "newCommandQueueWithMaxCommandBufferCount:",
                "clock_gettime_nsec_np"};
    }
    void fail(const std::string& call, unsigned use) override { vmetal::fail(call, use); }
    bool has_failed() const override { return vmetal::has_failed(); }
    std::size_t resources() const override { return vmetal::references() - held_before_; }

  private:
    /// Asking for a time sends no message, so that in virtual time nothing goes on meanwhile: here an idle device has
    /// finished a marker when the call that commits it returns.
    static vmetal::Config slow_host() {
        vmetal::Config config;
        config.call_ns = 2 * (config.start_ns + config.marker_ns);
        return config;
    }

    backends::metal::Id queue_;
    std::size_t held_before_;
};

} // namespace

std::unique_ptr<Subject> metal_subject();
std::unique_ptr<Subject> metal_subject() { return std::make_unique<MetalSubject>(); }

} // namespace plumb::conformance
