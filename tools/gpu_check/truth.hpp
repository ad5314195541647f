// SPDX-License-Identifier: Apache-2.0
// One assertion per line of the truth table (tests/mocks/virtual_gpu/truth_table.hpp): truth_<id> throws Failure where the
// belief does not hold, NotApplicable where it cannot be asked here. A line without an assertion counts as failed.
#pragma once

#include <functional>
#include <string>

#include "gpu.hpp"
#include "virtual_gpu/truth_table.hpp"

namespace gpu_check {

#define PLUMB_GPU_TRUTH_DECLARE(id, source, sentence) [[gnu::weak]] void truth_##id(Gpu& gpu);
PLUMB_GPU_TRUTHS(PLUMB_GPU_TRUTH_DECLARE)
#undef PLUMB_GPU_TRUTH_DECLARE

/// What the assertion saw, for the result line: "tick 32 ns".
void say(std::string detail);

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
std::size_t edge_count(Gpu& gpu, Graph graph);
void launch_graph(Gpu& gpu, GraphExec exec, Stream stream);

} // namespace gpu_check
