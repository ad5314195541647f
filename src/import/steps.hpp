// SPDX-License-Identifier: Apache-2.0
// Which operations belong to which step of the engine, and how that is known. Pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/trace.hpp"
#include "plumb/bricks.hpp"

namespace plumb::imported {

inline constexpr std::uint32_t no_step = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t no_replay = no_step;

/// annotation: a range that the engine or the profiler named. replay: the launch of a captured graph. place: what stands
/// between replays, or all there is.
enum class StepEvidence : std::uint8_t { annotation = 0, replay = 1, place = 2 };
const char* evidence_word(StepEvidence evidence);

struct EngineStep {
    StepEvidence evidence = StepEvidence::place;
    Phase phase = Phase::mixed;
    bool phase_known = false;
    std::string name; // of the annotation
    std::uint16_t process = 0;
    std::uint32_t thread = 0; // that launched it; where none did, see launched
    bool launched = false;
    std::int64_t begin_ns = 0; // first launch, or begin on the device where there is none
    std::int64_t end_ns = 0;   // end of the last one
    std::uint64_t replays = 0;
    std::uint64_t prefill_tokens = 0, decode_tokens = 0, sequences = 0; // 0: not known
};

/// A replay of a captured graph: what one launch began.
struct Replay {
    std::uint16_t process = 0;
    std::uint64_t correlation = no_id;
    std::uint32_t launch = Trace::no_launch; // in Trace::host
    std::uint64_t key = 0;                   // the graph's id, or a hash of its operations' names
    std::vector<std::uint32_t> ops;          // in Trace::ops
    std::uint32_t step = no_step;
    bool cut = false; // by the end of the trace, or by its begin where no launch is known
};

/// Those that the ends of the trace cut, which are no steps.
struct CutSteps {
    std::uint64_t partial = 0;    // by its begin
    std::uint64_t unfinished = 0; // by its end
};

struct EngineSteps {
    std::vector<EngineStep> steps;         // by process and begin
    std::vector<std::uint32_t> of_op;      // index of its step, or no_step
    std::vector<Replay> replays;           // by process and begin
    std::vector<std::uint32_t> replay_of;  // of each op: index in replays, or no_replay
    std::map<std::uint16_t, CutSteps> cut; // by process
};

struct StepOptions {
    bool annotations = true; // may be used
    std::optional<Phase> phase;
    std::optional<std::uint64_t> tokens; // of each step
    std::vector<bool> attention;         // by name: whether it is attention's; empty: not known
};

[[nodiscard]] EngineSteps find_steps(const Trace& trace, const StepOptions& options = {});

} // namespace plumb::imported
