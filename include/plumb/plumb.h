// SPDX-License-Identifier: Apache-2.0
// The recorder for C, and for whatever calls C: C99 or later, and C++. Names are those of the C++ headers with plumb_ before them.
// What can fail returns a plumb_code. For what is not plumb_ok, plumb_last_error() is one sentence that says what to do. No exception
// comes out, nothing ends the program, and what records does not block. Off, it costs a call and one relaxed load.
// Every struct begins with its size: set struct_size to sizeof of it, and what you do not know to 0.
// Pointers are borrowed until the function returns, unless it says otherwise. A queue that is NULL is the calling thread.
// Thread rule: any thread at any time between plumb_open() and plumb_close(); what a thread pushed, it pops.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define PLUMB_C_API
#else
#define PLUMB_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// What a function returns. Values are append-only.
typedef int plumb_code;
enum {
    plumb_ok = 0,
    plumb_invalid_argument = 1, // the caller's words are wrong
    plumb_not_found = 2,        // a file, key or name that does not exist
    plumb_already_exists = 3,   // would overwrite, or somebody else is writing
    plumb_unavailable = 4,      // a driver, device, library or service is missing here
    plumb_unsupported = 5,      // it is there but cannot do this
    plumb_corrupt = 6,          // data that cannot be what it claims to be
    plumb_no_space = 7,         // disk or memory file system is full
    plumb_permission = 8,       // not allowed
    plumb_pending = 9,          // not known yet; ask later
    plumb_out_of_memory = 10,   // a bound of ours or of the system was hit
    plumb_failed = 11           // anything else
};

/// The sentence of the calling thread's last function that did not return plumb_ok; "" before any. Never NULL. Good until the
/// thread's next such function.
PLUMB_C_API const char* plumb_last_error(void);

// --- A profiler ---

typedef struct plumb_profiler plumb_profiler;

/// A profiler from a spec, such as "on,out=run.plumb"; NULL: from the environment variable PLUMB. One that is off is a profiler
/// too. Where this fails *profiler is NULL: a spec that is wrong (the sentence names the known keys), a recording that cannot be
/// opened.
PLUMB_C_API plumb_code plumb_open(const char* spec, plumb_profiler** profiler);
/// Finishes the recording and frees the profiler, whatever it returns. Release its graphs before.
PLUMB_C_API plumb_code plumb_close(plumb_profiler* profiler);

/// 1 while it records, else 0; 0 for NULL. To leave out what only a recording needs.
PLUMB_C_API int plumb_enabled(const plumb_profiler* profiler);
/// Starts recording. What is open now is not recorded.
PLUMB_C_API plumb_code plumb_enable(plumb_profiler* profiler);
/// Stops recording. What is open now is dropped and counted.
PLUMB_C_API plumb_code plumb_disable(plumb_profiler* profiler);
/// Says something about the run, shown at the head of reports: "model", "qwen2.5-0.5b bf16". The last value of a key wins.
PLUMB_C_API plumb_code plumb_describe(plumb_profiler* profiler, const char* key, const char* value);
/// Waits until what was recorded before is in the recording. plumb_pending after so many seconds.
PLUMB_C_API plumb_code plumb_flush(plumb_profiler* profiler, double timeout_seconds);
/// The recording's path, to be freed by plumb_free(); "" where none was opened, and with out=none.
PLUMB_C_API plumb_code plumb_path(plumb_profiler* profiler, char** path);

// --- Names ---

/// A brick or any other name: valid for the life of the process, in every profiler. 0 is recorded as "unnamed".
typedef uint16_t plumb_name;

