// SPDX-License-Identifier: Apache-2.0
#include "top/window.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "analysis/report_builder.hpp"
#include "analysis/wall_builder.hpp"
#include "read/read.hpp"

namespace plumb::top {
namespace {

// The drain looks into a ring and writes what it saw a moment later; what a device did is known later still (settling_ns).
constexpr std::int64_t host_margin_ns = 100'000'000;
constexpr std::int64_t one_round_ns = 50'000'000;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// When a record was made, on the common clock; none for those that say nothing of time, or lie outside the order of their track.
std::optional<std::int64_t> moment_of(const Record& record, const resolve::TickConversion& line) {
    std::uint64_t length = 0;
    switch (kind_of(record)) {
    case RecordKind::scope:
    case RecordKind::step_end:
    case RecordKind::layer_end:
        length = payload_of(record) == payload_mask ? 0 : payload_of(record);
        break;
    case RecordKind::step_begin:
    case RecordKind::layer_begin:
    case RecordKind::cpu_time:
    case RecordKind::mark:
        break;
    default:
        return std::nullopt;
    }
    if (!line.contains(record.first, length)) {
        return std::nullopt;
    }
    return line.to_ns(record.first + length);
}

/// Index of the first record made at `time` or later; records.size() where there is none.
std::size_t first_at(const std::vector<Record>& records, std::int64_t time, const resolve::TickConversion& line) {
    for (std::size_t i = records.size(); i > 0; --i) { // nearly always all of them lie on one side
        if (const auto last = moment_of(records[i - 1], line)) {
            if (*last < time) {
                return records.size();
            }
            break;
        }
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
        const auto moment = moment_of(records[i], line);
        if (moment && *moment >= time) {
            return i;
        }
    }
    return records.size();
}

} // namespace

Result<Account> account_of(const recording::RecordedRun& run, const resolve::ResolveOptions& options) {
    analysis::ReportReader report(*run.facts);
    const std::size_t number = report.ask({});
    analysis::WallReader wall(*run.facts, {}, report);
    if (Status read = read::read(run, {&wall, &report}, options); !read) {
        return read.error();
    }
    Account account;
    account.report = report.take(number);
    Result<WallReport> made = wall.take();
    if (made) {
        account.wall = std::move(*made);
    } else {
        account.no_wall = made.error().message;
    }
    return account;
}

/// A chunk holds what came since the one before it was written. A round that writes more than one chunk holds begins with full ones.
std::int64_t Window::since(const recording::RecordPlace& place, const recording::RunFacts& facts) {
    const auto [entry, first] = written_.try_emplace(place.track);
    Written& last = entry->second;
    if (first) {
        const bool host = std::any_of(facts.tracks.begin(), facts.tracks.end(), [&place](const auto& track) {
            return track.id == place.track && track.kind == recording::TrackKind::host_thread;
        });
        last.margin_ns = host ? host_margin_ns : settling_ns;
    } else if (!last.full || place.written_ns - last.at_ns > one_round_ns) {
        last.since_ns = last.at_ns - last.margin_ns;
    }
    last.end = place.first_sequence + place.count;
    last.at_ns = place.written_ns;
    last.full = place.count >= recording::max_chunk_records / 2;
    return last.since_ns;
}

/// A limit removes the oldest chunks of the file: before what is new in this look, where that goes on from nothing that is known.
void Window::note_removed(const std::vector<recording::Follower::Chunk>& chunks, const recording::RunFacts& facts) {
    const auto follows = [this](const recording::Follower::Chunk& chunk) {
        const auto last = written_.find(chunk.place.track);
        return chunk.place.first_sequence <= (last == written_.end() ? 0 : last->second.end);
    };
    std::set<std::uint32_t> seen;
    const bool gap = std::any_of(chunks.begin(), chunks.end(), [&](const recording::Follower::Chunk& chunk) {
        return seen.insert(chunk.place.track).second && !follows(chunk);
    });
    if (facts.counters.records_removed != 0 && !chunks.empty() && (gap || written_.empty())) {
        whole_from_ns_ = chunks.front().place.written_ns;
    }
}

void Window::add(std::vector<recording::Follower::Chunk> chunks, const recording::RunFacts& facts) {
    note_removed(chunks, facts);
    for (recording::Follower::Chunk& chunk : chunks) {
        newest_ns_ = std::max(newest_ns_, chunk.place.written_ns);
        const std::int64_t begin = since(chunk.place, facts);
        held_.push_back({std::move(chunk), begin, {}});
    }
    const auto oldest = newest_ns_ - static_cast<std::int64_t>(longest * 1e9) - settling_ns;
    while (!held_.empty() && held_.front().chunk.place.written_ns < oldest) {
        held_.pop_front();
        forgot_ = true;
    }
}

std::size_t Window::records_of(std::int64_t begin_ns, std::int64_t end_ns) const {
    std::size_t records = 0;
    for (const Held& held : held_) {
        records += held.reaches(begin_ns, end_ns) ? held.chunk.place.count : 0;
    }
    return records;
}

void Window::decode(recording::Follower& follower, std::int64_t begin_ns, std::int64_t end_ns) {
    for (Held& held : held_) {
        if (!held.reaches(begin_ns, end_ns)) {
            held.records = std::vector<Record>(); // gives its memory back, as {} would not
        } else if (held.records.empty() && !follower.decode(held.chunk, held.records)) {
            held.records.clear(); // the file changed underneath: a gap
        }
    }
}

Window::Selection Window::select(const recording::RunFacts& facts, std::int64_t begin_ns, std::int64_t end_ns) const {
    Selection made;
    const resolve::TrackTable tracks(facts, {});
    std::set<std::uint32_t> over, begun; // tracks that the window's end, and its begin, lie behind
    for (const Held& held : held_) {
        const recording::RecordPlace& place = held.chunk.place;
        const std::vector<Record>& records = held.records;
        const std::size_t index = tracks.find(place.track);
        const resolve::TickConversion* line = index == resolve::no_track ? nullptr : tracks[index].line;
        if (records.empty() || over.count(place.track) != 0) {
            continue;
        }
        std::size_t count = records.size();
        if (line != nullptr && end_ns != never) {
            count = first_at(records, end_ns, *line);
            if (count < records.size()) {
                over.insert(place.track);
            }
        }
        if (line != nullptr && begin_ns != -never && begun.count(place.track) == 0) {
            const std::size_t from = first_at(records, begin_ns, *line);
            made.cut[place.track] = place.first_sequence + from;
            if (from < records.size()) {
                begun.insert(place.track);
            }
        }
        if (count > place.skip) {
            made.batches.push_back(
                {place.track, place.first_sequence + place.skip, records.data() + place.skip, count - place.skip});
        }
    }
    return made;
}

Result<Account> Window::read(recording::Follower& follower, double seconds, std::size_t most_records, bool ended) {
    const std::int64_t end = ended ? never : newest_ns_ - settling_ns;
    const std::int64_t from = ended ? newest_ns_ : end;
    const auto begin_of = [from](double length) {
        return from - static_cast<std::int64_t>(length * 1e9);
    };
    while (seconds > shortest && records_of(begin_of(seconds), end) > most_records) {
        seconds = std::max(shortest, 0.8 * seconds);
    }
    const std::int64_t kept_from = std::min(from, whole_from_ns_.value_or(-never));
    const std::int64_t begin = std::max(begin_of(seconds), kept_from);
    const bool all = !forgot_ && !whole_from_ns_ && std::all_of(held_.begin(), held_.end(), [begin](const Held& held) {
        return held.chunk.place.written_ns >= begin;
    });
    decode(follower, begin, end);
    Selection selection = select(*follower.facts(), all ? -never : begin, end);

    recording::RecordedRun run;
    run.facts = follower.facts();
    run.for_each_batch = [&selection](const std::function<bool(const recording::RecordBatch&)>& take) {
        for (const recording::RecordBatch& batch : selection.batches) {
            if (!take(batch)) {
                break;
            }
        }
        return Status();
    };
    run.for_each_check = [](const std::function<bool(recording::TensorCheck&&)>&) {
        return Status();
    };
    resolve::ResolveOptions options;
    options.warmup_steps = all ? run.facts->metadata.warmup_steps : 0;
    options.cut = std::move(selection.cut);
    Result<Account> account = account_of(run, options);
    if (account) {
        account->removed = begin == kept_from;
        if (!all) {
            account->seconds = account->removed ? static_cast<double>(from - begin) * 1e-9 : seconds;
        }
        account->records = records_of(begin, end);
    }
    return account;
}

} // namespace plumb::top
