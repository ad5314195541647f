// SPDX-License-Identifier: Apache-2.0
// A decode of known times as a recording on disk: 8 layers of three bricks, with one flaw or none. One thread; the file
// goes away with its owner.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "planted/tape.hpp"

namespace plumb::planted {

inline constexpr int layers = 8;
inline constexpr int decode_steps = 40;
inline constexpr std::uint64_t tokens = 2; // of each decode step
inline constexpr std::int64_t head_us = 80, layer_us = 100;

/// What is wrong with a run; as it stands, nothing.
struct Flaw {
    int slow_layer = -1;             // whose attention takes half as long again
    int step_without_head = -1;      // by id
    std::int64_t slower_head_us = 0; // in every step
    std::int64_t outside_us = 0;     // in no brick, in every step
    std::int64_t beside_us = 0;      // of a second thread's brick beside the first layer, in every step
    std::uint64_t dropped = 0;       // records
    int layer_without_up = -1;       // whose up_projection takes its time and is not told
};

inline std::int64_t plant_step(Tape& source, std::uint64_t id, Phase phase, std::int64_t begin, const Flaw& flaw = {}) {
    std::int64_t t = begin;
    const auto brick = [&](Brick name, std::int64_t length) {
        source.scope(1, name, t, t + length);
        t += length;
    };
    source.step_begin(1, id, phase, t);
    source.step_value(1, phase == Phase::prefill ? StepValue::prefill_tokens : StepValue::decode_tokens,
                      phase == Phase::prefill ? 64 : tokens);
    brick(Brick::embedding, 20 * us);
    if (flaw.beside_us != 0) {
        source.context(2, id);
        source.scope(2, Brick::kv_append, t, t + flaw.beside_us * us);
        source.context_end(2);
    }
    for (int layer = 0; layer < layers; ++layer) {
        const std::int64_t layer_begin = t;
        source.layer_begin(1, static_cast<std::uint16_t>(layer), t);
        brick(Brick::rms_norm, 10 * us);
        brick(Brick::attention, (layer == flaw.slow_layer ? 90 : 60) * us);
        if (layer == flaw.layer_without_up) {
            t += 30 * us;
        } else {
            brick(Brick::up_projection, 30 * us);
        }
        source.layer_end(1, static_cast<std::uint16_t>(layer), layer_begin, t);
    }
    t += flaw.outside_us * us;
    if (static_cast<int>(id) != flaw.step_without_head) {
        brick(Brick::lm_head, (head_us + flaw.slower_head_us) * us);
    } else {
        brick(Brick::sampling, head_us * us);
    }
    source.step_end(1, phase, begin, t);
    return t;
}

class TemporaryFile {
  public:
    explicit TemporaryFile(const std::string& name)
        : path_((std::filesystem::temp_directory_path() /
                 ("plumb-planted-" + std::to_string(getpid()) + "-" + name + ".plumb"))
                    .string()) {
        std::filesystem::remove(path_);
    }
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// One prefill step, then decode steps 1 to decode_steps.
class PlantedRun {
  public:
    explicit PlantedRun(const Flaw& flaw = {}) : file_("run") {
        Tape source;
        source.track(1);
        if (flaw.beside_us != 0) {
            source.track(2, "helper");
        }
        std::int64_t t = plant_step(source, 0, Phase::prefill, 0);
        for (int step = 1; step <= decode_steps; ++step) {
            t = plant_step(source, static_cast<std::uint64_t>(step), Phase::decode, t, flaw);
        }
        source.deliver_all();
        source.counters_.records = source.written(1) + source.written(2);
        if (flaw.dropped != 0) {
            source.counters_.drops = {{"ring full", flaw.dropped}};
        }
        EXPECT_TRUE(source.save(file_.path()).ok());
    }
    [[nodiscard]] const std::string& path() const { return file_.path(); }

  private:
    TemporaryFile file_;
};

} // namespace plumb::planted
