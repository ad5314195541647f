// SPDX-License-Identifier: Apache-2.0
// Which submission began which device scope. A recording says so with one record (RecordKind::cause) before each scope, and a
// submission stands before its scope in the file: a link is one look-up, and a lost record unlinks its own scope alone. A replay
// begins many scopes.
// Recordings of older writers do not say it. For them, and nowhere else, a link is inferred: the n-th launch of a name in a
// layer of a step is the n-th scope there. Memory is bounded: what waits longest for its scope is given up first.
// Owned by one resolution; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "resolve/sample.hpp"

namespace plumb::resolve {

/// The record of a device scope's submission.
struct Cause {
    std::uint32_t track = 0;
    std::uint64_t sequence = 0;
};

class Launches {
  public:
    static constexpr std::size_t max_waiting = std::size_t{1} << 18;
    static constexpr std::size_t max_replays = std::size_t{1}
                                               << 14; // of a thread, the latest: hosts run ahead by fewer

    /// `recorded`: the recording says what began its scopes; nothing is inferred. Absent: that is not known yet, and what it
    /// does not say is inferred, for a caller who comes to know and takes the links of one kind.
    explicit Launches(std::optional<bool> recorded) : recorded_(recorded) {}

    /// Numbers the submission, whose record has that sequence on its track.
    void submitted(Submission& made, std::uint64_t sequence);
    /// Of a scope of a device queue; each submission begins one scope, but for replays.
    [[nodiscard]] std::optional<Launch> of(const Sample& scope, const std::optional<Cause>& cause);

  private:
    struct Waiting {
        std::uint64_t sequence;
        std::uint32_t queue;
        std::uint16_t name;
        bool taken;
        Launch launch;
    };
    using Line = std::deque<Waiting>; // by sequence

    struct Place {
        std::uint64_t step;
        std::uint32_t queue;
        std::optional<std::uint32_t> layer;
        std::uint16_t name;
        bool operator==(const Place&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Place& place) const noexcept;
    };

    void replayed(const Launch& launch, std::uint64_t sequence);
    [[nodiscard]] const Launch* replay_of(const Cause& cause) const;
    [[nodiscard]] std::optional<Launch> recorded(const Sample& scope, const Cause& cause);
    [[nodiscard]] std::optional<Launch> inferred(const Sample& scope);
    void make_room();

    std::optional<bool> recorded_;
    std::uint64_t last_number_ = 0;
    std::unordered_map<std::uint32_t, Line> lines_;                                           // by host track
    std::size_t waiting_ = 0;                                                                 // in all lines
    std::unordered_map<std::uint32_t, std::deque<std::pair<std::uint64_t, Launch>>> replays_; // the same
    std::unordered_map<Place, std::deque<Launch>, Hash> places_; // of recordings that do not say
    std::size_t in_places_ = 0;
};

} // namespace plumb::resolve
