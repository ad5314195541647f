// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "attach/attachment.hpp"
#include "attach/late_pen.hpp"
#include "attach/onnxruntime/lane.hpp"
#include "attach/onnxruntime/node_label.hpp"
#include "clock/host_clock.hpp"
#include "import/rules/brick_name.hpp"

namespace plumb::attach::onnxruntime {
namespace {

constexpr std::size_t most_names = 65536;
constexpr unsigned first_that_profiles_runs = 25;

__thread bool in_run PLUMB_TLS_MODEL = false; // a run inside a run is a part of it

std::string counted(std::uint64_t count, const char* what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

/// The sizes of a tensor, at most three; empty: it is none, or cannot be asked.
std::vector<std::int64_t> sizes_of(const OrtApi& api, const Value* value) {
    constexpr std::size_t most = 3;
    std::vector<std::int64_t> sizes;
    TensorInfo* info = nullptr;
    Failure* failure = api.get_tensor_info(value, &info);
    if (failure == nullptr) {
        std::size_t count = 0;
        failure = api.get_dimensions_count(info, &count);
        if (failure == nullptr && count <= most) {
            sizes.resize(count);
            failure = api.get_dimensions(info, sizes.data(), count);
        }
        api.release_tensor_info(info);
    }
    if (failure != nullptr) {
        api.release_failure(failure);
        sizes.clear();
    }
    return sizes;
}

struct PlacedNode {
    const ProfiledNode* node;
    std::int64_t end_us;
};

/// What a node holds (the body of a loop) before it, and inside of it.
std::vector<PlacedNode> children_first(const std::vector<ProfiledNode>& nodes) {
    std::vector<PlacedNode> ordered;
    std::vector<PlacedNode> open;
    for (const ProfiledNode& node : nodes) {
        while (!open.empty() && open.back().end_us <= node.begin_us) {
            ordered.push_back(open.back());
            open.pop_back();
        }
        // Whole microseconds, cut off: the end of a node may seem to lie up to two behind that of what holds it.
        open.push_back({&node, open.empty() ? node.end_us : std::min(node.end_us, open.back().end_us)});
    }
    ordered.insert(ordered.end(), open.rbegin(), open.rend());
    return ordered;
}

} // namespace

OrtEngine::OrtEngine(const OrtApi& its, std::string version)
    : api(its), options(api), version_(std::move(version)), profiles_(api.enable_profiling != nullptr) {}

Profiler& OrtEngine::met() {
    std::call_once(met_, [this] {
        tell("engine", "onnxruntime " + version_ + "\tLD_PRELOAD");
        profiler().describe("engine", "onnxruntime " + version_ + ", not built for this profiler");
        if (!profiles_.load(std::memory_order_relaxed)) {
            say("onnxruntime " + version_ + " cannot profile single runs, as it does from 1." +
                std::to_string(first_that_profiles_runs) + " on: its runs are steps, and have no bricks");
        }
    });
    return profiler();
}

void OrtEngine::run_asynchronously() {
    (void)met();
    asynchronous_.fetch_add(1, std::memory_order_relaxed);
}

OrtEngine::RunFacts OrtEngine::facts_of(const char* const* names, const Value* const* values, std::size_t count) const {
    RunFacts facts;
    for (std::size_t i = 0; names != nullptr && values != nullptr && i < count; ++i) {
        if (names[i] == nullptr || values[i] == nullptr) {
            continue; // the run itself will refuse it
        }
        const bool is_mask = std::strcmp(names[i], "attention_mask") == 0;
        if (!is_mask && std::strcmp(names[i], "input_ids") != 0 && std::strcmp(names[i], "inputs_embeds") != 0) {
            continue;
        }
        const std::vector<std::int64_t> sizes = sizes_of(api, values[i]);
        if (sizes.size() < 2 || sizes[0] <= 0 || sizes[1] <= 0) {
            continue;
        }
        const auto sequences = static_cast<std::uint64_t>(sizes[0]);
        const auto length = static_cast<std::uint64_t>(sizes[1]);
        if (is_mask) {
            facts.kv_length = length;
        } else {
            facts.phase = length == 1 ? Phase::decode : Phase::prefill;
            facts.sequences = sequences;
            facts.tokens = sequences * length;
        }
    }
    return facts;
}

/// One run as a step of this thread.
class OrtEngine::OpenStep {
  public:
    OpenStep(Profiler& profiler, const RunFacts& facts) : profiler_(profiler) {
        const auto prefill = prefill_tokens(facts.phase == Phase::prefill ? facts.tokens : 0);
        const auto decode = decode_tokens(facts.phase == Phase::decode ? facts.tokens : 0);
        if (facts.phase == Phase::none) {
            profiler_.push_step(host, Phase::none);
        } else if (facts.kv_length) {
            profiler_.push_step(host, facts.phase, prefill, decode, sequences(facts.sequences),
                                kv_length(*facts.kv_length));
        } else {
            profiler_.push_step(host, facts.phase, prefill, decode, sequences(facts.sequences));
        }
        in_run = true;
    }
    OpenStep(const OpenStep&) = delete;
    OpenStep& operator=(const OpenStep&) = delete;
    ~OpenStep() {
        in_run = false;
        profiler_.pop_scope();
    }

