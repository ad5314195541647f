// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/tensor_watch.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "record/name_registry.hpp"
#include "record/recorder_testing.hpp"

namespace plumb::fingerprint {
namespace {

using Layers = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// A recorder whose tensors are checked, and what came of it.
class Bench {
  public:
    explicit Bench(TensorConfig config = every_tensor(), std::vector<std::unique_ptr<DeviceTensors>> devices = {})
        : checks_(config, std::move(devices), [this](const std::string& sentence) { said.push_back(sentence); }) {
        recorder.off();
        RecorderAccess::connect_tensors(recorder, &checks_);
        recorder.on();
    }
    ~Bench() { RecorderAccess::connect_tensors(recorder, nullptr); }

    static TensorConfig every_tensor() {
        TensorConfig config;
        config.level = TensorConfig::Level::all;
        return config;
    }
    static TensorConfig nonfinite() {
        TensorConfig config;
        config.level = TensorConfig::Level::nonfinite;
        return config;
    }

    std::vector<recording::TensorCheck> collect() {
        drain::FeedRound round;
        checks_.collect(round);
        return std::move(round.checks);
    }
    [[nodiscard]] std::string summary() const { return checks_.summary(); }
    [[nodiscard]] std::uint64_t dropped() const { return checks_.dropped_checks(); }

    record::TestRecorder recorder{record::TestOptions{}};
    std::vector<std::string> said;

  private:
    TensorWatch checks_;
};

const float ones[64] = {1, 1, 1, 1};

Tensor some(std::size_t rows = 1) { return tensor(ones, DType::f32, {rows, 4}); }

TEST(TensorWatch, a_tensor_is_kept_with_its_place) {
    Bench bench;
    {
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(17));
        PLUMB_LAYER(bench.recorder, 3);
        PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::attention, some());
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some(2), sequence(5));
    }
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[0].role, TensorRole::input);
    EXPECT_EQ(kept[1].role, TensorRole::output);
    EXPECT_EQ(kept[1].step_plus_one, 1u);
    EXPECT_EQ(kept[1].layer_plus_one, 4u);
    EXPECT_EQ(kept[1].name, Name(Brick::attention).id);
    EXPECT_EQ(kept[1].phase, Phase::decode);
    EXPECT_EQ(kept[1].position, 16);
    EXPECT_EQ(kept[1].sequence, 5u);
    EXPECT_EQ(kept[1].order, kept[0].order + 1);
    EXPECT_EQ(kept[1].shape, (std::vector<std::uint64_t>{2, 4}));
    EXPECT_EQ(kept[1].level, recording::CheckLevel::full);
    EXPECT_EQ(kept[1].fingerprint.count, 8u);
    EXPECT_EQ(kept[1].fingerprint.sum, 4);
}

TEST(TensorWatch, T9_two_of_a_name_in_a_layer_are_two_tensors) {
    Bench bench;
    for (int step = 0; step < 2; ++step) {
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(step + 1));
        for (int layer = 0; layer < 2; ++layer) {
            PLUMB_LAYER(bench.recorder, layer);
            PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, some());
            PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::rms_norm, some());
            PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, some());
        }
    }
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 12u);
    for (std::size_t i = 0; i < kept.size(); i += 3) {
        EXPECT_EQ(kept[i].occurrence, 0u);
        EXPECT_EQ(kept[i + 1].occurrence, 0u);
        EXPECT_EQ(kept[i + 2].occurrence, 1u);
    }
}

TEST(TensorWatch, pieces_of_a_prefill_are_numbered_within_the_whole) {
    Bench bench;
    {
        PLUMB_STEP(bench.recorder, host, Phase::prefill, tokens(2), kv_length(10));
        PLUMB_TENSOR(bench.recorder, host, "hidden", some(2));
        PLUMB_TENSOR(bench.recorder, host, "last", some(1), position(9));
    }
    {
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(11));
        PLUMB_TENSOR(bench.recorder, host, "hidden", some(1));
    }
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 3u);
    EXPECT_EQ(kept[0].first_index, 8u * 4u);
    EXPECT_EQ(kept[1].first_index, 9u * 4u);
    EXPECT_EQ(kept[2].first_index, 0u);
}

TEST(TensorWatch, where_nobody_said_a_position_it_is_not_known) {
    Bench bench;
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
    {
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(4), sequences(4), kv_length(40));
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some(4));
    }
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[0].position, -1);
    EXPECT_EQ(kept[0].step_plus_one, 0u);
    EXPECT_EQ(kept[1].position, -1);
}

