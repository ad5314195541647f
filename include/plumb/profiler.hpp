// SPDX-License-Identifier: Apache-2.0
// Config, from one spec string, and Profiler: recording, its file, and its results as they are now (Report).
// Thread rule: a Profiler may be used from any thread; make and destroy it where no other thread uses it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/answer.hpp"
#include "plumb/api.hpp"
#include "plumb/graph_probe.hpp"
#include "plumb/hip.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"

struct CUgraph_st;

namespace plumb {

class CudaGraphCache;
class Session; // src/session
namespace base {
class CounterReader; // src/base
}

/// When stamps are taken and collected (docs/reference/configuration.md says what each means on each backend).
enum class SyncMode : std::uint8_t { deferred, immediate, per_layer, none };

/// Told one sentence when something went wrong that the user must know. Called from any thread; must not call the
/// profiler.
using Diagnostic = void (*)(const char* sentence, void* user);

/// Which stamps an instrumented CUDA graph is made of.
enum class GraphStamps : std::uint8_t { cheapest, events, kernels, off };

/// The keys graph.* of the spec: probes of CUDA graphs, and CudaGraphCache.
struct GraphConfig {
    GraphStamps stamps = GraphStamps::cheapest;
    std::uint64_t every = 0;   // one replay out of so many is sampled; 0: as many as cost 1 % of a step
    bool upload_each = false;  // upload before every launch, not once
    bool sync = false;         // wait for each replay
    std::uint64_t profile = 0; // one line of one replay out of so many; 0: none
};

/// The keys tensors and dump of the spec: which tensors PLUMB_TENSOR looks at, and how.
struct TensorConfig {
    enum class Level : std::uint8_t {
        off,
        nonfinite, // only whether all is finite: what is not is recorded, with its brick's inputs
        all,       // a fingerprint of each
    };
    Level level = Level::off;
    std::uint64_t every = 1;                                     // one step out of so many
    std::vector<std::string> bricks;                             // by name; empty: all
    std::vector<std::pair<std::uint32_t, std::uint32_t>> layers; // first and last; empty: all, and what is in none
    std::string dump;                                            // folder for whole tensors (.npy); empty: none
    bool by_old_key = false; // said as check=, the key of version 0.1: the profiler says what it is called now

    /// The value of tensors= that gives this, without dump.
    [[nodiscard]] PLUMB_API std::string spec() const;
};

/// What PLUMB="on,out=run-%p.plumb" says. Plain data.
struct PLUMB_API Config {
    bool on = false;
    std::string out = "plumb-%p.plumb"; // %p pid, %h host, %r rank; "none": in memory, for snapshot() only
    std::uint64_t ring_bytes = std::uint64_t{1} << 20; // per recording thread
    std::uint64_t max_bytes = 0;                       // of the recording; 0: no bound
    double keep_seconds = 0;                           // only the last so many; 0: all
    SyncMode sync = SyncMode::deferred;
    std::uint64_t warmup_steps = 8; // decode steps kept apart in reports
    bool follow_fork = false;       // fork=own: a forked child opens its own file
    std::string rank;               // "3/8+tp=1/4": rank, ranks, and index in groups; empty: as the launcher says
    bool redact = false;            // host, command line and paths stay out of the recording
    std::uint64_t device_every = 8; // device scopes whose timing costs something are timed in one step out of so many
    bool nvtx = false;              // scopes are told to a tool as NVTX ranges too
    bool counters = false;          // the processor's counters, read once a second by the drain; no scope pays
    GraphConfig graph;
    TensorConfig tensors;
    std::uint32_t tiles = 0; // tiles that each thread keeps apart; 0: PLUMB_TILE does nothing
    std::string metrics;     // live metrics for Prometheus: address and port, or a file; empty: none

    // Not part of the spec.
    const HostClock* clock = nullptr;              // injected; must outlive the profiler
    base::CounterReader* counter_reader = nullptr; // for counters=on; null: the system's; must outlive the profiler
    Diagnostic diagnostic = nullptr;               // null: one line on stderr
    void* diagnostic_user = nullptr;

    /// "off", "0" and "" are off; "on" and "1" are on; then key=value, separated by commas.
    /// invalid_argument: an unknown key (the message lists the known ones) or a value that does not fit.
    static Result<Config> parse(std::string_view spec);
    /// Sets one key of the spec. `option` is what the caller's user typed for it, such as "--out": the sentence of an error
    /// then speaks of that. Nothing changes on an error, which is as those of parse(). Whether keys go together is left to
    /// validate().
    Status set(std::string_view key, std::string_view value, std::string_view option = {});
    /// invalid_argument: settings that do not go together, as a dump of tensors that are not looked at whole. parse() and the
    /// profiler's constructor ask this too.
    [[nodiscard]] Status validate() const;
    /// parse() of the environment variable PLUMB; off when it is not set.
    static Result<Config> from_env();
    /// The spec that gives this config; for people alone where a path has a comma.
    [[nodiscard]] std::string spec() const;
};

/// A kernel that a recording shall know by name. Only `name` has to be given.
struct KernelSource {
    std::string name;
    std::string file;   // where its source lies
    std::string source; // its text, kept in the recording up to 256 KiB; empty: not kept
};

class PLUMB_API Profiler : public Recorder {
  public:
    /// Never fails to construct: made from an error, or where the recording cannot be opened, it is off, keeps status()
    /// and says one sentence through the diagnostic.
    explicit Profiler(Result<Config> config = Config{}) : Profiler(std::move(config), layout_version) {}
    /// For the one above, which is compiled into the program: off, with an error unsupported, where the program was compiled
    /// with headers of another layout than the library that it runs with.
    Profiler(Result<Config> config, std::uint32_t layout_of_program);
    ~Profiler();

