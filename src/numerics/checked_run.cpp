// SPDX-License-Identifier: Apache-2.0
#include "numerics/checked_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace plumb::numerics {
namespace {

constexpr std::int64_t last_position = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t most_position = std::int64_t{1} << 40; // of a token; what is beyond is no position
constexpr std::uint32_t furthest_input = 4096;                // entries before the output that it went into

std::size_t bytes_of(const RunCheck& check) {
    return sizeof check + check.check.shape.capacity() * sizeof check.check.shape[0] +
           check.check.fingerprint.sketch.capacity() * sizeof check.check.fingerprint.sketch[0];
}

std::int64_t end_of(const recording::TensorCheck& check) {
    const std::uint64_t rows = std::min(rows_of(check), static_cast<std::uint64_t>(last_position));
    return std::min(check.position, last_position) + static_cast<std::int64_t>(rows);
}

class Steps {
  public:
    explicit Steps(std::vector<RunStep>& steps) : steps_(steps) {}

    std::uint32_t index_of(const recording::TensorCheck& check) {
        const auto [found, fresh] =
            numbers_.try_emplace({check.step_plus_one, check.sequence}, static_cast<std::uint32_t>(steps_.size()));
        if (fresh) {
            RunStep step;
            step.step_plus_one = check.step_plus_one;
            step.sequence = check.sequence;
            step.phase = check.phase;
            step.ordinal = ordinals_[{check.phase, check.sequence}]++;
            steps_.push_back(step);
        }
        RunStep& step = steps_[found->second];
        if (check.position >= 0 && check.step_plus_one != 0) {
            step.begin = step.begin < 0 ? check.position : std::min(step.begin, check.position);
            step.end = std::max(step.end, end_of(check));
        }
        return found->second;
    }

    void count_passes() {
        std::map<std::uint32_t, std::pair<std::int64_t, std::uint32_t>> seen; // by sequence: last begin, pass
        for (RunStep& step : steps_) {
            auto& [last, pass] = seen.try_emplace(step.sequence, -1, 0).first->second;
            if (step.begin >= 0) {
                pass += step.begin <= last ? 1 : 0;
                last = step.begin;
            }
            step.pass = pass;
        }
    }

  private:
    std::vector<RunStep>& steps_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> numbers_;
    std::map<std::pair<Phase, std::uint32_t>, std::uint32_t> ordinals_;
};

/// What the records say of a step's tokens.
struct SaidTokens {
    std::uint64_t tokens = 0, sequences = 0, kv_length = 0;
};

Status read_tokens(const recording::RecordedRun& source, std::map<std::uint64_t, SaidTokens>& by_step_plus_one) {
    std::map<std::uint32_t, SaidTokens*> begun; // by track: the last step, whose values follow; null: of no interest
    return source.for_each_batch([&](const recording::RecordBatch& batch) {
        SaidTokens*& step = begun[batch.track];
        for (std::size_t i = 0; i < batch.count; ++i) {
            const Record& record = batch.records[i];
            if (kind_of(record) == RecordKind::step_begin) {
                const auto found = by_step_plus_one.find(payload_of(record) + 1);
                step = found == by_step_plus_one.end() ? nullptr : &found->second;
            } else if (kind_of(record) == RecordKind::step_value && step != nullptr) {
                const auto which = static_cast<StepValue>(id_of(record));
                if (which == StepValue::prefill_tokens || which == StepValue::decode_tokens) {
                    step->tokens += record.first;
                } else if (which == StepValue::sequences) {
                    step->sequences = record.first;
                } else if (which == StepValue::kv_length) {
                    step->kv_length = record.first;
                }
            }
        }
        return true;
    });
}

/// Checks may be of some rows of a prefill step alone. Its records say how far it reaches, and where its logits lie, which
/// are of its last rows, whatever position they were given for want of one.
Status widen_prefill(const recording::RecordedRun& source, CheckedRun& run) {
    std::map<std::uint64_t, SaidTokens> said;
    for (const RunStep& step : run.steps) {
        if (step.phase == Phase::prefill && step.begin >= 0) {
            said.try_emplace(step.step_plus_one);
        }
    }
    if (said.empty() || source.for_each_batch == nullptr) {
        return {};
    }
    if (Status read = read_tokens(source, said); !read.ok()) {
        return read;
    }
    std::vector<bool> widened(run.steps.size());
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
        RunStep& step = run.steps[i];
        const auto found = said.find(step.step_plus_one);
        if (step.phase != Phase::prefill || step.begin < 0 || found == said.end()) {
            continue;
        }
        const SaidTokens& of = found->second;
        if (of.sequences > 1 || of.kv_length > most_position || of.tokens > of.kv_length) {
            continue;
        }
        const auto end = static_cast<std::int64_t>(of.kv_length);
        const std::int64_t begin = end - static_cast<std::int64_t>(of.tokens);
        if (begin <= step.begin && step.end <= end) {
            step.begin = begin;
            step.end = end;
            widened[i] = true;
        }
    }
    for (RunCheck& check : run.checks) {
        const RunStep& step = run.steps[check.step];
        if (widened[check.step] && check.check.argmax != no_index && check.check.position == step.begin) {
            check.check.position = step.end - static_cast<std::int64_t>(rows_of(check.check));
        }
    }
    return {};
}

} // namespace