TEST(TensorWatch, only_what_was_chosen_is_looked_at) {
    TensorConfig config = Bench::every_tensor();
    config.every = 2;
    config.bricks = {"attention", "head"}; // by alias too
    config.layers = Layers{{1, 2}};
    Bench bench(config);
    for (int step = 0; step < 4; ++step) {
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(step + 1));
        for (int layer = 0; layer < 4; ++layer) {
            PLUMB_LAYER(bench.recorder, layer);
            PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
            PLUMB_TENSOR(bench.recorder, host, Brick::lm_head, some());
            PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, some());
        }
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
    }
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 8u); // two steps, two layers, two bricks
    for (const recording::TensorCheck& check : kept) {
        EXPECT_EQ((check.step_plus_one - 1) % 2, 0u);
        EXPECT_TRUE(check.layer_plus_one == 2 || check.layer_plus_one == 3);
        EXPECT_NE(check.name, Name(Brick::rms_norm).id);
    }
}

TEST(TensorWatch, logits_say_which_token_and_by_how_much) {
    Bench bench;
    const float values[] = {0, 5, 3.5F, -1};
    PLUMB_TENSOR(bench.recorder, host, Brick::lm_head, tensor(values, DType::f32, {1, 4}), logits);
    PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, tensor(values, DType::f32, {1, 4}));
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[0].argmax, 1u);
    EXPECT_EQ(kept[0].margin, 1.5);
    EXPECT_EQ(kept[1].argmax, no_index);
}

TEST(TensorWatch, of_finite_tensors_nonfinite_keeps_nothing) {
    Bench bench(Bench::nonfinite());
    for (int i = 0; i < 100; ++i) {
        PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::attention, some());
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
    }
    EXPECT_TRUE(bench.collect().empty());
    EXPECT_TRUE(bench.said.empty());
    EXPECT_EQ(bench.summary(), "200 tensors, all finite");
}

TEST(TensorWatch, the_first_NaN_is_said_and_kept_with_what_went_in) {
    Bench bench(Bench::nonfinite());
    float bad[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bad[6] = std::numeric_limits<float>::quiet_NaN();
    const float small[4] = {0, -9, 2, 3};
    for (int step = 0; step < 2; ++step) {
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(step + 1));
        PLUMB_LAYER(bench.recorder, 2);
        PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::rms_norm, some()); // of another brick
        PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::attention, tensor(small, DType::f32, {1, 4}));
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, tensor(bad, DType::f32, {2, 4}));
    }
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 4u);
    EXPECT_EQ(kept[0].role, TensorRole::input);
    EXPECT_EQ(kept[0].level, recording::CheckLevel::nonfinite);
    EXPECT_EQ(kept[0].fingerprint.max, 9);
    EXPECT_EQ(kept[1].role, TensorRole::output);
    EXPECT_EQ(kept[1].level, recording::CheckLevel::full);
    EXPECT_EQ(kept[1].fingerprint.first_nonfinite, 6u);
    EXPECT_EQ(kept[1].fingerprint.nans, 1u);
    ASSERT_EQ(bench.said.size(), 1u) << "one sentence, not one a tensor";
    EXPECT_NE(bench.said[0].find("step 0 layer 2 brick attention, output, index 6 of 8 (1 NaN, 0 Inf)"),
              std::string::npos)
        << bench.said[0];
    EXPECT_EQ(bench.summary(), "6 tensors, 2 with NaN or Inf");
}

TEST(TensorWatch, T9_of_three_outputs_the_last_is_the_one_that_is_said_to_be_bad) {
    Bench bench(Bench::nonfinite());
    const float bad[4] = {1, std::numeric_limits<float>::infinity(), 2, 3};
    PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(1));
    PLUMB_TENSOR(bench.recorder, host, Brick::qkv_projection, some());
    PLUMB_TENSOR(bench.recorder, host, Brick::qkv_projection, some());
    PLUMB_TENSOR(bench.recorder, host, Brick::qkv_projection, tensor(bad, DType::f32, {1, 4}));
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].occurrence, 2u);
}

