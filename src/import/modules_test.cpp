// SPDX-License-Identifier: Apache-2.0
#include "import/modules.hpp"

#include <gtest/gtest.h>

#include "import/labels.hpp"

namespace plumb::imported {
namespace {

/// A host thread that opens modules and launches kernels, each a microsecond after the one before.
class Program {
  public:
    Program& open(const std::string& name, std::int64_t launches, HostOpKind kind = HostOpKind::module) {
        host(name, kind, now_ + 500, now_ + 1000 * launches + 400, no_id, "");
        return *this;
    }
    Program& launch(const std::string& kernel, std::uint64_t replay_of = no_id) {
        now_ += 1000;
        const std::uint64_t id = replay_of == no_id ? ++correlation_ : replay_of;
        if (replay_of == no_id) {
            host("cudaLaunchKernel", HostOpKind::api, now_, now_ + 100, id, kernel);
        }
        RawDeviceOp& op = ops_.emplace_back();
        op.op.start_ns = now_ + 200;
        op.op.end_ns = now_ + 700;
        op.op.correlation = id;
        op.name = kernel;
        op.module = module_;
        return *this;
    }
    Program& call(const std::string& name, const std::string& kernel = {}) {
        now_ += 1000;
        host(name, HostOpKind::api, now_, now_ + 100, ++correlation_, kernel);
        return *this;
    }
    Program& module_of_kernels(const std::string& name) {
        module_ = name;
        return *this;
    }
    [[nodiscard]] std::uint64_t last_call() const { return correlation_; }
    Trace trace() {
        TraceBuilder builder;
        builder.facts.tool = "test";
        builder.add(ops_, host_);
        return builder.finish();
    }

  private:
    void host(const std::string& name, HostOpKind kind, std::int64_t begin, std::int64_t end, std::uint64_t id,
              const std::string& kernel) {
        RawHostOp& op = host_.emplace_back();
        op.op.kind = kind;
        op.op.start_ns = begin;
        op.op.end_ns = end;
        op.op.correlation = id;
        op.name = name;
        op.target = kernel;
    }

