// SPDX-License-Identifier: Apache-2.0
// One assertion per line of truth_table.hpp: truth_<id> throws Failure where the belief does not hold, NotApplicable where it
// cannot be asked here. A line without an assertion does not link. The same assertions run on a real driver
// (tools/gpu_check) and on the virtual GPU (truths_test.cpp), so they ask nothing that only one of the two can answer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "truths/gpu.hpp"
#include "truths/truth_table.hpp"

namespace gpu_check {

#define PLUMB_GPU_TRUTH_DECLARE(id, source, sentence) void truth_##id(Gpu& gpu);
PLUMB_GPU_TRUTHS(PLUMB_GPU_TRUTH_DECLARE)
#undef PLUMB_GPU_TRUTH_DECLARE

struct Truth {
    std::string_view id;
    const char* source;
    void (*check)(Gpu& gpu);

    /// Then it takes a Gpu of a process in which nobody has called cuInit: Gpu(not_ready).
    [[nodiscard]] bool needs_fresh_process() const { return id == "calls_need_init"; }
    /// The driver logs an Xid: asked last, and only where the machine's owner allows it.
    [[nodiscard]] bool provokes_an_xid() const { return id == "sticky_error_stays"; }
};
inline constexpr Truth truths[] = {
#define PLUMB_GPU_TRUTH_ROW(id, source, sentence) {#id, source, truth_##id},
    PLUMB_GPU_TRUTHS(PLUMB_GPU_TRUTH_ROW)
#undef PLUMB_GPU_TRUTH_ROW
};

/// What the assertion saw, for the result line: "tick 32 ns".
void say(std::string detail);
/// What was said since the last call of this.
std::string take_said();

/// An entry point that the library itself does not use, by its exact version; null where the driver has none.
void* find_entry(const char* symbol, int version);
template <class Function>
Function* entry(const char* symbol, int version) {
    auto* found = reinterpret_cast<Function*>(find_entry(symbol, version));
    if (found == nullptr) {
        throw NotApplicable{std::string("this driver has no ") + symbol};
    }
    return found;
}

/// Runs on a thread of its own with the context current, and waits for it.
void in_thread(Gpu& gpu, const std::function<void()>& body);

/// A capture that is given up when nobody ended it.
class Capturing {
  public:
    Capturing(Gpu& gpu, Stream stream, CaptureMode mode = CaptureMode::relaxed);
    ~Capturing();
    Capturing(const Capturing&) = delete;
    Capturing& operator=(const Capturing&) = delete;
    /// The driver's answer; the graph is kept, and null where there is none.
    CuResult end();
    /// Failure unless the end succeeds.
    Graph graph();
    /// Failure unless the capture was invalidated, ends with that error and gives no graph.
    void expect_invalidated(const char* by);
    [[nodiscard]] CaptureStatus status() const;
    [[nodiscard]] std::vector<GraphNode> frontier(Graph* graph = nullptr, unsigned long long* id = nullptr) const;
    /// For ends that another call has made.
    void forget() { open_ = false; }

  private:
    Gpu& gpu_;
    Stream stream_;
    bool open_ = true;
    OwnedGraph graph_;
};

NodeType type_of(Gpu& gpu, GraphNode node);
/// Failure where the graph has no such node.
GraphNode node_of_type(Gpu& gpu, Graph graph, NodeType type);
struct Edges {
    std::vector<GraphNode> from, to;
    std::vector<EdgeData> data;
    [[nodiscard]] std::size_t count() const { return from.size(); }
    [[nodiscard]] bool has(GraphNode a, GraphNode b) const;
    /// What `node` depends on, sorted.
    [[nodiscard]] std::vector<GraphNode> before(GraphNode node) const;
};
Edges edges_of(Gpu& gpu, Graph graph);
void launch_graph(Gpu& gpu, GraphExec exec, Stream stream);

} // namespace gpu_check
