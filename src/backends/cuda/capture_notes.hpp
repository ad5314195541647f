// SPDX-License-Identifier: Apache-2.0
// What scopes leave behind in a captured stream: no node, only the capture's frontier at their begin and end. Whoever
// asks for the notes of a graph gets them once; captures that nobody asks for are forgotten, oldest first.
// One store per process. Thread rule: any thread; short locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::cuda {

inline constexpr std::uint32_t no_parent = ~std::uint32_t{0};

/// A scope of a captured stream: its nodes are those between its two frontiers.
struct ScopeNote {
    ScopeLabel label;
    Work work{};
    bool has_work = false;
    bool ended = false;        // false: still open when the capture ended; it has no end frontier
    bool lossy = false;        // a frontier could not be read in full: nothing can be told of this scope's nodes
    bool programmatic = false; // an edge of a frontier is programmatic: a stamp in line would end an overlap
    Context context = nullptr; // of the stream; null: not known
    Stream stream = nullptr;   // several streams may take part in one capture
    std::vector<GraphNode> begin_frontier; // the nodes that the next one of the stream would depend on
    std::vector<GraphNode> end_frontier;
    std::uint32_t parent = no_parent; // index among the same notes; the innermost open scope of that stream
};

/// The notes of the capture that became `graph` (the handle of cuStreamEndCapture), in the order of their begins; empty
/// when there are none. They are forgotten here.
std::vector<ScopeNote> take_capture_notes(const Recorder* recorder, Graph graph);

/// Forgets the notes of a capture whose graph nobody will hand over: its handle may be given out anew. The id is that of
/// cuStreamGetCaptureInfo; all recorders'.
void drop_capture_notes(unsigned long long capture_id) noexcept;
/// Forgets the notes of a recorder that ends.
void drop_capture_notes(const Recorder* recorder) noexcept;

/// For queue timers, on a stream that is capturing. The tokens carry token_noted.
Result<DeviceToken> note_begin(const Driver& driver, Stream stream, const ScopeLabel& label) noexcept;
Status note_end(const Driver& driver, Stream stream, DeviceToken token, const Work* work) noexcept;
Result<DeviceToken> note_lap(const Driver& driver, Stream stream, DeviceToken ended, const Work* work,
                             const ScopeLabel& next) noexcept;
/// Gives a note up; an unknown one is ignored.
void note_cancel(DeviceToken token) noexcept;

struct CaptureNoteCounts {
    std::size_t captures = 0;    // held now
    std::uint64_t forgotten = 0; // captures nobody asked for
    std::uint64_t refused = 0;   // scopes beyond the bound of one capture
};
CaptureNoteCounts capture_note_counts() noexcept;

} // namespace plumb::backends::cuda
