// SPDX-License-Identifier: Apache-2.0
// For tests: runs made of tensors whose values are known, and fingerprints of them by a definition of their own (a linear
// sketch and a hash of all bits and places), for which pairing and verdicts must hold just as well. One thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "numerics/checked_run.hpp"

namespace plumb::numerics {

using Values = std::vector<double>;

inline std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

inline Fingerprint planted_fingerprint(const Values& values, std::uint64_t first_index = 0) {
    Fingerprint print;
    print.count = values.size();
    print.sketch.assign(default_buckets, 0);
    double largest = -1;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double x = values[i];
        const std::uint64_t key = mixed(first_index + i + 1);
        print.hash += mixed(std::bit_cast<std::uint64_t>(x) ^ key);
        if (!std::isfinite(x)) {
            print.nans += std::isnan(x) ? 1 : 0;
            print.positive_infs += x > 0 ? 1 : 0;
            print.negative_infs += x < 0 ? 1 : 0;
            print.first_nonfinite = print.finite() ? first_index + i : print.first_nonfinite;
            continue;
        }
        if (std::fabs(x) > largest) {
            largest = std::fabs(x);
            print.largest = first_index + i;
        }
        print.min = std::fmin(print.min, x);
        print.max = std::fmax(print.max, x);
        print.sum += x;
        print.sum_of_squares += x * x;
        print.sketch[key % default_buckets] += (key >> 40 & 1) != 0 ? -x : x;
    }
    return print;
}

/// Values of a tensor that depend on nothing but its name and place.
inline Values planted_values(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    Values values(count);
    for (double& value : values) {
        value = normal(random);
    }
    return values;
}

/// A run that is written down tensor by tensor.
class PlantedRun final {
  public:
    explicit PlantedRun(std::uint16_t first_id = 1) : next_id_(first_id) {}

    /// REQUIRES: this outlives it.
    operator recording::RecordedRun()
        const { // NOLINT(google-explicit-constructor): tests hand it to whatever reads runs
        recording::RecordedRun run;
        for (const auto& [name, id] : names_) {
            run.facts->names.push_back({id, Category::other, name});
        }
        run.for_each_check = [this](const std::function<bool(recording::TensorCheck&&)>& take) {
            for (const recording::TensorCheck& check : checks) {
                if (!take(recording::TensorCheck(check))) {
                    break;
                }
            }
            return Status();
        };
        run.for_each_batch = [this](const std::function<bool(const recording::RecordBatch&)>& take) {
            recording::RecordBatch batch;
            batch.records = records_.data();
            batch.count = tells_steps ? records_.size() : 0;
            (void)take(batch);
            return Status();
        };
        return run;
    }

    [[nodiscard]] std::string name_of(std::uint16_t id) const {
        for (const auto& [name, known] : names_) {
            if (known == id) {
                return name;
            }
        }
        return {};
    }

    /// What follows belongs to a new step.
    void step(Phase phase, std::int64_t position, std::size_t rows = 1, std::uint32_t sequence = 0) {
        ++step_;
        phase_ = phase;
        position_ = position;
        rows_ = rows;
        sequence_ = sequence;
        occurrences_.clear();
        const StepValue tokens = phase == Phase::prefill ? StepValue::prefill_tokens : StepValue::decode_tokens;
        const auto value = [this](StepValue which, std::uint64_t of) {
            records_.push_back({of, pack(RecordKind::step_value, static_cast<std::uint16_t>(which))});
        };
        records_.push_back({step_, pack(RecordKind::step_begin, static_cast<std::uint16_t>(phase), step_ - 1)});
        value(tokens, rows);
        if (position >= 0) {
            value(StepValue::kv_length, static_cast<std::uint64_t>(position) + rows);
        }
    }

    /// `values` are rows × columns; the last rows of the step where they are fewer.
    recording::TensorCheck& add(const std::string& brick, int layer, const Values& values, std::size_t rows,
                                TensorRole role = TensorRole::output, DType dtype = DType::f32) {
        recording::TensorCheck check;
        check.order = checks.size();
        check.step_plus_one = step_;
        check.layer_plus_one = static_cast<std::uint32_t>(layer + 1);
        if (names_.try_emplace(brick, next_id_).second) {
            ++next_id_;
        }
        check.name = names_[brick];
        check.phase = phase_;
        check.role = role;
        check.occurrence = occurrences_[{layer, brick, role}]++;
        check.sequence = sequence_;
        check.position = position_ < 0 ? -1 : position_ + static_cast<std::int64_t>(rows_ - rows);
        check.dtype = dtype;
        const std::size_t columns = rows == 0 ? 0 : values.size() / rows;
        check.shape = {rows, columns};
        check.first_index =
            phase_ == Phase::prefill && check.position >= 0 ? static_cast<std::uint64_t>(check.position) * columns : 0;
        check.fingerprint = planted_fingerprint(values, check.first_index);
        checks.push_back(std::move(check));
        return checks.back();
    }

