// SPDX-License-Identifier: Apache-2.0
// CudaGraphCache: does a replay with changed inputs compute what the eager step does, and where does it not?
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "cudagraph/graph_cache.hpp"
#include "cudagraph/node_image.hpp"
#include "fingerprint/cuda/captured_tensors.hpp"
#include "fingerprint/cuda/device_prints.hpp"
#include "record/name_registry.hpp"

namespace plumb::cudagraph {

using cuda::CuResult;
using fingerprint::CapturedTensors;
using fingerprint::DevicePrints;
using recording::TensorCheck;

/// The first difference of a round.
struct Cache::Found {
    StaleInput what;
    cuda::GraphNode node = nullptr;        // of the check that differs; null: an output
    std::vector<cuda::GraphNode> agreeing; // of checks before it that do not
};

namespace {

using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, TensorRole, std::uint32_t>;

bool all_zero(const Fingerprint& print) { return print.min == 0 && print.max == 0; }

/// |a - b| / |a|, from the sketches. 0 where all bits agree; infinite where nobody can say, as sketches leave out what is
/// not finite and lengths overflow or vanish.
double distance_between(const Fingerprint& a, const Fingerprint& b) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (a.count == b.count && a.hash == b.hash) {
        return 0;
    }
    // The hashes differ: which of the non-finite elements do, if any, their numbers do not tell.
    if (a.count != b.count || a.sketch.size() != b.sketch.size() || !a.finite() || !b.finite()) {
        return infinity;
    }
    if (!std::isfinite(a.sum_of_squares) || !std::isfinite(b.sum_of_squares)) {
        return infinity;
    }
    double squares = 0;
    for (std::size_t i = 0; i < a.sketch.size(); ++i) {
        squares += (a.sketch[i] - b.sketch[i]) * (a.sketch[i] - b.sketch[i]);
    }
    if (!(a.sum_of_squares > 0)) {
        return all_zero(a) && all_zero(b) ? std::numeric_limits<double>::min() : infinity;
    }
    // Never 0, however small.
    return std::max(std::sqrt(squares / a.sum_of_squares), std::numeric_limits<double>::min());
}

std::string name_of(std::uint16_t id) {
    for (const record::NameEntry& entry : record::names_from(id)) {
        return entry.id == id ? entry.name : "unnamed";
    }
    return "unnamed";
}

/// By place; the eager ones are numbered anew, as outside a step their numbers go on counting.
std::map<Place, TensorCheck> by_place(const std::vector<TensorCheck>& eager) {
    std::map<Place, std::uint32_t> seen;
    std::map<Place, TensorCheck> placed;
    for (const TensorCheck& check : eager) {
        Place place{check.sequence, check.layer_plus_one, check.name, check.role, 0};
        std::get<4>(place) = seen[place]++;
        placed.emplace(place, check);
    }
    return placed;
}

StaleInput stale_at(const TensorCheck& check, std::uint32_t occurrence, double distance, unsigned round) {
    StaleInput stale;
    stale.brick = name_of(check.name);
    stale.layer = static_cast<std::int64_t>(check.layer_plus_one) - 1;
    stale.occurrence = occurrence;
    stale.distance = distance;
    stale.round = round;
    return stale;
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
}

std::string text_of(const StaleInput& stale) {
    std::string text = stale.layer >= 0 ? "layer " + std::to_string(stale.layer) + ", " : "";
    text += "brick " + stale.brick + " #" + std::to_string(stale.occurrence) + " differs from the eager step";
    text += std::isfinite(stale.distance) ? " by " + number(stale.distance) : "";
    text += " in round " + std::to_string(stale.round);
    return text + (stale.node.empty() ? "; its stale input is not known" : "; stale: " + stale.node);
}

/// One way through the step, with what its tensors were.
struct StepRun {
    std::vector<Fingerprint> outputs;
    std::vector<TensorCheck> checks;             // eager
    std::vector<CapturedTensors::Latest> latest; // replay
    bool whole = true;                           // replay: every check of the capture became part of the graph
};

/// Which nodes are before others.
class Ancestry {
  public:
    explicit Ancestry(const GraphShape& shape) : shape_(shape), before_(shape.nodes.size()) {
        for (const ShapeEdge& edge : shape.edges) {
            before_[edge.to].push_back(edge.from);
        }
    }
    /// Adds the node and all that come before it.
    void add(cuda::GraphNode node, std::set<std::uint32_t>& to) const {
        const auto found = shape_.index_of.find(node);
        if (found == shape_.index_of.end()) {
            return;
        }
        std::vector<std::uint32_t> left{found->second};
        while (!left.empty()) {
            const std::uint32_t next = left.back();
            left.pop_back();
            if (to.insert(next).second) {
                left.insert(left.end(), before_[next].begin(), before_[next].end());
            }
        }
    }

