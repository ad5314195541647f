// SPDX-License-Identifier: Apache-2.0
// libggml-cpu-*: computes a graph with a team of threads. A node's work is to be busy for the time that was planted in it;
// threads beyond the first are busy LOOKALIKE_IMBALANCE (1) times as long.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>
#include <vector>

#include "lookalike/graph.hpp"

#ifndef LOOKALIKE_SCORE
#define LOOKALIKE_SCORE 64
#endif

struct ggml_threadpool {
    const ggml_cgraph* graph;
    const ggml_cplan* plan;
    std::atomic<int> arrived{0}, passed{0};
    std::atomic<int> abort{-1};
};

namespace {

struct CpuBackend : ggml_backend {
    int n_threads = 1;
    ggml_abort_callback abort_callback = nullptr;
    void* abort_data = nullptr;
};

bool does_nothing(const ggml_tensor* node) {
    return node->op == GGML_OP_NONE || node->op == GGML_OP_VIEW || node->op == GGML_OP_RESHAPE ||
           node->op == GGML_OP_PERMUTE || node->op == GGML_OP_TRANSPOSE || ggml_is_empty(node);
}

double imbalance() {
    const char* text = std::getenv("LOOKALIKE_IMBALANCE");
    return text != nullptr ? std::atof(text) : 1.0;
}

bool fusing() { return std::getenv("GGML_CPU_DISABLE_FUSION") == nullptr; }

void work(const ggml_compute_params* params, ggml_tensor* node, std::int64_t ns) {
    lookalike::Step* step = lookalike::planted(node)->step;
    if (params->ith != 0) {
        lookalike_busy(static_cast<std::int64_t>(static_cast<double>(ns) * imbalance()));
        return;
    }
    lookalike::Node& noted = step->nodes.back();
    noted.entered = lookalike_now();
    lookalike_busy(ns);
    noted.left = lookalike_now();
}

void note(const ggml_compute_params* params, const ggml_tensor* node) {
    if (params->ith == 0) {
        lookalike::planted(node)->step->nodes.push_back(
            {node->name, ggml_op_desc(node), *lookalike::planted(node), 0, 0, 0, 0});
        lookalike::planted(node)->step->nodes.back().called = lookalike_now();
    }
}

void compute_forward(ggml_compute_params* params, ggml_tensor* node) {
    if (ggml_cpu_extra_compute_forward(params, node)) {
        return;
    }
    work(params, node, lookalike::planted(node)->ns);
}

// How many nodes were done as one; 0: none.
int try_fused(const ggml_compute_params* params, const std::vector<ggml_tensor*>& nodes, std::size_t i) {
    if (!fusing() || i + 1 == nodes.size() || nodes[i]->op != GGML_OP_RMS_NORM || nodes[i + 1]->op != GGML_OP_MUL ||
        nodes[i + 1]->src[0] != nodes[i]) {
        return 0;
    }
    note(params, nodes[i + 1]);
    if (params->ith == 0) {
        lookalike::planted(nodes[i])->step->nodes.back().planted.ns += lookalike::planted(nodes[i])->ns;
    }
    ggml_compute_forward_rms_norm_mul_fused(params, nodes[i], nodes[i + 1]);
    return 2;
}

void compute_thread(ggml_threadpool* pool, int ith) {
    ggml_compute_params params{ith, pool->plan->n_threads, 0, nullptr, pool};
    const std::vector<ggml_tensor*>& nodes = pool->graph->nodes;
    std::vector<lookalike::Node>* noted = pool->graph->step != nullptr ? &pool->graph->step->nodes : nullptr;
    for (std::size_t i = 0; i < nodes.size() && pool->abort.load(std::memory_order_relaxed) != static_cast<int>(i);
         ++i) {
        if (does_nothing(nodes[i])) {
            continue;
        }
        if (const int fused = try_fused(&params, nodes, i); fused > 0) {
            i += static_cast<std::size_t>(fused) - 1;
        } else {
            note(&params, nodes[i]);
            compute_forward(&params, nodes[i]);
        }
        if (ith == 0 && pool->plan->abort_callback != nullptr &&
            pool->plan->abort_callback(pool->plan->abort_callback_data)) {
            pool->abort.store(static_cast<int>(i) + 1, std::memory_order_relaxed);
        }
        if (i + 1 < nodes.size()) {
            ggml_barrier(pool);
        }
        if (ith == 0 && noted != nullptr) {
            noted->back().passed = lookalike_now();
        }
    }
    ggml_barrier(pool);
}

ggml_status backend_graph_compute(ggml_backend_t backend, ggml_cgraph* graph) {
    auto* cpu = static_cast<CpuBackend*>(backend);
    ggml_cplan plan = ggml_graph_plan(graph, cpu->n_threads, nullptr);
    plan.abort_callback = cpu->abort_callback;
    plan.abort_callback_data = cpu->abort_data;
    return ggml_graph_compute(graph, &plan);
}

} // namespace

