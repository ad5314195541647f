// SPDX-License-Identifier: Apache-2.0
// Real traces by names and places alone; what they say of themselves only scores. PLUMB_TRACES names the folder that holds them;
// nothing of it lies in this repository.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <tuple>
#include <unistd.h>

#include "import/formats.hpp"
#include "import/labels.hpp"

namespace plumb::imported {
namespace {

namespace fs = std::filesystem;

const char* folder() { return std::getenv("PLUMB_TRACES"); }

struct LabelledTrace {
    Trace trace;
    Steps steps;
    Labels labels;

    [[nodiscard]] std::int64_t ns() const {
        std::int64_t sum = 0;
        for (const DeviceOp& op : trace.ops) {
            sum += op.duration_ns();
        }
        return sum;
    }
    template <class Is>
    [[nodiscard]] double percent_where(Is is) const {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < trace.ops.size(); ++i) {
            sum += is(i) ? trace.ops[i].duration_ns() : 0;
        }
        return 100 * static_cast<double>(sum) / static_cast<double>(ns());
    }
    [[nodiscard]] double percent_of(Certainty certainty) const {
        return percent_where([&](std::size_t i) { return labels.certainty_of[i] == certainty; });
    }
    [[nodiscard]] double percent_of(const std::string& brick) const {
        return percent_where([&](std::size_t i) { return labels.bricks[labels.brick_of[i]].name == brick; });
    }
    [[nodiscard]] std::vector<std::uint32_t> layers() const {
        std::vector<std::uint32_t> found;
        for (const LabelledPass& pass : labels.passes) {
            found.push_back(pass.layers);
        }
        return found;
    }
    /// Of a pass that is not certain, why.
    [[nodiscard]] std::string doubts() const {
        std::string text;
        for (const LabelledPass& pass : labels.passes) {
            for (const std::string& doubt : pass.doubts) {
                text += (text.empty() ? "" : "; ") + doubt;
            }
        }
        return text.substr(0, 300);
    }
};

LabelledTrace label(const std::string& name) {
    Result<Trace> trace = read_trace(fs::path(folder()) / name, {});
    EXPECT_TRUE(trace.ok()) << trace.error().message;
    Result<KernelRules> rules = KernelRules::load({});
    EXPECT_TRUE(rules.ok()) << rules.error().message;
    LabelledTrace made;
    made.trace = *std::move(trace);
    StepOptions options;
    options.annotations = false;
    options.attention = attention_names(made.trace, *rules);
    made.steps = find_steps(made.trace, options);
    made.labels = label_operations(made.trace, made.steps, *rules);
    return made;
}

// ---- layers of every trace whose model is known

struct Known {
    std::string file;
    std::uint32_t layers;
    std::size_t passes;
    double unknown = 0.1, weak = 10; // at most, per cent of the time
    std::size_t replay = 0;          // operations of its one replay
};

std::vector<Known> known() {
    std::vector<Known> all;
    for (int rank = 0; rank < 8; ++rank) {
        const std::string number = "/rank" + std::to_string(rank);
        all.push_back({"deepseek_v3_h200_ep8/base" + number + ".pt.trace.json.gz", 61, 1, 0.1, 1, 2229});
        all.push_back({"deepseek_v3_h200_ep8/deepgemm_align" + number + ".pt.trace.json.gz", 61, 1, 0.1, 1, 2595});
        all.push_back({"mixtral_8x7b_mi300x_tp8" + number + ".rpd.gz", 32, 8});
        all.push_back({"megatron_a100_tp8" + number + ".json.gz", 40, 1});
    }
    all.push_back({"qwen3_8b_mi300x_sglang/decode.json.gz", 36, 1, 0.1, 5});
    all.push_back({"qwen3_8b_mi300x_sglang/prefill.json.gz", 36, 1});
    all.push_back({"qwen1.5_0.5b/h100.json.gz", 24, 1});
    all.push_back({"qwen1.5_0.5b/mi300x.json.gz", 24, 1});
    all.push_back({"gpt_oss_120b_b200/eager_trace.json.gz", 36, 1});
    all.push_back({"gpt_oss_20b_mi300x_piecewise/graph_execution.json.gz", 24, 1});
    return all;
}

class PublicTraces : public testing::TestWithParam<Known> {
    void SetUp() override {
        if (folder() == nullptr) {
            GTEST_SKIP() << "PLUMB_TRACES names no folder of traces";
        }
    }
};

TEST_P(PublicTraces, have_the_layers_of_their_model) {
    const LabelledTrace of = label(GetParam().file);
    const std::vector<std::uint32_t> layers = of.layers();
    EXPECT_EQ(static_cast<std::size_t>(std::count(layers.begin(), layers.end(), GetParam().layers)), GetParam().passes)
        << testing::PrintToString(layers) << of.doubts();
    EXPECT_LE(of.percent_of(Certainty::unknown), GetParam().unknown);
    EXPECT_LE(of.percent_of(Certainty::weak), GetParam().weak);
    if (GetParam().replay != 0) {
        ASSERT_EQ(of.steps.replays.size(), 1U);
        EXPECT_EQ(of.steps.replays[0].ops.size(), GetParam().replay);
    }
    const auto certain = std::count_if(of.labels.passes.begin(), of.labels.passes.end(),
                                       [](const LabelledPass& pass) { return pass.certain; });
    std::printf("%s: layers %s, %d certain, unknown %.3f %%, weak %.2f %%, attention %.2f %%; %s\n",
                GetParam().file.c_str(), testing::PrintToString(layers).c_str(), static_cast<int>(certain),
                of.percent_of(Certainty::unknown), of.percent_of(Certainty::weak), of.percent_of("attention"),
                of.doubts().c_str());
}

std::string test_name(const testing::TestParamInfo<Known>& of) {
    std::string name = of.param.file;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Import, PublicTraces, testing::ValuesIn(known()), test_name);

// ---- kernel by kernel, against what the trace or the trace of its capture says of modules

struct Scored {
    std::string file, segment;
    std::size_t kernels; // that the truth names
};

using Moment = std::tuple<std::int64_t, std::int64_t>;

/// Layers by module stacks, as tests/layers/export_sequences.py finds them.
std::map<Moment, int> truth_of(const Scored& of) {
    const fs::path link = fs::temp_directory_path() / ("plumb-truth-" + std::to_string(::getpid()));
    const std::string part = of.file.substr(0, of.file.find('/'));
    fs::create_directory(link);
    fs::create_directory_symlink(fs::path(folder()) / part, link / part);
    const std::string command = "python3 '" PLUMB_EXPORT_SEQUENCES "' '" + link.string() + "'";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
        text.append(buffer.data(), got);
    }
    EXPECT_EQ(::pclose(pipe), 0) << command;
    fs::remove_all(link);
    std::map<Moment, int> truth;
    std::istringstream lines(text);
    bool wanted = false;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        if (line.starts_with("= ")) {
            std::string ignored;
            std::string name;
            words >> ignored >> name;
            wanted = name == of.file.substr(0, of.file.size() - 3) + "/" + of.segment;
            continue;
        }
        std::uint64_t name = 0;
        std::uint64_t launch = 0;
        std::int64_t begin = 0;
        std::int64_t end = 0;
        std::string anchor;
        std::string stream;
        int layer = 0;
        if (wanted && words >> name >> begin >> end >> anchor >> stream >> launch >> layer && layer >= 0) {
            truth[{begin, end}] = layer;
        }
    }
    return truth;
}

