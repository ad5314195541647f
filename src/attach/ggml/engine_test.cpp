// SPDX-License-Identifier: Apache-2.0
// An engine of three nodes and one scheduler, which computes by telling its nodes: what was seen whole becomes bricks.
#include "attach/ggml/engine.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "attach/ggml/hooks.hpp"
#include "plumb/plumb.hpp"

struct ggml_tensor { // as a ggml could have it
    const char* name;
    const char* operation;
    std::size_t bytes;
    std::int64_t elements, rows;
    const ggml_tensor* operands[4];
};
struct ggml_cgraph {
    std::vector<ggml_tensor*> nodes;
    int status;                                                  // that computing it gives
    std::vector<std::pair<ggml_tensor*, ggml_tensor*>> are_told; // first and last of each
};

namespace plumb::attach::ggml {
namespace {

GgmlApi api_of_test() {
    GgmlApi api;
    api.get_name = [](const Tensor* t) {
        return t->name;
    };
    api.op_desc = [](const Tensor* t) {
        return t->operation;
    };
    api.nbytes = [](const Tensor* t) {
        return t->bytes;
    };
    api.nelements = [](const Tensor* t) {
        return t->elements;
    };
    api.nrows = [](const Tensor* t) {
        return t->rows;
    };
    api.graph_n_nodes = [](Graph* g) {
        return static_cast<int>(g->nodes.size());
    };
    api.graph_node = [](Graph* g, int i) {
        return g->nodes[static_cast<std::size_t>(i)];
    };
    api.sources_at = offsetof(ggml_tensor, operands);
    return api;
}

int compute(Scheduler*, Graph* graph) {
    for (const auto& [first, last] : graph->are_told) {
        if (computing_thread != nullptr) {
            note_node(*computing_thread, first, last);
        }
    }
    return graph->status;
}

class AttachedEngine : public testing::Test {
  protected:
    AttachedEngine() {
        graph_.nodes = {&norm_, &product_, &view_, &gate_, &head_};
        graph_.status = 0;
        tell_all();
    }
    void tell_all() {
        graph_.are_told.clear();
        for (ggml_tensor* node : {&norm_, &product_, &gate_, &head_}) {
            graph_.are_told.emplace_back(node, node);
        }
    }
    int decode(std::int32_t tokens, std::int32_t* positions = nullptr, std::int32_t** sequences = nullptr) {
        const Batch batch{tokens, nullptr, nullptr, positions, nullptr, sequences, nullptr};
        return engine_.step(nullptr, batch, [this] { return engine_.compute(compute, nullptr, &graph_); });
    }
    [[nodiscard]] Report report() {
        EXPECT_TRUE(profiler_.flush().ok());
        return *profiler_.snapshot();
    }
    [[nodiscard]] static const Row* row(const Report& report, const std::string& brick, Phase phase) {
        for (const Row& found : report.bricks) {
            if (found.key.name == brick && found.key.phase == phase) {
                return &found;
            }
        }
        return nullptr;
    }

    /// Puts one node of attention into the graph, of 16 queries over a view of the cache that has 256 positions.
    void attend() {
        graph_.nodes.insert(graph_.nodes.begin() + 3, &scores_);
        graph_.are_told.insert(graph_.are_told.begin() + 2, {&scores_, &scores_});
    }
    /// Of a graph that takes so many rows from the table of embeddings.
    void read(std::int64_t tokens) {
        rows_.rows = tokens;
        rows_.elements = 16 * tokens;
        if (graph_.nodes.front() != &rows_) {
            graph_.nodes.insert(graph_.nodes.begin(), &rows_);
            graph_.are_told.insert(graph_.are_told.begin(), {&rows_, &rows_});
        }
    }