    std::vector<RawDeviceOp> ops_;
    std::vector<RawHostOp> host_;
    std::int64_t now_ = 1000;
    std::uint64_t correlation_ = 0;
    std::string module_;
};

Labels labels_of(const Trace& trace, const ModuleOptions& options = {}) {
    const EngineSteps steps = find_steps(trace);
    const ModuleLabels modules = find_modules(trace, steps, options);
    Result<KernelRules> rules = KernelRules::load({});
    LabelOptions label_options;
    label_options.modules = &modules;
    return label_operations(trace, steps, *rules, label_options);
}

const std::string& brick(const Labels& labels, std::size_t op) { return labels.bricks[labels.brick_of[op]].name; }

Program layers_of(HostOpKind kind, const std::vector<std::vector<std::string>>& names) {
    Program program;
    for (const std::vector<std::string>& layer : names) {
        program.open(layer[0], 3, kind).open(layer[1], 1, kind).launch("k1").open(layer[2], 2, kind);
        program.launch("k2").launch("k3");
    }
    return program;
}

TEST(Modules, of_a_stack_are_bricks_and_layers) {
    Program program = layers_of(
        HostOpKind::module, {{"nn.Module: XDecoderLayer_0", "nn.Module: RMSNorm_0", "nn.Module: DownRowParallel_0"},
                             {"nn.Module: XDecoderLayer_1", "nn.Module: RMSNorm_1", "nn.Module: DownRowParallel_1"}});
    const Trace trace = program.trace();
    const Labels labels = labels_of(trace);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(brick(labels, i), i % 3 == 0 ? "rms_norm" : "down_projection") << i;
        EXPECT_EQ(labels.evidence_of[i], LabelEvidence::stack) << i;
        EXPECT_EQ(labels.layer_of[i], i / 3 + 1) << i;
    }
    ASSERT_EQ(labels.passes.size(), 1U);
    EXPECT_EQ(labels.passes[0].layers, 2U);
    EXPECT_TRUE(labels.passes[0].certain);
    EXPECT_EQ(labels.passes[0].told, LabelEvidence::stack);
    ModuleOptions without;
    without.stacks = false;
    EXPECT_EQ(brick(labels_of(trace, without), 0), "k1");
}

TEST(Modules, of_named_ranges_are_annotations) {
    Program program = layers_of(HostOpKind::annotation,
                                {{"model.layers.0", "{'Module': 'model.layers.0.input_layernorm', 'Inputs': []}",
                                  "model.layers.0.mlp.down_proj"},
                                 {"model.layers.1", "model.layers.1.input_layernorm", "model.layers.1.mlp.down_proj"}});
    const Labels labels = labels_of(program.trace());
    EXPECT_EQ(brick(labels, 0), "rms_norm");
    EXPECT_EQ(brick(labels, 5), "down_projection");
    EXPECT_EQ(labels.evidence_of[5], LabelEvidence::annotation);
    EXPECT_EQ(labels.layer_of[5], 2);
}

TEST(Modules, of_two_kinds_of_layers_are_counted_as_they_come) {
    Program program = layers_of(HostOpKind::module,
                                {{"nn.Module: LinearDecoderLayer_0", "nn.Module: RMSNorm_0", "nn.Module: SiLU_0"},
                                 {"nn.Module: FullDecoderLayer_0", "nn.Module: RMSNorm_1", "nn.Module: SiLU_1"},
                                 {"nn.Module: LinearDecoderLayer_1", "nn.Module: RMSNorm_2", "nn.Module: SiLU_2"}});
    const Labels labels = labels_of(program.trace());
    for (std::size_t i = 0; i < 9; ++i) {
        EXPECT_EQ(labels.layer_of[i], i / 3 + 1) << i;
    }
}

TEST(Modules, that_never_end_are_bounded) {
    Program program;
    constexpr int modules = 1000;
    for (int i = 0; i < modules; ++i) {
        program.open("nn.Module: XDecoderLayer_" + std::to_string(i), 2 * modules).launch("k");
    }
    const Trace trace = program.trace();
    const ModuleLabels found = find_modules(trace, find_steps(trace));
    EXPECT_EQ(found.labels.size(), 257U) << "none, and one for each that was opened in another";
    EXPECT_EQ(found.of_op[100], 101U);
    EXPECT_EQ(found.of_op[modules - 1], 256U);
}

TEST(Modules, of_more_words_than_any_model_has_are_one_label) {
    Program program;
    std::string path = "layers.0";
    for (int i = 0; i < 150; ++i) {
        path += ".a";
    }
    for (int i = 0; i < 10; ++i) {
        program.open(path + std::to_string(i), 20, HostOpKind::annotation).launch("k");
    }
    const Trace trace = program.trace();
    EXPECT_EQ(find_modules(trace, find_steps(trace)).labels.size(), 3U)
        << "none, one path, and what 256 words hold of more";
}

TEST(Modules, of_labels_on_kernels_of_a_graph_are_annotations) {
    Program program;
    program.module_of_kernels("ffn::layers.0.feed_forward.w2").call("cudaGraphLaunch");
    const std::uint64_t replay = program.last_call();
    for (int i = 0; i < 9; ++i) {
        program.launch("k", replay);
    }
    const Labels labels = labels_of(program.trace());
    EXPECT_EQ(brick(labels, 8), "down_projection");
    EXPECT_EQ(labels.layer_of[8], 1);
}

TEST(Modules, of_a_capture_are_those_of_the_replay_with_its_kernels) {
    const auto capture = [](const std::string& last) {
        Program program;
        program.call("cudaStreamBeginCapture").open("nn.Module: XDecoderLayer_0", 10).open("nn.Module: RMSNorm_0", 9);
        for (int i = 0; i < 9; ++i) {
            program.call("cudaLaunchKernel", i == 8 ? last : "k");
        }
        return program.call("cudaStreamEndCapture").trace();
    };
    Program program;
    program.call("cudaGraphLaunch");
    const std::uint64_t replay = program.last_call();
    for (int i = 0; i < 9; ++i) {
        program.launch(i == 8 ? "end" : "k", replay);
    }
    const Trace trace = program.trace();
    const Trace right = capture("end");
    const Trace wrong = capture("other");
    ModuleOptions options;
    options.captures = {&wrong, &right};
    const Labels labels = labels_of(trace, options);
    EXPECT_EQ(brick(labels, 8), "rms_norm");
    EXPECT_EQ(labels.evidence_of[8], LabelEvidence::capture);
    EXPECT_EQ(labels.layer_of[8], 1);
    options.captures = {&right, &right}; // it is not known which
    EXPECT_EQ(brick(labels_of(trace, options), 8), "end");
    options.captures = {&wrong};
    EXPECT_EQ(find_modules(trace, find_steps(trace), options).notes.at(0),
              "1 capture was read: 0 of 1 replays hold their kernels");
}

} // namespace
} // namespace plumb::imported
