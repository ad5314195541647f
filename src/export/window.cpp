// SPDX-License-Identifier: Apache-2.0
#include "export/window.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "recording/step_ranges.hpp"
#include "resolve/step_table.hpp"

namespace plumb::exporting {
namespace {

using recording::StepRanges;
using resolve::SampleKind;

struct Selection {
    std::optional<StepRanges> steps;
    std::optional<std::pair<std::uint32_t, std::uint32_t>> layers;
    std::optional<std::set<std::uint32_t>> tracks;

    [[nodiscard]] bool empty() const { return !steps && !layers && !tracks; }
    [[nodiscard]] bool holds(std::uint32_t track, std::uint64_t step, std::optional<std::uint32_t> layer) const {
        return holds(track, step) && (!layers || (layer && *layer >= layers->first && *layer <= layers->second));
    }
    [[nodiscard]] bool holds(std::uint32_t track, std::uint64_t step) const {
        return (!steps || (step != resolve::no_step && steps->contains(step))) && (!tracks || tracks->contains(track));
    }

    [[nodiscard]] bool operator()(const resolve::Sample& sample) const {
        return sample.kind == SampleKind::step ? holds(sample.track, sample.step)
                                               : holds(sample.track, sample.step, sample.layer);
    }
    [[nodiscard]] bool operator()(const resolve::Submission& made) const {
        return holds(made.track, made.step, made.layer);
    }
    [[nodiscard]] bool operator()(const resolve::RecordedNode& node) const {
        return holds(node.key.track, node.step, node.layer);
    }
    [[nodiscard]] bool operator()(const resolve::NodeDependency& edge) const {
        return !layers && holds(edge.earlier.track, edge.step) && holds(edge.later.track, edge.step);
    }
    [[nodiscard]] bool operator()(const recording::TensorCheck& check) const {
        const auto layer = check.layer_plus_one != 0 ? std::optional(check.layer_plus_one - 1) : std::nullopt;
        return holds(check.track, check.step_plus_one - 1, layer);
    }
};

/// Of one batch what lies in the window; reused from batch to batch.
class Filter {
  public:
    explicit Filter(const Selection& window) : window_(window) {}

    [[nodiscard]] resolve::ResolvedBatch operator()(resolve::ResolvedBatch batch) {
        batch.samples = kept(batch.samples, samples_);
        batch.submissions = kept(batch.submissions, submissions_);
        batch.nodes = kept(batch.nodes, nodes_);
        batch.dependencies = kept(batch.dependencies, dependencies_);
        batch.requests = {}; // some of them would say nothing: see for_each_request
        return batch;
    }

  private:
    template <class T>
    [[nodiscard]] std::span<const T> kept(std::span<const T> all, std::vector<T>& room) const {
        const auto inside = std::cref(window_);            // algorithms copy what they ask, and it may name many steps
        if (std::all_of(all.begin(), all.end(), inside)) { // as for most of a stretch of steps
            return all;
        }
        room.clear();
        std::copy_if(all.begin(), all.end(), std::back_inserter(room), inside);
        return room;
    }