    ggml_tensor input_{"inp", "NONE", 64, 16, 1, {}};
    ggml_tensor table_{"token_embd.weight", "NONE", 4096, 1024, 64, {}};
    ggml_tensor rows_{"embd", "GET_ROWS", 64, 16, 1, {&table_, &input_}};
    ggml_tensor keys_{"cache_k_l3 (view)", "NONE", 8192, 4096, 256, {}};
    ggml_tensor scores_{"kq-3", "MUL_MAT", 1024, 256, 1, {&keys_, &input_}};
    ggml_tensor norm_weight_{"blk.3.attn_norm.weight", "NONE", 64, 16, 1, {}};
    ggml_tensor gate_weight_{"blk.3.ffn_gate.weight", "NONE", 2048, 512, 32, {}};
    ggml_tensor head_weight_{"output.weight", "NONE", 4096, 1024, 64, {}};
    ggml_tensor norm_{"norm-3", "RMS_NORM", 64, 16, 1, {&input_}};
    ggml_tensor product_{"attn_norm-3", "MUL", 64, 16, 1, {&norm_, &norm_weight_}};
    ggml_tensor view_{"node_2", "VIEW", 64, 16, 1, {&product_}};
    ggml_tensor gate_{"ffn_gate-3", "MUL_MAT", 128, 32, 1, {&gate_weight_, &view_}};
    ggml_tensor head_{"result_output", "MUL_MAT", 256, 64, 1, {&head_weight_, &gate_}};
    ggml_cgraph graph_;
    Profiler profiler_{Config::parse("on,out=none,warmup=0")};
    EngineHead names_{profiler_};
    GgmlEngine engine_{api_of_test(), "an engine", profiler_, names_};
};

TEST_F(AttachedEngine, a_graph_seen_whole_becomes_one_scope_a_node) {
    std::int32_t position = 41;
    for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(decode(1, &position), 0);
    }
    const Report found = report();
    const Row* norm = row(found, "rms_norm", Phase::decode);
    ASSERT_NE(norm, nullptr);
    EXPECT_EQ(norm->calls_per_step, 2); // the norm and the product with its weight
    const Row* gate = row(found, "gate_projection", Phase::decode);
    ASSERT_NE(gate, nullptr);
    EXPECT_EQ(gate->calls_per_step, 1);
    ASSERT_NE(row(found, "lm_head", Phase::decode), nullptr);
    EXPECT_EQ(engine_.counts().nodes, 12U * 4);
    EXPECT_EQ(engine_.counts().partly, 0U);
}

TEST_F(AttachedEngine, a_clock_behind_a_function_gives_the_same_bricks) {
    Profiler slower(Config::parse("on,out=none,warmup=0,sync=immediate"));
    ASSERT_NE(slower.mode() & detail::mode_indirect, 0U);
    EngineHead head(slower);
    GgmlEngine engine(api_of_test(), "an engine", slower, head);
    const Batch batch{1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(engine.step(nullptr, batch, [&] { return engine.compute(compute, nullptr, &graph_); }), 0);
    }
    EXPECT_EQ(engine.counts().nodes, 12U * 4);
    ASSERT_TRUE(slower.flush().ok());
    const Report found = *slower.snapshot();
    const Row* norm = row(found, "rms_norm", Phase::decode);
    ASSERT_NE(norm, nullptr);
    EXPECT_EQ(norm->calls_per_step, 2);
}

TEST_F(AttachedEngine, two_nodes_at_once_are_both_seen) {
    graph_.are_told.erase(graph_.are_told.begin(), graph_.are_told.begin() + 2);
    graph_.are_told.insert(graph_.are_told.begin(), {&norm_, &product_});
    EXPECT_EQ(decode(1), 0);
    EXPECT_EQ(engine_.counts().nodes, 4U);
}

TEST_F(AttachedEngine, a_graph_of_which_one_node_was_not_seen_has_no_bricks) {
    graph_.are_told.erase(graph_.are_told.begin() + 2);
    for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(decode(1), 0);
    }
    const Report found = report();
    EXPECT_EQ(row(found, "rms_norm", Phase::decode), nullptr);
    EXPECT_EQ(row(found, "lm_head", Phase::decode), nullptr);
    EXPECT_EQ(engine_.counts().graphs, 0U);
    EXPECT_EQ(engine_.counts().partly, 12U);
    EXPECT_EQ(engine_.counts().seen_of_partly, 12U * 3);
}

TEST_F(AttachedEngine, a_graph_that_was_aborted_has_no_bricks_and_the_next_has) {
    graph_.status = 1;
    EXPECT_EQ(decode(1), 1);
    EXPECT_EQ(row(report(), "rms_norm", Phase::decode), nullptr);
    graph_.status = 0;
    EXPECT_EQ(decode(1), 0);
    EXPECT_EQ(engine_.counts().graphs, 1U);
}