/// Well-known bricks, with their ids. plumb_intern("attention", …) gives the same.
enum {
    plumb_brick_rms_norm = 1,
    plumb_brick_layer_norm = 2,
    plumb_brick_qkv_projection = 3,
    plumb_brick_qk_norm = 4,
    plumb_brick_rope_embedding = 5,
    plumb_brick_attention_score = 6,
    plumb_brick_attention_softmax = 7,
    plumb_brick_attention_output = 8,
    plumb_brick_attention = 9,
    plumb_brick_output_projection = 10,
    plumb_brick_gate_projection = 11,
    plumb_brick_up_projection = 12,
    plumb_brick_gate_up_projection = 13,
    plumb_brick_activation = 14,
    plumb_brick_down_projection = 15,
    plumb_brick_residual_add = 16,
    plumb_brick_embedding = 17,
    plumb_brick_lm_head = 18,
    plumb_brick_sampling = 19,
    plumb_brick_kv_append = 20,
    plumb_brick_moe_router = 21,
    plumb_brick_moe_dispatch = 22,
    plumb_brick_moe_experts = 23,
    plumb_brick_moe_combine = 24,
    plumb_brick_linear_attention = 25,
    plumb_brick_all_reduce = 26,
    plumb_brick_all_gather = 27,
    plumb_brick_reduce_scatter = 28,
    plumb_brick_copy_h2d = 29,
    plumb_brick_copy_d2h = 30,
    plumb_brick_copy_d2d = 31,
    plumb_brick_all_to_all = 32,
    plumb_brick_broadcast = 33,
    plumb_brick_send = 34,
    plumb_brick_recv = 35,
    plumb_brick_kv_transfer = 36
};

/// What kind of computation a name stands for.
enum {
    plumb_category_other = 0,
    plumb_category_norm = 1,
    plumb_category_attention = 2,
    plumb_category_ffn = 3,
    plumb_category_moe = 4,
    plumb_category_embedding = 5,
    plumb_category_output = 6,
    plumb_category_cache = 7,
    plumb_category_collective = 8,
    plumb_category_transfer = 9
};

/// The id of a name; the same name gives the same id in every profiler, and keeps the category it was first given. Takes a lock:
/// once a name, not once a call. plumb_out_of_memory when there are 16,384 names.
PLUMB_C_API plumb_code plumb_intern(plumb_profiler* profiler, const char* text, int category, plumb_name* name);

// --- Queues: where work runs ---

/// A device queue that a backend times. Filled by the functions below, copied as you like.
typedef struct plumb_queue {
    uint32_t struct_size;
    uint32_t track;
    void* timer;
} plumb_queue;

/// The queue of a CUstream or cudaStream_t, hipStream_t, cl_command_queue (made with CL_QUEUE_PROFILING_ENABLE) or
/// id<MTLCommandQueue>. Scopes on it are timed on the device. The first call for a handle makes its timer, which lives as long as
/// the process; later ones are a lookup. Without driver or device the queue's scopes are dropped and counted, and reports say
/// why.
PLUMB_C_API plumb_code plumb_cuda(void* stream, plumb_queue* queue);
PLUMB_C_API plumb_code plumb_hip(void* stream, plumb_queue* queue);
PLUMB_C_API plumb_code plumb_opencl(void* command_queue, plumb_queue* queue);
PLUMB_C_API plumb_code plumb_metal(void* command_queue, plumb_queue* queue);

/// For work of one thread at a time that is made slower by timing it: scopes on this queue are timed in one step out of
/// device.every, and those steps are apart from the others. Each call makes one, which lives as long as the process.
PLUMB_C_API plumb_code plumb_sampled(const char* name, plumb_queue* queue);

/// A VkQueue, and what it belongs to.
typedef struct plumb_vulkan_handles {
    uint32_t struct_size;
    uint32_t queue_family;
    void* instance;
    void* physical_device;
    void* device;
    void* queue;
    void (*(*get_instance_proc_addr)(void* instance, const char* name))(void); // NULL: that of libvulkan.so.1
    uint32_t host_query_reset; // 1: the device has the feature hostQueryReset
    uint32_t reserved;
} plumb_vulkan_handles;
typedef struct plumb_vulkan plumb_vulkan;

