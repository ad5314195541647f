// SPDX-License-Identifier: Apache-2.0
// CUDA graphs by key: a cache that captures, replays and verifies them, with a probe (graph_probe.hpp) on each.
// No CUDA header is needed: CUstream and cudaStream_t are pointers to CUstream_st.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/callback.hpp"
#include "plumb/figure.hpp"
#include "plumb/fingerprint.hpp"
#include "plumb/result.hpp"

struct CUstream_st;

namespace plumb {

class Profiler;
struct Config;
namespace cudagraph {
class Cache; // src/cudagraph
}

/// Settings of a CudaGraphCache. Those with a key of the spec string (docs/reference/configuration.md) are taken from there by
/// from_config().
struct PLUMB_API CudaGraphOptions {
    std::size_t max_graphs = 64;     // least recently replayed go first; 0: no bound
    std::uint64_t max_bytes = 0;     // of graphs and twins, estimated; 0: no bound
    bool upload_each = false;        // graph.upload=each: upload before every launch, not once
    bool sync = false;               // graph.sync=on: wait for each replay
    std::uint64_t profile_every = 0; // graph.profile=n: one JSON line of every n-th replay of a key; 0: none
    std::string profile_path;        // where those lines go; empty: beside the recording
    std::size_t max_batch = 256;     // rows of a decode state
    std::size_t state_slots = 32;    // decode states of a batch that may be on their way to the device

    /// The keys graph.upload, graph.sync and graph.profile; all else as above.
    static CudaGraphOptions from_config(const Config& config);
};

/// Device addresses of three arrays of int32 that captured kernels read: row i of a step is tokens[i] at positions[i],
/// which attends to kv_lengths[i] = positions[i] + 1 entries of the kv cache. They stay where they are until the cache
/// ends.
struct CudaDecodeState {
    std::uint64_t tokens = 0;
    std::uint64_t positions = 0;
    std::uint64_t kv_lengths = 0;
    std::size_t capacity = 0; // rows
};

/// A value that verify_capture() found baked into a graph: it differs between captures of different token and position.
struct BakedIn {
    std::string node;             // "kernel rope", "memcpy", "graph"
    std::uint32_t occurrence = 0; // among nodes of that name, in order of execution, from 0
    std::string part;           // "parameter 2", "grid", "source", …, "structure"; "not compared": nobody could look
    std::size_t first_byte = 0; // of that part
    std::size_t last_byte = 0;
    std::string text; // "kernel rope #3, parameter 2, bytes 0..1"
};

/// The two steps that verify_capture() captures.
struct CudaVerifyOptions {
    std::int32_t tokens[2] = {11, 222};
    std::int32_t positions[2] = {5, 1030};
};

/// A tensor in device memory that a step writes.
struct CudaOutput {
    std::string name;
    Tensor tensor;
};

/// How verify_replay() runs a step both ways.
struct CudaReplayCheck {
    /// Enqueues the step on the stream as it runs without a graph. Called in each round, and for each difference once more
    /// inside a capture, to name a node; `restore` follows each of these calls.
    Callback<Status()> eager;
    /// Changes what the step reads, as the engine does before each replay; called once per round, from 0.
    Callback<Status(unsigned round)> vary;
    /// Compared after each; the PLUMB_TENSORs inside the step are compared too where tensors are checked (tensors=all).
    std::vector<CudaOutput> outputs;
    /// Keep and put back, in the stream's order, what the step both reads and changes (a kv cache, a counter on the
    /// host); null: there is none.
    Callback<Status()> save;
    Callback<Status()> restore;
    unsigned rounds = 3;
    /// Relative L2 distance up to which tensors agree; 0: all bits. All bits too where an element is not finite, or where
    /// the sum of squares overflows or vanishes.
    double tolerance = 0;
};

/// Where a replay first parted from the eager step.
struct StaleInput {
    std::string brick;            // of the first check that differs; the output's name where none is checked before it
    std::int64_t layer = -1;      // -1: outside any
    std::uint32_t occurrence = 0; // of that brick in that layer
    std::string node;             // "kernel rope #17, parameter 2, bytes 0..3"; or what it can be; empty: not known
    unsigned round = 0;
    double distance = 0; // relative, estimated; infinite where there is none (see tolerance), or shapes differ
    std::string text;    // all of it in one sentence
};

/// The life of one key so far. Keys are names within one profiler: two caches of it that share a key share its life.
struct CudaGraphRow {
    using Count = std::pair<std::string, std::uint64_t>;
    std::uint64_t key = 0;
    bool live = false; // can be replayed now
    std::uint64_t captures = 0;
    std::uint64_t instantiations = 0;
    std::uint64_t updates = 0; // in place, without instantiating
    std::uint64_t uploads = 0;
    std::uint64_t replays = 0;
    std::uint64_t evictions = 0;     // by the bounds
    std::uint64_t invalidations = 0; // by invalidate()
    std::vector<Count> eager_steps;  // by reason
    std::uint64_t rows_used = 0;     // of rows_padded
    std::uint64_t rows_padded = 0;
    std::vector<Count> nodes;              // by node type, of the last capture
    std::vector<std::string> node_changes; // last capture against the one before: "rope: 24 before, 0 now"
    std::vector<std::string> baked_in;     // BakedIn::text of the last verify_capture()
    std::vector<std::string> stale_inputs; // StaleInput::text of the last verify_replay()
    Figure capture_ns;                     // nanoseconds of host time in all
    Figure instantiate_ns;                 // the same, with in-place updates
    Figure upload_ns;                      // the same; absent: "never uploaded"
    Figure launch_ns;                      // the same
    Figure bytes;                          // estimated, of the graph that is live
    std::string not_probed;                // why nothing inside its replays is timed; empty: it is
};

/// Captured decode steps by key, e.g. the padded batch size. Every failure leaves stream, context and cache as they
/// were, and names the call (docs/reference/cuda_graphs.md has the exceptions). Nothing waits for the device but what says so.
/// Thread rule: any thread; one capture per thread at a time. Launches of one key are serialised, launches of different
/// keys never wait for each other. Make and destroy it where no other thread uses it.
class PLUMB_API CudaGraphCache {
  public:
    /// `profiler` may be null: then nothing inside replays is timed. It must outlive the cache. Settings are those of
    /// the profiler's Config.
    explicit CudaGraphCache(Profiler* profiler);
    CudaGraphCache(Profiler* profiler, CudaGraphOptions options);
    /// Gives up captures that are open, and frees everything; waits for decode states that are still on their way.
    ~CudaGraphCache();
    CudaGraphCache(const CudaGraphCache&) = delete;
    CudaGraphCache& operator=(const CudaGraphCache&) = delete;