  private:
    const GraphShape& shape_;
    std::vector<std::vector<std::uint32_t>> before_;
};

/// Names of the nodes that can have gone wrong: before the check that differs, and not before one that agrees.
std::set<std::string> suspects(const GraphShape& shape, cuda::GraphNode differs,
                               const std::vector<cuda::GraphNode>& agreeing) {
    const Ancestry ancestry(shape);
    std::set<std::uint32_t> wrong;
    std::set<std::uint32_t> right;
    if (differs != nullptr) {
        ancestry.add(differs, wrong);
    } else {
        for (std::uint32_t i = 0; i < shape.nodes.size(); ++i) {
            wrong.insert(i);
        }
    }
    for (const cuda::GraphNode node : agreeing) {
        ancestry.add(node, right);
    }
    std::set<std::string> names;
    for (const std::uint32_t node : wrong) {
        const std::string& name = shape.names[shape.name_of[node]];
        if (right.count(node) == 0 && name != fingerprint::kernel_name) {
            names.insert((shape.types[node] == cuda::NodeType::kernel ? "kernel " : "") + name);
        }
    }
    return names;
}

std::string joined(const std::vector<std::string>& parts, const char* between, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < parts.size() && i < most; ++i) {
        text += (i == 0 ? "" : between) + parts[i];
    }
    return parts.size() > most ? text + between + std::to_string(parts.size() - most) + " more" : text;
}

/// What eager and replay differ in first; false: nothing.
bool compare(const StepRun& eager, const StepRun& replay, const CudaReplayCheck& check, unsigned round,
             StaleInput& stale, cuda::GraphNode& node, std::vector<cuda::GraphNode>& agreeing) {
    const std::map<Place, TensorCheck> placed = by_place(eager.checks);
    std::size_t paired = 0;
    const bool both = !placed.empty() && !replay.latest.empty();
    for (const CapturedTensors::Latest& site : replay.latest) {
        const TensorCheck& of = site.check;
        const auto twin = placed.find(Place{of.sequence, of.layer_plus_one, of.name, of.role, of.occurrence});
        paired += twin != placed.end() ? 1 : 0;
        const double distance = twin != placed.end() ? distance_between(twin->second.fingerprint, of.fingerprint)
                                                     : std::numeric_limits<double>::infinity();
        if (both && !(distance <= check.tolerance)) {
            stale = stale_at(of, of.occurrence, distance, round);
            node = site.node;
            return true;
        }
        if (site.node != nullptr) {
            agreeing.push_back(site.node);
        }
    }
    if (both && replay.whole && paired < placed.size()) {
        for (const auto& entry : placed) {
            const Place& place = entry.first;
            const TensorCheck& of = entry.second;
            const bool known = std::any_of(replay.latest.begin(), replay.latest.end(), [&](const auto& site) {
                return Place{site.check.sequence, site.check.layer_plus_one, site.check.name, site.check.role,
                             site.check.occurrence} == place;
            });
            if (!known) {
                stale = stale_at(of, std::get<4>(place), std::numeric_limits<double>::infinity(), round);
                return true;
            }
        }
    }
    for (std::size_t i = 0; i < check.outputs.size(); ++i) {
        const double distance = distance_between(eager.outputs[i], replay.outputs[i]);
        if (!(distance <= check.tolerance)) {
            stale.brick = check.outputs[i].name;
            stale.distance = distance;
            stale.round = round;
            return true;
        }
    }
    return false;
}

Status call(const Callback<Status()>& function) { return function ? function() : Status(); }

} // namespace

Status Cache::can_verify(cuda::Stream stream, const CudaReplayCheck& check) {
    if (!check.eager || !check.vary || check.rounds == 0 || !(check.tolerance >= 0) || !check.save != !check.restore) {
        return Error{ErrorCode::invalid_argument,
                     "verify_replay() needs eager, vary, at least one round, and save with restore or neither."};
    }
    if (captured(stream)) {
        return Error{ErrorCode::invalid_argument,
                     "that stream is being captured: end the capture before verify_replay()."};
    }
    return {};
}

