// SPDX-License-Identifier: Apache-2.0
// The part of ggml's and llama.cpp's interface that a profiler meets from outside: exported names, calling order and the
// layouts that cross a library's border, as their published headers have them. Values of enums are ours: they differ from
// release to release, so nobody outside may rely on them. For C and C++, as theirs are.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef LOOKALIKE_HIDDEN // only what an engine calls is exported; calls inside a library cross no table
#define LOOKALIKE_INTERNAL __attribute__((visibility("hidden")))
#else
#define LOOKALIKE_INTERNAL __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
#define LOOKALIKE_C extern "C"
#else
#define LOOKALIKE_C extern
#endif
#define LOOKALIKE_API LOOKALIKE_C __attribute__((visibility("default")))

#define GGML_MAX_SRC 10
#define GGML_MAX_NAME 64

typedef enum ggml_type {
    GGML_TYPE_F32 = 0,
    GGML_TYPE_F16 = 1,
    GGML_TYPE_Q8_0 = 8,
    GGML_TYPE_I32 = 26,
    GGML_TYPE_I64 = 27
} ggml_type;

#define LOOKALIKE_OPS(X) \
    X(NONE)              \
    X(ADD)               \
    X(MUL)               \
    X(RMS_NORM)          \
    X(MUL_MAT)           \
    X(MUL_MAT_ID)        \
    X(GET_ROWS)          \
    X(SET_ROWS)          \
    X(CPY)               \
    X(ROPE)              \
    X(SOFT_MAX)          \
    X(FLASH_ATTN_EXT)    \
    X(GLU)               \
    X(VIEW)              \
    X(RESHAPE)           \
    X(PERMUTE)           \
    X(TRANSPOSE)         \
    X(CONT)              \
    X(ARGSORT)
typedef enum ggml_op {
#define LOOKALIKE_OP(name) GGML_OP_##name,
    LOOKALIKE_OPS(LOOKALIKE_OP)
#undef LOOKALIKE_OP
        GGML_OP_COUNT
} ggml_op;

typedef enum ggml_status {
    GGML_STATUS_ALLOC_FAILED = -2,
    GGML_STATUS_FAILED = -1,
    GGML_STATUS_SUCCESS = 0,
    GGML_STATUS_ABORTED = 1
} ggml_status;

typedef struct ggml_tensor ggml_tensor;
struct ggml_backend_buffer;
struct ggml_tensor {
    ggml_type type;
    struct ggml_backend_buffer* buffer;
    int64_t ne[4];
    size_t nb[4];
    ggml_op op;
    int32_t op_params[16]; // here: the planted nanoseconds in the last two
    int32_t flags;
    ggml_tensor* src[GGML_MAX_SRC];
    ggml_tensor* view_src;
    size_t view_offs;
    void* data;
    char name[GGML_MAX_NAME];
    void* extra; // here: the Planted of the node
    char padding[8];
};
#ifdef __cplusplus
static_assert(offsetof(ggml_tensor, src) == 152 && sizeof(ggml_tensor) == 336);
#endif

typedef struct ggml_context ggml_context;
typedef struct ggml_cgraph ggml_cgraph;
typedef struct ggml_init_params {
    size_t mem_size;
    void* mem_buffer;
    bool no_alloc;
} ggml_init_params;
typedef struct ggml_threadpool ggml_threadpool;
typedef bool (*ggml_abort_callback)(void*);
typedef struct ggml_cplan {
    size_t work_size;
    uint8_t* work_data;
    int n_threads;
    ggml_threadpool* threadpool;
    ggml_abort_callback abort_callback;
    void* abort_callback_data;
} ggml_cplan;
typedef struct ggml_compute_params {
    int ith, nth;
    size_t wsize;
    void* wdata;
    ggml_threadpool* threadpool;
} ggml_compute_params;

typedef struct ggml_backend* ggml_backend_t;
typedef struct ggml_backend_reg* ggml_backend_reg_t;
typedef struct ggml_backend_sched* ggml_backend_sched_t;
typedef bool (*ggml_backend_sched_eval_callback)(ggml_tensor*, bool ask, void*);

// libggml-base
LOOKALIKE_API const char* ggml_version(void);
LOOKALIKE_API const char* ggml_commit(void);
LOOKALIKE_API size_t ggml_tensor_overhead(void);
LOOKALIKE_API ggml_tensor* ggml_get_rows(ggml_context* context, ggml_tensor* from, ggml_tensor* rows);
LOOKALIKE_API ggml_tensor* ggml_soft_max(ggml_context* context, ggml_tensor* of);
LOOKALIKE_API ggml_context* ggml_init(ggml_init_params params);
LOOKALIKE_API void ggml_free(ggml_context* context);
LOOKALIKE_API void ggml_reset(ggml_context* context);
LOOKALIKE_API ggml_tensor* ggml_new_tensor_1d(ggml_context* context, ggml_type type, int64_t ne0);
LOOKALIKE_API ggml_tensor* ggml_new_tensor_2d(ggml_context* context, ggml_type type, int64_t ne0, int64_t ne1);
LOOKALIKE_API ggml_tensor* ggml_new_tensor_3d(ggml_context* context, ggml_type type, int64_t ne0, int64_t ne1,
                                              int64_t ne2);
