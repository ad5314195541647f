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
#include <numeric>
#include <sstream>
#include <tuple>
#include <unistd.h>

#include "import/formats.hpp"
#include "import/import.hpp"
#include "import/labels.hpp"
#include "import/modules.hpp"
#include "support/text_of_file.hpp"

namespace plumb::imported::public_traces_test {
namespace {

namespace fs = std::filesystem;

const char* folder() { return std::getenv("PLUMB_TRACES"); }

struct LabelledTrace {
    Trace trace;
    EngineSteps steps;
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
std::ostream& operator<<(std::ostream& out, const Known& of) { return out << of.file; }

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

template <class Of>
std::string test_name(const testing::TestParamInfo<Of>& of) {
    std::string name = of.param.file;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Import, PublicTraces, testing::ValuesIn(known()), test_name<Known>);

// ---- kernel by kernel, against what the trace or the trace of its capture says of modules

struct Scored {
    std::string file, segment;
    std::size_t kernels; // that the truth names
};
std::ostream& operator<<(std::ostream& out, const Scored& of) { return out << of.file; }

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
                                         Scored{"gpt_oss_120b_b200/eager_trace.json.gz", "all", 900}),
                         test_name<Scored>);

// ---- time, brick by brick, against the same modules

struct ScoredTime {
    std::string file, capture;
    double least,
        least_strict; // per cent of the time that modules tell, right: with helpers, and their own bricks alone
};
std::ostream& operator<<(std::ostream& out, const ScoredTime& of) { return out << of.file; }

class PublicBricks : public testing::TestWithParam<ScoredTime> {
    void SetUp() override {
        if (folder() == nullptr) {
            GTEST_SKIP() << "PLUMB_TRACES names no folder of traces";
        }
    }
};

/// src/import/rules/modules.rules says which bricks are a module's own, and which helpers may stand inside it.
TEST_P(PublicBricks, are_those_of_the_modules) {
    const LabelledTrace of = label(GetParam().file);
    std::vector<Trace> capture;
    ModuleOptions options;
    if (!GetParam().capture.empty()) {
        Result<Trace> read = read_trace(fs::path(folder()) / GetParam().capture, {});
        ASSERT_TRUE(read.ok()) << read.error().message;
        capture.push_back(*std::move(read));
        options.captures.push_back(&capture[0]);
    }
    const ModuleLabels modules = find_modules(of.trace, of.steps, options);
    const auto ns_where = [&](auto is) {
        double sum = 0;
        for (std::size_t i = 0; i < of.trace.ops.size(); ++i) {
            const ModuleRule* rule = modules.labels[modules.of_op[i]].rule;
            const std::string& brick = of.labels.bricks[of.labels.brick_of[i]].name;
            sum += rule != nullptr && is(*rule, brick) ? static_cast<double>(of.trace.ops[i].duration_ns()) : 0;
        }
        return sum;
    };
    std::map<std::string, double> wrong;
    const double told = ns_where([](const ModuleRule&, const std::string&) { return true; });
    const double own =
        ns_where([](const ModuleRule& rule, const std::string& brick) { return rule.owns(brick); }) / told;
    const double right = ns_where([&](const ModuleRule& rule, const std::string& brick) {
                             const bool is = rule.owns(brick) || rule.holds(brick);
                             wrong[is ? "" : std::string(rule.bricks[0]) + " is " + brick] += 1;
                             return is;
                         }) /
                         told;
    wrong.erase("");
    EXPECT_GE(100 * right, GetParam().least) << testing::PrintToString(wrong);
    EXPECT_GE(100 * own, GetParam().least_strict);
    std::printf("%s: modules tell %.1f %% of the time; of that %.2f %% right, strictly %.2f %%; %s\n",
                GetParam().file.c_str(), 100 * told / static_cast<double>(of.ns()), 100 * right, 100 * own,
                testing::PrintToString(wrong).c_str());
}

INSTANTIATE_TEST_SUITE_P(Import, PublicBricks,
                         testing::Values(ScoredTime{"qwen3_8b_mi300x_sglang/decode.json.gz",
                                                    "qwen3_8b_mi300x_sglang/capture_bs32.json.gz", 99.8, 96},
                                         ScoredTime{"qwen3_8b_mi300x_sglang/prefill.json.gz", "", 99.8, 99},
                                         ScoredTime{"qwen1.5_0.5b/h100.json.gz", "", 99.8, 90},
                                         ScoredTime{"qwen1.5_0.5b/mi300x.json.gz", "", 99.8, 94},
                                         ScoredTime{"gpt_oss_120b_b200/eager_trace.json.gz", "", 99.8, 87}),
                         test_name<ScoredTime>);

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

TEST_F(PublicFigures, kernels_of_the_two_processes_of_nsys_stand_apart) {
    using All = std::vector<std::pair<std::size_t, std::int64_t>>;
    const auto kernels = [](const std::string& file) {
        const LabelledTrace of = label(file);
        std::map<std::uint16_t, std::pair<std::size_t, std::int64_t>> found;
        for (const DeviceOp& op : of.trace.ops) {
            if (op.kind == DeviceOpKind::kernel) {
                ++found[op.process].first;
                found[op.process].second += op.duration_ns();
            }
        }
        All all;
        for (const auto& [process, figures] : found) {
            all.push_back(figures);
        }
        std::sort(all.begin(), all.end());
        return all;
    };
    EXPECT_EQ(kernels("nsys_h100/wan_dit_before.sqlite.gz"), (All{{1993, 270'875'926}, {2017, 264'324'724}}));
    EXPECT_EQ(kernels("nsys_h100/wan_dit_after.sqlite.gz"), (All{{1793, 237'473'368}, {1794, 251'362'038}}));
}

/// The largest shares of the study that found them, which worked by other rules: within half a point.
TEST_F(PublicFigures, largest_shares_are_those_of_the_study) {
    struct Share {
        const char* brick;
        double percent;
    };
    struct Study {
        const char* file;
        bool replay; // of it alone
        std::vector<Share> shares;
    };
    const Study studies[] = {
        {"deepseek_v3_h200_ep8/base/rank0.pt.trace.json.gz",
         false,
         {{"moe_combine", 40.44},
          {"moe_experts", 20.91},
          {"moe_dispatch", 14.28},
          {"qkv_projection", 8.24},
          {"output_projection", 3.03},
          {"quantise", 1.97}}},
        {"deepseek_v3_h200_ep8/deepgemm_align/rank0.pt.trace.json.gz",
         false,
         {{"moe_combine", 43.74},
          {"moe_experts", 21.19},
          {"moe_dispatch", 13.78},
          {"quantise", 3.36},
          {"qkv_projection", 3.26},
          {"output_projection", 3.23}}},
        {"qwen3_8b_mi300x_sglang/decode.json.gz",
         true,
         {{"gate_up_projection", 25.04},
          {"attention", 22.04},
          {"down_projection", 15.14},
          {"qkv_projection", 9.36},
          {"output_projection", 6.24},
          {"lm_head", 4.11}}},
        {"qwen3_8b_mi300x_sglang/prefill.json.gz",
         false,
         {{"gate_up_projection", 49.44},
          {"down_projection", 19.37},
          {"qkv_projection", 10.41},
          {"output_projection", 5.98},
          {"attention", 4.07},
          {"qk_norm", 3.55}}},
        {"qwen1.5_0.5b/h100.json.gz",
         false,
         {{"rms_norm", 23.08}, {"rope_embedding", 21.56}, {"copy", 8.63}, {"attention", 8.45}}},
        {"qwen1.5_0.5b/mi300x.json.gz", false, {{"rms_norm", 19.15}, {"rope_embedding", 14.97}, {"attention", 13.23}}},
        {"mixtral_8x7b_mi300x_tp8/rank0.rpd.gz",
         true,
         {{"moe_experts", 29.00}, {"all_reduce", 17.89}, {"moe_router", 15.04}, {"attention", 8.93}}},
        {"megatron_a100_tp8/rank0.json.gz", false, {{"all_reduce", 64.71}, {"attention", 9.70}}},
    };
    for (const Study& study : studies) {
        const LabelledTrace of = label(study.file);
        std::vector<std::uint32_t> ops(of.trace.ops.size());
        std::iota(ops.begin(), ops.end(), 0U);
        if (study.replay) {
            ops = of.steps.replays.at(0).ops;
        }
        std::map<std::string, double> ns;
        double all = 0;
        for (const std::uint32_t op : ops) {
            ns[of.labels.bricks[of.labels.brick_of[op]].name] += static_cast<double>(of.trace.ops[op].duration_ns());
            all += static_cast<double>(of.trace.ops[op].duration_ns());
        }
        for (const Share& share : study.shares) {
            EXPECT_NEAR(100 * ns[share.brick] / all, share.percent, 0.5) << study.file << " " << share.brick;
        }
    }
}

/// What a trace says of itself is not looked at where only names and places may be used.
TEST_F(PublicFigures, traces_without_what_they_say_of_themselves_give_the_same_recordings) {
    const fs::path out = fs::temp_directory_path() / ("plumb-stripped-" + std::to_string(::getpid()));
    const auto content = [](const fs::path& file) {
        return support::text_of_file(file.string());
    };
    ImportOptions options;
    options.evidence = {"name", "place"};
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
        const std::string path = entry.path().string();
        const std::string name = entry.path().filename().string();
        const bool other_rank = name.starts_with("rank") && name[4] != '0';
        if (entry.path().extension() != ".gz" || name.starts_with("capture") || other_rank) {
            continue;
        }
        fs::create_directories(out / "whole");
        fs::create_directories(out / "stripped");
        const std::string stripped = (out / name).string();
        const std::string command = "python3 '" PLUMB_STRIP_EVIDENCE "' '" + path + "' '" + stripped + "'";
        ASSERT_EQ(std::system(command.c_str()), 0) << command;
        options.out = out / "whole" / "run.plumb";
        const auto whole = import_traces({path}, options);
        options.out = out / "stripped" / "run.plumb";
        const auto bare = import_traces({stripped}, options);
        ASSERT_TRUE(whole.ok() && bare.ok()) << path;
        ASSERT_EQ(whole->size(), bare->size()) << path;
        for (std::size_t i = 0; i < whole->size(); ++i) {
            EXPECT_TRUE(content((*whole)[i].recording) == content((*bare)[i].recording)) << path;
        }
        fs::remove_all(out);
    }
}

} // namespace
} // namespace plumb::imported::public_traces_test