TEST_F(AttachedEngine, a_graph_through_which_the_engine_throws_has_no_bricks_and_the_next_has) {
    const auto throws = [](Scheduler* scheduler, Graph* graph) -> int {
        (void)compute(scheduler, graph);
        throw std::runtime_error("device lost");
    };
    const Batch batch{1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    graph_.are_told.pop_back();
    EXPECT_THROW(engine_.step(nullptr, batch, [&] { return engine_.compute(throws, nullptr, &graph_); }),
                 std::runtime_error);
    EXPECT_EQ(computing_thread, nullptr);
    EXPECT_EQ(engine_.counts().partly, 1U);
    EXPECT_EQ(engine_.counts().seen_of_partly, 3U);
    tell_all();
    EXPECT_EQ(decode(1), 0);
    EXPECT_EQ(engine_.counts().graphs, 1U);
    EXPECT_EQ(row(report(), "lm_head", Phase::decode)->time.count, 1U);
}

TEST_F(AttachedEngine, a_sampler_that_throws_is_not_the_last_that_is_recorded) {
    EXPECT_EQ(decode(1), 0);
    EXPECT_THROW(engine_.sample([](void*, void*) { throw std::runtime_error("no grammar"); }, nullptr, nullptr),
                 std::runtime_error);
    engine_.sample([](void*, void*) {}, nullptr, nullptr);
    EXPECT_EQ(row(report(), "sampling", Phase::decode)->time.count, 2U);
}

TEST_F(AttachedEngine, a_changed_graph_is_planned_anew) {
    EXPECT_EQ(decode(1), 0);
    ggml_tensor other = gate_;
    other.name = "ffn_up-3";
    ggml_tensor weight{"blk.3.ffn_up.weight", "NONE", 2048, 512, 32, {}};
    other.operands[0] = &weight;
    graph_.nodes[3] = &other;
    graph_.are_told[2] = {&other, &other};
    EXPECT_EQ(decode(1), 0);
    EXPECT_EQ(engine_.counts().nodes, 8U);
    EXPECT_EQ(engine_.counts().partly, 0U);
}

TEST_F(AttachedEngine, sequences_of_one_token_decode_and_longer_ones_are_filled) {
    std::int32_t zero = 0;
    std::int32_t one = 1;
    std::int32_t positions[] = {7, 0, 1, 2};
    std::int32_t* sequences[] = {&zero, &one, &one, &one};
    EXPECT_EQ(decode(4, positions, sequences), 0);
    std::int32_t* alone[] = {&one, &one, &one};
    EXPECT_EQ(decode(3, positions + 1, alone), 0);
    const Report found = report();
    const auto steps_of = [&found](Phase phase) {
        for (const PhaseSummary& row : found.phases) {
            if (row.phase == phase) {
                return row.steps;
            }
        }
        return std::uint64_t{0};
    };
    EXPECT_EQ(steps_of(Phase::mixed), 1U);
    EXPECT_EQ(steps_of(Phase::prefill), 1U);
}

TEST_F(AttachedEngine, nothing_is_noted_outside_a_step) {
    engine_.originals[static_cast<std::size_t>(Function::llama_decode)] = &engine_;
    EXPECT_EQ(engine_.compute(compute, nullptr, &graph_), 0);
    EXPECT_EQ(engine_.counts().graphs, 0U);
    EXPECT_EQ(computing_thread, nullptr);
}

TEST_F(AttachedEngine, a_graph_is_a_step_where_no_slot_tells_of_steps) {
    read(1);
    EXPECT_EQ(engine_.compute(compute, nullptr, &graph_), 0);
    read(5);
    EXPECT_EQ(engine_.compute(compute, nullptr, &graph_), 0);
    const Report found = report();
    ASSERT_EQ(found.phases.size(), 2U);
    for (const PhaseSummary& phase : found.phases) {
        EXPECT_EQ(phase.tokens, phase.phase == Phase::decode ? 1U : 5U);
    }
    EXPECT_NE(row(found, "lm_head", Phase::decode), nullptr);
}

TEST_F(AttachedEngine, a_forked_child_does_not_wait_for_what_another_thread_knew) {
    std::atomic<bool> forked{false};
    std::thread other([&] {
        while (!forked) {
            engine_.logits_asked(nullptr);
        }
    });
    int ended = 0;
    for (int i = 0; i < 100; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            engine_.forget(nullptr);
            _exit(0);
        }
        int status = -1;
        ended += waitpid(child, &status, 0) == child && WIFEXITED(status) ? 1 : 0;
        if (ended <= i) {
            break;
        }
    }
    forked = true;
    other.join();
    EXPECT_EQ(ended, 100);
}