TEST(TensorWatch, inputs_of_a_call_are_kept_once_and_not_those_of_the_call_before) {
    Bench bench(Bench::nonfinite());
    const float bad[4] = {1, std::numeric_limits<float>::quiet_NaN(), 2, 3};
    const float other[4] = {0, 0, -7, 0};
    PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(1));
    PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::rms_norm, some());
    PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, some());
    PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::rms_norm, tensor(other, DType::f32, {1, 4}));
    PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, some());
    PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, tensor(bad, DType::f32, {1, 4}));
    PLUMB_TENSOR(bench.recorder, host, Brick::rms_norm, tensor(bad, DType::f32, {1, 4}));
    const auto kept = bench.collect();
    ASSERT_EQ(kept.size(), 3u);
    EXPECT_EQ(kept[0].role, TensorRole::input);
    EXPECT_EQ(kept[0].occurrence, 1u);
    EXPECT_EQ(kept[0].fingerprint.max, 7);
    EXPECT_EQ(kept[1].occurrence, 2u);
    EXPECT_EQ(kept[2].occurrence, 3u);
}

/// A queue of a device whose memory the host cannot read.
class FarTimer final : public QueueTimer {
  public:
    Result<DeviceToken> begin() noexcept override { return DeviceToken{1}; }
    Status end(DeviceToken) noexcept override { return {}; }
    Result<DeviceSpan> collect(DeviceToken) noexcept override { return DeviceSpan{}; }
    void cancel(DeviceToken) noexcept override {}
    Status wait(DeviceToken) noexcept override { return {}; }
    [[nodiscard]] bool immediate() const noexcept override { return false; }
    [[nodiscard]] const char* source() const noexcept override { return "far"; }
    [[nodiscard]] std::string clock_name() const override { return "far"; }
    [[nodiscard]] bool clock_is_host() const noexcept override { return false; }
    Result<DeviceClockPair> clock_pair() noexcept override { return DeviceClockPair{}; }
    Result<Elapsed> duration(const DeviceSpan&) override { return Elapsed{}; }
    Result<double> floor_ns() override { return 0.0; }
    [[nodiscard]] std::vector<Capability> capabilities() const override { return {}; }
    [[nodiscard]] std::size_t in_flight() const noexcept override { return 0; }
};

TEST(TensorWatch, what_lies_on_an_unknown_device_is_never_followed) {
    Bench bench;
    FarTimer timer;
    const void* nowhere = reinterpret_cast<const void*>(std::uintptr_t{64});
    for (int i = 0; i < 2; ++i) {
        PLUMB_TENSOR(bench.recorder, (Queue{&timer, 5}), Brick::attention, tensor(nowhere, DType::f32, {1, 4}));
    }
    EXPECT_TRUE(bench.collect().empty());
    EXPECT_EQ(bench.dropped(), 2u);
    ASSERT_EQ(bench.said.size(), 1u);
    EXPECT_NE(bench.said[0].find("device"), std::string::npos);
}

/// Reads host memory in place of a device's, and hands the results over in reverse.
class BackwardDevice final : public DeviceTensors {
  public:
    [[nodiscard]] bool takes(const record::TensorCall& call) const noexcept override {
        return call.queue.timer != nullptr && !call.queue.timer->clock_is_host();
    }
    Status enqueue(const record::TensorCall& call, recording::TensorCheck label) noexcept override {
        label.fingerprint = *fingerprint_of(*call.tensor);
        done_.insert(done_.begin(), std::move(label));
        return {};
    }
    void collect(std::vector<recording::TensorCheck>& done) override { done.swap(done_); }
    [[nodiscard]] std::uint64_t pending() const noexcept override { return 0; }
    [[nodiscard]] std::uint64_t dropped() const noexcept override { return 0; }

  private:
    std::vector<recording::TensorCheck> done_;
};

TEST(TensorWatch, what_went_into_a_bad_tensor_of_a_device_is_kept_also_where_it_was_read_before) {
    std::vector<std::unique_ptr<DeviceTensors>> devices;
    devices.push_back(std::make_unique<BackwardDevice>());
    Bench bench(Bench::nonfinite(), std::move(devices));
    FarTimer timer;
    const Queue queue{&timer, 5};
    const float bad[4] = {1, std::numeric_limits<float>::quiet_NaN(), 2, 3};
    const float small[4] = {0, -9, 2, 3};
    for (const bool at_once : {true, false}) {
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(1));
        PLUMB_TENSOR_INPUT(bench.recorder, queue, Brick::rms_norm, some());
        PLUMB_TENSOR(bench.recorder, queue, Brick::rms_norm, some());
        PLUMB_TENSOR_INPUT(bench.recorder, queue, Brick::rms_norm, tensor(small, DType::f32, {1, 4}));
        if (!at_once) {
            EXPECT_TRUE(bench.collect().empty());
        }
        PLUMB_TENSOR(bench.recorder, queue, Brick::rms_norm, tensor(bad, DType::f32, {1, 4}));
        const auto kept = bench.collect();
        ASSERT_EQ(kept.size(), 2u);
        EXPECT_EQ(kept[0].role, TensorRole::input);
        EXPECT_EQ(kept[0].occurrence, 1u);
        EXPECT_EQ(kept[0].fingerprint.min, -9);
        EXPECT_EQ(kept[1].fingerprint.nans, 1u);
    }
    EXPECT_EQ(bench.summary(), "8 tensors, 2 with NaN or Inf");
}