extern "C" LOOKALIKE_INTERNAL void ggml_barrier(ggml_threadpool* pool) {
    if (pool->plan->n_threads == 1) {
        return;
    }
    const int before = pool->passed.load(std::memory_order_relaxed);
    if (pool->arrived.fetch_add(1) == pool->plan->n_threads - 1) {
        pool->arrived.store(0, std::memory_order_relaxed);
        pool->passed.fetch_add(1);
        return;
    }
    while (pool->passed.load(std::memory_order_acquire) == before) {
        sched_yield();
    }
}

extern "C" LOOKALIKE_INTERNAL bool ggml_cpu_extra_compute_forward(ggml_compute_params*, ggml_tensor*) { return false; }

extern "C" LOOKALIKE_INTERNAL void ggml_compute_forward_rms_norm_mul_fused(const ggml_compute_params* params,
                                                                           ggml_tensor* norm, ggml_tensor* mul) {
    work(params, mul, lookalike::planted(norm)->ns + lookalike::planted(mul)->ns);
}

ggml_cplan ggml_graph_plan(const ggml_cgraph*, int n_threads, ggml_threadpool* threadpool) {
    return {0, nullptr, n_threads, threadpool, nullptr, nullptr};
}

ggml_status ggml_graph_compute(ggml_cgraph* graph, ggml_cplan* plan) {
    ggml_threadpool pool{graph, plan};
    std::vector<std::thread> team;
    for (int ith = 1; ith < plan->n_threads; ++ith) {
        team.emplace_back(compute_thread, &pool, ith);
    }
    compute_thread(&pool, 0);
    for (std::thread& thread : team) {
        thread.join();
    }
    return pool.abort.load() >= 0 ? GGML_STATUS_ABORTED : GGML_STATUS_SUCCESS;
}

ggml_backend_t ggml_backend_cpu_init() {
    auto* cpu = new CpuBackend;
    cpu->name = "CPU";
    cpu->graph_compute = backend_graph_compute;
    cpu->free = [](ggml_backend_t backend) {
        delete static_cast<CpuBackend*>(backend);
    };
    return cpu;
}
void ggml_backend_cpu_set_n_threads(ggml_backend_t backend, int n_threads) {
    static_cast<CpuBackend*>(backend)->n_threads = n_threads;
}
void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data) {
    static_cast<CpuBackend*>(backend)->abort_callback = callback;
    static_cast<CpuBackend*>(backend)->abort_data = data;
}

int ggml_backend_score() { return LOOKALIKE_SCORE; }
ggml_backend_reg_t ggml_backend_init() {
    static ggml_backend_reg reg{2, "CPU", ggml_backend_cpu_init, ggml_backend_cpu_set_n_threads,
                                ggml_backend_cpu_set_abort_callback};
    return &reg;
}
