// SPDX-License-Identifier: Apache-2.0
// A graph as an engine would have it profiled: captured with scopes, launched through its probe in steps.
// Owned by one section; one thread.
#pragma once

#include <functional>
#include <memory>

#include "plumb/profiler.hpp"
#include "sections.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {

/// `settings` as in PLUMB: "graph.every=2". It records into the scratch folder; Failure where it does not come on.
std::unique_ptr<plumb::Profiler> profiler_of(const Options& options, const std::string& name,
                                             const std::string& settings = "");
/// Of all that has come so far.
plumb::Report report_of(plumb::Profiler& profiler);

/// A figure of a report, or why it is absent.
void put(const ResultFile& results, const std::string& name, const plumb::Figure& figure, const char* unit,
         const Json& at, double scale = 1);

class ProfiledGraph {
  public:
    /// `enqueue` is captured on the device's stream; `edit` changes the graph before anybody sees it.
    ProfiledGraph(Gpu& gpu, plumb::Profiler& profiler, std::uint64_t key, const std::function<void()>& enqueue,
                  const std::function<void(Graph)>& edit = {});
    ~ProfiledGraph(); // the profiler gives it up
    ProfiledGraph(const ProfiledGraph&) = delete;
    ProfiledGraph& operator=(const ProfiledGraph&) = delete;
    /// A step of its own; nothing waits. Its host time in nanoseconds.
    double launch();
    void launch_and_wait();
    /// Launches until every site of it was timed, or for so long: so many times.
    std::uint64_t launch_until_timed(double seconds);
    [[nodiscard]] GraphExec plain() const { return exec_; }
    [[nodiscard]] Graph graph() const { return graph_; }

  private:
    Gpu& gpu_;
    plumb::Profiler& profiler_;
    std::uint64_t key_;
    OwnedGraph graph_;
    OwnedExec exec_;
    plumb::GraphProbe probe_;
};

} // namespace gpu_check
