// SPDX-License-Identifier: Apache-2.0
// A sequence alone against the same one as number 0 of a batch: an engine of the test's own, the public API alone.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "numerics/decoded_run.hpp"
#include "numerics/diverge.hpp"
#include "plumb/plumb.hpp"

namespace plumb::numerics_test {
namespace {

constexpr std::size_t width = 64;
constexpr int layers = 3;
constexpr int steps = 12;
constexpr int prompt = 5;

struct Spoiled {
    std::size_t sequence;
    int step, layer;
};

/// Rows of a batch, one per sequence; each depends on its own past alone.
class Engine {
  public:
    Engine(std::size_t sequences, std::optional<Spoiled> spoiled) : rows_(sequences * width), spoiled_(spoiled) {}

    void run(Profiler& prof) {
        for (int step = 0; step < steps; ++step) {
            const std::size_t sequences = rows_.size() / width;
            PLUMB_STEP(prof, host, Phase::decode, tokens(sequences), kv_length(prompt + step + 1),
                       plumb::sequences(sequences));
            for (std::size_t s = 0; s < sequences; ++s) {
                for (std::size_t i = 0; i < width; ++i) {
                    rows_[s * width + i] += std::sin(static_cast<float>((s + 1) * (i + 1)) + static_cast<float>(step));
                }
            }
            for (int layer = 0; layer < layers; ++layer) {
                mix(prof, step, layer);
            }
        }
    }

  private:
    void mix(Profiler& prof, int step, int layer) {
        PLUMB_LAYER(prof, layer);
        check(prof, TensorRole::input, step);
        {
            PLUMB_BRICK(prof, host, Brick::down_projection);
            for (std::size_t i = 0; i < rows_.size(); ++i) {
                rows_[i] = std::tanh(rows_[i] + 0.1F * static_cast<float>(layer));
            }
        }
        if (spoiled_ && spoiled_->step == step && spoiled_->layer == layer) {
            rows_[spoiled_->sequence * width + 9] += 3;
        }
        check(prof, TensorRole::output, step);
    }

    /// One tensor for each sequence, as an engine has them that knows which row is whose.
    void check(Profiler& prof, TensorRole role, int step) {
        for (std::size_t s = 0; s * width < rows_.size(); ++s) {
            const Tensor row = tensor(rows_.data() + s * width, DType::f32, {1, width});
            const auto of = sequence(static_cast<std::uint32_t>(s));
            if (role == TensorRole::input) {
                PLUMB_TENSOR_INPUT(prof, host, Brick::down_projection, row, of, position(prompt + step));
            } else {
                PLUMB_TENSOR(prof, host, Brick::down_projection, row, of, position(prompt + step));
            }
        }
    }

    std::vector<float> rows_;
    std::optional<Spoiled> spoiled_;
};

class Batch : public testing::Test {
  protected:
    std::string recorded(const std::string& name, std::size_t sequences, std::optional<Spoiled> spoiled = {}) {
        Config config = *Config::parse("on,warmup=0,tensors=all,out=" + folder_.file(name));
        Profiler profiler(config);
        EXPECT_TRUE(profiler.status().ok());
        Engine(sequences, spoiled).run(profiler);
        EXPECT_TRUE(profiler.close().ok());
        return folder_.file(name);
    }
    static DivergeReport compared(const std::string& a, const std::string& b) {
        Result<DivergeReport> report = diverge_recordings(a, b);
        EXPECT_TRUE(report.ok()) << report.error().message;
        return report.ok() ? *std::move(report) : DivergeReport{};
    }

    Folder folder_;
};

TEST_F(Batch, a_sequence_alone_and_as_one_of_four_is_the_same) {
    const DivergeReport report = compared(recorded("one.plumb", 1), recorded("four.plumb", 4));
    EXPECT_TRUE(report.same()) << render_text(report);
    EXPECT_EQ(report.compared, 2U * layers * steps) << "all of the one, and nothing of the others";
}

TEST_F(Batch, a_fault_in_the_common_sequence_is_named) {
    const DivergeReport report = compared(recorded("one.plumb", 1), recorded("four.plumb", 4, Spoiled{0, 7, 1}));
    ASSERT_TRUE(report.first.has_value());
    EXPECT_EQ(report.first->tensor.place.step, 7U);
    EXPECT_EQ(report.first->tensor.place.layer, 1U);
    EXPECT_EQ(report.first->tensor.place.sequence, 0U);
    EXPECT_EQ(report.first->tensor.place.brick, "down_projection");
    EXPECT_EQ(report.first->inputs, InputState::agree);
}

TEST_F(Batch, a_fault_in_another_sequence_is_found_between_two_batches_alone) {
    const std::string spoiled = recorded("spoiled.plumb", 4, Spoiled{2, 7, 1});
    EXPECT_TRUE(compared(recorded("one.plumb", 1), spoiled).same());
    const DivergeReport report = compared(recorded("four.plumb", 4), spoiled);
    ASSERT_TRUE(report.first.has_value());
    EXPECT_EQ(report.first->tensor.place.sequence, 2U);
    EXPECT_EQ(report.first->tensor.place.step, 7U);
}

} // namespace
} // namespace plumb::numerics_test
