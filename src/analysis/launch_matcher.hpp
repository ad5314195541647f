// SPDX-License-Identifier: Apache-2.0
// Joins what the host launched with what a queue ran, whichever of both arrives first: the n-th launch of a name in a layer of
// a step is the n-th scope there. Memory is bounded; what is forgotten is counted. Owned by one answer; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>

#include "resolve/sample.hpp"

namespace plumb::analysis {

/// One command: launched by the host in [launch_begin, launch_end), run in [begin, end).
struct Launched {
    std::uint32_t queue = 0; // track id
    std::int64_t launch_begin = 0, launch_end = 0;
    std::int64_t begin = 0, end = 0;
    std::int64_t before = 0; // end of the scope before it in its queue
    bool leaf = true;
    bool launch_wait = false;
};

class LaunchMatcher {
  public:
    static constexpr std::size_t max_waiting = std::size_t{1} << 18;
    using Sink = std::function<void(const Launched&)>;

    explicit LaunchMatcher(Sink sink) : sink_(std::move(sink)) {}

    void launched(const resolve::Submission& submission);
    /// A sample of a queue.
    void ran(const resolve::Sample& sample);
    [[nodiscard]] std::uint64_t forgotten() const noexcept { return forgotten_; }

  private:
    struct Key {
        std::uint64_t step;
        std::uint32_t queue, layer;
        std::uint16_t name;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept;
    };
    struct Waiting {
        std::deque<Launched> launches, scopes; // one of them is empty
    };

    void make_room();
    void join(const Key& key, const Launched& launch, const Launched& scope);

    Sink sink_;
    std::unordered_map<Key, Waiting, Hash> waiting_;
    std::unordered_map<std::uint32_t, std::int64_t> last_end_; // by queue
    std::size_t size_ = 0;
    std::uint64_t forgotten_ = 0;
};

} // namespace plumb::analysis
