// SPDX-License-Identifier: Apache-2.0
// The reference decoder: a GGUF model that runs, profiled by the Recorder it is given. For the command line, tests and
// benchmarks. Owns the mapped file, the backend and all memory; one thread at a time.
// prefill() and decode() are made of steps; the first token after a prompt is sampled by the prompt's last step, so
// that n decode steps after a prefill leave n + 1 new tokens, the last of them not fed back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decoder/gguf/reader.hpp"
#include "decoder/kernels/backend.hpp"
#include "decoder/model/state.hpp"
#include "decoder/model/step.hpp"
#include "decoder/sampling/sampler.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

struct Options {
    std::string backend = "cpu"; // "opencl" is its first device, "opencl:1" its second
    int threads = 0;             // 0: every core this process may use
    std::size_t context = 2048;  // positions of the kv cache
    std::size_t chunk = 64;      // prompt tokens of one prefill step
    bool widen_bf16 = false;     // f32 arithmetic on bf16 weights, also where the processor has bf16 products
    SamplingOptions sampling;
    std::vector<std::int32_t> stop_tokens;   // decode() ends behind the first of them
    const std::atomic<bool>* stop = nullptr; // looked at before each step; set it to end early
    StepFunction step = run_step;            // run_step_compiled_out: the same without profiling
};

class Decoder {
  public:
    /// Called after each step with the positions done so far; prefill counts prompt tokens, decode counts steps.
    using Progress = std::function<void(std::size_t done, std::size_t total)>;

    /// Errors: whatever the file, its config or its tensors are refused for; invalid_argument; out_of_memory.
    static Result<Decoder> load(const std::string& path, const Options& options = {});

    /// Feeds a prompt in chunks. Errors: invalid_argument (no token, a token outside the vocabulary, no room).
    /// A stop leaves what was fed so far.
    [[nodiscard]] Status prefill(std::span<const std::int32_t> tokens, Recorder& profiler,
                                 const Progress& progress = {});
    /// Feeds back the last token, `steps` times. Returns the steps done: fewer after a stop or a stop token.
    /// Errors: invalid_argument (nothing was fed before, no room).
    [[nodiscard]] Result<std::size_t> decode(std::size_t steps, Recorder& profiler, const Progress& progress = {});

    /// Every token sampled since the prompt, in order.
    [[nodiscard]] const std::vector<std::int32_t>& tokens() const noexcept { return tokens_; }
    /// Of the last position fed.
    [[nodiscard]] std::span<const float> logits() const noexcept; // waits for the device
    [[nodiscard]] std::size_t position() const noexcept { return state_->used; }
    /// Forgets the prompt, the tokens and the random sequence.
    void reset() noexcept;

    [[nodiscard]] std::size_t vocabulary() const noexcept { return state_->weights.vocabulary(); }
    [[nodiscard]] const ModelConfig& config() const noexcept { return state_->config; }
    [[nodiscard]] const Weights& weights() const noexcept { return state_->weights; }
    [[nodiscard]] const Backend& backend() const noexcept { return *backend_; }
    /// Keys and values that say in a recording what ran: model, device, layers.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> description() const;

    /// `count` ids below the vocabulary that depend on the seed alone.
    [[nodiscard]] std::vector<std::int32_t> random_prompt(std::size_t count, std::uint64_t seed) const;

  private:
    Decoder() = default;
    [[nodiscard]] bool stopped() const noexcept;
    [[nodiscard]] bool finished() const noexcept; // the last token is one that stops
    void add_token(std::int32_t token);
    [[nodiscard]] Status check_prompt(std::span<const std::int32_t> tokens) const;

    Options options_;
    std::unique_ptr<gguf::File> file_; // the weights point into it
    std::unique_ptr<Backend> backend_; // the state's memory is its
    std::unique_ptr<State> state_;
    std::unique_ptr<Sampler> sampler_;
    std::vector<std::int32_t> tokens_;
};

} // namespace plumb::decoder
