// SPDX-License-Identifier: Apache-2.0
// What PLUMB_TENSOR asks: chooses, fingerprints and hands over. Tensors in host memory are read by the calling thread, at
// once; those of device queues by whatever DeviceTensors takes them.
// Owned by the session. Thread rule: take() from any recording thread; collect() from the drain thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "drain/device_feed.hpp"
#include "fingerprint/device_tensors.hpp"
#include "fingerprint/occurrences.hpp"
#include "plumb/profiler.hpp"
#include "record/tensor_sink.hpp"

namespace plumb::fingerprint {

class TensorWatch final : public record::TensorSink, public drain::DeviceFeed {
  public:
    /// `diagnose` is told one sentence when something is not finite for the first time, or cannot be checked or kept.
    TensorWatch(const TensorConfig& config, std::vector<std::unique_ptr<DeviceTensors>> devices,
                std::function<void(const std::string&)> diagnose);

    void take(const record::TensorCall& call) noexcept override;
    void collect(drain::FeedRound& round) override;
    [[nodiscard]] std::uint64_t unresolved() const noexcept override;
    [[nodiscard]] std::uint64_t dropped_checks() const noexcept override;

    /// What was looked at, for the recording's description.
    [[nodiscard]] std::string summary() const;
    /// Tensors with NaN or Inf so far.
    [[nodiscard]] std::uint64_t nonfinite() const noexcept { return nonfinite_.load(std::memory_order_relaxed); }

  private:
    struct Number {
        std::uint64_t order = 0;
        std::uint32_t occurrence = 0;
    };
    /// A finite input: what it was, not where it lies.
    struct Input {
        recording::TensorCheck check;
        bool spent = false; // its call has an output: the next input begins another call
        bool taken = false; // recorded
    };
    using Checks = std::vector<recording::TensorCheck>;

    [[nodiscard]] bool chosen(const record::TensorCall& call) const noexcept;
    [[nodiscard]] Number number(const record::TensorCall& call);
    [[nodiscard]] Number number_locked(const record::TensorCall& call); // REQUIRES: mutex_
    /// All but the fingerprint, into `check`, whose memory is used again.
    static void label(recording::TensorCheck& check, const record::TensorCall& call, const Tensor& tensor,
                      Number number);
    [[nodiscard]] static recording::TensorCheck labelled(const record::TensorCall& call, const Tensor& tensor,
                                                         Number number);
    void check_on_host(const record::TensorCall& call);
    void look_for_nonfinite(const record::TensorCall& call);
    void keep_nonfinite(Checks&& of_device, Checks& to);                       // those, and what went into them
    void remember_input(recording::TensorCheck&& input);                       // REQUIRES: mutex_
    void spend_inputs_of(const recording::TensorCheck& output, Checks* taken); // REQUIRES: mutex_
    void refuse(const record::TensorCall& call, const std::string& why);
    void put(recording::TensorCheck&& check);
    void say_nonfinite(const recording::TensorCheck& check);
    void say_once(std::atomic<bool>& said, const std::string& sentence);
    void dump(const record::TensorCall& call, const recording::TensorCheck& check);

    TensorConfig config_;            // never changes
    std::set<std::uint16_t> bricks_; // empty: all
    std::vector<std::unique_ptr<DeviceTensors>> devices_;
    std::function<void(const std::string&)> diagnose_;
    Name own_name_; // of the scope that says what checking costs
    const std::uint64_t first_order_;

    std::atomic<std::uint64_t> looked_{0};
    std::atomic<std::uint64_t> nonfinite_{0};
    std::atomic<std::uint64_t> dropped_{0};
    std::atomic<std::uint64_t> not_kept_{0}; // of dump=: their files were there already
    std::atomic<bool> said_not_kept_{false};
    std::atomic<bool> said_nonfinite_{false};
    std::atomic<bool> said_failure_{false};
    std::atomic<bool> dumping_{false};

    mutable std::mutex mutex_; // guards what follows
    Occurrences occurrences_;
    std::vector<Input> inputs_;                 // last inputs seen, of tensors=nonfinite
    std::vector<recording::TensorCheck> done_;  // not collected yet
    std::vector<recording::TensorCheck> spare_; // collected: memory that the next ones take instead of asking for it
};

} // namespace plumb::fingerprint