class PublicTruth : public testing::TestWithParam<Scored> {
    void SetUp() override {
        if (folder() == nullptr) {
            GTEST_SKIP() << "PLUMB_TRACES names no folder of traces";
        }
    }
};

TEST_P(PublicTruth, says_the_same_layer_of_every_kernel) {
    const LabelledTrace of = label(GetParam().file);
    const std::map<Moment, int> truth = truth_of(GetParam());
    EXPECT_EQ(truth.size(), GetParam().kernels);
    std::size_t right = 0;
    for (std::size_t i = 0; i < of.trace.ops.size(); ++i) {
        const auto found = truth.find({of.trace.ops[i].start_ns, of.trace.ops[i].end_ns});
        right += found != truth.end() && of.labels.layer_of[i] == found->second + 1 ? 1 : 0;
    }
    EXPECT_EQ(right, GetParam().kernels);
    std::printf("%s: %zu of %zu kernels in the layer that their module says\n", GetParam().file.c_str(), right,
                truth.size());
}

INSTANTIATE_TEST_SUITE_P(Import, PublicTruth,
                         testing::Values(Scored{"qwen3_8b_mi300x_sglang/decode.json.gz", "replay0", 540},
                                         Scored{"qwen3_8b_mi300x_sglang/prefill.json.gz", "all", 504},
                                         Scored{"qwen1.5_0.5b/h100.json.gz", "all", 1176},
                                         Scored{"qwen1.5_0.5b/mi300x.json.gz", "all", 1032},
                                         Scored{"gpt_oss_120b_b200/eager_trace.json.gz", "all", 900}));

// ---- shares, and what cannot be known

class PublicFigures : public testing::Test {
    void SetUp() override {
        if (folder() == nullptr) {
            GTEST_SKIP() << "PLUMB_TRACES names no folder of traces";
        }
    }
};

TEST_F(PublicFigures, attention_of_deepseek_is_what_the_study_found) {
    for (const char* run : {"base", "deepgemm_align"}) {
        const double share =
            label("deepseek_v3_h200_ep8/" + std::string(run) + "/rank0.pt.trace.json.gz").percent_of("attention");
        EXPECT_GE(share, 1.3) << run;
        EXPECT_LE(share, 1.4) << run;
    }
}

TEST_F(PublicFigures, a_training_step_of_a_diffusion_model_has_no_certain_layers) {
    for (const char* run : {"before", "after"}) {
        const LabelledTrace of = label("nsys_h100/wan_dit_" + std::string(run) + ".sqlite.gz");
        for (const LabelledPass& pass : of.labels.passes) {
            EXPECT_FALSE(pass.certain) << run;
        }
    }
}

} // namespace
} // namespace plumb::imported
