// SPDX-License-Identifier: Apache-2.0
#include "recording/retention.hpp"

namespace plumb::recording {
namespace {

std::pair<std::uint16_t, std::uint64_t> work_key(const Record& record) { return {id_of(record), payload_of(record)}; }

constexpr std::size_t most_clock_pairs = 4096;

} // namespace

void thin_clock_pairs(std::vector<ClockPair>& pairs) { thin_out(pairs, most_clock_pairs); }

bool Retention::due(std::uint64_t size, std::uint64_t more, std::int64_t now_ns) const {
    if (chunks_.empty()) {
        return false;
    }
    // Half as much again before each rewrite: every byte is then copied at most about twice in its life.
    const bool old = keep_ns_ != 0 && now_ns - chunks_.front().written_ns > keep_ns_ + keep_ns_ / 2;
    return old || (max_bytes_ != 0 && size + more > max_bytes_);
}

std::size_t Retention::removable(double share, std::int64_t now_ns) const {
    std::size_t n = 0;
    if (keep_ns_ != 0) {
        while (n < chunks_.size() && now_ns - chunks_[n].written_ns > keep_ns_) {
            ++n;
        }
    }
    if (max_bytes_ != 0) {
        const auto budget = static_cast<std::uint64_t>(static_cast<double>(max_bytes_) * share);
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
    chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(n));
    for (Chunk& chunk : chunks_) {
        chunk.place.offset = offset;
        offset += chunk.place.size;
    }
    so_far_ = std::move(outcome);
}

std::uint64_t Retention::records_removed() const {
    std::uint64_t records = 0;
    for (const auto& [track, removal] : so_far_.removals) {
        records += removal.records;
    }
    return records;
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
