// SPDX-License-Identifier: Apache-2.0
#include "recording/retention.hpp"

#include <algorithm>

namespace plumb::recording {
namespace {

std::pair<std::uint16_t, std::uint64_t> work_key(const Record& record) { return {id_of(record), payload_of(record)}; }

} // namespace

void thin_clock_pairs(std::vector<ClockPair>& pairs) { thin_out(pairs, most_clock_pairs); }

bool Retention::due(std::uint64_t size, std::uint64_t more, std::int64_t now_ns) const {
    // Half as much again before each rewrite: every byte is then copied at most about twice in its life.
    const bool old = keep_ns_ != 0 && !chunks_.empty() && now_ns - oldest_ns() > keep_ns_ + keep_ns_ / 2;
    // Where what cannot go is all that is left, a quarter more before each rewrite.
    return old || (max_bytes_ != 0 && size + more > std::max(max_bytes_, shortened_to_ + max_bytes_ / 4));
}

std::size_t Retention::removable(std::uint64_t budget, std::int64_t now_ns) const {
    std::size_t n = 0;
    if (keep_ns_ != 0) {
        while (n < chunks_.size() && now_ns - chunks_[n].written_ns > keep_ns_) {
            ++n;
        }
    }
    if (max_bytes_ != 0) {
        std::uint64_t bytes = 0;
        std::size_t first = chunks_.size();
        while (first > n && bytes + chunks_[first - 1].place.size <= budget) {
            --first;
            bytes += chunks_[first].place.size;
        }
        n = first;
    }
    return n;
}

Retention::Outcome Retention::after_removing(std::size_t n) const {
    Outcome outcome = so_far_;
    for (std::size_t i = 0; i < n; ++i) {
        const Chunk& chunk = chunks_[i];
        if (chunk.checks) {
            outcome.checks_removed = chunk.first_sequence + chunk.count;
            continue;
        }
        Removal& removal = outcome.removals[chunk.track];
        removal.track = chunk.track;
        removal.until_sequence = chunk.first_sequence + chunk.count;
        removal.records += chunk.count;
        auto& carried = outcome.carried[chunk.track];
        for (const Record& record : chunk.work) {
            carried[work_key(record)] = record;
        }
    }
    outcome.forgotten = ended_;
    for (std::size_t i = n; i < chunks_.size(); ++i) {
        outcome.forgotten.erase(chunks_[i].track);
    }
    for (const std::uint32_t track : outcome.forgotten) {
        outcome.removals[0].records += outcome.removals[track].records;
        outcome.removals.erase(track);
        outcome.carried.erase(track);
    }
    return outcome;
}

std::vector<ByteRange> Retention::kept_after(std::size_t n) const {
    std::vector<ByteRange> kept;
    for (std::size_t i = n; i < chunks_.size(); ++i) {
        const ByteRange& place = chunks_[i].place;
        if (!kept.empty() && kept.back().offset + kept.back().size == place.offset) {
            kept.back().size += place.size;
        } else {
            kept.push_back(place);
        }
    }
    return kept;
}

void Retention::removed(std::size_t n, Outcome outcome, std::uint64_t offset) {
    for (; n != 0; --n) {
        chunks_.pop_front();
    }
    for (Chunk& chunk : chunks_) {
        chunk.place.offset = offset;
        offset += chunk.place.size;
    }
    shortened_to_ = offset;
    for (const std::uint32_t track : outcome.forgotten) {
        ended_.erase(track);
    }
    so_far_ = std::move(outcome);
}

std::uint64_t Retention::Outcome::records() const {
    std::uint64_t sum = 0;
    for (const auto& [track, removal] : removals) {
        sum += removal.records;
    }
    return sum;
}

std::vector<Record> Retention::work_of(const Record* records, std::size_t count) {
    std::map<std::pair<std::uint16_t, std::uint64_t>, Record> last;
    for (std::size_t i = 0; i < count; ++i) {
        if (kind_of(records[i]) == RecordKind::work) {
            last[work_key(records[i])] = records[i];
        }
    }
    std::vector<Record> work;
    for (const auto& [key, record] : last) {
        work.push_back(record);
    }
    return work;
}

} // namespace plumb::recording
