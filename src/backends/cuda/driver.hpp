// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as a table of functions, found in libcuda.so.1 at run time; another vendor whose calls agree fills the
// same table. Nothing is linked, and nothing is initialised: cuInit stays the program's own business. Owned by the process; any thread.
#pragma once

#include <string>

#include "backends/cuda/driver_calls.hpp"
#include "backends/cuda/driver_types.hpp"
#include "backends/cuda/vendor.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::cuda {

/// A null member is a call that this driver is too old for.
struct Driver {
#define PLUMB_CUDA_MEMBER(member, symbol, version, need, parameters) CuResult(*member) parameters = nullptr;
    PLUMB_CUDA_CALLS(PLUMB_CUDA_MEMBER)
#undef PLUMB_CUDA_MEMBER
    int version = 0; // as the vendor counts; 12040: CUDA 12.4
    const Vendor* vendor = &cuda_vendor;
    bool query_breaks_captures = false; // asking for an event breaks whatever any thread captures
    bool bears_dead_streams = true;     // asked for a stream that was destroyed, it answers with an error
    std::string no_graphs;              // why nothing inside graphs can be timed; empty: it can

    // One function whatever the driver's age. `edges` may be null; it is ignored where the driver knows no edge data.
    CuResult elapsed(float* ms, Event begin, Event end) const noexcept;
    /// `nodes` lies in the driver's memory, valid until the next call on that stream. `edges` is null before 12.3.
    CuResult capture_info(Stream stream, CaptureStatus* status, unsigned long long* id, Graph* graph,
                          const GraphNode** nodes, const EdgeData** edges, std::size_t* count) const noexcept;
    CuResult edges_of(Graph graph, GraphNode* from, GraphNode* to, EdgeData* edges, std::size_t* count) const noexcept;
    CuResult add_edges(Graph graph, const GraphNode* from, const GraphNode* to, const EdgeData* edges,
                       std::size_t count) const noexcept;
    CuResult remove_edges(Graph graph, const GraphNode* from, const GraphNode* to, const EdgeData* edges,
                          std::size_t count) const noexcept;
    /// Error not_supported where the vendor has no such parameters.
    CuResult kernel_params(GraphNode node, KernelNodeParams* params) const noexcept;
    CuResult add_kernel(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                        const KernelNodeParams* params) const noexcept;
    CuResult exec_update(GraphExec exec, Graph graph, ExecUpdateInfo* info) const noexcept;
    /// Of a stream of a green context: its device's primary context, in which events and graphs of that stream live.
    CuResult context_of(Stream stream, Context* context) const noexcept;
    /// For ourselves: non-blocking, and of the highest priority, because each priority has channels of its own. In those of an
    /// engine with many streams, or with CUDA_DEVICE_MAX_CONNECTIONS=1, our records would wait behind its work.
    CuResult create_own_stream(Stream* stream) const noexcept;
};

/// The driver of this process, loaded at the first call. Error unavailable says what is missing and what to do.
const Result<Driver>& driver();
/// Loads a driver anew from a library name; for tests.
Result<Driver> load_driver(const char* library);

/// True for errors after which the context is unusable until the process ends (an illegal address, a launch failure, …).
bool is_sticky(CuResult result) noexcept;
/// "cuGraphInstantiateWithFlags: CUDA_ERROR_OUT_OF_MEMORY (2); <advice>" as an Error with the fitting code.
Error error_of(const Driver& driver, CuResult result, const char* call, const std::string& advice);

/// As the vendor calls it.
Result<std::string> device_name(const Driver& driver, Device device);

/// While it lives, nothing that the calling thread does can invalidate a capture of another thread: every thread of
/// ours that calls the driver holds one.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Driver& driver) noexcept;
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;
    /// No success: better call nothing then that may disturb a capture.
    [[nodiscard]] CuResult status() const noexcept { return status_; }

  private:
    const Driver& driver_;
    CaptureMode outer_ = CaptureMode::relaxed;
    CuResult status_;
};

/// Makes a context current on the calling thread while it lives.
class CurrentContext {
  public:
    CurrentContext(const Driver& driver, Context context) noexcept;
    ~CurrentContext();
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    [[nodiscard]] CuResult status() const noexcept { return status_; }

  private:
    const Driver& driver_;
    CuResult status_;
    bool pushed_ = false;
};

} // namespace plumb::backends::cuda
