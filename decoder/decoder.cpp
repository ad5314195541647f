// SPDX-License-Identifier: Apache-2.0
#include "decoder/decoder.hpp"

#include <algorithm>

#include "decoder/kernels/choose.hpp"
#include "decoder/sampling/random.hpp"

namespace plumb::decoder {
namespace {

/// The backend's hold on the calling thread, for the length of a call.
class Entered {
  public:
    explicit Entered(Backend& backend, Recorder* observer = nullptr) : backend_(backend) {
        backend_.enter();
        backend_.observe(observer);
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() {
        backend_.observe(nullptr);
        backend_.leave();
    }

  private:
    Backend& backend_;
};

constexpr std::size_t largest_context = std::size_t{1} << 22;
constexpr std::size_t largest_chunk = 4096;

Status check_options(const Options& options) {
    if (options.context == 0 || options.context > largest_context)
        return Error{ErrorCode::invalid_argument, "--ctx must lie between 1 and " + std::to_string(largest_context)};
    if (options.chunk == 0 || options.chunk > largest_chunk)
        return Error{ErrorCode::invalid_argument, "--chunk must lie between 1 and " + std::to_string(largest_chunk)};
    return {};
}

std::string type_word(Type type) { return type == Type::bf16 ? "bf16" : "f32"; }

} // namespace

Result<Decoder> Decoder::load(const std::string& path, const Options& options) {
    if (Status status = check_options(options); !status)
        return status.error();
    Result<gguf::File> file = gguf::File::open(path);
    if (!file)
        return file.error();
    Decoder out;
    out.options_ = options;
    out.file_ = std::make_unique<gguf::File>(std::move(*file));
    Result<ModelConfig> config = read_config(*out.file_);
    if (!config)
        return config.error();
    Result<Weights> weights = read_weights(*out.file_, *config);
    if (!weights)
        return weights.error();
    Result<Sampler> sampler = Sampler::make(options.sampling, weights->vocabulary());
    if (!sampler)
        return sampler.error();
    Result<std::unique_ptr<Backend>> backend = make_backend(options.backend, {options.threads, options.widen_bf16});
    if (!backend)
        return backend.error();
    out.backend_ = std::move(*backend);
    out.sampler_ = std::make_unique<Sampler>(std::move(*sampler));
    const Entered entered(*out.backend_);
    Result<State> state = make_state(std::move(*config), std::move(*weights), *out.backend_, options.context,
                                     std::min(options.chunk, options.context));
    if (!state)
        return state.error();
    out.state_ = std::make_unique<State>(std::move(*state));
    out.tokens_.reserve(options.context + 1);
    out.file_->map().prefault();
    return out;
}

bool Decoder::stopped() const noexcept {
    // Relaxed: one step more or less does not matter.
    return options_.stop && options_.stop->load(std::memory_order_relaxed);
}

bool Decoder::finished() const noexcept {
    return !tokens_.empty() && std::find(options_.stop_tokens.begin(), options_.stop_tokens.end(), tokens_.back()) !=
                                   options_.stop_tokens.end();
}

void Decoder::add_token(std::int32_t token) {
    tokens_.push_back(token);
    sampler_->said(token);
}

Status Decoder::check_prompt(std::span<const std::int32_t> tokens) const {
    if (tokens.empty())
        return Error{ErrorCode::invalid_argument, "the prompt is empty; give at least one token"};
    if (tokens.size() > state_->context - state_->used)
        return Error{ErrorCode::invalid_argument, "the prompt of " + std::to_string(tokens.size()) +
                                                      " tokens does not fit the cache of " +
                                                      std::to_string(state_->context) + "; use a larger --ctx"};
    for (const std::int32_t token : tokens)
        if (token < 0 || static_cast<std::size_t>(token) >= vocabulary())
            return Error{ErrorCode::invalid_argument, "token " + std::to_string(token) + " is not one of the model's " +
                                                          std::to_string(vocabulary()) + "; use ids from 0 to " +
                                                          std::to_string(vocabulary() - 1)};
    return {};
}

Status Decoder::prefill(std::span<const std::int32_t> tokens, Recorder& profiler, const Progress& progress) {
    if (Status status = check_prompt(tokens); !status)
        return status;
    const Entered entered(*backend_, &profiler);
    const std::size_t tail = tokens.size() % state_->chunk;
    if (tail != 0)
        if (Status status = state_->prepare(tail); !status)
            return status;
    for (std::size_t done = 0; done < tokens.size() && !stopped();) {
        const std::size_t count = std::min(state_->chunk, tokens.size() - done);
        const bool last = done + count == tokens.size();
        for (const std::int32_t token : tokens.subspan(done, count))
            sampler_->said(token);
        const StepInput input{tokens.subspan(done, count), Phase::prefill, last ? sampler_.get() : nullptr};
        const std::int32_t token = options_.step(*state_, input, profiler);
        if (last)
            add_token(token);
        if (Status status = backend_->status(); !status)
            return status;
        done += count;
        if (progress)
            progress(done, tokens.size());
    }
    return {};
}

Result<std::size_t> Decoder::decode(std::size_t steps, Recorder& profiler, const Progress& progress) {
    if (tokens_.empty()) {
        if (stopped())
            return std::size_t{0};
        return Error{ErrorCode::invalid_argument, "there is nothing to go on from; feed a prompt first"};
    }
    if (steps > state_->context - state_->used)
        return Error{ErrorCode::invalid_argument, std::to_string(steps) + " steps after " +
                                                      std::to_string(state_->used) +
                                                      " positions do not fit the cache of " +
                                                      std::to_string(state_->context) + "; use a larger --ctx"};
    const Entered entered(*backend_, &profiler);
    for (std::size_t done = 0; done < steps; ++done) {
        if (stopped() || finished())
            return done;
        const StepInput input{{&tokens_.back(), 1}, Phase::decode, sampler_.get()};
        add_token(options_.step(*state_, input, profiler));
        if (Status status = backend_->status(); !status)
            return status.error();
        if (progress)
            progress(done + 1, steps);
    }
    return steps;
}

std::span<const float> Decoder::logits() const noexcept { return backend_->read(state_->logits); }

void Decoder::reset() noexcept {
    state_->used = 0;
    tokens_.clear();
    sampler_->restart();
}

std::vector<std::pair<std::string, std::string>> Decoder::description() const {
    const ModelConfig& shape = state_->config;
    return {{"model", shape.name + " " + type_word(state_->weights.type)},
            {"device", backend_->description()},
            {"layers", std::to_string(shape.layers)}};
}

std::vector<std::int32_t> Decoder::random_prompt(std::size_t count, std::uint64_t seed) const {
    const std::uint64_t key = stream_key(seed, "prompt");
    std::vector<std::int32_t> out(count);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = static_cast<std::int32_t>(random_bits(key, i) % vocabulary());
    return out;
}

} // namespace plumb::decoder
