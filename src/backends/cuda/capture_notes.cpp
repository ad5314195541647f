// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/capture_notes.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <new>
#include <utility>

namespace plumb::backends::cuda {
namespace {

constexpr std::size_t most_captures = 64;     // held for somebody to ask
constexpr std::size_t most_notes = 65'536;    // of one capture
constexpr std::size_t most_nodes = 1'000'000; // of all frontiers of one capture
constexpr std::size_t most_frontier = 4'096;  // of one
constexpr unsigned serial_shift = 32;
constexpr std::uint64_t serial_mask = 0x7fffffff;
constexpr std::uint64_t index_mask = 0xffffffff;

struct Frontier {
    std::vector<GraphNode> nodes;
    bool lossy = false;
    bool programmatic = false;
    unsigned long long capture = 0;
    Graph graph = nullptr;
    Context context = nullptr; // of the stream, for new notes
};

/// The notes of one recorder in one capture.
struct Capture {
    std::uint64_t serial = 0;
    const Recorder* recorder = nullptr;
    unsigned long long id = 0;
    Graph graph = nullptr;
    std::vector<ScopeNote> notes;
    std::vector<std::uint32_t> open; // innermost last, of all streams
    std::size_t nodes = 0;
};

struct NoteStore {
    std::mutex mutex;
    std::list<Capture> captures; // oldest first
    std::uint64_t next_serial = 1;
    CaptureNoteCounts counts;
};

// Never destroyed: threads may still capture while the process exits.
NoteStore& store() {
    static NoteStore& only = *new NoteStore;
    return only;
}

Error ended_capture() {
    return {ErrorCode::unsupported, "this scope crosses the border of a capture; begin and end it on the same side"};
}

Error no_note_memory() {
    return {ErrorCode::out_of_memory, "this capture holds too many scopes; capture fewer, or larger ones"};
}

Result<Frontier> copy_frontier(const GraphNode* nodes, const EdgeData* edges, std::size_t count, Frontier frontier) {
    if (count > most_frontier) {
        frontier.lossy = true;
        return frontier;
    }
    for (std::size_t i = 0; i < count; ++i) {
        frontier.nodes.push_back(nodes[i]);
        frontier.programmatic |= edges != nullptr && edges[i].type == edge_type_programmatic;
    }
    return frontier;
}

// The driver's array is valid until the next call on the stream: it is copied before anything else.
Result<Frontier> read_frontier(const Driver& driver, Stream stream) {
    CaptureStatus status = CaptureStatus::none;
    Frontier frontier;
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    CuResult asked = driver.capture_info(stream, &status, &frontier.capture, &frontier.graph, &nodes, &edges, &count);
    if (asked == CuResult::lossy_query) { // an older call that cannot tell of programmatic edges: the rest it can
        frontier.lossy = true;
        count = 0;
        asked = driver.capture_info(stream, &status, &frontier.capture, &frontier.graph, nullptr, nullptr, nullptr);
    }
    if (asked != CuResult::success) {
        return error_of(driver, asked, "cuStreamGetCaptureInfo", "this scope is not noted; check the capture");
    }
    if (status != CaptureStatus::active) {
        return ended_capture();
    }
    return copy_frontier(nodes, edges, count, std::move(frontier));
}

/// Of a stream that a note begins on. A graph belongs to the context of its streams, whatever is current later.
Result<Frontier> read_begin(const Driver& driver, Stream stream) {
    Result<Frontier> frontier = read_frontier(driver, stream);
    if (frontier && driver.context_of(stream, &frontier->context) != CuResult::success) {
        frontier->context = nullptr;
    }
    return frontier;
}

Capture& capture_of(NoteStore& all, const Recorder* recorder, const Frontier& frontier) {
    for (Capture& known : all.captures) {
        if (known.recorder == recorder && known.id == frontier.capture) {
            return known;
        }
    }
    // A graph handle that was given out anew: nobody will ask for the older capture.
    all.counts.forgotten += all.captures.remove_if(
        [&](const Capture& old) { return old.graph == frontier.graph && old.id != frontier.capture; });
    if (all.captures.size() == most_captures) {
        all.captures.pop_front();
        ++all.counts.forgotten;
    }
    Capture fresh;
    fresh.serial = all.next_serial++ & serial_mask;
    fresh.recorder = recorder;
    fresh.id = frontier.capture;
    fresh.graph = frontier.graph;
    all.captures.push_back(std::move(fresh));
    return all.captures.back();
}

Capture* find(NoteStore& all, DeviceToken token) {
    const std::uint64_t serial = token.value >> serial_shift & serial_mask;
    const auto found = std::find_if(all.captures.begin(), all.captures.end(),
                                    [&](const Capture& capture) { return capture.serial == serial; });
    return found == all.captures.end() || (token.value & index_mask) >= found->notes.size() ? nullptr : &*found;
}

std::uint32_t innermost_open(const Capture& capture, Stream stream) {
    for (std::size_t i = capture.open.size(); i-- > 0;) {
        if (capture.notes[capture.open[i]].stream == stream) {
            return capture.open[i];
        }
    }
    return no_parent;
}

Result<DeviceToken> add_note(NoteStore& all, Stream stream, const ScopeLabel& label, Frontier frontier) {
    Capture& capture = capture_of(all, label.recorder, frontier);
    if (capture.notes.size() == most_notes || capture.nodes + frontier.nodes.size() > most_nodes) {
        ++all.counts.refused;
        return no_note_memory();
    }
    ScopeNote note;
    note.label = label;
    note.stream = stream;
    note.context = frontier.context;
    note.lossy = frontier.lossy;
    note.programmatic = frontier.programmatic;
    note.parent = innermost_open(capture, stream);
    capture.nodes += frontier.nodes.size();
    note.begin_frontier = std::move(frontier.nodes);
    const auto index = static_cast<std::uint32_t>(capture.notes.size());
    capture.notes.push_back(std::move(note));
    capture.open.push_back(index);
    return DeviceToken{token_noted | capture.serial << serial_shift | index};
}

bool close(Capture& capture, std::uint32_t index) {
    const auto open = std::find(capture.open.begin(), capture.open.end(), index);
    if (open == capture.open.end()) {
        return false;
    }
    capture.open.erase(open);
    return true;
}

Status finish_note(NoteStore& all, DeviceToken token, const Work* work, const Frontier& frontier) {
    Capture* capture = find(all, token);
    const auto index = static_cast<std::uint32_t>(token.value & index_mask);
    if (capture == nullptr || !close(*capture, index)) {
        return Error{ErrorCode::not_found, "this scope of a capture is not open; end each one once, before its graph "
                                           "is handed over"};
    }
    if (capture->id != frontier.capture) {
        return ended_capture();
    }
    ScopeNote& note = capture->notes[index];
    note.ended = true;
    note.lossy |= frontier.lossy || capture->nodes + frontier.nodes.size() > most_nodes;
    note.programmatic |= frontier.programmatic;
    if (!note.lossy) {
        note.end_frontier = frontier.nodes;
        capture->nodes += frontier.nodes.size();
    }
    if (work != nullptr) {
        note.work = *work;
        note.has_work = true;
    }
    return {};
}

void give_up(NoteStore& all, DeviceToken token) {
    if (Capture* capture = find(all, token)) {
        close(*capture, static_cast<std::uint32_t>(token.value & index_mask));
    }
}

/// Notes are the engine's convenience: without memory the scope is dropped, the engine goes on.
template <class Value, class Function>
Result<Value> within_memory(Function function) noexcept {
    try {
        return function();
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory, "no memory"};
    }
}

} // namespace