/// On the thread that may submit to the VkQueue: two tiny submissions of ours prepare its queries. Close it before the VkDevice is
/// destroyed.
PLUMB_C_API plumb_code plumb_vulkan_open(const plumb_vulkan_handles* handles, plumb_vulkan** opened);
/// For scopes around submissions: each border is a tiny submission of ours.
PLUMB_C_API plumb_code plumb_vulkan_queue(plumb_vulkan* vulkan, plumb_queue* queue);
/// For scopes inside a primary VkCommandBuffer that is being recorded, outside of any render pass: right after each
/// vkBeginCommandBuffer. The queue is good until vkEndCommandBuffer. `again`: 1 for a buffer that is submitted many times.
PLUMB_C_API plumb_code plumb_vulkan_record(plumb_vulkan* vulkan, void* commands, int again, plumb_queue* queue);
/// Right before each submission of that command buffer, on the thread that submits.
PLUMB_C_API plumb_code plumb_vulkan_submitting(plumb_vulkan* vulkan, plumb_profiler* profiler, void* commands);
/// Every submission of that command buffer has finished, and none is coming.
PLUMB_C_API plumb_code plumb_vulkan_forget(plumb_vulkan* vulkan, void* commands);
/// Reads what is there and frees it. No work of ours or of the scopes may be in flight: wait for the device first.
PLUMB_C_API plumb_code plumb_vulkan_close(plumb_vulkan* vulkan);

// --- Recording ---

/// What a scope moves and computes; 0: not known.
typedef struct plumb_work {
    uint32_t struct_size;
    uint32_t reserved;
    double bytes; // read and written
    double flops; // a multiply-add counts 2
    double elements;
    double bytes_per_kv; // times the step's kv_length, added to bytes
} plumb_work;

enum { plumb_phase_none = 0, plumb_phase_prefill = 1, plumb_phase_decode = 2, plumb_phase_mixed = 3 };

/// What a step says of itself; 0: not known.
typedef struct plumb_step {
    uint32_t struct_size;
    int32_t phase;
    uint64_t prefill_tokens;
    uint64_t decode_tokens;
    uint64_t sequences;
    uint64_t kv_length; // positions of the kv cache that its attention reads
} plumb_step;

/// One forward pass, one layer in it, one brick in that; each to its plumb_pop_scope(). `work` may be NULL. What finds no room, or
/// lies deeper than 64, is dropped and counted, and its pop ends nothing else. One that returns another code than plumb_ok began
/// nothing: it has no pop.
PLUMB_C_API plumb_code plumb_push_step(plumb_profiler* profiler, const plumb_queue* queue, const plumb_step* step);
PLUMB_C_API plumb_code plumb_push_layer(plumb_profiler* profiler, uint32_t index);
PLUMB_C_API plumb_code plumb_push_scope(plumb_profiler* profiler, const plumb_queue* queue, plumb_name name,
                                        const plumb_work* work);
/// Before the push of a collective on this thread: which one of its group it is, so that `plumb ranks` finds it on every rank.
/// `group` is a name from plumb_intern(), or 0: not said. `sequence` counts the collectives of that brick in that group from 0.
PLUMB_C_API plumb_code plumb_collective(plumb_profiler* profiler, plumb_name name, plumb_name group, uint64_t sequence);
/// Work of the innermost brick, known only now; it replaces what was given before.
PLUMB_C_API plumb_code plumb_set_work(plumb_profiler* profiler, const plumb_work* work);
/// Ends what this thread pushed last. plumb_invalid_argument where nothing is open, or where it was begun while recording was off.
PLUMB_C_API plumb_code plumb_pop_scope(plumb_profiler* profiler);

/// 1 where the step that is open on this thread is one in which queues that are timed in some steps are timed; else 0.
PLUMB_C_API int plumb_timed(plumb_profiler* profiler);

/// A brick that another thread may end. plumb_begin() fills it, whatever was in it.
typedef struct plumb_token {
    uint32_t struct_size;
    uint32_t mode;
    uint64_t begin;
    uint64_t bits;
    uint32_t track;
    uint32_t reserved;
    double work[4];
} plumb_token;

PLUMB_C_API plumb_code plumb_begin(plumb_profiler* profiler, plumb_name name, const plumb_work* work,
                                   plumb_token* token);
/// Once a token; a second end is dropped and counted. The brick is part of the step and layer of the thread that ends it.
PLUMB_C_API plumb_code plumb_end(plumb_profiler* profiler, plumb_token* token);

/// The profiler's clock, in ticks of its own; 0 for NULL.
PLUMB_C_API uint64_t plumb_now(const plumb_profiler* profiler);
/// A brick timed elsewhere: both moments from plumb_now(). Outside the nesting of this thread.
PLUMB_C_API plumb_code plumb_record_span(plumb_profiler* profiler, plumb_name name, uint64_t begin, uint64_t end,
                                         const plumb_work* work);

