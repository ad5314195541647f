// SPDX-License-Identifier: Apache-2.0
// Times parts of command buffers by the device's counters: passes, sampled at their first and last stage, and, where the
// device samples at dispatches, scopes inside an open compute encoder. Owned by its maker. Thread rule: any thread, but an
// encoder is used by one at a time; short locks.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/metal/completion.hpp"
#include "backends/metal/counter_clock.hpp"
#include "backends/metal/sample_buffers.hpp"
#include "backends/stamped_timer.hpp"
#include "plumb/backend.hpp"
#include "plumb/metal.hpp"

namespace plumb::backends::metal {

/// How far the timed passes of a command buffer are from the command buffer's own time.
enum class PartsVerdict : std::uint8_t { fine, warned, flagged };
/// At most 5 % of the command buffer: fine. To 10 %: a warning. Beyond: flagged.
PartsVerdict judge_parts(double parts_ns, double buffer_ns);

class CounterTimer;

class CounterStamper {
  public:
    struct Stamp {
        Completion* done = nullptr; // we are an owner
        SamplePlace place;
        bool is_pass = false; // both its samples: it is the whole scope
    };
    explicit CounterStamper(CounterTimer& timer) : timer_(timer) {}
    Status take(Stamp& stamp) noexcept;
    void drop(Stamp& stamp) noexcept;
    void ended(const Stamp&) noexcept {}

  private:
    CounterTimer& timer_;
};

class CounterTimer final : public StampedTimer<CounterStamper> {
  public:
    /// Error unsupported where the device has no timestamp counters or samples at neither boundary.
    static Result<std::unique_ptr<CounterTimer>> create(const MetalDriver& driver, Id queue,
                                                        const TimerOptions& options);
    ~CounterTimer() override;

    /// `pass` is a MetalPass.
    Result<DeviceToken> attach(void* pass) noexcept override;
    /// See plumb::metal_encoder().
    Status use_encoder(Id command_buffer, Id encoder) noexcept;
    Result<DeviceSpan> collect(DeviceToken token) noexcept override;
    Status wait(DeviceToken token) noexcept override;

    const char* source() const noexcept override { return "metal_counter"; }
    std::string clock_name() const override { return clock_name_; }
    Result<DeviceClockPair> clock_pair() noexcept override { return clock_.pair(); }
    Result<Elapsed> duration(const DeviceSpan& span) override { return clock_.duration(span); }
    Result<double> floor_ns() override;
    std::vector<Capability> capabilities() const override;

  private:
    friend class CounterStamper;
    CounterTimer(const MetalDriver& driver, Id queue, Id device, const TimerOptions& options)
        : StampedTimer(options.immediate), driver_(driver), queue_(Held::retained(driver, queue)),
          clock_(driver, device, options.host_clock), samples_(driver, device), stamper_(*this) {}
    Status open(Id device, const TimerOptions& options);
    Result<Completion*> watch(Id command_buffer) noexcept;
    void forget_what_is_over() noexcept;
    void disown(Completion& note) noexcept;
    void judge(const Completion& note) noexcept;
    Result<DeviceSpan> read_span(const CounterStamper::Stamp& begin, const CounterStamper::Stamp& end) noexcept;

    const MetalDriver& driver_;
    Held queue_;
    CounterClock clock_;
    std::string clock_name_;
    Completions::Handle completions_;
    SampleBuffers samples_;
    CounterStamper stamper_;
    bool at_stages_ = false;
    bool at_dispatches_ = false;
    std::atomic<std::uint64_t> judged_[3] = {}; // command buffers by verdict

    std::mutex mutex_; // guards what follows
    Id watched_buffer_ = nullptr;
    Completion* watched_ = nullptr; // of that command buffer; we are an owner
    Id encoder_ = nullptr;
    Completion* encoded_ = nullptr; // of the encoder's command buffer; we are an owner
};

} // namespace plumb::backends::metal