    /// Capture mode is relaxed. Error invalid_argument when this thread captures already, or that stream is captured.
    Status begin_capture(CUstream_st* stream);
    /// Ends, instantiates and uploads. An empty graph and an end without begin are errors; a graph that `key` names
    /// already is updated in place where the driver can, else replaced.
    Status end_capture(std::uint64_t key);
    /// Gives up the capture of this thread.
    Status abort_capture();
    /// Launches the graph of `key`. False: there is none; run the step eagerly (counted with its reason).
    Result<bool> replay(std::uint64_t key, CUstream_st* stream);
    /// Forgets a graph (running replays finish). False: there was none.
    bool invalidate(std::uint64_t key);
    void invalidate_all();

    /// The arrays that set_decode_state() with that stream writes; made at the first call, also while it is captured.
    Result<CudaDecodeState> decode_state(CUstream_st* stream);
    /// The arrays of a key, for graphs that are replayed on several streams; `stream` names the context.
    Result<CudaDecodeState> decode_state_of(std::uint64_t key, CUstream_st* stream);
    /// What the next replays on `stream` read. The caller's memory is free again when the call returns; what replays
    /// in flight read does not change. Error invalid_argument while the stream is captured; pending when state_slots
    /// batches are on their way already.
    Status set_decode_state(std::int32_t token, std::int32_t position, CUstream_st* stream);
    Status set_decode_state(const std::int32_t* tokens, const std::int32_t* positions, std::size_t count,
                            CUstream_st* stream);
    Status set_decode_state_of(std::uint64_t key, std::int32_t token, std::int32_t position, CUstream_st* stream);
    Status set_decode_state_of(std::uint64_t key, const std::int32_t* tokens, const std::int32_t* positions,
                               std::size_t count, CUstream_st* stream);
    /// False: set_decode_state() does nothing, for engines that pass token and position otherwise. Graphs captured
    /// before are not touched. On at first.
    void use_device_state(bool use) noexcept;
    [[nodiscard]] bool uses_device_state() const noexcept;

    /// Captures a step twice, at different token and position, and compares the nodes' parameters bytewise: what differs
    /// is baked in, and wrong in every replay but the first. Nodes that cannot be compared are named too. `step` enqueues the step on `stream` as it would for
    /// capture; nothing runs and nothing is kept but the key's row. Empty: clean.
    /// Error unsupported before CUDA 12.4; invalid_argument when this thread captures already; or what `step` returned.
    Result<std::vector<BakedIn>> verify_capture(std::uint64_t key, CUstream_st* stream,
                                                const Callback<Status(std::int32_t, std::int32_t)>& step,
                                                const CudaVerifyOptions& options = {});

    /// Runs the step eagerly and by replay of the live graph of `key`, each round with other inputs and from the same
    /// saved state, and compares fingerprints of the outputs and of every check inside. What differs first is named; one
    /// entry per place. Empty: the replay computes what the eager step does. Waits for the stream, twice a round; no other
    /// thread may replay that key meanwhile. Afterwards the state is as it was saved; the inputs are those of the last
    /// round.
    /// Error not_found: the key has no graph; unsupported: built without nvcc; invalid_argument: nothing to compare, or the
    /// stream is captured; or what a function of `check` returned.
    Result<std::vector<StaleInput>> verify_replay(std::uint64_t key, CUstream_st* stream, const CudaReplayCheck& check);

    /// For steps that the engine runs eagerly without asking replay().
    void note_eager(std::uint64_t key, const std::string& reason);
    /// A step of `used` rows ran with the graph of `padded` rows.
    void note_padding(std::uint64_t key, std::uint64_t used, std::uint64_t padded);

    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] std::uint64_t bytes() const; // estimated, twins included
    [[nodiscard]] std::vector<CudaGraphRow> rows() const;
    /// Writes the replay records whose device time is there by now. Error: they cannot be written.
    Status flush_profile();
    /// True after an error that leaves the CUDA context unusable: no driver call is made any more.
    [[nodiscard]] bool lost() const noexcept;
    /// Why, and what was left behind; or why there is no driver.
    [[nodiscard]] Status status() const;

    explicit CudaGraphCache(cudagraph::Cache* cache) noexcept; // takes it over

  private:
    cudagraph::Cache* cache_ = nullptr;
};

} // namespace plumb