    std::vector<recording::TensorCheck> checks;
    bool tells_steps = false; // whether it has the records of its steps

  private:
    std::map<std::string, std::uint16_t> names_;
    std::uint16_t next_id_;
    std::uint64_t step_ = 0;
    Phase phase_ = Phase::none;
    std::int64_t position_ = -1;
    std::size_t rows_ = 1;
    std::uint32_t sequence_ = 0;
    std::vector<Record> records_;
    std::map<std::tuple<int, std::string, TensorRole>, std::uint32_t> occurrences_;
};

/// What a small model computes at one token: columns values that depend on brick, layer, occurrence and position.
inline constexpr std::size_t planted_columns = 48;
inline constexpr int planted_layers = 4;

struct PlantedModel {
    double noise = 0; // relative, of every element: another order of adding up
    std::uint64_t noise_seed = 1;
    int fault_layer = -1; // whose attention output is wrong by `fault` from position `fault_position` on
    std::int64_t fault_position = 0;
    double fault = 0.1;
    DType dtype = DType::f32;
    std::size_t chunk = 16;
    std::uint32_t sequence = 0;
    bool positions = true;

    /// Rows of one tensor: the fault grows with each layer behind it.
    [[nodiscard]] Values rows(const std::string& brick, int layer, std::uint32_t occurrence, std::int64_t position,
                              std::size_t count, bool behind_fault) const {
        Values all;
        for (std::size_t row = 0; row < count; ++row) {
            const std::int64_t at = position + static_cast<std::int64_t>(row);
            const std::uint64_t seed = mixed(std::hash<std::string>{}(brick)) +
                                       static_cast<std::uint64_t>(layer) * 977 + occurrence * 131 +
                                       static_cast<std::uint64_t>(at) * 65537;
            Values values = planted_values(seed, planted_columns);
            std::mt19937_64 random(seed ^ mixed(noise_seed));
            std::normal_distribution<double> normal;
            const bool wrong = behind_fault && fault_layer >= 0 && at >= fault_position;
            for (double& value : values) {
                value +=
                    noise * value * normal(random) + (wrong ? fault * (1 + layer - fault_layer) * normal(random) : 0);
            }
            all.insert(all.end(), values.begin(), values.end());
        }
        return all;
    }

    void run_step(PlantedRun& run, Phase phase, std::int64_t position, std::size_t count) const {
        run.step(phase, positions ? position : -1, count, sequence);
        bool behind = false;
        const auto add = [&](const char* brick, int layer, std::uint32_t occurrence, TensorRole role) {
            run.add(brick, layer, rows(brick, layer, occurrence, position, count, behind), count, role, dtype);
        };
        for (int layer = 0; layer < planted_layers; ++layer) {
            add("rms_norm", layer, 0, TensorRole::output);
            add("attention", layer, 0, TensorRole::input);
            behind = behind || layer == fault_layer;
            add("attention", layer, 0, TensorRole::output);
            add("residual_add", layer, 0, TensorRole::output);
            add("rms_norm", layer, 1, TensorRole::output);
            add("residual_add", layer, 1, TensorRole::output);
        }
        recording::TensorCheck& head =
            run.add("lm_head", -1,
                    rows("lm_head", planted_layers, 0, position + static_cast<std::int64_t>(count) - 1, 1, behind), 1,
                    TensorRole::output, dtype);
        head.argmax = 7;
        head.margin = 0.5;
    }

    void run(PlantedRun& to, std::size_t prompt = 32, std::size_t decode = 4) const {
        for (std::size_t at = 0; at < prompt; at += chunk) {
            run_step(to, Phase::prefill, static_cast<std::int64_t>(at), std::min(chunk, prompt - at));
        }
        for (std::size_t i = 0; i < decode; ++i) {
            run_step(to, Phase::decode, static_cast<std::int64_t>(prompt + i), 1);
        }
    }
    [[nodiscard]] PlantedRun recorded(std::size_t prompt = 32, std::size_t decode = 4) const {
        PlantedRun made;
        run(made, prompt, decode);
        return made;
    }
};

} // namespace plumb::numerics
