// SPDX-License-Identifier: Apache-2.0
// Bricks of an engine over ggml, through ggml's own eval callback: include it after ggml.h, link libplumb. C99 or later, and C++.
//
// One plumb_ggml for each scheduler or llama_context; give plumb_ggml_eval and its address where the engine takes an eval callback
// (cb_eval of llama_context_params, ggml_backend_sched_set_eval_callback), and put each decode between plumb_ggml_begin_step()
// and plumb_ggml_end_step(). ggml computes a node at a time where its callback asks for it, and waits for each, which costs. So bricks
// are timed in one step out of N (device.every=N, 8), and those steps are apart from the others in every figure.
// Thread rule: as the scheduler, one thread at a time.
#pragma once

#ifndef GGML_MAX_NAME
#error "include ggml.h before plumb/ggml.h"
#endif

#include <string.h>

#include "plumb/plumb.h"

typedef struct plumb_ggml {
    plumb_profiler* profiler;
    plumb_queue queue;
    plumb_ggml_node node;    // the last one
    uint32_t layer_plus_one; // that is open
    int step_is_open;
    int timed; // the step that is open is
    int brick_is_open;
} plumb_ggml;

/// `name` is what reports call the queue of these bricks, such as "ggml".
static inline plumb_code plumb_ggml_init(plumb_ggml* ggml, plumb_profiler* profiler, const char* name) {
    memset(ggml, 0, sizeof *ggml);
    ggml->profiler = profiler;
    ggml->queue.struct_size = sizeof ggml->queue;
    return plumb_sampled(name, &ggml->queue);
}

static inline void plumb_ggml_leave_brick(plumb_ggml* ggml) {
    if (ggml->brick_is_open) {
        ggml->brick_is_open = 0;
        (void)plumb_pop_scope(ggml->profiler);
    }
}

static inline void plumb_ggml_enter_layer(plumb_ggml* ggml, uint32_t layer_plus_one) {
    if (layer_plus_one != ggml->layer_plus_one) {
        if (ggml->layer_plus_one != 0) {
            (void)plumb_pop_scope(ggml->profiler);
        }
        ggml->layer_plus_one = 0;
        if (layer_plus_one != 0 && plumb_push_layer(ggml->profiler, layer_plus_one - 1) == plumb_ok) {
            ggml->layer_plus_one = layer_plus_one;
        }
    }
}

static inline plumb_code plumb_ggml_begin_step(plumb_ggml* ggml, const plumb_step* step) {
    const plumb_code pushed = plumb_push_step(ggml->profiler, NULL, step);
    ggml->step_is_open = pushed == plumb_ok;
    memset(&ggml->node, 0, sizeof ggml->node);
    ggml->node.struct_size = sizeof ggml->node;
    ggml->node.kv_length = pushed == plumb_ok ? step->kv_length : 0;
    ggml->timed = pushed == plumb_ok && plumb_timed(ggml->profiler);
    return pushed;
}

/// Also ends what a graph that was given up left open. Nothing for a step that was refused.
static inline plumb_code plumb_ggml_end_step(plumb_ggml* ggml) {
    plumb_ggml_leave_brick(ggml);
    plumb_ggml_enter_layer(ggml, 0);
    ggml->timed = 0;
    if (!ggml->step_is_open) {
        return plumb_ok;
    }
    ggml->step_is_open = 0;
    return plumb_pop_scope(ggml->profiler);
}

static inline plumb_ggml_tensor plumb_ggml_facts(const struct ggml_tensor* tensor) {
    plumb_ggml_tensor facts;
    memset(&facts, 0, sizeof facts);
    if (tensor != NULL) {
        facts.name = ggml_get_name(tensor);
        facts.elements = ggml_nelements(tensor);
        facts.bytes = ggml_row_size(tensor->type, facts.elements);
        facts.rows = ggml_nrows(tensor);
    }
    return facts;
}

/// The eval callback; `user` is the plumb_ggml.
static inline bool plumb_ggml_eval(struct ggml_tensor* tensor, bool ask, void* user) {
    plumb_ggml* ggml = (plumb_ggml*)user;
    plumb_ggml_node* node = &ggml->node;
    size_t i;
    if (!ggml->timed) {
        return !ask; // a graph goes in one piece
    }
    if (!ask) {
        plumb_ggml_leave_brick(ggml);
        return true;
    }
    node->operation = ggml_op_desc(tensor);
    node->tensor = plumb_ggml_facts(tensor);
    for (i = 0; i < sizeof node->sources / sizeof node->sources[0]; ++i) {
        node->sources[i] = plumb_ggml_facts(tensor->src[i]);
    }
    if (plumb_ggml_describe(ggml->profiler, node) != plumb_ok || !node->timed) {
        return false;
    }
    plumb_ggml_enter_layer(ggml, node->layer_plus_one);
    ggml->brick_is_open = plumb_push_scope(ggml->profiler, &ggml->queue, node->brick, &node->work) == plumb_ok;
    return true;
}