Result<DeviceToken> note_begin(const Driver& driver, Stream stream, const ScopeLabel& label) noexcept {
    return within_memory<DeviceToken>([&]() -> Result<DeviceToken> {
        Result<Frontier> frontier = read_begin(driver, stream);
        if (!frontier) {
            return frontier.error();
        }
        const std::lock_guard lock(store().mutex);
        return add_note(store(), stream, label, std::move(*frontier));
    });
}

Status note_end(const Driver& driver, Stream stream, DeviceToken token, const Work* work) noexcept {
    return within_memory<void>([&]() -> Status {
        const Result<Frontier> frontier = read_frontier(driver, stream);
        const std::lock_guard lock(store().mutex);
        if (!frontier) {
            give_up(store(), token);
            return frontier.error();
        }
        return finish_note(store(), token, work, *frontier);
    });
}

Result<DeviceToken> note_lap(const Driver& driver, Stream stream, DeviceToken ended, const Work* work,
                             const ScopeLabel& next) noexcept {
    return within_memory<DeviceToken>([&]() -> Result<DeviceToken> {
        Result<Frontier> frontier = read_begin(driver, stream);
        const std::lock_guard lock(store().mutex);
        if (!frontier) {
            give_up(store(), ended);
            return frontier.error();
        }
        if (Status closed = finish_note(store(), ended, work, *frontier); !closed) {
            return closed.error();
        }
        return add_note(store(), stream, next, std::move(*frontier));
    });
}

void note_cancel(DeviceToken token) noexcept {
    const std::lock_guard lock(store().mutex);
    give_up(store(), token);
}

std::vector<ScopeNote> take_capture_notes(const Recorder* recorder, Graph graph) {
    const std::lock_guard lock(store().mutex);
    auto& captures = store().captures;
    for (auto capture = captures.begin(); capture != captures.end(); ++capture) {
        if (capture->recorder == recorder && capture->graph == graph) {
            std::vector<ScopeNote> notes = std::move(capture->notes);
            captures.erase(capture);
            return notes;
        }
    }
    return {};
}

void drop_capture_notes(unsigned long long capture_id) noexcept {
    const std::lock_guard lock(store().mutex);
    store().captures.remove_if([&](const Capture& capture) { return capture.id == capture_id; });
}

void drop_capture_notes(const Recorder* recorder) noexcept {
    const std::lock_guard lock(store().mutex);
    store().captures.remove_if([&](const Capture& capture) { return capture.recorder == recorder; });
}

CaptureNoteCounts capture_note_counts() noexcept {
    const std::lock_guard lock(store().mutex);
    CaptureNoteCounts counts = store().counts;
    counts.captures = store().captures.size();
    return counts;
}

} // namespace plumb::backends::cuda
