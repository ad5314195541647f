// SPDX-License-Identifier: Apache-2.0
// tensors=nonfinite on a decode in which one head, or one value, of one brick stops being a number.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>

#include "numerics/decoded_run.hpp"
#include "plumb/results.hpp"
#include "recording/reader.hpp"

namespace plumb::numerics_test {
namespace {

using recording::TensorCheck;

std::vector<TensorCheck> checks_of(const std::string& path) {
    std::vector<TensorCheck> checks;
    Result<recording::Reader> reader = recording::Reader::open(path);
    EXPECT_TRUE(reader.ok());
    EXPECT_TRUE(reader
                    ->for_each_check([&checks](TensorCheck&& check) {
                        checks.push_back(std::move(check));
                        return true;
                    })
                    .ok());
    return checks;
}

/// The first that is not finite is the planted one, in its place, and what went in was finite and is there.
void expect_found(const DecodedRun& run, const Fault& fault) {
    SCOPED_TRACE(fault.text());
    ASSERT_EQ(run.planted, 1);
    ASSERT_TRUE(run.bad_index.has_value());
    const auto checks = checks_of(run.path);
    const auto first = std::find_if(checks.begin(), checks.end(),
                                    [](const TensorCheck& check) { return !check.fingerprint.finite(); });
    ASSERT_NE(first, checks.end());
    EXPECT_EQ(first->step_plus_one, fault.step + 1);
    EXPECT_EQ(first->layer_plus_one, fault.layer ? *fault.layer + 1 : 0);
    EXPECT_EQ(first->name, static_cast<std::uint16_t>(fault.brick()));
    EXPECT_EQ(first->role, TensorRole::output);
    EXPECT_EQ(first->fingerprint.first_nonfinite - first->first_index, *run.bad_index);
    for (auto input = checks.begin(); input != first; ++input) {
        EXPECT_EQ(input->role, TensorRole::input);
        EXPECT_EQ(input->name, first->name);
        EXPECT_EQ(input->layer_plus_one, first->layer_plus_one);
        EXPECT_EQ(input->step_plus_one, first->step_plus_one);
        EXPECT_EQ(input->level, recording::CheckLevel::nonfinite);
        EXPECT_GT(input->fingerprint.max, 0);
    }
    EXPECT_NE(first, checks.begin()) << "what the brick read, and that it was finite";
    ASSERT_FALSE(run.said.empty());
    const std::string place = (fault.layer ? "layer " + std::to_string(*fault.layer) + " " : std::string()) + "brick " +
                              brick_word(fault.brick());
    EXPECT_NE(run.said[0].find("step " + std::to_string(fault.step)), std::string::npos) << run.said[0];
    EXPECT_NE(run.said[0].find(place), std::string::npos) << run.said[0];
}

TEST(FirstNonfinite, T15_the_brick_layer_and_step_of_the_first_NaN_or_Inf_are_named_every_time) {
    Folder folder;
    std::mt19937_64 random(4);
    for (const decoder::Type type : {decoder::Type::f32, decoder::Type::bf16}) {
        RunOptions options;
        options.type = type;
        options.check = "nonfinite";
        for (int plant = 0; plant < 30; ++plant) {
            options.fault = random_fault(plant % 2 == 0 ? FaultKind::nan_in_head : FaultKind::overflow,
                                         steps_of(options), layers_of_test_model, random);
            expect_found(run(folder, "nonfinite", options), *options.fault);
        }
    }
}

TEST(FirstNonfinite, a_clean_run_keeps_nothing_and_says_nothing) {
    Folder folder;
    RunOptions options;
    options.check = "nonfinite";
    const DecodedRun clean = run(folder, "clean", options);
    EXPECT_EQ(clean.planted, 0);
    EXPECT_TRUE(checks_of(clean.path).empty());
    EXPECT_TRUE(clean.said.empty());
}

TEST(ExportedChecks, one_line_each_after_the_samples_of_a_real_decode) {
    Folder folder;
    const DecodedRun done = run(folder, "exported", {});
    std::stringstream out;
    ASSERT_TRUE(export_recording(done.path, "jsonl", out).ok());
    std::size_t lines = 0;
    std::size_t logits = 0;
    bool others_behind = false;
    for (std::string line; std::getline(out, line);) {
        const bool check = line.find(R"({"kind":"check",)") == 0;
        others_behind = others_behind || (lines != 0 && !check);
        lines += check ? 1 : 0;
        logits += line.find(R"("argmax":)") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(lines, checks_of(done.path).size());
    EXPECT_GT(lines, 100U);
    EXPECT_EQ(logits, steps_of({}).size()) << "of each step's head";
    EXPECT_FALSE(others_behind);
}

} // namespace
} // namespace plumb::numerics_test
