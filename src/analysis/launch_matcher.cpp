// SPDX-License-Identifier: Apache-2.0
#include "analysis/launch_matcher.hpp"

#include <algorithm>
#include <limits>

#include "plumb/backend.hpp"

namespace plumb::analysis {

std::size_t LaunchMatcher::Hash::operator()(const Key& key) const noexcept {
    std::uint64_t mixed = key.step * 0x9E3779B97F4A7C15u;
    mixed ^= (std::uint64_t{key.queue} << 32) | key.layer;
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9u + key.name;
    return static_cast<std::size_t>(mixed ^ (mixed >> 32));
}

void LaunchMatcher::make_room() {
    if (size_ < max_waiting) {
        return;
    }
    forgotten_ += size_;
    waiting_.clear();
    size_ = 0;
}

void LaunchMatcher::launched(const resolve::Submission& submission) {
    if (submission.graph || !submission.timed) {
        return;
    }
    Launched launch;
    launch.queue = submission.queue;
    launch.launch_begin = submission.begin_ns;
    launch.launch_end = submission.begin_ns + submission.duration_ns;
    const Key key{submission.step, submission.queue, submission.layer, submission.name};
    make_room();
    Waiting& waiting = waiting_[key];
    if (waiting.scopes.empty()) {
        waiting.launches.push_back(launch);
        ++size_;
        return;
    }
    const Launched scope = waiting.scopes.front();
    waiting.scopes.pop_front();
    join(key, launch, scope);
}

void LaunchMatcher::ran(const resolve::Sample& sample) {
    Launched scope;
    scope.queue = sample.track;
    scope.begin = sample.begin_ns;
    scope.end = sample.begin_ns + sample.duration_ns;
    scope.leaf = sample.leaf;
    scope.launch_wait = (sample.flags & span_includes_launch_wait) != 0;
    auto [last, fresh] = last_end_.try_emplace(sample.track, std::numeric_limits<std::int64_t>::min());
    scope.before = last->second;
    if (sample.leaf) {
        last->second = std::max(last->second, scope.end);
    }
    const Key key{sample.step, sample.track, sample.layer, sample.name};
    make_room();
    Waiting& waiting = waiting_[key];
    if (waiting.launches.empty()) {
        waiting.scopes.push_back(scope);
        ++size_;
        return;
    }
    const Launched launch = waiting.launches.front();
    waiting.launches.pop_front();
    join(key, launch, scope);
}

void LaunchMatcher::join(const Key& key, const Launched& launch, const Launched& scope) {
    --size_;
    const auto found = waiting_.find(key);
    if (found->second.launches.empty() && found->second.scopes.empty()) {
        waiting_.erase(found);
    }
    Launched both = scope;
    both.launch_begin = launch.launch_begin;
    both.launch_end = launch.launch_end;
    sink_(both);
}

} // namespace plumb::analysis
