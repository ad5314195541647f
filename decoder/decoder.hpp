// SPDX-License-Identifier: Apache-2.0
// The reference decoder: a GGUF model that runs, profiled by the Recorder it is given. For the command line, tests and
// benchmarks. Owns the mapped file, the backend and all memory; one thread at a time.
// A batch is several sequences that decode together: each has its own prompt, and each step takes one token of every one.
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
#include "decoder/kernels/choose.hpp"
#include "decoder/model/state.hpp"
#include "decoder/model/step.hpp"
#include "decoder/model_maker/maker.hpp"
#include "decoder/sampling/sampler.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

inline constexpr std::size_t largest_context = std::size_t{1} << 22;

struct Options {
    std::string backend = "cpu";      // "opencl" is its first device, "opencl:1" its second; "cuda" likewise
    Graphs graphs = Graphs::off;      // of the cuda backend
    bool programmatic_launch = false; // likewise: a kernel may be launched while the one before it ends
    bool kernel_stamps = false;       // likewise: kernels write down when they ran; each step then waits for its end
    int threads = 0;                  // 0: every core this process may use
    std::size_t context = 2048;       // positions of the kv cache
    std::size_t chunk = 128;          // prompt tokens of one prefill step
    std::size_t batch = 1;            // sequences
    bool widen_bf16 = false;          // f32 arithmetic on bf16 weights, also where the processor has bf16 products
    SamplingOptions sampling;
    std::vector<std::int32_t> stop_tokens; // a sequence ends behind the first of them, until it is given a prompt again
    const std::atomic<bool>* stop = nullptr; // looked at before each step and while loading; set it to end early
    std::function<void(std::uint64_t done, std::uint64_t total)> loading; // called with the file's bytes
    BackendFunction device = make_backend;
    StepFunction step = run_step; // run_step_compiled_out: the same without profiling
};

class Decoder {
  public:
    /// Called after each step with the positions done so far; prefill counts prompt tokens, decode counts steps.
    using Progress = std::function<void(std::size_t done, std::size_t total)>;

    /// Errors: whatever the file, its config or its tensors are refused for; invalid_argument; out_of_memory; failed
    /// (stopped).
    static Result<Decoder> load(const std::string& path, const Options& options = {});
    /// The same of a model whose matrices the device makes. Errors: also unsupported (the backend cannot).
    static Result<Decoder> load(UnwrittenModel model, const Options& options);

    /// Whether prefill() would take the prompt and decode() so many steps behind it; computes nothing. Errors: those of prefill().
    [[nodiscard]] Status check(std::span<const std::int32_t> tokens, std::size_t steps, std::size_t sequence = 0) const;
    /// Feeds a prompt in chunks to one sequence. Errors: invalid_argument (no such sequence, no token, a token outside
    /// the vocabulary, no room). A stop leaves what was fed so far.
    [[nodiscard]] Status prefill(std::span<const std::int32_t> tokens, Recorder& profiler,
                                 const Progress& progress = {}, std::size_t sequence = 0);
    /// Feeds back the last token of every sequence, `steps` times. Returns the steps done: fewer after a stop, or once
    /// every sequence has come to a stop token; one that has gets no more tokens. Errors: invalid_argument (a sequence was fed nothing before, no room).
    [[nodiscard]] Result<std::size_t> decode(std::size_t steps, Recorder& profiler, const Progress& progress = {});

    /// Every token sampled since the prompt, in order.
    [[nodiscard]] const std::vector<std::int32_t>& tokens(std::size_t sequence = 0) const noexcept {
        return tokens_[sequence];
    }
    /// Of the last position fed.
    [[nodiscard]] std::span<const float> logits(std::size_t sequence = 0) const noexcept; // waits for the device
    [[nodiscard]] std::size_t position(std::size_t sequence = 0) const noexcept { return state_->used[sequence]; }
    /// Who times what is inside replays of captured steps (Options::graphs); null: nobody. Must be taken back before it ends.
    void profile_replays(Profiler* profiler) noexcept { backend_->profile_replays(profiler); }
    /// Forgets the prompts, the tokens and the random sequences.
    void reset() noexcept;

    [[nodiscard]] std::size_t vocabulary() const noexcept { return state_->weights.vocabulary(); }
    [[nodiscard]] const ModelConfig& config() const noexcept { return state_->config; }
    [[nodiscard]] const Weights& weights() const noexcept { return state_->weights; }
    [[nodiscard]] const ComputeBackend& backend() const noexcept { return *backend_; }
    /// Keys and values that say in a recording what ran: model, device, layers.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> description() const;

    /// `count` ids below the vocabulary that depend on the seed alone.
    [[nodiscard]] std::vector<std::int32_t> random_prompt(std::size_t count, std::uint64_t seed) const;

  private:
    Decoder() = default;
    [[nodiscard]] Status start(gguf::File file, RandomWeights random, const Options& options);
    [[nodiscard]] bool stopped() const noexcept;
    [[nodiscard]] bool finished() const noexcept; // every sequence has come to a stop token
    void add_token(std::size_t sequence, std::int32_t token);
    [[nodiscard]] Status check_steps(std::size_t steps, std::size_t used) const;

    Options options_;
    std::unique_ptr<gguf::File> file_;        // the weights point into it
    std::unique_ptr<ComputeBackend> backend_; // the state's memory is its
    std::unique_ptr<State> state_;
    std::vector<Sampler> samplers_;                 // one for each sequence
    std::vector<std::vector<std::int32_t>> tokens_; // likewise
    std::vector<std::int32_t> next_;                // the last of each
    std::vector<bool> ended_;                       // those that came to a stop token
};

} // namespace plumb::decoder
