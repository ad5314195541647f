// SPDX-License-Identifier: Apache-2.0
// libggml-base: tensors, graphs, and the scheduler that hands graphs to backends.
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "lookalike/graph.hpp"

// Tensors come one after the other from one piece of memory; after ggml_reset() the same addresses are other tensors.
struct ggml_context {
    std::vector<ggml_tensor> tensors;
    std::size_t used = 0;
    std::unique_ptr<ggml_cgraph> graph;
};

struct ggml_backend_sched {
    std::vector<ggml_backend_t> backends;
    ggml_backend_sched_eval_callback callback = nullptr;
    void* data = nullptr;
    bool allocated = false;
};

const char* ggml_version() { return "0.0.1-lookalike"; }
const char* ggml_commit() { return "planted"; }

ggml_context* ggml_init(ggml_init_params params) {
    auto* context = new ggml_context;
    context->tensors.resize(params.mem_size / sizeof(ggml_tensor));
    return context;
}
void ggml_free(ggml_context* context) { delete context; }
void ggml_reset(ggml_context* context) {
    context->used = 0;
    context->graph.reset();
}

ggml_tensor* ggml_new_tensor_3d(ggml_context* context, ggml_type type, std::int64_t ne0, std::int64_t ne1,
                                std::int64_t ne2) {
    if (context->used == context->tensors.size()) {
        return nullptr;
    }
    ggml_tensor* made = &context->tensors[context->used++];
    *made = ggml_tensor{};
    made->type = type;
    const std::int64_t ne[4] = {ne0, ne1, ne2, 1};
    std::memcpy(made->ne, ne, sizeof ne);
    made->nb[0] = ggml_type_size(type);
    made->nb[1] = ggml_row_size(type, ne0);
    made->nb[2] = made->nb[1] * static_cast<std::size_t>(ne1);
    made->nb[3] = made->nb[2] * static_cast<std::size_t>(ne2);
    return made;
}
ggml_tensor* ggml_new_tensor_2d(ggml_context* context, ggml_type type, std::int64_t ne0, std::int64_t ne1) {
    return ggml_new_tensor_3d(context, type, ne0, ne1, 1);
}
ggml_tensor* ggml_new_tensor_1d(ggml_context* context, ggml_type type, std::int64_t ne0) {
    return ggml_new_tensor_3d(context, type, ne0, 1, 1);
}
std::size_t ggml_tensor_overhead() { return sizeof(ggml_tensor) + 32; } // behind a head of its own

namespace {
ggml_tensor* with_sources(ggml_tensor* made, ggml_op op, ggml_tensor* a, ggml_tensor* b) {
    made->op = op;
    made->src[0] = a;
    made->src[1] = b;
    return made;
}
} // namespace
ggml_tensor* ggml_mul_mat(ggml_context* context, ggml_tensor* a, ggml_tensor* b) {
    ggml_tensor* made = ggml_new_tensor_3d(context, GGML_TYPE_F32, a->ne[1], b->ne[1], b->ne[2]);
    return with_sources(made, GGML_OP_MUL_MAT, a, b);
}
ggml_tensor* ggml_get_rows(ggml_context* context, ggml_tensor* from, ggml_tensor* rows) {
    ggml_tensor* made = ggml_new_tensor_3d(context, GGML_TYPE_F32, from->ne[0], rows->ne[0], rows->ne[1]);
    return with_sources(made, GGML_OP_GET_ROWS, from, rows);
}
ggml_tensor* ggml_soft_max(ggml_context* context, ggml_tensor* of) {
    ggml_tensor* made = ggml_new_tensor_3d(context, GGML_TYPE_F32, of->ne[0], of->ne[1], of->ne[2]);
    return with_sources(made, GGML_OP_SOFT_MAX, of, nullptr);
}

ggml_tensor* ggml_set_name(ggml_tensor* tensor, const char* name) {
    std::snprintf(tensor->name, sizeof tensor->name, "%s", name);
    return tensor;
}
const char* ggml_get_name(const ggml_tensor* tensor) { return tensor->name; }
const char* ggml_op_name(ggml_op op) {
    static const char* const names[] = {
#define LOOKALIKE_OP(name) #name,
        LOOKALIKE_OPS(LOOKALIKE_OP)
#undef LOOKALIKE_OP
    };
    return names[op];
}
const char* ggml_op_desc(const ggml_tensor* tensor) {
    return tensor->op == GGML_OP_GLU ? "SWIGLU" : ggml_op_name(tensor->op);
}

