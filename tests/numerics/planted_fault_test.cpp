// SPDX-License-Identifier: Apache-2.0
// The decoder with one fault in one brick, layer and step: `plumb diverge` must name exactly that, and say that what went in
// agrees. And clean runs that differ in what must not matter: nothing is reported.
#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "numerics/decoded_run.hpp"
#include "numerics/diverge.hpp"

namespace plumb::numerics_test {
namespace {

DivergeReport compared(const std::string& a, const std::string& b, const DivergeOptions& options = {}) {
    Result<DivergeReport> report = diverge_recordings(a, b, options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *std::move(report) : DivergeReport{};
}

std::string place_text(std::uint64_t step, std::int64_t layer, const std::string& brick) {
    return "step " + std::to_string(step) + " layer " + std::to_string(layer) + " brick " + brick;
}
std::string place_text(const Fault& fault) {
    return place_text(fault.step, fault.layer ? static_cast<std::int64_t>(*fault.layer) : -1,
                      brick_word(fault.brick()));
}
std::string place_text(const TensorPlace& place) {
    return place_text(place.step.value_or(no_index), place.layer ? std::int64_t{*place.layer} : -1, place.brick);
}

class PlantedFault : public testing::Test {
  protected:
    /// Whether the planted brick, layer and step were named, with inputs that agree.
    testing::AssertionResult named(const std::string& clean, const RunOptions& options) {
        const Fault& fault = *options.fault;
        const DecodedRun faulty = run(folder_, "faulty", options);
        if (faulty.planted != 1) {
            return testing::AssertionFailure() << "not planted: " << fault.text();
        }
        const DivergeReport exact = compared(clean, faulty.path, {std::nullopt, true});
        testing::AssertionResult right = names(exact, fault);
        // What is smaller than the tolerance is for a human to want: then --expect exact is there.
        const double tolerance = default_tolerance(options.type == decoder::Type::f32 ? DType::f32 : DType::bf16);
        if (right && !(exact.first->tensor.distance.low <= tolerance)) {
            ++beyond_tolerance_;
            right = names(compared(clean, faulty.path), fault);
        }
        return right;
    }
    static testing::AssertionResult names(const DivergeReport& report, const Fault& fault) {
        const bool right = report.first && place_text(report.first->tensor.place) == place_text(fault) &&
                           report.first->inputs == InputState::agree && !report.same();
        return right ? testing::AssertionSuccess()
                     : testing::AssertionFailure() << fault.text() << "; found:\n"
                                                   << render_text(report);
    }

    /// `plants` faults of each kind, anywhere.
    void plant(RunOptions options, int plants, std::uint64_t seed) {
        const DecodedRun clean = run(folder_, "clean", options);
        ASSERT_TRUE(compared(clean.path, run(folder_, "again", options).path, {std::nullopt, true}).same());
        std::mt19937_64 random(seed);
        for (const FaultKind kind : all_faults) {
            for (int i = 0; i < plants; ++i) {
                options.fault = random_fault(kind, steps_of(options), layers_of_test_model, random);
                EXPECT_TRUE(named(clean.path, options));
            }
        }
        const int all = plants * static_cast<int>(std::size(all_faults));
        RecordProperty("beyond_tolerance", beyond_tolerance_);
        EXPECT_GE(beyond_tolerance_, all * 9 / 10) << "of " << all << ": too few to say much of the default tolerance";
    }

    Folder folder_;
    int beyond_tolerance_ = 0;
};

TEST_F(PlantedFault, T16_in_an_f32_model_is_named_with_brick_layer_and_step_every_time) { plant({}, 30, 1); }

TEST_F(PlantedFault, T16_in_a_bf16_model_is_named_with_brick_layer_and_step_every_time) {
    RunOptions options;
    options.shape = "test-qwen2"; // with biases, the other rope layout, and a tied head
    options.type = decoder::Type::bf16;
    plant(options, 30, 2);
}

TEST_F(PlantedFault, T16_in_a_run_of_other_threads_and_chunks_is_named_beyond_the_rounding) {
    RunOptions options;
    options.chunk = 7;
    const DecodedRun clean = run(folder_, "clean", options);
    options.chunk = 24; // one step for the prompt
    options.threads = decoder::test_threads();
    std::mt19937_64 random(3);
    for (int i = 0; i < 10; ++i) {
        Fault fault = random_fault(FaultKind::weight_row, steps_of(options), layers_of_test_model, random);
        fault.step = 1 + random() % options.steps; // a decode step, which both runs have
        options.fault = fault;
        const DecodedRun faulty = run(folder_, "faulty", options);
        ASSERT_EQ(faulty.planted, 1);
        const DivergeReport report = compared(clean.path, faulty.path);
        ASSERT_TRUE(report.first.has_value()) << fault.text();
        EXPECT_EQ(report.first->tensor.place.step_b, fault.step) << render_text(report);
        EXPECT_EQ(report.first->tensor.place.brick, brick_word(fault.brick())) << render_text(report);
        EXPECT_EQ(report.first->inputs, InputState::agree) << fault.text();
    }
}

class CleanRuns : public testing::TestWithParam<decoder::Type> {};

TEST_P(CleanRuns, that_differ_in_threads_or_chunks_report_nothing) {
    Folder folder;
    for (const char* shape : {"test", "test-qwen2"}) {
        RunOptions options;
        options.shape = shape;
        options.type = GetParam();
        options.prompt = 70;
        const DecodedRun first = run(folder, "first", options);
        for (const int threads : {1, decoder::test_threads(), 2 * decoder::test_threads() - 1}) {
            for (const std::size_t chunk : {1U, 7U, 16U, 64U}) {
                options.threads = threads;
                options.chunk = chunk;
                const DecodedRun other = run(folder, "other", options);
                const DivergeReport report = compared(first.path, other.path);
                EXPECT_TRUE(report.same()) << shape << ", " << threads << " threads, chunks of " << chunk << "\n"
                                           << render_text(report);
                EXPECT_GT(report.compared, 200U) << "chunks of " << chunk;
            }
        }
    }
}

TEST_P(CleanRuns, done_twice_agree_in_every_bit) {
    Folder folder;
    RunOptions options;
    options.type = GetParam();
    const DecodedRun first = run(folder, "first", options);
    const DecodedRun second = run(folder, "second", options);
    const DivergeReport report = compared(first.path, second.path, {std::nullopt, true});
    EXPECT_TRUE(report.same()) << render_text(report);
    EXPECT_EQ(report.identical, report.compared);
    EXPECT_EQ(report.tensors_a, report.compared);
}

INSTANTIATE_TEST_SUITE_P(Types, CleanRuns, testing::Values(decoder::Type::f32, decoder::Type::bf16),
                         [](const auto& type) { return type.param == decoder::Type::f32 ? "f32" : "bf16"; });

} // namespace
} // namespace plumb::numerics_test