TEST(TensorWatch, a_tensor_that_is_none_is_refused_before_anything_reads_it) {
    Bench bench;
    Tensor wild = some();
    wild.rank = 200;
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, wild);
    wild = some();
    wild.dtype = static_cast<DType>(77);
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, wild);
    EXPECT_EQ(bench.dropped(), 2u);
    EXPECT_TRUE(bench.collect().empty());
}

TEST(TensorWatch, every_zeroth_step_is_every_step) {
    TensorConfig config = Bench::every_tensor();
    config.every = 0;
    Bench bench(config);
    PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(1));
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
    EXPECT_EQ(bench.collect().size(), 1u);
}

TEST(TensorWatch, an_index_is_within_the_tensor_also_in_a_piece_of_a_prefill) {
    Bench bench(Bench::nonfinite());
    float bad[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bad[5] = std::numeric_limits<float>::infinity();
    PLUMB_STEP(bench.recorder, host, Phase::prefill, tokens(2), kv_length(100));
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, tensor(bad, DType::f32, {2, 4}));
    ASSERT_EQ(bench.said.size(), 1u);
    EXPECT_NE(bench.said[0].find("index 5 of 8"), std::string::npos) << bench.said[0];
}

TEST(TensorWatch, what_cannot_be_read_is_counted_and_said_once) {
    Bench bench;
    for (int i = 0; i < 3; ++i) {
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, tensor(nullptr, DType::f32, {1, 4}));
    }
    EXPECT_TRUE(bench.collect().empty());
    EXPECT_EQ(bench.dropped(), 3u);
    ASSERT_EQ(bench.said.size(), 1u);
    EXPECT_NE(bench.said[0].find("attention"), std::string::npos);
}

TEST(TensorWatch, what_cannot_be_read_was_not_looked_at) {
    for (const TensorConfig& config : {Bench::every_tensor(), Bench::nonfinite()}) {
        Bench bench(config);
        constexpr std::size_t many = std::size_t{1} << 32;
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, tensor(nullptr, DType::f32, {1, 4}));
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, tensor(ones, DType::f32, {many, many})); // counts 0
        EXPECT_EQ(bench.dropped(), 2u);
        EXPECT_EQ(bench.summary(), "0 tensors, all finite");
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, tensor(nullptr, DType::f32, {many, many, 0}));
        EXPECT_EQ(bench.summary(), "1 tensors, all finite");
        EXPECT_EQ(bench.dropped(), 2u);
    }
}

TEST(TensorWatch, what_is_not_finite_is_counted_at_every_level) {
    const float bad[4] = {1, std::numeric_limits<float>::quiet_NaN(), 2, 3};
    for (const TensorConfig& config : {Bench::every_tensor(), Bench::nonfinite()}) {
        Bench bench(config);
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, tensor(bad, DType::f32, {1, 4}));
        EXPECT_EQ(bench.summary(), "2 tensors, 1 with NaN or Inf");
    }
}

TEST(TensorWatch, while_recording_is_off_nothing_is_evaluated) {
    Bench bench;
    bench.recorder.off();
    int evaluated = 0;
    const auto count = [&] {
        ++evaluated;
        return some();
    };
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, count());
    EXPECT_EQ(evaluated, 0);
    bench.recorder.on();
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, count());
    EXPECT_EQ(evaluated, 1);
    EXPECT_EQ(bench.collect().size(), 1u);
}

TEST(TensorWatch, what_it_costs_is_a_scope_of_its_own) {
    Bench bench;
    PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
    const record::Words records = bench.recorder.take();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].rfind("scope ", 0), 0u) << records[0];
    EXPECT_NE(records[0].rfind("scope " + std::to_string(Name(Brick::attention).id) + " ", 0), 0u) << records[0];
}