LOOKALIKE_API ggml_tensor* ggml_mul_mat(ggml_context* context, ggml_tensor* a, ggml_tensor* b);
LOOKALIKE_API ggml_tensor* ggml_set_name(ggml_tensor* tensor, const char* name);
LOOKALIKE_API const char* ggml_get_name(const ggml_tensor* tensor);
LOOKALIKE_API const char* ggml_op_name(ggml_op op);
LOOKALIKE_API const char* ggml_op_desc(const ggml_tensor* tensor);
LOOKALIKE_API const char* ggml_type_name(ggml_type type);
LOOKALIKE_API size_t ggml_type_size(ggml_type type);
LOOKALIKE_API int64_t ggml_blck_size(ggml_type type);
LOOKALIKE_API size_t ggml_row_size(ggml_type type, int64_t ne);
LOOKALIKE_API size_t ggml_element_size(const ggml_tensor* tensor);
LOOKALIKE_API size_t ggml_nbytes(const ggml_tensor* tensor);
LOOKALIKE_API int64_t ggml_nelements(const ggml_tensor* tensor);
LOOKALIKE_API int64_t ggml_nrows(const ggml_tensor* tensor);
LOOKALIKE_API bool ggml_is_empty(const ggml_tensor* tensor);
LOOKALIKE_API ggml_cgraph* ggml_new_graph_custom(ggml_context* context, size_t size, bool grads);
LOOKALIKE_API void ggml_build_forward_expand(ggml_cgraph* graph, ggml_tensor* tensor);
LOOKALIKE_API int ggml_graph_n_nodes(ggml_cgraph* graph);
LOOKALIKE_API ggml_tensor* ggml_graph_node(ggml_cgraph* graph, int i);
LOOKALIKE_API ggml_tensor** ggml_graph_nodes(ggml_cgraph* graph);
LOOKALIKE_API const char* ggml_backend_name(ggml_backend_t backend);
LOOKALIKE_API void ggml_backend_free(ggml_backend_t backend);
LOOKALIKE_API void ggml_backend_synchronize(ggml_backend_t backend);
LOOKALIKE_API ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, ggml_cgraph* graph);
LOOKALIKE_API ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t* backends, void** bufts, int n_backends,
                                                          size_t graph_size, bool parallel, bool op_offload);
LOOKALIKE_API void ggml_backend_sched_free(ggml_backend_sched_t sched);
LOOKALIKE_API void ggml_backend_sched_reset(ggml_backend_sched_t sched);
LOOKALIKE_API int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched);
LOOKALIKE_API ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i);
LOOKALIKE_API bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, ggml_cgraph* graph);
LOOKALIKE_API ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, ggml_cgraph* graph);
LOOKALIKE_API ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, ggml_cgraph* graph);
LOOKALIKE_API void ggml_backend_sched_synchronize(ggml_backend_sched_t sched);
LOOKALIKE_API void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched,
                                                        ggml_backend_sched_eval_callback callback, void* data);

// libggml: the registry
LOOKALIKE_API void ggml_backend_load_all(void);
LOOKALIKE_API void ggml_backend_load_all_from_path(const char* directory);
LOOKALIKE_API ggml_backend_reg_t ggml_backend_load(const char* path);
LOOKALIKE_API void ggml_backend_unload(ggml_backend_reg_t reg);
LOOKALIKE_API size_t ggml_backend_reg_count(void);
LOOKALIKE_API ggml_backend_reg_t ggml_backend_reg_get(size_t i);
LOOKALIKE_API ggml_backend_reg_t ggml_backend_reg_by_name(const char* name);

// libggml-cpu-*
LOOKALIKE_API int ggml_backend_score(void);
LOOKALIKE_API ggml_backend_reg_t ggml_backend_init(void);
LOOKALIKE_API ggml_backend_t ggml_backend_cpu_init(void);
LOOKALIKE_API void ggml_backend_cpu_set_n_threads(ggml_backend_t backend, int n_threads);
LOOKALIKE_API void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback,
                                                       void* data);
LOOKALIKE_API ggml_cplan ggml_graph_plan(const ggml_cgraph* graph, int n_threads, ggml_threadpool* threadpool);
LOOKALIKE_API ggml_status ggml_graph_compute(ggml_cgraph* graph, ggml_cplan* plan);
LOOKALIKE_C LOOKALIKE_INTERNAL void ggml_barrier(ggml_threadpool* threadpool);
LOOKALIKE_C LOOKALIKE_INTERNAL bool ggml_cpu_extra_compute_forward(ggml_compute_params* params, ggml_tensor* tensor);
LOOKALIKE_C LOOKALIKE_INTERNAL void ggml_compute_forward_rms_norm_mul_fused(const ggml_compute_params* params,
                                                                            ggml_tensor* norm, ggml_tensor* mul);

// What a backend and its registration are, as far as this engine needs it.
struct ggml_backend {
    const char* name;
    ggml_status (*graph_compute)(ggml_backend_t, ggml_cgraph*);
    void (*free)(ggml_backend_t);
};
struct ggml_backend_reg {
    int api_version;
    const char* name;
    ggml_backend_t (*init)(void);
    void (*set_n_threads)(ggml_backend_t, int);
    void (*set_abort_callback)(ggml_backend_t, ggml_abort_callback, void*);
};