Status Cache::run_rounds(CacheEntry& entry, cuda::Stream stream, const CudaReplayCheck& check,
                         std::vector<Found>& found) {
    const cuda::Driver& calls = driver_.calls();
    std::vector<Tensor> outputs;
    for (const CudaOutput& output : check.outputs) {
        outputs.push_back(output.tensor);
    }
    Result<DevicePrints> prints = DevicePrints::create(calls, stream, outputs.size(), fingerprint_image);
    if (!prints) {
        return prints.error();
    }
    std::shared_ptr<CapturedTensors> inside;
    {
        std::shared_lock lock(map_);
        if (entry.live != nullptr) {
            inside = fingerprint::find_captured_tensors(nullptr, entry.live->graph.get());
        }
    }
    const auto finish = [&](const Callback<Status()>& step, StepRun& run) -> Status {
        fingerprint::TensorTap tap;
        Status status = step();
        if (status) {
            status = prints->enqueue(outputs);
        }
        // Whatever went wrong: nothing of ours is on its way afterwards.
        const Status waited =
            driver_.check(calls.stream_synchronize(stream), "cuStreamSynchronize", "nothing was compared");
        if (!waited) {
            prints->give_up();
        }
        if (!status || !waited) {
            return !status ? status : waited;
        }
        Result<std::vector<Fingerprint>> read = prints->read();
        if (!read) {
            return read.error();
        }
        run.outputs = std::move(*read);
        run.checks = tap.harvest();
        if (tap.missing() != 0) {
            return Error{ErrorCode::out_of_memory, "some checks of the step have no result: check fewer bricks."};
        }
        return {};
    };
    for (unsigned round = 0; round < check.rounds; ++round) {
        StepRun eager;
        StepRun replay;
        Status status = check.vary(round);
        if (status) {
            status = call(check.save);
        }
        if (!status) {
            return status;
        }
        status = finish(check.eager, eager);
        const Status restored = call(check.restore);
        if (!status || !restored) {
            return !status ? status : restored;
        }
        const std::uint64_t read_before = inside != nullptr ? inside->counts().read : 0;
        status = finish(
            [&]() -> Status {
                const Result<bool> launched = this->replay(entry.key, stream);
                if (!launched) {
                    return launched.error();
                }
                return *launched
                           ? Status()
                           : Status(Error{ErrorCode::not_found, "the graph went while it was verified: capture it "
                                                                "again."});
            },
            replay);
        if (status && inside != nullptr) {
            const CapturedTensors::Counts counts = inside->counts();
            replay.latest = inside->latest();
            replay.whole = counts.refused == 0;
            if (counts.sites != 0 && counts.read == read_before) { // then the latest are of an older replay
                status = Error{ErrorCode::pending, "the checks in the graph could not be read: verify it again."};
            }
        }
        if (const Status again = call(check.restore); !status || !again) {
            return !status ? status : again;
        }
        if (check.outputs.empty() && (eager.checks.empty() || replay.latest.empty())) {
            return Error{ErrorCode::invalid_argument, "there is nothing to compare: give outputs, or capture the graph "
                                                      "with tensors=all."};
        }
        Found one;
        if (compare(eager, replay, check, round, one.what, one.node, one.agreeing) &&
            std::none_of(found.begin(), found.end(), [&](const Found& known) {
                return known.what.brick == one.what.brick && known.what.layer == one.what.layer &&
                       known.what.occurrence == one.what.occurrence;
            })) {
            found.push_back(std::move(one));
        }
    }
    return {};
}

/// The nodes that can have gone wrong, and among them those whose parameters a fresh capture would change. A step that
/// cannot be captured now leaves the node to the first of both.
std::string Cache::name_node(const Executable& exec, cuda::Stream stream, const CudaReplayCheck& check,
                             const Found& found) {
    const Result<GraphShape> shape = read_shape(driver_.calls(), exec.graph.get());
    if (!shape) {
        return "";
    }
    const std::set<std::string> names = suspects(*shape, found.node, found.agreeing);
    const Result<GraphHolder> fresh = capture_step(stream, check.eager);
    if (fresh) {
        const cuda::RelaxedCapture relaxed(driver_.calls());
        const Result<GraphImage> live = image_of(driver_, exec.graph.get());
        const Result<GraphImage> now = live ? image_of(driver_, fresh->get()) : Result<GraphImage>(live.error());
        std::vector<std::string> texts;
        if (now) {
            for (const BakedIn& baked : differences(*live, *now)) {
                if (names.count(baked.node) != 0 && baked.part != "not compared") {
                    texts.push_back(baked.text);
                }
            }
        }
        if (!texts.empty()) {
            return joined(texts, "; ", 3);
        }
    }
    return joined({names.begin(), names.end()}, " or ", 4);
}

Result<std::vector<StaleInput>> Cache::verify_replay(std::uint64_t key, cuda::Stream stream,
                                                     const CudaReplayCheck& check) {
    if (Status status = driver_.status(); !status) {
        return status.error();
    }
    if (Status status = can_verify(stream, check); !status) {
        return status.error();
    }
    const std::shared_ptr<CacheEntry> entry = find(key);
    std::shared_ptr<Executable> exec;
    if (entry != nullptr) {
        std::shared_lock lock(map_);
        exec = entry->live;
    }
    if (exec == nullptr) {
        return Error{ErrorCode::not_found, "that key has no graph: capture the step first."};
    }
    std::vector<Found> found;
    if (Status status = run_rounds(*entry, stream, check, found); !status) {
        return status.error();
    }
    std::vector<StaleInput> stale;
    std::vector<std::string> texts;
    for (Found& one : found) {
        one.what.node = name_node(*exec, stream, check, one);
        // That called `eager` once more, and what it keeps on the host has moved on.
        if (const Status again = call(check.restore); !again) {
            return again.error();
        }
        one.what.text = text_of(one.what);
        texts.push_back(one.what.text);
        stale.push_back(std::move(one.what));
    }
    entry->account->found_stale(std::move(texts));
    return stale;
}

} // namespace plumb::cudagraph