std::uint32_t BrickTable::number_of(const std::string& name) {
    const auto [found, fresh] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (fresh) {
        names_.push_back(name);
    }
    return found->second;
}

std::uint64_t rows_of(const recording::TensorCheck& check) noexcept {
    return check.shape.size() < 2 ? 1 : check.shape.front();
}

namespace {

std::string name_of(std::uint16_t id, const recording::RunFacts& facts) {
    const auto found = std::find_if(facts.names.begin(), facts.names.end(),
                                    [id](const recording::NameInfo& name) { return name.id == id; });
    return found == facts.names.end() || found->name.empty() ? "name " + std::to_string(id) : found->name;
}

} // namespace

Result<CheckedRun> load_run(const recording::RecordedRun& source, BrickTable& bricks, std::size_t most,
                            std::size_t most_bytes) {
    CheckedRun run;
    std::map<std::uint16_t, std::uint32_t> numbers;
    bool too_many = false;
    bool too_large = false;
    std::size_t bytes = 0;
    const Status read = source.for_each_check([&](recording::TensorCheck&& check) {
        if (run.checks.size() == most) {
            too_many = true;
            return false;
        }
        auto number = numbers.find(check.name);
        if (number == numbers.end()) {
            number = numbers.emplace(check.name, bricks.number_of(name_of(check.name, *source.facts))).first;
        }
        if (check.position < -1 || check.position > most_position) {
            check.position = -1;
        }
        run.checks.push_back({std::move(check), number->second, 0});
        bytes += bytes_of(run.checks.back());
        too_large = bytes > most_bytes;
        return !too_large;
    });
    if (!read.ok()) {
        return read.error();
    }
    if (too_many) {
        return Error{ErrorCode::out_of_memory, "the recording holds more than " + std::to_string(most) +
                                                   " checks of tensors; record fewer, with every=, layers= or bricks="};
    }
    if (too_large) {
        return Error{ErrorCode::out_of_memory, "the checks of the recording take more than " +
                                                   std::to_string(most_bytes) +
                                                   " bytes; record fewer, with every=, layers= or bricks="};
    }
    std::stable_sort(run.checks.begin(), run.checks.end(),
                     [](const RunCheck& a, const RunCheck& b) { return a.check.order < b.check.order; });
    Steps steps(run.steps);
    for (RunCheck& check : run.checks) {
        check.step = steps.index_of(check.check);
    }
    if (Status widened = widen_prefill(source, run); !widened.ok()) {
        return widened.error();
    }
    steps.count_passes();
    return run;
}

TensorPlace place_of(const CheckedRun& run, const RunCheck& from, const BrickTable& bricks) {
    const recording::TensorCheck& check = from.check;
    TensorPlace place;
    if (check.step_plus_one != 0) {
        place.step = check.step_plus_one - 1;
    }
    place.phase = run.steps[from.step].phase;
    place.sequence = check.sequence;
    if (check.position >= 0) {
        place.position = check.position;
    }
    place.rows = rows_of(check);
    if (check.layer_plus_one != 0) {
        place.layer = check.layer_plus_one - 1;
    }
    place.brick = bricks.name(from.brick);
    place.role = check.role;
    place.occurrence = check.occurrence;
    return place;
}

TensorFacts facts_of(const recording::TensorCheck& check) noexcept {
    const Fingerprint& print = check.fingerprint;
    TensorFacts facts;
    facts.dtype = check.dtype;
    facts.count = print.count;
    facts.nans = print.nans;
    facts.positive_infs = print.positive_infs;
    facts.negative_infs = print.negative_infs;
    // A piece numbers its elements within the whole; a reader wants the place in this tensor.
    facts.first_nonfinite = print.first_nonfinite == no_index || print.first_nonfinite < check.first_index
                                ? print.first_nonfinite
                                : print.first_nonfinite - check.first_index;
    facts.largest = check.level == recording::CheckLevel::nonfinite
                        ? print.max
                        : std::max(std::fabs(print.min), std::fabs(print.max));
    return facts;
}

std::vector<std::uint32_t> inputs_of_call(const CheckedRun& run, std::uint32_t output) {
    const auto same_brick = [&run, output](std::uint32_t other) {
        return run.checks[other].brick == run.checks[output].brick &&
               run.checks[other].check.layer_plus_one == run.checks[output].check.layer_plus_one;
    };
    std::vector<std::uint32_t> inputs;
    const std::uint32_t furthest = output > furthest_input ? output - furthest_input : 0;
    for (std::uint32_t at = output; at-- > furthest;) {
        const RunCheck& before = run.checks[at];
        // Of another step, too: requests that are served at once leave their checks in between.
        if (before.step != run.checks[output].step || !same_brick(at)) {
            continue;
        }
        if (before.check.role == TensorRole::input) {
            inputs.push_back(at);
        } else if (!inputs.empty()) {
            break;
        }
    }
    std::reverse(inputs.begin(), inputs.end());
    return inputs;
}

} // namespace plumb::numerics