  private:
    Profiler& profiler_;
};

Failure* OrtEngine::run(const Session* session, const RunOptions* given, const RunFacts& facts,
                        const Original& original) {
    Profiler& recorder = met();
    if (!recorder.enabled() || in_run) {
        return original(given);
    }
    runs_.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t asked_ns = clock::monotonic_ns();
    ProfiledRun run;
    RunOptions* own = nullptr;
    if (begins(session, facts.phase)) {
        own = profiling_options(given, run.prefix);
        run.queue = own != nullptr ? lane_of_thread() : Queue();
        if (own == nullptr) {
            ends(session, facts.phase, [](Pace& pace) { pace.given_up(); });
        }
    }
    Failure* failure = nullptr;
    {
        const OpenStep open(recorder, facts);
        run.step = recorder.context();
        run.begin_ticks = recorder.plain_stamp();
        run.begin_ns = clock::monotonic_ns();
        failure = original(own != nullptr ? own : given);
    }
    if (own == nullptr) {
        const std::int64_t taken = clock::monotonic_ns() - run.begin_ns;
        ends(session, facts.phase, [taken](Pace& pace) { pace.plain(taken); });
        return failure;
    }
    options.done(given, own);
    if (failure == nullptr) {
        read_nodes(run);
    } else {
        (void)ProfileFolder::take(run.prefix); // the program's own error
    }
    const std::int64_t taken = clock::monotonic_ns() - asked_ns;
    ends(session, facts.phase, [taken](Pace& pace) { pace.profiled(taken); });
    return failure;
}

bool OrtEngine::is_left_alone(const Session* session) const {
    std::uint64_t since = 0;
    if (Failure* const failure = api.profiling_start(session, &since); failure != nullptr) {
        api.release_failure(failure);
        return true;
    }
    return since != 0;
}

bool OrtEngine::begins(const Session* session, Phase phase) {
    if (!profiles_.load(std::memory_order_relaxed)) {
        return false;
    }
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = sessions_.try_emplace(session);
    KnownSession& known = found->second;
    if (is_new && is_left_alone(session)) {
        known.left_alone = true;
        say("the program has onnxruntime profile a session of its own: the runs of that are steps, and have no bricks");
    }
    if (known.left_alone) {
        return false;
    }
    const Config& config = profiler().config();
    const std::uint64_t warm_up = phase == Phase::decode ? config.warmup_steps : 0;
    return known.paces.try_emplace(phase, warm_up, config.device_every).first->second.next();
}

template <class Tell>
void OrtEngine::ends(const Session* session, Phase phase, Tell tell) {
    const std::lock_guard lock(mutex_);
    if (const auto known = sessions_.find(session); known != sessions_.end()) {
        if (const auto pace = known->second.paces.find(phase); pace != known->second.paces.end()) {
            tell(pace->second);
        }
    }
}

void OrtEngine::released(const Session* session) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(session);
}

RunOptions* OrtEngine::profiling_options(const RunOptions* given, std::string& prefix) {
    RunOptions* const own = options.stand_in(given);
    if (own == nullptr) {
        say(options.profiled_by_program(given)
                ? "the program has onnxruntime profile runs of its own: those have no bricks"
                : "some runs of onnxruntime have options that cannot be repeated (adapters, a stream): those have no bricks");
        return nullptr;
    }
    Result<std::string> made = folder_.next_prefix();
    Failure* const failure = made.ok() ? api.enable_profiling(own, made->c_str()) : nullptr;
    if (made.ok() && failure == nullptr) {
        prefix = std::move(*made);
        return own;
    }
    turn_off(made.ok() ? std::string("it says: ") + api.error_message(failure) : made.error().message);
    if (failure != nullptr) {
        api.release_failure(failure);
    }
    options.done(given, own);
    return nullptr;
}

void OrtEngine::turn_off(const std::string& why) {
    if (profiles_.exchange(false, std::memory_order_relaxed)) {
        say("runs of onnxruntime are no longer profiled: " + why);
    }
}

void OrtEngine::read_nodes(const ProfiledRun& run) {
    const Result<std::string> text = ProfileFolder::take(run.prefix);
    if (!text) {
        turn_off(text.error().message);
        return;
    }
    const Result<RunProfile> profile = read_profile(*text);
    if (!profile) {
        turn_off(profile.error().message);
        return;
    }
    if (const std::string why = why_no_bricks(*profile); !why.empty()) {
        turn_off(why);
        return;
    }
    if (profiled_.fetch_add(1, std::memory_order_relaxed) == 0) {
        profiler().describe("device", "cpu");
    }
    emit(*profile, run);
}

void OrtEngine::emit(const RunProfile& profile, const ProfiledRun& run) {
    Profiler& recorder = profiler();
    LatePen pen(recorder);
    std::optional<ContextScope> place;
    std::int32_t layer = -1;
    std::uint64_t lost = 0;
    for (const PlacedNode& placed : children_first(profile.nodes)) {
        const ProfiledNode& node = *placed.node;
        const Named name = named(node);
        if (!place || name.layer != layer) {
            layer = name.layer;
            place.reset();
            place.emplace(recorder, recorder.mode(),
                          Context{run.step.step_plus_one, static_cast<std::uint32_t>(layer + 1)});
        }
        constexpr std::int64_t microsecond = 1000;
        const DeviceSpan span{static_cast<std::uint64_t>(run.begin_ns + node.begin_us * microsecond),
                              static_cast<std::uint64_t>(run.begin_ns + placed.end_us * microsecond),
                              placed.end_us == node.begin_us ? span_below_floor : 0};
        const DeviceToken token = lane_of(run.queue).add(span);
        if (token.value == 0) {
            ++lost;
            continue;
        }
        pen.device_scope(name.brick, run.queue, token, run.begin_ticks, work_of(node));
    }
    nodes_.fetch_add(profile.nodes.size() - lost, std::memory_order_relaxed);
    lost_.fetch_add(lost, std::memory_order_relaxed);
}

OrtEngine::Named OrtEngine::named(const ProfiledNode& node) {
    std::string key(node.name);
    key += '\0';
    key += node.operation;
    const std::lock_guard lock(mutex_);
    if (const auto found = names_.find(key); found != names_.end()) {
        return found->second;
    }
    const NodeLabel label = label_of(node.name, node.operation);
    const imported::BrickName brick = imported::brick_named(label.brick);
    const Named made{brick.well_known != 0 ? Name(brick.well_known) : profiler().intern(brick.name, brick.category),
                     label.layer};
    if (names_.size() < most_names) {
        names_.emplace(std::move(key), made);
    }
    return made;
}

void OrtEngine::tell_outcome() {
    folder_.remove();
    const std::uint64_t runs = runs_.load(std::memory_order_relaxed);
    if (runs != 0) {
        profiler().describe("onnxruntime", counted(runs, "run") + ", of which " +
                                               std::to_string(profiled_.load(std::memory_order_relaxed)) +
                                               " profiled, " + counted(nodes_.load(std::memory_order_relaxed), "node"));
    }
    if (const std::uint64_t lost = lost_.load(std::memory_order_relaxed); lost != 0) {
        say(counted(lost, "node") + " of onnxruntime were not recorded: too many waited to be written");
    }
    if (const std::uint64_t runs_beside = asynchronous_.load(std::memory_order_relaxed); runs_beside != 0) {
        say(counted(runs_beside, "run") + " of onnxruntime by RunAsync are not recorded: its own threads make them");
    }
}

} // namespace plumb::attach::onnxruntime