/// A brick that is one command of a device queue, in the step and layer that are open: `event` is its cl_event, or an
/// id<MTLCommandBuffer> that is not committed yet. On an out-of-order queue of OpenCL only commands are timed. plumb_unsupported where
/// commands have no times of their own.
PLUMB_C_API plumb_code plumb_record_command(plumb_profiler* profiler, const plumb_queue* queue, plumb_name name,
                                            void* event, const plumb_work* work);

/// What a request does from its mark to the next one. It may come back to a phase: one that is preempted to queue.
enum {
    plumb_request_queue = 1,       // it has arrived, or was preempted, and waits
    plumb_request_prefill = 2,     // ends when its first token is there
    plumb_request_kv_transfer = 3, // its KV cache moves
    plumb_request_decode = 4,
    plumb_request_end = 5
};

/// From here on the request is in that phase. `id`: any number of the caller, of one request at a time. `trace_parent`: the W3C header
/// that it came with, best with its first mark, or NULL; one of another form is counted.
PLUMB_C_API plumb_code plumb_request(plumb_profiler* profiler, uint64_t id, int32_t phase, const char* trace_parent);
/// It has ended and gave so many tokens; 0: it was given up before its first.
PLUMB_C_API plumb_code plumb_end_request(plumb_profiler* profiler, uint64_t id, uint64_t tokens);
/// The request is in the batch of the step that is open on this thread.
PLUMB_C_API plumb_code plumb_step_request(plumb_profiler* profiler, uint64_t id);

/// Step and layer of a thread.
typedef struct plumb_context {
    uint32_t struct_size;
    uint32_t layer_plus_one; // 0: none
    uint64_t step_plus_one;
} plumb_context;

/// Step and layer that are open on this thread.
PLUMB_C_API plumb_code plumb_get_context(plumb_profiler* profiler, plumb_context* context);
/// This thread works for that step and layer, to its plumb_pop_scope().
PLUMB_C_API plumb_code plumb_push_context(plumb_profiler* profiler, const plumb_context* context);

/// A kernel that this thread ran or launched, inside the scope that is open: what `plumb path` is made of.
typedef struct plumb_kernel {
    uint32_t struct_size;
    plumb_name name;
    uint16_t reserved;
    uint64_t hash; // FNV-1a, 64 bits, of its PTX or binary; 0: not known
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    uint32_t reserved_too;
    uint64_t begin; // with end: when it ran, from plumb_now(); 0, 0: not known
    uint64_t end;
    const plumb_work* work; // may be NULL
} plumb_kernel;

PLUMB_C_API plumb_code plumb_record_kernel(plumb_profiler* profiler, const plumb_kernel* kernel);

// --- Tensors ---

/// Element types.
enum {
    plumb_dtype_f32 = 0,
    plumb_dtype_f64 = 1,
    plumb_dtype_f16 = 2,
    plumb_dtype_bf16 = 3,
    plumb_dtype_i8 = 4,
    plumb_dtype_i32 = 5
};

/// Bits of plumb_tensor.flags.
enum {
    plumb_tensor_input = 1,      // the brick is about to read it; else it just wrote it
    plumb_tensor_logits = 2,     // its last row is logits
    plumb_tensor_at_position = 4 // position is given; else it is that of the step
};

/// A tensor that is looked at where the spec says tensors=. The last dimension varies fastest.
typedef struct plumb_tensor {
    uint32_t struct_size;
    uint32_t flags;
    int32_t dtype;
    uint32_t rank;
    const void* data; // of element 0
    uint64_t shape[8];
    const int64_t* strides; // `rank` of them, in elements; NULL: row-major without gaps
    int64_t position;       // of its first row in the sequence
    uint32_t sequence;      // of a batch
    uint32_t reserved;
} plumb_tensor;

/// A fingerprint of the tensor, kept in the recording. On a device queue it is read by the device, in the queue's order: do not free
/// it before the queue has come past.
PLUMB_C_API plumb_code plumb_record_tensor(plumb_profiler* profiler, const plumb_queue* queue, plumb_name name,
                                           const plumb_tensor* tensor);

// --- Nodes of ggml ---