    const Selection& window_;
    std::vector<resolve::Sample> samples_;
    std::vector<resolve::Submission> submissions_;
    std::vector<resolve::RecordedNode> nodes_;
    std::vector<resolve::NodeDependency> dependencies_;
};

std::string track_list(const std::vector<recording::TrackInfo>& tracks) {
    constexpr std::size_t most = 16;
    std::string text;
    for (std::size_t i = 0; i < std::min(tracks.size(), most); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(tracks[i].id) + " (" + tracks[i].name + ")";
    }
    return text + (tracks.size() > most ? " and " + std::to_string(tracks.size() - most) + " more" : "");
}

Result<std::set<std::uint32_t>> tracks_of(const std::vector<recording::TrackInfo>& tracks,
                                          const std::vector<std::string>& wanted) {
    std::set<std::uint32_t> found;
    for (const std::string& text : wanted) {
        bool known = false, named = false;
        for (const recording::TrackInfo& track : tracks) {
            if (text == std::to_string(track.id)) {
                found.insert(track.id);
                known = true;
            }
        }
        for (const recording::TrackInfo& track : tracks) {
            if (!known && !text.empty() && track.name.find(text) != std::string::npos) {
                found.insert(track.id);
                named = true;
            }
        }
        if (!known && !named) {
            return Error{ErrorCode::invalid_argument,
                         "there is no track \"" + text + "\"; take one of " + track_list(tracks)};
        }
    }
    return found;
}

resolve::ResolveOptions options_of(const recording::RecordedRun& run) {
    resolve::ResolveOptions options;
    options.warmup_steps = run.facts->metadata.warmup_steps;
    return options;
}

/// The slowest steps, as reports measure them: to the end of what they began on queues that are timed in every step.
Result<StepRanges> slowest_of(const recording::RecordedRun& run, const std::optional<StepRanges>& among,
                              std::uint64_t wanted) {
    resolve::TrackTable tracks(*run.facts, {});
    resolve::Losses losses;
    const auto first = resolve::scan_steps(run, tracks, run.facts->metadata.warmup_steps, losses);
    if (!first.ok()) {
        return first.error();
    }
    std::vector<const resolve::ResolvedStep*> steps;
    for (const resolve::ResolvedStep& step : first->steps.all()) {
        if (!step.warmup && !step.left_out && (!among || among->contains(step.id))) {
            steps.push_back(&step);
        }
    }
    const auto others = std::stable_partition(steps.begin(), steps.end(),
                                              [](const auto* step) { return step->phase == Phase::decode; });
    if (others != steps.begin()) {
        steps.erase(others, steps.end());
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto* a, const auto* b) { return a->end_ns - a->begin_ns > b->end_ns - b->begin_ns; });
    StepRanges chosen;
    for (std::size_t i = 0; i < std::min<std::size_t>(steps.size(), wanted); ++i) {
        chosen.add(steps[i]->id, steps[i]->id);
    }
    return chosen;
}

std::string list_of(const StepRanges& steps) {
    constexpr std::size_t most = 16;
    std::string text;
    for (std::size_t i = 0; i < std::min(steps.all().size(), most); ++i) {
        const auto& [first, last] = steps.all()[i];
        text += (i == 0 ? "" : ", ") + std::to_string(first) + (last != first ? " to " + std::to_string(last) : "");
    }
    return text + (steps.all().size() > most ? ", …" : "");
}

void count(const resolve::ResolvedBatch& all, const resolve::ResolvedBatch& kept, const Selection& window,
           InWindow& given) {
    given.found += kept.samples.size() + kept.submissions.size() + kept.nodes.size();
    for (const resolve::Sample& sample : window.layers ? all.samples : std::span<const resolve::Sample>()) {
        if (sample.kind == SampleKind::step) {
            given.found -= window(sample) ? 1 : 0;
        } else if (sample.layer && window.holds(sample.track, sample.step)) {
            given.least_layer = std::min(given.least_layer, *sample.layer);
            given.most_layer = std::max(given.most_layer, *sample.layer);
        }
    }
}

/// Every n-th step, so that no more than `most` slices are left; empty where all fit, or where no step is.
Result<std::optional<StepRanges>> thinned(const recording::RecordedRun& run, std::uint64_t most,
                                          std::vector<std::string>& notes) {
    std::map<std::uint64_t, std::uint64_t> slices; // by step
    std::uint64_t inside = 0, outside = 0;         // of steps
    const Status read = resolve::resolve_samples(run, options_of(run), [&](const resolve::ResolvedBatch& batch) {
        const auto count = [&](const auto& things) {
            for (const auto& thing : things) {
                if (thing.step == resolve::no_step) {
                    ++outside;
                } else {
                    ++inside;
                    ++slices[thing.step];
                }
            }
        };
        count(batch.samples);
        count(batch.submissions);
        count(batch.nodes);
    });
    if (!read.ok()) {
        return read.error();
    }
    if (inside + outside <= most || slices.empty()) {
        return std::optional<StepRanges>();
    }
    const std::string slow = "viewers are slow beyond " + std::to_string(most);
    if (outside != 0) {
        notes.push_back(std::to_string(outside) + " slices that lie in no step are left out, since " + slow +
                        ": --tracks keeps all of a thread");
    }
    StepRanges chosen;
    if (inside <= most) {
        chosen.add(slices.begin()->first, slices.rbegin()->first);
        return std::optional(std::move(chosen));
    }
    const std::vector<std::pair<std::uint64_t, std::uint64_t>> in_order(slices.begin(), slices.end());
    for (std::uint64_t every = inside / most + 1;; ++every) {
        std::uint64_t kept = 0, steps = 0;
        for (std::size_t i = 0; i < in_order.size(); i += every) {
            kept += in_order[i].second;
            ++steps;
        }
        if (kept <= most || steps == 1) {
            for (std::size_t i = 0; i < in_order.size(); i += every) {
                chosen.add(in_order[i].first, in_order[i].first);
            }
            notes.push_back("one step in " + std::to_string(every) + " is here, " + std::to_string(steps) + " of " +
                            std::to_string(slices.size()) + ", since all would be " + std::to_string(inside) +
                            " slices and " + slow + ": choose others with --steps");
            return std::optional(std::move(chosen));
        }
    }
}

} // namespace