TEST_F(AttachedEngine, each_part_of_a_prompt_counts_the_positions_that_are_in_the_cache_by_then) {
    attend();
    read(4);
    const Batch batch{8, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    EXPECT_EQ(engine_.step(nullptr, batch,
                           [this] {
                               EXPECT_EQ(engine_.compute(compute, nullptr, &graph_), 0);
                               return engine_.compute(compute, nullptr, &graph_);
                           }),
              0);
    const Report made = report();
    const Row* attention = row(made, "attention", Phase::prefill);
    const double per_position = (8192 + 1024) / 256.0;
    EXPECT_EQ(attention->bytes_per_call.value, 64 + per_position * (4 + 8) / 2);
    EXPECT_EQ(attention->flops_per_call.value, 2 * 16 * (4 + 8) / 2);
}

TEST_F(AttachedEngine, of_a_view_of_the_cache_what_lies_between_its_elements_does_not_count) {
    ggml_tensor cache{"cache_v_l3", "NONE", 131072, 65536, 4096, {}};
    ggml_tensor part{"cache_v_l3 (view)", "VIEW", 123392, 4096, 16, {&cache}}; // 256 of 4096 positions in each row
    ggml_tensor turned{"cache_v_l3 (view) (permuted)", "PERMUTE", 123392, 4096, 16, {&part}};
    ggml_tensor sum{"kqv-3", "MUL_MAT", 64, 16, 1, {&turned, &scores_}};
    graph_.nodes.insert(graph_.nodes.begin() + 3, {&part, &turned, &sum});
    graph_.are_told.insert(graph_.are_told.begin() + 2, {&sum, &sum});
    std::int32_t position = 31;
    EXPECT_EQ(decode(1, &position), 0);
    const Report made = report();
    const Row* attention = row(made, "attention", Phase::decode);
    EXPECT_EQ(attention->bytes_per_call.value, 64 + 32 * (2 * 4096 + 1024) / 256);
    EXPECT_EQ(attention->flops_per_call.value, 32 * 2 * 16);
}

TEST_F(AttachedEngine, a_graph_that_takes_no_rows_from_a_table_of_embeddings_has_no_phase) {
    EXPECT_EQ(engine_.compute(compute, nullptr, &graph_), 0);
    const Report found = report();
    EXPECT_TRUE(found.phases.empty());
    EXPECT_NE(row(found, "lm_head", Phase::none), nullptr);
}

TEST_F(AttachedEngine, all_models_and_engines_of_a_process_are_described) {
    const auto described = [this](const std::string& key) {
        const Report found = report();
        for (const auto& [known, text] : found.description) {
            if (known == key) {
                return text;
            }
        }
        return std::string();
    };
    GgmlEngine other(api_of_test(), "another one", profiler_, names_);
    EXPECT_EQ(engine_.compute(compute, nullptr, &graph_), 0);
    EXPECT_EQ(other.compute(compute, nullptr, &graph_), 0);
    EXPECT_EQ(described("engine"), "an engine, not built for this profiler + another one, not built for this profiler");
    for (const char* model : {"a", "b", "a"}) {
        names_.add("model", model);
    }
    EXPECT_EQ(described("model"), "a + b");
    for (const char* model : {"c", "d", "e", "f"}) {
        names_.add("model", model);
    }
    EXPECT_EQ(described("model"), "a + b + c + d + 2 more");
}

TEST_F(AttachedEngine, work_that_depends_on_a_length_of_the_cache_which_is_not_known_is_absent) {
    attend();
    read(1);
    EXPECT_EQ(engine_.compute(compute, nullptr, &graph_), 0);
    const Report found = report();
    const Row* attention = row(found, "attention", Phase::decode);
    ASSERT_NE(attention, nullptr);
    EXPECT_FALSE(attention->bytes_per_call.value.has_value());
    EXPECT_FALSE(attention->flops_per_call.value.has_value());
    EXPECT_FALSE(attention->elements_per_call.value.has_value());
    EXPECT_EQ(row(found, "lm_head", Phase::decode)->flops_per_call.value, 2 * 1024);
}

TEST_F(AttachedEngine, a_layer_beyond_those_that_a_record_can_hold_is_counted_and_no_other_layer) {
    attend();
    scores_.name = "kq-65539";
    EXPECT_EQ(decode(1), 0);
    const Report found = report();
    ASSERT_EQ(found.losses.size(), 1U);
    EXPECT_EQ(found.losses[0].count, 1U);
    EXPECT_NE(found.losses[0].reason.find("layer with an index beyond"), std::string::npos);
    EXPECT_NE(row(found, "attention", Phase::decode), nullptr);
}

TEST_F(AttachedEngine, of_a_context_that_has_gone_nothing_is_kept) {
    int memory[20];
    for (int& one : memory) {
        auto* const context = reinterpret_cast<llama_context*>(&one);
        auto* const scheduler = reinterpret_cast<Scheduler*>(&one);
        const Batch batch{1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
        EXPECT_EQ(engine_.step(context, batch, [&] { return engine_.compute(compute, scheduler, &graph_); }), 0);
        EXPECT_EQ(engine_.known(), 2U);
        engine_.forget(scheduler);
        EXPECT_EQ(engine_.known(), 0U);
    }
    EXPECT_EQ(engine_.counts().graphs, 20U);
}

class DevicePlan : public AttachedEngine {
  protected:
    DevicePlan() {
        graph_.nodes = {&norm_, &product_, &view_, &gate_, &up_, &activation_, &down_};
        plan_.prepare(api_of_test(), &graph_, [this](std::string_view name) { return profiler_.intern(name); });
    }
    void pass(std::initializer_list<std::size_t> visited) {
        for (const std::size_t at : visited) {
            plan_.visit(at);
        }
        plan_.end_pass();
    }
    ggml_tensor up_weight_{"blk.3.ffn_up.weight", "NONE", 2048, 512, 32, {}};
    ggml_tensor down_weight_{"blk.3.ffn_down.weight", "NONE", 2048, 512, 16, {}};
    ggml_tensor up_{"ffn_up-3", "MUL_MAT", 128, 32, 1, {&up_weight_, &view_}};
    ggml_tensor activation_{"ffn_swiglu-3", "SWIGLU", 128, 32, 1, {&gate_, &up_}};
    ggml_tensor down_{"ffn_out-3", "MUL_MAT", 64, 16, 1, {&down_weight_, &activation_}};
    NodePlan plan_;
};

TEST_F(DevicePlan, each_node_is_a_group_until_some_were_computed_together) {
    EXPECT_EQ(plan_.group_at(3).brick, Name(Brick::gate_projection));
    pass({0, 1, 3, 4, 5, 6}); // it looked at all of them, and computed none
    EXPECT_EQ(plan_.group_at(3).brick, Name(Brick::gate_projection));
    pass({0, 3, 6});
    EXPECT_EQ(plan_.group_at(0).brick, Name(Brick::rms_norm));
    const NodeGroup both = plan_.group_at(3);
    EXPECT_EQ(both.brick, Name(Brick::gate_up_projection));
    EXPECT_EQ(both.layer, 3);
    EXPECT_EQ(both.work.bytes, plan_.nodes()[3].work.bytes + plan_.nodes()[4].work.bytes + plan_.nodes()[5].work.bytes);
    EXPECT_EQ(plan_.group_at(6).brick, Name(Brick::down_projection));
    pass({4, 6}); // the next part of the graph: what was known of the first stays
    EXPECT_EQ(plan_.group_at(0).work.bytes, plan_.nodes()[0].work.bytes + plan_.nodes()[1].work.bytes);
}

TEST_F(DevicePlan, a_backend_may_put_nodes_into_another_order) {
    pass({4, 0, 3, 6});
    EXPECT_EQ(plan_.group_at(3).brick, Name(Brick::gate_projection)); // what follows it was visited by itself
    EXPECT_EQ(plan_.group_at(4).work.bytes, plan_.nodes()[4].work.bytes + plan_.nodes()[5].work.bytes);
    EXPECT_TRUE(plan_.visit(3));
    EXPECT_FALSE(plan_.visit(3));
}

TEST_F(DevicePlan, groups_are_those_of_the_same_operations_in_the_same_order) {
    pass({0, 3, 6});
    const auto intern = [this](std::string_view name) {
        return profiler_.intern(name);
    };
    ggml_tensor other = down_;
    graph_.nodes.back() = &other;
    plan_.prepare(api_of_test(), &graph_, intern);
    EXPECT_EQ(plan_.group_at(3).brick, Name(Brick::gate_up_projection));
    other.operation = "ADD";
    plan_.prepare(api_of_test(), &graph_, intern);
    EXPECT_EQ(plan_.group_at(3).brick, Name(Brick::gate_projection));
    EXPECT_EQ(plan_.find(&other), 6U);
    EXPECT_EQ(plan_.find(&down_), 7U);
}

} // namespace
} // namespace plumb::attach::ggml