/// A tensor in a plumb_ggml_node, by what ggml's functions say of it.
typedef struct plumb_ggml_tensor {
    const char* name; // ggml_get_name(); NULL: there is none
    uint64_t bytes;   // ggml_row_size(type, elements); of a view ggml_nbytes() is more
    int64_t elements; // ggml_nelements()
    int64_t rows;     // ggml_nrows()
} plumb_ggml_tensor;

/// One node after the other of a graph, in one struct that is 0 before the first.
typedef struct plumb_ggml_node {
    uint32_t struct_size;
    int32_t timed;            // given back; 0: it computes nothing, or it belongs to the next node
    const char* operation;    // ggml_op_desc()
    plumb_ggml_tensor tensor; // the node
    plumb_ggml_tensor sources[4];
    uint64_t kv_length;      // of the step; 0: not known, nor is the work of attention
    uint32_t layer_plus_one; // given back; 0: in none
    plumb_name brick;        // given back; a name such as "ggml_cont" where it is no well-known brick
    uint16_t waiting;        // given back: the next node is computed together with this one
    plumb_work work;         // given back
} plumb_ggml_node;

/// The brick, layer and work of a node, by the rules of `plumb run`. Leave what was given back as it is for the next node.
PLUMB_C_API plumb_code plumb_ggml_describe(plumb_profiler* profiler, plumb_ggml_node* node);

// --- Captured graphs ---

typedef struct plumb_graph plumb_graph;

/// A CUgraph or cudaGraph_t, or a hipGraph_t, was captured under the caller's key: scopes seen on the capturing stream become its
/// bricks. The captured graph may be destroyed after the call. A key's new graph replaces the old one.
PLUMB_C_API plumb_code plumb_graph_captured(plumb_profiler* profiler, uint64_t key, void* captured,
                                            plumb_graph** graph);
PLUMB_C_API plumb_code plumb_hip_graph_captured(plumb_profiler* profiler, uint64_t key, void* captured,
                                                plumb_graph** graph);
/// Launches `executable` (a CUgraphExec or hipGraphExec_t) on `stream`, or an instrumented twin where this replay is sampled. The
/// launch happens in any case; what is not plumb_ok is the driver's own answer to it. For a `graph` that is NULL nothing is
/// launched.
PLUMB_C_API plumb_code plumb_graph_launch(plumb_graph* graph, void* executable, void* stream);
/// The graph under that key was given up; its twin goes too.
PLUMB_C_API plumb_code plumb_graph_evicted(plumb_profiler* profiler, uint64_t key);
/// All graphs were given up. Returns when every twin and clone is gone, those in flight included: call it before
/// ncclCommDestroy() and whatever else waits for what graphs hold. plumb_pending: not in that time.
PLUMB_C_API plumb_code plumb_graphs_evicted_all(plumb_profiler* profiler, double timeout_seconds);
/// Frees the handle, not the caller's graph.
PLUMB_C_API plumb_code plumb_graph_release(plumb_graph* graph);

// --- Answers ---

/// The report of everything so far, as JSON (schema plumb.report/2), to be freed by plumb_free(). plumb_unavailable where
/// libplumb-analysis.so is not there.
PLUMB_C_API plumb_code plumb_snapshot(plumb_profiler* profiler, char** json);

/// What `plumb <answer> <files> --<option> <value>` would be asked.
typedef struct plumb_question {
    uint32_t struct_size;
    uint32_t file_count;
    const char* answer; // "report", "wall", "diverge", …
    const char* const* files;
    const char* const* options; // name, value, name, value, …; a flag has the value ""
    uint32_t option_count;      // of pairs
    uint32_t reserved;
} plumb_question;

/// How an answer judges: plumb_outcome_pass too where it judges nothing.
enum { plumb_outcome_pass = 0, plumb_outcome_fail = 1, plumb_outcome_unknown = 2 };

/// The answer as JSON, to be freed by plumb_free(). `outcome` may be NULL. plumb_unavailable where libplumb-analysis.so is not there.
PLUMB_C_API plumb_code plumb_ask(const plumb_question* question, char** json, int* outcome);
/// Frees what plumb_path(), plumb_snapshot() and plumb_ask() gave; NULL too.
PLUMB_C_API void plumb_free(char* text);

#ifdef __cplusplus
}
#endif