    [[nodiscard]] Status status() const;
    [[nodiscard]] const Config& config() const noexcept;
    /// Path of the recording, also after close(); empty where none was opened, and with out=none.
    [[nodiscard]] std::string path() const;

    /// Starts recording (and opens the recording, the first time). Scopes open now are not recorded.
    Status enable();
    /// Stops recording; the recording stays open. Scopes open now are dropped and counted.
    void disable();

    /// A handle for a name that is not a well-known brick; the same name gives the same handle in every profiler.
    /// Cold: takes a lock. Name{} (recorded as "unnamed") when the registry of 16,384 names is full.
    [[nodiscard]] Name intern(std::string_view name, Category category = Category::other);

    /// Makes known what a code hash stands for: code_hash() of `code` (PTX or binary, `size` bytes), which record_kernel()
    /// takes. Cold: takes a lock. Kernels of one module share their hash and differ by name. The code itself is not kept;
    /// with redact=on neither source nor folder is. Errors: already_exists names two that differ under one hash (both are
    /// in the recording, which says so); out_of_memory beyond 4,096 kernels. record_kernel() may use the hash all the same.
    Result<std::uint64_t> register_kernel(const void* code, std::size_t size, const KernelSource& kernel);

    /// Says something about the run, shown at the head of reports: ("model", "qwen2.5-0.5b bf16"). Last value wins.
    /// Key and value are cut beyond 1 MB; so are notes and the names of queues.
    void describe(const std::string& key, const std::string& value);
    /// A remark of the user's own ("zero-copy weights"), shown at the foot of reports as a note by the user: nothing that
    /// was measured. At most 4,096; later ones are dropped.
    void note(const std::string& text);

    /// A handle for a device queue timed by a backend. The timer must outlive the profiler.
    [[nodiscard]] Queue add_queue(QueueTimer& timer, const std::string& name);

    /// A graph was captured; scopes that this profiler saw on capturing streams become its bricks. The probe launches it
    /// and times what is inside in some replays. `key` is the caller's name for the graph, e.g. the padded batch size; a
    /// graph captured anew under the same key replaces the old one. The graph may be destroyed after the call. Call it again
    /// after any change of the executable itself (cuGraphExecUpdate, cuGraphExec*SetParams): a twin of the old graph would
    /// replay with the old parameters.
    /// Error unavailable without CUDA driver; unsupported with graph.stamps=off. The graph itself is never changed.
    Result<GraphProbe> graph_captured(std::uint64_t key, CUgraph_st* graph);
    /// The same for a hipGraph_t (plumb/hip.hpp). Before the first replay is instrumented a tiny graph of our own shows
    /// whether event nodes can be read on that device; where they cannot, replays are plain and the key's row says
    /// `unsupported (…)`. Error unsupported where libamdhip64 lacks a call that probes need.
    Result<HipGraphProbe> hip_graph_captured(std::uint64_t key, void* graph);
    /// The caller gave that graph up: the twin goes too. Returns when all of it is gone, or leaves a twin that is still in
    /// flight to its end.
    void graph_evicted(std::uint64_t key);
    /// All graphs were given up, of every API: returns when every clone and twin is gone, those in flight included. Call it
    /// before anything that waits for what graphs hold (ncclCommDestroy waits for its user objects). Error pending: not in
    /// that time.
    Status graphs_evicted_all(double timeout_seconds = 5);

    /// Waits until everything recorded before the call is in the recording. Error pending after so many seconds.
    Status flush(double timeout_seconds = 5);
    /// The results of everything since the start or the last reset(): the same numbers as `plumb report` gives.
    /// Error unavailable, here and of ask(): libplumb-analysis, which libplumb.so opens now, is not there.
    [[nodiscard]] Result<Report> snapshot(const ReportOptions& options = {});
    /// An answer by its name, of the same records: ask("wall", {{"phase", "decode"}}), ask("tiles"). Errors as those of
    /// plumb::ask(); unsupported where the answer reads a recording in a way of its own, so that plumb::ask() has to be given
    /// path().
    [[nodiscard]] Result<Answer> ask(std::string_view name, const OptionValues& options = {});
    /// Clears what snapshot(), ask() and labels() count; leaves a mark in the recording.
    void reset();
    /// Totals of Recorder::record(label, ns), by total, largest first. Empty where snapshot() gives an error.
    [[nodiscard]] std::vector<LabelTotal> labels();

    /// Finishes the recording. The destructor does the same and discards the status.
    Status close();

  private:
    friend class CudaGraphCache; // counts in the same ledger as graph_captured()
    Session* session_;
};

} // namespace plumb
