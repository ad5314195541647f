// SPDX-License-Identifier: Apache-2.0
#include "resolve/launches.hpp"

#include <algorithm>

#include "base/layout.hpp"

namespace plumb::resolve {

std::size_t Launches::Hash::operator()(const Place& place) const noexcept {
    std::uint64_t mixed = place.step * 0x9E3779B97F4A7C15u;
    mixed ^= (std::uint64_t{place.queue} << 32) | place.layer.value_or(0);
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9u + place.name;
    return static_cast<std::size_t>(mixed ^ (mixed >> 32));
}

void Launches::submitted(Submission& made, std::uint64_t sequence) {
    if (!made.timed || (made.graph && (made.flags & (launch_instrumented | launch_linked)) == 0)) {
        return;
    }
    made.number = ++last_number_;
    Launch launch{made.number, made.track, true, made.begin_ns, made.begin_ns + made.duration_ns, made.graph};
    if (made.linked() && recorded_.value_or(true)) {
        launch.inferred = false;
        replayed(launch, sequence);
    }
    if (made.graph) {
        return; // scopes of the others come from a feed, which tells no launch
    }
    if (!recorded_.value_or(false)) {
        if (in_places_ == max_waiting) {
            places_.clear();
            in_places_ = 0;
        }
        places_[{made.step, made.queue, made.layer, made.name}].push_back(launch);
        ++in_places_;
    }
    if (!recorded_.value_or(true)) {
        return;
    }
    launch.inferred = false;
    if (waiting_ == max_waiting) {
        make_room();
    }
    Line& line = lines_[made.track];
    // Where a source gives records of a track twice, or out of order, the later ones begin nothing.
    if (line.empty() || line.back().sequence < sequence) {
        line.push_back({sequence, made.queue, made.name, false, launch});
        ++waiting_;
    }
}

void Launches::replayed(const Launch& launch, std::uint64_t sequence) {
    auto& line = replays_[launch.track];
    if (line.empty() || line.back().first < sequence) {
        line.emplace_back(sequence, launch);
    }
    if (line.size() > max_replays) {
        line.pop_front();
    }
}

const Launch* Launches::replay_of(const Cause& cause) const {
    const auto line = replays_.find(cause.track);
    if (line == replays_.end()) {
        return nullptr;
    }
    const auto at =
        std::lower_bound(line->second.begin(), line->second.end(), cause.sequence,
                         [](const auto& replay, std::uint64_t sequence) { return replay.first < sequence; });
    return at != line->second.end() && at->first == cause.sequence ? &at->second : nullptr;
}

/// Scopes whose time never came leave their submissions behind: the older half of each line goes.
void Launches::make_room() {
    waiting_ = 0;
    for (auto& [track, line] : lines_) {
        std::erase_if(line, [](const Waiting& waiting) { return waiting.taken; });
        line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>((line.size() + 1) / 2));
        waiting_ += line.size();
    }
}

std::optional<Launch> Launches::of(const Sample& scope, const std::optional<Cause>& cause) {
    if (cause) {
        return recorded(scope, *cause);
    }
    return recorded_.value_or(false) ? std::nullopt : inferred(scope);
}

std::optional<Launch> Launches::recorded(const Sample& scope, const Cause& cause) {
    if (const Launch* replay = replay_of(cause)) {
        return *replay;
    }
    const auto found = lines_.find(cause.track);
    if (found == lines_.end()) {
        return std::nullopt;
    }
    Line& line = found->second;
    auto at = line.begin(); // nearly always
    if (at != line.end() && at->sequence != cause.sequence) {
        at = std::lower_bound(
            line.begin(), line.end(), cause.sequence,
            [](const Waiting& waiting, std::uint64_t sequence) { return waiting.sequence < sequence; });
    }
    if (at == line.end() || at->sequence != cause.sequence || at->taken || at->queue != scope.track ||
        at->name != scope.name) {
        return std::nullopt;
    }
    const Launch launch = at->launch;
    at->taken = true;
    while (!line.empty() && line.front().taken) {
        line.pop_front();
        --waiting_;
    }
    return launch;
}

std::optional<Launch> Launches::inferred(const Sample& scope) {
    const auto found = places_.find({scope.step, scope.track, scope.layer, scope.name});
    if (found == places_.end()) {
        return std::nullopt;
    }
    const Launch launch = found->second.front();
    found->second.pop_front();
    --in_places_;
    if (found->second.empty()) {
        places_.erase(found);
    }
    return launch;
}

} // namespace plumb::resolve
