// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "import/import_testing.hpp"

namespace plumb::imported {
namespace {

constexpr int layers_of_parts = 12;

/// A forward pass as XProf writes it, of one process with a lane for each device.
class PassOnDevices {
  public:
    /// From `begin` on the device, in microseconds; gives its end.
    double add(int device, double begin, int layers, bool embed = true, bool sample = true) {
        at_ = begin;
        const std::string process = std::to_string(device + 1);
        if (named_.insert(device).second) {
            event(R"({"ph":"M","pid":)" + process + R"(,"name":"process_name","args":{"name":"/device:GPU:)" +
                  std::to_string(device) + "\"}}");
            event(R"({"ph":"M","pid":)" + process + R"(,"tid":13,"name":"thread_name","args":{"name":"Stream #13"}})");
        }
        const auto kernel = [&](const char* name, double duration) {
            event(R"({"ph":"X","tid":13,"pid":)" + process + R"(,"ts":)" + std::to_string(at_) + R"(,"dur":)" +
                  std::to_string(duration) + R"(,"name":")" + name + "\"}");
            at_ += duration + 1.3;
        };
        if (embed) {
            kernel("gather_embedding_kernel", 5);
        }
        for (int layer = 0; layer < layers; ++layer) {
            kernel("rms_norm_kernel", 4);
            kernel("ampere_bf16_gemm_qkv", 10.5 + 0.01 * layer);
            kernel("flash_fwd_kernel", 20 + 0.3 * device);
            kernel("ampere_bf16_gemm_o", 9);
            kernel("rms_norm_kernel", 4.1);
            kernel("ampere_bf16_gemm_up", 25);
            kernel("silu_and_mul_kernel", 5);
            kernel("ampere_bf16_gemm_down", 24);
            kernel("ncclDevKernel_AllReduce_Sum_bf16", 12);
        }
        if (sample) {
            kernel("rms_norm_kernel", 4);
            kernel("ampere_bf16_gemm_head", 80);
            kernel("argmax_kernel", 6);
        }
        return at_;
    }

    [[nodiscard]] std::string layers_told() const { return note_with(import(), " pass"); }

    [[nodiscard]] ImportedRun import() const {
        save(folder_ / "trace", "{\"traceEvents\":[" + events_ + "]}");
        const std::vector<ImportedRun> made = import_file(folder_ / "trace", folder_ / "run.plumb");
        EXPECT_EQ(made.size(), 1U);
        return made.empty() ? ImportedRun() : made[0];
    }
    [[nodiscard]] ReadBack recording() const { return read_back(import().recording); }

  private:
    void event(const std::string& text) { events_ += (events_.empty() ? "" : ",\n") + text; }

    TraceFolder folder_;
    std::set<int> named_;
    std::string events_;
    double at_ = 0;
};

std::string bricks_of_parts(const ReadBack& read, const std::string& track) {
    std::string text;
    for (const ReadBack::Op& op : read.ops) {
        text += op.track.starts_with(track) ? std::to_string(op.layer) + " " + op.name + "\n" : "";
    }
    return text;
}

TEST(DeviceParts, of_one_model_have_the_layers_and_bricks_of_one_device) {
    PassOnDevices one;
    one.add(0, 100, layers_of_parts);
    PassOnDevices four;
    for (int device = 0; device < 4; ++device) {
        four.add(device, 100 + 0.7 * device, layers_of_parts);
    }
    EXPECT_EQ(four.layers_told(), one.layers_told());
    EXPECT_NE(four.layers_told().find("layers certain, 12 layers"), std::string::npos) << four.layers_told();
    const std::string wanted = bricks_of_parts(one.recording(), "gpu:0");
    const ReadBack read = four.recording();
    for (int device = 0; device < 4; ++device) {
        EXPECT_EQ(bricks_of_parts(read, "gpu:" + std::to_string(device)), wanted) << device;
    }
}

TEST(DeviceParts, that_tell_of_different_layers_are_uncertain) {
    PassOnDevices two;
    two.add(0, 100, layers_of_parts);
    two.add(1, 100.7, layers_of_parts / 2);
    const std::string told = two.layers_told();
    EXPECT_NE(told.find("layers uncertain, "), std::string::npos) << told;
    EXPECT_NE(told.find("different layers: 6, 12"), std::string::npos) << told;
}

TEST(DeviceParts, that_take_turns_are_one_sequence) {
    PassOnDevices two;
    const double middle = two.add(0, 100, layers_of_parts / 2, true, false);
    two.add(1, middle, layers_of_parts / 2, false, true);
    EXPECT_NE(two.layers_told().find("layers certain, 12 layers"), std::string::npos) << two.layers_told();
}

TEST(DeviceParts, of_which_one_begins_and_another_ends_a_pass_are_uncertain) {
    PassOnDevices two;
    two.add(0, 100, layers_of_parts / 2, true, false);
    two.add(1, 100.7, layers_of_parts / 2, false, true);
    const std::string told = two.layers_told();
    EXPECT_NE(told.find("layers uncertain, 6 layers"), std::string::npos) << told;
    EXPECT_NE(told.find("spread over them"), std::string::npos) << told;
}

} // namespace
} // namespace plumb::imported