namespace {
struct Type {
    const char* name;
    std::size_t size;
    std::int64_t block;
};
Type describe(ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32:
        return {"f32", 4, 1};
    case GGML_TYPE_F16:
        return {"f16", 2, 1};
    case GGML_TYPE_Q8_0:
        return {"q8_0", 34, 32};
    case GGML_TYPE_I32:
        return {"i32", 4, 1};
    case GGML_TYPE_I64:
        return {"i64", 8, 1};
    }
    return {"", 0, 1};
}
} // namespace
const char* ggml_type_name(ggml_type type) { return describe(type).name; }
std::size_t ggml_type_size(ggml_type type) { return describe(type).size; }
std::int64_t ggml_blck_size(ggml_type type) { return describe(type).block; }
std::size_t ggml_row_size(ggml_type type, std::int64_t ne) {
    return ggml_type_size(type) * static_cast<std::size_t>(ne / ggml_blck_size(type));
}
std::size_t ggml_element_size(const ggml_tensor* tensor) { return ggml_type_size(tensor->type); }
std::int64_t ggml_nelements(const ggml_tensor* tensor) {
    return std::accumulate(tensor->ne, tensor->ne + 4, std::int64_t{1},
                           [](std::int64_t a, std::int64_t b) { return a * b; });
}
std::int64_t ggml_nrows(const ggml_tensor* tensor) { return tensor->ne[1] * tensor->ne[2] * tensor->ne[3]; }
std::size_t ggml_nbytes(const ggml_tensor* tensor) {
    if (ggml_is_empty(tensor)) {
        return 0;
    }
    const auto block = static_cast<std::size_t>(ggml_blck_size(tensor->type));
    std::size_t span = block == 1
                           ? ggml_type_size(tensor->type) + static_cast<std::size_t>(tensor->ne[0] - 1) * tensor->nb[0]
                           : static_cast<std::size_t>(tensor->ne[0]) * tensor->nb[0] / block;
    for (int i = 1; i < 4; ++i) {
        span += static_cast<std::size_t>(tensor->ne[i] - 1) * tensor->nb[i];
    }
    return span;
}
bool ggml_is_empty(const ggml_tensor* tensor) { return ggml_nelements(tensor) == 0; }

ggml_cgraph* ggml_new_graph_custom(ggml_context* context, std::size_t, bool) {
    context->graph = std::make_unique<ggml_cgraph>();
    return context->graph.get();
}
// The caller builds in order: what a node reads is there before it.
void ggml_build_forward_expand(ggml_cgraph* graph, ggml_tensor* tensor) { graph->nodes.push_back(tensor); }
int ggml_graph_n_nodes(ggml_cgraph* graph) { return static_cast<int>(graph->nodes.size()); }
ggml_tensor* ggml_graph_node(ggml_cgraph* graph, int i) {
    return graph->nodes[static_cast<std::size_t>(i < 0 ? i + ggml_graph_n_nodes(graph) : i)];
}
ggml_tensor** ggml_graph_nodes(ggml_cgraph* graph) { return graph->nodes.data(); }

const char* ggml_backend_name(ggml_backend_t backend) { return backend->name; }
void ggml_backend_free(ggml_backend_t backend) { backend->free(backend); }
void ggml_backend_synchronize(ggml_backend_t) {}
ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, ggml_cgraph* graph) {
    return backend->graph_compute(backend, graph);
}

ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t* backends, void**, int n_backends, std::size_t, bool, bool) {
    auto* sched = new ggml_backend_sched;
    sched->backends.assign(backends, backends + n_backends);
    return sched;
}
void ggml_backend_sched_free(ggml_backend_sched_t sched) { delete sched; }
void ggml_backend_sched_reset(ggml_backend_sched_t sched) { sched->allocated = false; }
int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched) { return static_cast<int>(sched->backends.size()); }
ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i) {
    return sched->backends[static_cast<std::size_t>(i)];
}
bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, ggml_cgraph*) { return sched->allocated = true; }
void ggml_backend_sched_synchronize(ggml_backend_sched_t sched) { ggml_backend_synchronize(sched->backends[0]); }
void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched, ggml_backend_sched_eval_callback callback,
                                          void* data) {
    sched->callback = callback;
    sched->data = data;
}
ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, ggml_cgraph* graph) {
    const ggml_status status = ggml_backend_sched_graph_compute_async(sched, graph);
    ggml_backend_sched_synchronize(sched);
    return status;
}

// Nobody asks to see nodes: one call. Else nodes up to one that is asked for go together, and the rest waits for its answer.
ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, ggml_cgraph* graph) {
    if (!sched->allocated) {
        ggml_backend_sched_reset(sched);
        ggml_backend_sched_alloc_graph(sched, graph);
    }
    const ggml_backend_t backend = sched->backends[0];
    if (sched->callback == nullptr) {
        return ggml_backend_graph_compute_async(backend, graph);
    }
    for (std::size_t first = 0; first < graph->nodes.size();) {
        std::size_t last = first;
        bool wanted = sched->callback(graph->nodes[last], true, sched->data);
        while (!wanted && last + 1 < graph->nodes.size()) {
            wanted = sched->callback(graph->nodes[++last], true, sched->data);
        }
        ggml_cgraph view{{graph->nodes.begin() + static_cast<std::ptrdiff_t>(first),
                          graph->nodes.begin() + static_cast<std::ptrdiff_t>(last + 1)},
                         graph->step};
        const ggml_status status = ggml_backend_graph_compute_async(backend, &view);
        if (status != GGML_STATUS_SUCCESS) {
            return status;
        }
        ggml_backend_synchronize(backend);
        if (wanted && !sched->callback(graph->nodes[last], false, sched->data)) {
            break;
        }
        first = last + 1;
    }
    return GGML_STATUS_SUCCESS;
}
