// SPDX-License-Identifier: Apache-2.0
// Everything that the virtual GPU knows. One object per process, one lock; files named after a subject work on their part
// of it. Nothing here is seen outside this folder.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "virtual_gpu/calls.hpp"
#include "virtual_gpu/handles.hpp"
#include "virtual_gpu/work.hpp"

namespace plumb::vgpu {

struct FrontierNode {
    GraphNode node = nullptr;
    EdgeData edge{};
};
using Frontier = std::vector<FrontierNode>;

struct CaptureObject;

using References = std::map<UserObject, std::uint64_t>;

struct UserObjectState {
    std::uint64_t references = 0;
    HostFunction destroy = nullptr;
    void* pointer = nullptr;
};

struct ContextObject {
    std::uint64_t id = 0;
    int device = 0;
    bool primary = false;
    unsigned retained = 0;
    std::int64_t legacy_tail_ns = 0;   // blocking streams wait for the legacy stream's work
    std::int64_t blocking_tail_ns = 0; // and it for theirs
    std::int64_t busy_until_ns = 0;    // work of any stream of it, destroyed ones too
    std::shared_ptr<struct StreamObject> legacy;
    std::map<std::thread::id, std::shared_ptr<struct StreamObject>> per_thread;
};

struct StreamObject {
    std::uint64_t id = 0;
    Stream handle = nullptr;
    Context context = nullptr;
    int device = 0;
    unsigned flags = 0;
    int priority = 0; // lower comes first
    bool legacy = false;
    bool green = false;       // of a green context
    std::int64_t tail_ns = 0; // true time at which everything enqueued so far is done
    bool had_work = false;
    std::deque<std::int64_t> launches; // ends of what occupies the launch queue

    std::shared_ptr<CaptureObject> capture;
    Frontier frontier;
    // Arrays given out by cuStreamGetCaptureInfo: poisoned at the next call on this stream, freed some calls later.
    struct Handed {
        std::vector<GraphNode> nodes;
        std::vector<EdgeData> edges;
    };
    std::deque<std::shared_ptr<Handed>> handed;

    [[nodiscard]] bool blocking() const { return (flags & stream_non_blocking) == 0; }
};

struct CaptureObject {
    std::uint64_t id = 0;
    CaptureMode mode = CaptureMode::global;
    std::thread::id owner;
    std::shared_ptr<StreamObject> origin;
    std::vector<std::shared_ptr<StreamObject>> streams;
    std::shared_ptr<GraphObject> graph;
    bool invalid = false;
};

struct EventRecord {
    std::int64_t submit_ns = 0;
    std::int64_t done_ns = 0;
    bool replayed = false; // by a graph: what cuEventDestroy must not meet in flight
};

struct EventObject {
    std::uint64_t id = 0;
    Event handle = nullptr;
    Context context = nullptr;
    int device = 0;
    unsigned flags = 0;
    std::deque<EventRecord> records; // oldest first; only the newest one that is done and what follows are kept
    std::uint64_t capture_id = 0;    // last recorded in this capture; 0: not in one
    Frontier frontier;               // of that capture

    [[nodiscard]] bool timed() const { return (flags & event_disable_timing) == 0; }
};

struct Dependency {
    struct NodeObject* from = nullptr;
    EdgeData edge{};
};

struct NodeObject {
    std::uint64_t id = 0; // never used again, unlike the handle
    GraphNode handle = nullptr;
    GraphObject* graph = nullptr;
    Work work;
    std::vector<Dependency> after;
    GraphNode original = nullptr; // in a clone: the node it was cloned from
};

struct GraphObject {
    std::uint64_t id = 0;
    Graph handle = nullptr;
    std::vector<std::shared_ptr<NodeObject>> nodes; // in order of creation
    bool capturing = false;
    bool owned_by_node = false;
    std::uint64_t clone_of = 0;
    std::size_t live_execs = 0;
    References objects; // that it holds itself; child graphs hold their own