TEST(TensorWatch, dumped_tensors_lie_under_their_place) {
    TensorConfig config = Bench::every_tensor();
    config.dump = testing::TempDir() + "plumb-dump-" + std::to_string(::getpid());
    std::filesystem::create_directory(config.dump);
    {
        Bench bench(config);
        PLUMB_TENSOR(bench.recorder, host, Brick::embedding, some());
        PLUMB_STEP(bench.recorder, host, Phase::decode, tokens(1), kv_length(1));
        PLUMB_TENSOR(bench.recorder, host, Brick::embedding, some());
        PLUMB_LAYER(bench.recorder, 12);
        PLUMB_TENSOR_INPUT(bench.recorder, host, Brick::attention, some());
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some(), sequence(2));
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
    }
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(config.dump)) {
        files.push_back(entry.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    EXPECT_EQ(files,
              (std::vector<std::string>{
                  "outside_layer-01_embedding_out0.npy", "step000000_layer-01_embedding_out0.npy",
                  "step000000_layer012_attention_in0.npy", "step000000_layer012_attention_out0.npy",
                  "step000000_layer012_attention_out0_sequence2.npy", "step000000_layer012_attention_out1.npy"}));
    std::filesystem::remove_all(config.dump);
}

TEST(TensorWatch, a_dump_overwrites_nothing) {
    TensorConfig config = Bench::every_tensor();
    config.dump = testing::TempDir() + "plumb-dump-twice-" + std::to_string(::getpid());
    std::filesystem::create_directory(config.dump);
    const std::string kept = config.dump + "/outside_layer-01_lm_head_out0.npy";
    std::ofstream(kept) << "of a run before";
    Bench bench(config);
    PLUMB_TENSOR(bench.recorder, host, Brick::lm_head, some());
    PLUMB_TENSOR(bench.recorder, host, Brick::lm_head, some());
    EXPECT_EQ(std::filesystem::file_size(kept), 15u);
    EXPECT_TRUE(std::filesystem::exists(config.dump + "/outside_layer-01_lm_head_out1.npy")) << "others are kept";
    ASSERT_EQ(bench.said.size(), 1u);
    EXPECT_NE(bench.said[0].find(kept), std::string::npos) << bench.said[0];
    EXPECT_EQ(bench.collect().size(), 2u) << "fingerprints are kept all the same";
    EXPECT_EQ(bench.summary(), "2 tensors, all finite, 1 not kept whole: their files were there already");
    std::filesystem::remove_all(config.dump);
}

TEST(TensorWatch, a_dump_shortens_long_names_and_keeps_them_apart) {
    TensorConfig config = Bench::every_tensor();
    config.dump = testing::TempDir() + "plumb-dump-long-" + std::to_string(::getpid());
    std::filesystem::create_directory(config.dump);
    Bench bench(config);
    const std::string head(250, 'x');
    const Name one = record::intern_name(head + "1", Category::other);
    const Name other = record::intern_name(head + "2", Category::other);
    PLUMB_TENSOR(bench.recorder, host, one, some());
    PLUMB_TENSOR(bench.recorder, host, other, some());
    EXPECT_TRUE(bench.said.empty()) << bench.said[0];
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(config.dump)) {
        files.push_back(entry.path().filename().string());
    }
    ASSERT_EQ(files.size(), 2u);
    for (const std::string& file : files) {
        EXPECT_EQ(file.rfind("outside_layer-01_" + head.substr(0, 111) + "~", 0), 0u) << file;
        EXPECT_EQ(file.size(), 17 + 128 + std::string("_out0.npy").size()) << file;
    }
    std::filesystem::remove_all(config.dump);
}

TEST(TensorWatch, a_dump_that_fails_is_said_once_and_given_up) {
    TensorConfig config = Bench::every_tensor();
    config.dump = "/nowhere/at/all";
    Bench bench(config);
    for (int i = 0; i < 3; ++i) {
        PLUMB_TENSOR(bench.recorder, host, Brick::attention, some());
    }
    ASSERT_EQ(bench.said.size(), 1u);
    EXPECT_NE(bench.said[0].find("/nowhere/at/all"), std::string::npos);
    EXPECT_EQ(bench.collect().size(), 3u) << "fingerprints are kept all the same";
}

} // namespace
} // namespace plumb::fingerprint
