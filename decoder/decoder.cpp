// SPDX-License-Identifier: Apache-2.0
#include "decoder/decoder.hpp"

#include <algorithm>

#include "decoder/sampling/random.hpp"

namespace plumb::decoder {
namespace {

/// The backend's hold on the calling thread, for the length of a call.
class Entered {
  public:
    explicit Entered(ComputeBackend& backend, Recorder* observer = nullptr) : backend_(backend) {
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
    ComputeBackend& backend_;
};

constexpr std::size_t largest_chunk = 4096;
constexpr std::size_t largest_batch = 1024;

Status check_options(const Options& options) {
    if (options.context == 0 || options.context > largest_context) {
        return Error{ErrorCode::invalid_argument, "--ctx must lie between 1 and " + std::to_string(largest_context)};
    }
    if (options.chunk == 0 || options.chunk > largest_chunk) {
        return Error{ErrorCode::invalid_argument, "--chunk must lie between 1 and " + std::to_string(largest_chunk)};
    }
    if (options.batch == 0 || options.batch > largest_batch) {
        return Error{ErrorCode::invalid_argument, "--batch must lie between 1 and " + std::to_string(largest_batch)};
    }
    if (options.kernel_stamps && options.graphs == Graphs::verify) {
        return Error{ErrorCode::invalid_argument,
                     "--kernel-stamps cannot go with --graphs verify, which runs every kernel "
                     "twice; say --graphs on or off"};
    }
    return {};
}

/// One for each sequence, so that they do not draw the same. Errors: invalid_argument.
Result<std::vector<Sampler>> make_samplers(SamplingOptions options, std::size_t vocabulary, std::size_t batch) {
    std::vector<Sampler> out;
    for (std::size_t i = 0; i < batch; ++i, ++options.seed) {
        Result<Sampler> sampler = Sampler::make(options, vocabulary);
        if (!sampler) {
            return sampler.error();
        }
        out.push_back(std::move(*sampler));
    }
    return out;
}

} // namespace

Result<Decoder> Decoder::load(const std::string& path, const Options& options) {
    if (Status status = check_options(options); !status) {
        return status.error();
    }
    Result<gguf::File> file = gguf::File::open(path);
    if (!file) {
        return file.error();
    }
    Decoder out;
    if (Status status = out.start(std::move(*file), {}, options); !status) {
        return status.error();
    }
    const gguf::FileMap& map = out.file_->map();
    map.prefault([&](std::size_t done) {
        if (options.loading) {
            options.loading(done, map.bytes().size());
        }
        return !out.stopped();
    });
    if (out.stopped()) {
        return Error{ErrorCode::failed, path + ": loading was interrupted and nothing was run; start again"};
    }
    return out;
}

Result<Decoder> Decoder::load(UnwrittenModel model, const Options& options) {
    if (Status status = check_options(options); !status) {
        return status.error();
    }
    Decoder out;
    if (Status status = out.start(std::move(model.file), std::move(model.matrices), options); !status) {
        return status.error();
    }
    return out;
}

Status Decoder::start(gguf::File file, RandomWeights random, const Options& options) {
    options_ = options;
    options_.loading = {}; // of no use later, and what it refers to may be gone
    file_ = std::make_unique<gguf::File>(std::move(file));
    Result<ModelConfig> config = read_config(*file_);
    if (!config) {
        return config.error();
    }
    Result<Weights> weights = read_weights(*file_, *config);
    if (!weights) {
        return weights.error();
    }
    Result<std::vector<Sampler>> samplers = make_samplers(options.sampling, weights->vocabulary(), options.batch);
    if (!samplers) {
        return samplers.error();
    }
    Result<std::unique_ptr<ComputeBackend>> backend =
        options.device(options.backend, {options.threads, options.widen_bf16}, options.graphs);
    if (!backend) {
        return backend.error();
    }
    backend_ = std::move(*backend);
    if (options.programmatic_launch) {
        if (Status status = backend_->launch_programmatically(); !status) {
            return status;
        }
    }
    samplers_ = std::move(*samplers);
    const Entered entered(*backend_);
    if (Status status = random.empty() ? Status{} : backend_->make_weights(std::move(random)); !status) {
        return status;
    }
    if (Status status = options.kernel_stamps ? backend_->stamp_kernels() : Status{}; !status) {
        return status;
    }
    Result<State> state = make_state(std::move(*config), std::move(*weights), *backend_, options.context,
                                     std::min(options.chunk, options.context), options.batch);
    if (!state) {
        return state.error();
    }
    state_ = std::make_unique<State>(std::move(*state));
    tokens_.resize(options.batch);
    for (std::vector<std::int32_t>& tokens : tokens_) {
        tokens.reserve(options.context + 1);
    }
    next_.resize(options.batch);
    ended_.resize(options.batch);
    return {};
}

bool Decoder::stopped() const noexcept {
    // Relaxed: one step more or less does not matter.
    return options_.stop && options_.stop->load(std::memory_order_relaxed);
}

bool Decoder::finished() const noexcept {
    return !ended_.empty() && std::find(ended_.begin(), ended_.end(), false) == ended_.end();
}

void Decoder::add_token(std::size_t sequence, std::int32_t token) {
    if (ended_[sequence]) { // it only keeps the others of its batch company
        return;
    }
    tokens_[sequence].push_back(token);
    samplers_[sequence].said(token);
    if (std::find(options_.stop_tokens.begin(), options_.stop_tokens.end(), token) != options_.stop_tokens.end()) {
        ended_[sequence] = true;
    }
}

Status Decoder::check_steps(std::size_t steps, std::size_t used) const {
    if (steps > state_->context - used) {
        return Error{ErrorCode::invalid_argument, std::to_string(steps) + " steps after " + std::to_string(used) +
                                                      " positions do not fit the cache of " +
                                                      std::to_string(state_->context) + "; use a larger --ctx"};
    }
    return {};
}

Status Decoder::check(std::span<const std::int32_t> tokens, std::size_t steps, std::size_t sequence) const {
    if (sequence >= state_->batch) {
        return Error{ErrorCode::invalid_argument, "there is no sequence " + std::to_string(sequence) +
                                                      " in a batch of " + std::to_string(state_->batch) +
                                                      "; use a larger --batch"};
    }
    if (tokens.empty()) {
        return Error{ErrorCode::invalid_argument, "the prompt is empty; give at least one token"};
    }
    if (tokens.size() > state_->context - state_->used[sequence]) {
        return Error{ErrorCode::invalid_argument, "the prompt of " + std::to_string(tokens.size()) +
                                                      " tokens does not fit the cache of " +
                                                      std::to_string(state_->context) + "; use a larger --ctx"};
    }
    for (const std::int32_t token : tokens) {
        if (token < 0 || static_cast<std::size_t>(token) >= vocabulary()) {
            return Error{ErrorCode::invalid_argument, "token " + std::to_string(token) + " is not one of the model's " +
                                                          std::to_string(vocabulary()) + "; use ids from 0 to " +
                                                          std::to_string(vocabulary() - 1)};
        }
    }
    return check_steps(steps, state_->used[sequence] + tokens.size());
}

Status Decoder::prefill(std::span<const std::int32_t> tokens, Recorder& profiler, const Progress& progress,
                        std::size_t sequence) {
    if (Status status = check(tokens, 0, sequence); !status) {
        return status;
    }
    ended_[sequence] = false;
    const Entered entered(*backend_, &profiler);
    const std::size_t tail = tokens.size() % state_->chunk;
    if (tail != 0) {
        if (Status status = state_->prepare(tail); !status) {
            return status;
        }
    }
    for (std::size_t done = 0; done < tokens.size() && !stopped();) {
        const std::size_t count = std::min(state_->chunk, tokens.size() - done);
        const bool last = done + count == tokens.size();
        for (const std::int32_t token : tokens.subspan(done, count)) {
            samplers_[sequence].said(token);
        }
        const StepInput input{tokens.subspan(done, count), Phase::prefill, last ? &samplers_[sequence] : nullptr,
                              sequence, 1};
        options_.step(*state_, input, profiler);
        if (Status status = backend_->status(); !status) {
            return status;
        }
        if (last) {
            add_token(sequence, state_->sampled[sequence]);
        }
        done += count;
        if (progress) {
            progress(done, tokens.size());
        }
    }
    return {};
}

Result<std::size_t> Decoder::decode(std::size_t steps, Recorder& profiler, const Progress& progress) {
    for (const std::vector<std::int32_t>& tokens : tokens_) {
        if (tokens.empty()) {
            if (stopped()) {
                return std::size_t{0};
            }
            return Error{ErrorCode::invalid_argument, "there is nothing to go on from; feed a prompt first"};
        }
    }
    const std::size_t used = *std::max_element(state_->used.begin(), state_->used.end());
    if (Status status = check_steps(steps, used); !status) {
        return status.error();
    }
    const Entered entered(*backend_, &profiler);
    for (std::size_t done = 0; done < steps; ++done) {
        if (stopped() || finished()) {
            return done;
        }
        for (std::size_t i = 0; i < next_.size(); ++i) {
            next_[i] = tokens_[i].back();
        }
        options_.step(*state_, {next_, Phase::decode, samplers_.data(), 0, next_.size()}, profiler);
        if (Status status = backend_->status(); !status) {
            return status.error();
        }
        for (std::size_t i = 0; i < next_.size(); ++i) {
            add_token(i, state_->sampled[i]);
        }
        if (progress) {
            progress(done + 1, steps);
        }
    }
    return steps;
}

std::span<const float> Decoder::logits(std::size_t sequence) const noexcept {
    const Block& all = state_->logits;
    const Entered entered(*backend_);
    return backend_->read({all.f32() + sequence * all.cols, Type::f32, 1, all.cols});
}

void Decoder::reset() noexcept {
    std::fill(state_->used.begin(), state_->used.end(), std::size_t{0});
    for (std::vector<std::int32_t>& tokens : tokens_) {
        tokens.clear();
    }
    for (Sampler& sampler : samplers_) {
        sampler.restart();
    }
    ended_.assign(ended_.size(), false);
}

std::vector<std::pair<std::string, std::string>> Decoder::description() const {
    const ModelConfig& shape = state_->config;
    return {{"model", shape.name + " " + std::string(layout_of(state_->weights.type).word)},
            {"device", backend_->description()},
            {"layers", std::to_string(shape.layers)}};
}

std::vector<std::int32_t> Decoder::random_prompt(std::size_t count, std::uint64_t seed) const {
    const std::uint64_t key = stream_key(seed, "prompt");
    std::vector<std::int32_t> out(count);
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = static_cast<std::int32_t>(random_bits(key, i) % vocabulary());
    }
    return out;
}

} // namespace plumb::decoder