    [[nodiscard]] bool has(NodeType type) const;
    [[nodiscard]] bool device_updatable() const;
};

struct ExecNode {
    Work work;
    std::vector<std::pair<std::size_t, EdgeData>> after; // index into ExecObject::nodes
    GraphNode source = nullptr;
    std::uint64_t id = 0;
    bool enabled = true;
};

struct ExecObject {
    std::uint64_t id = 0;
    std::uint64_t source_graph = 0; // GraphObject::id
    std::weak_ptr<GraphObject> source;
    std::vector<ExecNode> nodes; // in topological order
    std::unordered_map<GraphNode, std::size_t> index;
    References objects;
    unsigned long long flags = 0;
    int device = 0;
    bool uploaded = false;
    std::uint32_t replays = 0;
    std::int64_t last_end_ns = 0;
};

struct ModuleObject {
    Context context = nullptr;
    bool from_ptx = false;
    std::map<std::string, std::vector<std::size_t>> entries; // name -> parameter sizes
    std::map<std::string, Function> functions;
};

inline constexpr std::align_val_t allocation_alignment{256}; // what the driver's have at least
struct GiveBack {
    void operator()(unsigned char* data) const noexcept { ::operator delete(data, allocation_alignment); }
};

struct Allocation {
    std::size_t bytes = 0;
    std::unique_ptr<unsigned char[], GiveBack> data;
    bool host = false;
    bool pooled = false; // of cuMemAllocAsync or an allocation node
    Context context = nullptr;
    int device = 0;
};

struct Effect {
    std::int64_t time_ns = 0;
    std::uint64_t order = 0;
    std::function<void()> act;
    bool operator>(const Effect& other) const {
        return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
    }
};

/// When something keeps the device.
struct Span {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
};

/// What the kernels of one device share.
struct DeviceState {
    struct Resident {
        Span span;
        std::uint64_t blocks = 0;
    };
    std::vector<Resident> resident;
    std::int64_t last_end_ns = INT64_MIN / 2;
    std::int64_t awake_since_ns = INT64_MIN / 2;
};

struct HoldState;

struct FailureRule {
    enum class Action { fail, slow, lose, hold } action = Action::fail;
    std::string symbol;
    std::uint64_t first = 1; // counted from when the rule was made
    std::uint64_t times = 1;
    std::uint64_t seen = 0;
    CuResult error = CuResult::success;
    std::int64_t slow_ns = 0;
    std::shared_ptr<HoldState> hold;
};

struct LedgerBook {
    std::deque<Operation> operations;
    std::uint32_t launches = 0;
    std::vector<Invalidation> invalidations;
    std::vector<Synchronisation> synchronisations;
    std::vector<std::string> errors;
    std::map<std::thread::id, std::array<std::uint64_t, call_count>> calls;
    Blocked blocked;
    std::uint64_t destroyed_in_flight = 0;
};

/// Of the calling thread; begins anew after reset().
struct ThreadState {
    std::uint64_t generation = 0;
    CaptureMode mode = CaptureMode::global;
    std::vector<Context> contexts;
    bool in_host_function = false;
};

struct Gpu {
    // Invariant: everything below is touched with `mutex` held, the clock apart. Host functions run with it held too,
    // and may use control.hpp: hence recursive.
    std::recursive_mutex mutex;
    Config config;
    std::uint64_t generation = 1;
    bool initialised = false;
    std::mt19937_64 random{1};
    std::uint64_t next_id = 1;
    std::uint64_t next_graph_id = 1;

    Handles<ContextObject, Context> contexts{1};
    Handles<StreamObject, Stream> streams{2};
    Handles<EventObject, Event> events{3};
    Handles<ModuleObject, Module> modules{4};
    Handles<FunctionObject, Function> functions{5};
    Handles<GraphObject, Graph> graphs{6};
    Handles<NodeObject, GraphNode> nodes{7};
    Handles<ExecObject, GraphExec> execs{8};
    Handles<UserObjectState, UserObject> user_objects{9};

    std::vector<Context> primary; // per device
    std::map<int, DeviceState> devices;
    std::vector<std::shared_ptr<CaptureObject>> captures;
    std::map<std::uintptr_t, Allocation> allocations; // by host address
    std::map<std::string, KernelModel> kernels;
    std::unordered_set<std::string> names;
    std::map<std::string, std::int64_t> costs;

    std::priority_queue<Effect, std::vector<Effect>, std::greater<>> effects;
    std::uint64_t next_order = 0;
    bool settling = false;

    CuResult lost = CuResult::success;
    std::vector<FailureRule> rules;
    std::map<const void*, std::thread::id> in_use; // graph objects that are inside a call now
    LedgerBook ledger;
};

Gpu& gpu();
ThreadState& this_thread_state();

inline constexpr DevicePointer device_tag = DevicePointer{1} << 62; // device addresses cannot be followed on the host
inline GraphNode poisoned_node() { return reinterpret_cast<GraphNode>(std::uintptr_t{0x7adead} << 24); }

// clock.cpp
std::int64_t host_now();
void advance_virtual(std::int64_t to_ns);

// stamps.cpp
void add_stamp_kernels(Gpu& gpu);

// service.cpp
void wake_service(); // real time only: somebody must carry out what is due while the program makes no call

// timeline.cpp
void settle();
void schedule_effect(std::int64_t time_ns, std::function<void()> act);
std::int64_t busy_until(Context context);

// streams.cpp
inline constexpr int greatest_priority = -5;
int priority_of(int wanted); // that the device has

// contexts.cpp
Context current_context();
std::shared_ptr<ContextObject> context_of(Context context);

// capture.cpp
void invalidate(CaptureObject& capture, const char* symbol);
/// The captures that forbid an unsafe call to this thread.
std::vector<std::shared_ptr<CaptureObject>> forbidding_captures();
void leave_capture(const std::shared_ptr<CaptureObject>& capture);
CuResult capture_work(StreamObject& stream, Work work, bool programmatic = false);

// graph.cpp
std::shared_ptr<GraphObject> make_graph();
std::shared_ptr<NodeObject> add_node(GraphObject& graph, Work work, const Frontier& after);
void drop_graph(const std::shared_ptr<GraphObject>& graph); // with its nodes and children
std::shared_ptr<NodeObject> find_node(GraphNode node);

// user_objects.cpp
void retain(const References& references);
void release(const References& references, std::int64_t when_ns);
void add_references(References& to, const References& more);

// ledger.cpp
void ledger_error(std::string sentence);
void ledger_operation(Operation operation);
const char* intern(const std::string& name);

} // namespace plumb::vgpu