Result<WindowedFeed> window_of(const recording::RecordedRun& run, const ExportWindow& wanted,
                               std::uint64_t most_slices) {
    WindowedFeed made;
    Selection window;
    window.layers = wanted.layers;
    if (!wanted.tracks.empty()) {
        Result<std::set<std::uint32_t>> tracks = tracks_of(run.facts->tracks, wanted.tracks);
        if (!tracks.ok()) {
            return tracks.error();
        }
        window.tracks = std::move(*tracks);
    }
    if (wanted.steps) {
        window.steps.emplace().add(wanted.steps->first, wanted.steps->second);
    }
    if (wanted.slowest != 0) {
        Result<StepRanges> slowest = slowest_of(run, window.steps, wanted.slowest);
        if (!slowest.ok()) {
            return slowest.error();
        }
        window.steps = std::move(*slowest);
        if (window.steps->all().empty()) {
            return Error{
                ErrorCode::not_found,
                "no step of this recording is left for --slowest to choose from, warm-up and sampled ones apart"};
        }
        made.notes.push_back("the slowest steps are " + list_of(*window.steps));
    }
    if (window.empty() && most_slices != 0 && run.facts->records > most_slices) {
        Result<std::optional<StepRanges>> fewer = thinned(run, most_slices, made.notes);
        if (!fewer.ok()) {
            return fewer.error();
        }
        window.steps = std::move(*fewer);
    }
    if (window.empty()) {
        made.feed = samples_of(run);
        return made;
    }
    if (window.steps && run.facts->unindexed_records != 0) {
        made.notes.push_back(std::to_string(run.facts->unindexed_records) + " of " +
                             std::to_string(run.facts->records) +
                             " records do not say which steps they belong to (an older writer, or a process that was "
                             "killed): all of those were read");
    }
    run.facts->notes.insert(run.facts->notes.end(), made.notes.begin(), made.notes.end());
    made.feed.facts = run.facts;
    made.feed.whole_steps = !window.layers && !window.tracks;
    made.given = std::make_shared<InWindow>();
    made.feed.for_each_batch = [run, window, given = made.given](const SampleTaker& take) {
        Filter filter(window);
        bool going = true;
        return resolve::resolve_samples(
            run, options_of(run),
            [&](const resolve::ResolvedBatch& batch) {
                const resolve::ResolvedBatch kept = filter(batch);
                count(batch, kept, window, *given);
                going = going && take(kept);
            },
            window.steps ? &*window.steps : nullptr);
    };
    made.feed.for_each_step = [run, window](const StepTaker& take) {
        return resolve::for_each_step(run, take, window.steps ? &*window.steps : nullptr);
    };
    made.feed.for_each_request = [run](const RequestTaker& take) {
        return resolve::resolve_samples(run, options_of(run), [&](const resolve::ResolvedBatch& batch) {
            std::for_each(batch.requests.begin(), batch.requests.end(), std::cref(take));
        });
    };
    made.feed.for_each_check = [run, window,
                                given = made.given](const std::function<bool(recording::TensorCheck&&)>& take) {
        return run.for_each_check([&](recording::TensorCheck&& check) {
            if (!window(check)) {
                return true;
            }
            ++given->found;
            return take(std::move(check));
        });
    };
    return made;
}

} // namespace plumb::exporting
