// SPDX-License-Identifier: Apache-2.0
#include "metrics/totals.hpp"

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"
#include "recording/drop_reasons.hpp"
#include "recording/redact.hpp"

namespace plumb::metrics {
namespace {

constexpr char other[] = "other";
constexpr std::size_t deepest = 1024; // a track that nests deeper than recorders can is broken
// Times that differ, of steps that wait for their clock to be known. All steps of a second have fewer: so many times of one thread,
// each a tick longer than the last, add up to that at 2 GHz.
constexpr std::size_t most_waiting_times = 65536;
constexpr std::size_t longest_label = 128; // bytes
constexpr std::uint64_t patience = 3;      // seconds, for the begin of a step, and for the work of other threads in it
// Of the series with a brick so many are kept for "other": one a phase and source.
constexpr std::size_t kept_for_other = 12;
// A pair is off by its bracket at most: then the rate is off by less than one in so many.
constexpr double least_precision = 1000;

/// Valid text of bounded length: two names that differ only beyond it are one.
std::string label_of(std::string_view text) {
    std::string label = base::valid_utf8(text);
    if (label.size() > longest_label) {
        std::size_t end = longest_label;
        while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xC0U) == 0x80) {
            --end;
        }
        label.resize(end);
    }
    return label;
}

const char* well_known(std::uint16_t name) {
    switch (name) {
#define PLUMB_METRICS_NAME(word, id, category, aliases) \
    case id:                                            \
        return #word;
        PLUMB_WELL_KNOWN_BRICKS(PLUMB_METRICS_NAME)
#undef PLUMB_METRICS_NAME
    default:
        return "unnamed";
    }
}

Category well_known_category(std::uint16_t name) {
    switch (name) {
#define PLUMB_METRICS_CATEGORY(word, id, category, aliases) \
    case id:                                                \
        return Category::category;
        PLUMB_WELL_KNOWN_BRICKS(PLUMB_METRICS_CATEGORY)
#undef PLUMB_METRICS_CATEGORY
    default:
        return Category::other;
    }
}

/// The entry of that key; beyond `most` that of "other".
template <class Value>
Value& entry_of(std::vector<std::pair<std::string, Value>>& list, const std::string& key, std::size_t most) {
    const auto find = [&](std::string_view wanted) {
        return std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == wanted; });
    };
    auto found = find(key);
    if (found == list.end() && list.size() + 1 >= most && key != other) {
        found = find(other);
        if (found == list.end()) {
            return list.emplace_back(other, Value{}).second;
        }
    }
    return found != list.end() ? found->second : list.emplace_back(key, Value{}).second;
}

bool is_lost_record(std::string_view reason) {
    for (std::size_t i = 0; i < drop_reasons; ++i) {
        if (reason == recording::drop_reason_text(static_cast<Drop>(i))) {
            return true;
        }
    }
    return reason.starts_with("no ring");
}

} // namespace

Totals::Totals(const recording::Metadata& metadata, bool redact)
    : redact_(redact), slot_names_{other}, slot_in_other_{false},
      figure_places_(most_sources * slots * phases, no_slot) {
    figures_.bricks.reserve(most_bricks);
    for (const recording::RankGroup& group : metadata.groups) {
        if (group.name == "tp" || group.name == "pp") {
            (group.name == "tp" ? figures_.tp_rank : figures_.pp_rank) = std::to_string(group.index);
        }
    }
    for (const auto& [key, value] : metadata.costs) {
        const std::string_view name = std::string_view(key).substr(0, key.find('.'));
        if (!(value >= 0)) {
            continue;
        }
        double* const price = name == "scope"      ? &scope_price_
                              : name == "lap"      ? &lap_price_
                              : name == "cpu_time" ? &cpu_time_price_
                                                   : nullptr;
        if (price != nullptr && *price < 0) {
            *price = value;
        }
    }
}

void Totals::add(const recording::TrackInfo& track) {
    tracks_[track.id].stream =
        stream_of(track.kind == recording::TrackKind::host_thread ? 0 : track.clock, track.source);
}

void Totals::add(const recording::NameInfo& name) { names_[name.id] = name; }

void Totals::add(const recording::ClockPair& pair) {
    if (pair.clock == 0) {
        ++seconds_;
        last_ticks_ = std::max(last_ticks_, pair.ticks); // an engine that waits costs less and less
        for (auto waiting = pending_.begin(); waiting != pending_.end();) {
            const auto next = std::next(waiting);
            if (seconds_ - waiting->second.since > patience) {
                settle(waiting, unknown_phase);
            }
            waiting = next;
        }
    }
    Clock& clock = clocks_[pair.clock];
    if (!clock.has_first) {
        clock.has_first = true;
        clock.first = pair;
        return;
    }
    if (pair.ticks <= clock.first.ticks || pair.monotonic_ns <= clock.first.monotonic_ns) {
        return;
    }
    const auto ticks = static_cast<double>(pair.ticks - clock.first.ticks);
    const double rate = static_cast<double>(pair.monotonic_ns - clock.first.monotonic_ns) / ticks;
    const auto uncertain = static_cast<double>(pair.uncertainty_ticks + clock.first.uncertainty_ticks);
    if (rate >= recording::shortest_tick_ns && rate <= recording::longest_tick_ns &&
        ticks >= uncertain * least_precision) {
        clock.ns_per_tick = rate;
        clock.first = pair; // a clock that jumps spoils one second, not all that follow
        for (Stream& stream : streams_) {
            if (stream.clock == pair.clock) {
                convert(stream);
            }
        }
    } else if (!(clock.ns_per_tick > 0) && 2 * pair.uncertainty_ticks < clock.first.uncertainty_ticks) {
        clock.first = pair; // the first was interrupted: against it no pair would be precise for long
    }
}

void Totals::add(const recording::Counters& counters) {
    std::uint64_t lost = 0;
    for (const auto& [reason, count] : counters.drops) {
        lost += is_lost_record(reason) ? count : 0;
    }
    figures_.dropped_records = std::max(figures_.dropped_records.value_or(0), lost);
    drain_cpu_ns_ = counters.drain_cpu_ns;
    update_own_cost();
}

void Totals::add(const recording::GraphInfo& row) {
    Counted& known = graphs_[row.key];
    std::uint64_t& replays = figures_.graph_replays.emplace(figures_.graph_replays.value_or(0));
    replays += row.replays - std::min(known.replays, row.replays);
    known.replays = std::max(known.replays, row.replays);
    for (const auto& [reason, steps] : row.eager_steps) {
        std::uint64_t& before = known.eager[reason];
        entry_of(figures_.eager_steps, label_of(reason), most_reasons) += steps - std::min(before, steps);
        before = std::max(before, steps);
    }
}

// A model is often named by where it lies.
void Totals::describe(std::string_view key, std::string_view value) {
    const std::string label = label_of(redact_ ? recording::last_part(value) : value);
    if (key == "model") {
        figures_.model = label;
    } else if (key == "tp_rank") {
        figures_.tp_rank = label;
    } else if (key == "pp_rank") {
        figures_.pp_rank = label;
    }
}

Totals::Track& Totals::track_of(std::uint32_t id) {
    const auto found = tracks_.find(id);
    if (found != tracks_.end()) {
        return found->second;
    }
    Track& made = tracks_[id];
    made.stream = stream_of(0, "unknown");
    return made;
}

std::size_t Totals::stream_of(std::uint32_t clock, const std::string& source) {
    auto known = std::find(sources_.begin(), sources_.end(), source);
    if (known == sources_.end() && sources_.size() + 1 >= most_sources) {
        known = std::find(sources_.begin(), sources_.end(), other);
        known = known != sources_.end() ? known : sources_.insert(sources_.end(), other);
    } else if (known == sources_.end()) {
        known = sources_.insert(sources_.end(), label_of(source));
    }
    const auto number = static_cast<std::size_t>(known - sources_.begin());
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (streams_[i].clock == clock && streams_[i].source == number) {
            return i;
        }
    }
    Stream& made = streams_.emplace_back();
    made.clock = clock;
    made.source = number;
    made.amounts.resize(slots * phases);
    return streams_.size() - 1;
}

Totals::KnownName Totals::meet(std::uint16_t name) {
    if (name >= known_names_.size()) {
        known_names_.resize(std::size_t{name} + 1);
    }
    const auto known = names_.find(name);
    const std::string label = label_of(known != names_.end() ? known->second.name : well_known(name));
    std::size_t slot =
        static_cast<std::size_t>(std::find(slot_names_.begin(), slot_names_.end(), label) - slot_names_.begin());
    if (slot == slot_names_.size() && slot < slots) {
        slot_names_.push_back(label);
        slot_in_other_.push_back(false);
    } else if (slot == slot_names_.size()) {
        slot = 0;
        ++figures_.bricks_in_other;
    }
    const Category category = known != names_.end() ? known->second.category : well_known_category(name);
    return known_names_[name] = {static_cast<std::uint8_t>(slot), category == Category::collective};
}

/// No group: it was told of a scope that has its time elsewhere.
void Totals::announce(Track& track, std::uint16_t name, std::optional<std::uint16_t> group) {
    constexpr std::size_t most = 16; // that are open at once on one thread
    auto& announced = track.announced;
    std::erase_if(announced, [name](const auto& one) { return one.first == name; });
    if (group && announced.size() == most) {
        announced.erase(announced.begin());
    }
    if (group) {
        announced.emplace_back(name, *group);
    }
}

void Totals::count_collective(Track& track, std::uint16_t name, std::uint64_t ticks) {
    const auto said = std::find_if(track.announced.begin(), track.announced.end(),
                                   [name](const auto& one) { return one.first == name; });
    const bool known = said != track.announced.end();
    if (!known && !known_names_[name].collective) {
        return;
    }
    const std::uint16_t group = known ? said->second : std::uint16_t{0};
    if (known) {
        track.announced.erase(said);
    }
    auto& sums = streams_[track.stream].collectives;
    const auto sum = std::find_if(sums.begin(), sums.end(), [group](const auto& one) { return one.first == group; });
    if (sum != sums.end()) {
        sum->second += ticks;
    } else {
        sums.emplace_back(group, ticks);
    }
}

std::uint8_t Totals::phase_of(std::uint64_t step) const {
    if (step < forgotten_) {
        return unknown_phase;
    }
    const auto page = begun_.find(step / steps_a_page);
    const std::uint8_t known = page == begun_.end() ? 0 : page->second.phase_plus_one[step % steps_a_page];
    return known != 0 ? static_cast<std::uint8_t>(known - 1) : pending_phase;
}

void Totals::remember(std::uint64_t step, std::uint8_t phase) {
    BegunSteps& page = begun_[step / steps_a_page];
    page.phase_plus_one[step % steps_a_page] = static_cast<std::uint8_t>(phase + 1);
    page.since = seconds_;
    for (auto oldest = begun_.begin();
         begun_.size() > most_pages || (begun_.size() > least_pages && seconds_ - oldest->second.since > patience);
         oldest = begun_.erase(oldest)) {
        forgotten_ = std::max(forgotten_, (oldest->first + 1) * steps_a_page);
    }
}

std::uint8_t Totals::phase_now(Track& track) const {
    if (track.frames.empty()) {
        return static_cast<std::uint8_t>(Phase::none);
    }
    Frame& frame = track.frames.back();
    if (frame.phase == pending_phase) {
        frame.phase = phase_of(frame.id); // it may have come meanwhile
    }
    return frame.phase;
}

void Totals::add(const recording::RecordBatch& batch) {
    Track& track = track_of(batch.track);
    for (std::size_t i = 0; i < batch.count; ++i) {
        const Record& record = batch.records[i];
        std::uint64_t ticks = payload_of(record);
        if (ticks == payload_mask) [[unlikely]] {
            ticks = track.has_long ? track.long_value : 0;
        }
        switch (kind_of(record)) {
        case RecordKind::scope:
        case RecordKind::span:
            scope(track, record, ticks);
            break;
        case RecordKind::long_value:
            track.long_value = record.first;
            track.has_long = true;
            continue;
        case RecordKind::step_begin:
            step_begin(track, record);
            break;
        case RecordKind::step_value:
            step_value(track, record);
            break;
        case RecordKind::step_end:
            step_end(track, record, ticks);
            break;
        case RecordKind::layer_end:
            ++scopes_;
            break;
        case RecordKind::cpu_time:
            ++cpu_times_;
            break;
        case RecordKind::collective:
            announce(track, static_cast<std::uint16_t>(payload_of(record)), id_of(record));
            break;
        case RecordKind::device_scope:
            if (!track.announced.empty()) {
                announce(track, id_of(record), std::nullopt);
            }
            break;
        case RecordKind::context: {
            const bool in_step = record.first != 0;
            push(track, {false, in_step ? phase_of(record.first - 1) : std::uint8_t{0}, record.first - 1, 0, 0});
            break;
        }
        case RecordKind::context_end:
            (void)pop(track, false);
            break;
        case RecordKind::mark:
            if (id_of(record) == static_cast<std::uint16_t>(Mark::cut_step)) {
                (void)pop(track, true);
            }
            break;
        default:
            break;
        }
        track.has_long = false;
    }
    if (streams_[track.stream].clock == 0) {
        note_time(batch);
    }
    convert(streams_[track.stream]);
}

void Totals::scope(Track& track, const Record& record, std::uint64_t ticks) {
    const std::uint16_t name = id_of(record);
    const KnownName known =
        name < known_names_.size() && known_names_[name].slot != no_slot ? known_names_[name] : meet(name);
    const std::uint8_t slot = known.slot;
    if (known.collective || !track.announced.empty()) [[unlikely]] {
        count_collective(track, name, ticks);
    }
    ++((record.second & flag_lap) != 0 ? laps_ : scopes_);
    const std::uint8_t phase = phase_now(track);
    if (phase == pending_phase) [[unlikely]] {
        wait_for_step(track, slot, ticks);
        return;
    }
    Amount& amount = streams_[track.stream].amounts[slot * phases + phase];
    amount.ticks += ticks;
    ++amount.calls;
}

// Rings are written one by one: a worker's records may come before the begin of the step they are of.
void Totals::wait_for_step(const Track& track, std::uint8_t slot, std::uint64_t ticks) {
    const std::uint64_t step = track.frames.back().id;
    auto place = pending_.find(step);
    if (place == pending_.end()) {
        if (pending_.size() >= most_pending) {
            settle(pending_.begin(), unknown_phase);
        }
        place = pending_.try_emplace(step, Pending{{}, seconds_}).first;
    }
    std::vector<PendingEntry>& entries = place->second.entries;
    auto entry = std::find_if(entries.begin(), entries.end(),
                              [&](const PendingEntry& one) { return one.slot == slot && one.stream == track.stream; });
    if (entry == entries.end()) {
        entry = entries.insert(entry, PendingEntry{track.stream, slot, {}});
    }
    entry->amount.ticks += ticks;
    ++entry->amount.calls;
}

void Totals::settle(std::map<std::uint64_t, Pending>::iterator which, std::uint8_t phase) {
    for (const PendingEntry& entry : which->second.entries) {
        Amount& amount = streams_[entry.stream].amounts[entry.slot * phases + phase];
        amount.ticks += entry.amount.ticks;
        amount.calls += entry.amount.calls;
    }
    pending_.erase(which);
}

void Totals::push(Track& track, const Frame& frame) const {
    if (track.frames.size() < deepest) {
        track.frames.push_back(frame);
    }
}

bool Totals::pop(Track& track, bool step, Frame* popped) {
    for (std::size_t i = track.frames.size(); i-- > 0;) {
        if (track.frames[i].step == step) {
            if (popped != nullptr) {
                *popped = track.frames[i];
            }
            track.frames.erase(track.frames.begin() + static_cast<std::ptrdiff_t>(i));
            return true;
        }
    }
    return false;
}

void Totals::step_begin(Track& track, const Record& record) {
    const std::uint64_t id = payload_of(record);
    const auto phase = static_cast<std::uint8_t>(id_of(record) < unknown_phase ? id_of(record) : 0);
    push(track, {true, phase, id, 0, 0});
    remember(id, phase);
    if (const auto waiting = pending_.find(id); waiting != pending_.end()) {
        settle(waiting, phase);
    }
}

void Totals::step_value(Track& track, const Record& record) const {
    const auto step = std::find_if(track.frames.rbegin(), track.frames.rend(), [](const Frame& f) { return f.step; });
    if (step == track.frames.rend()) {
        return;
    }
    if (id_of(record) == static_cast<std::uint16_t>(StepValue::prefill_tokens)) {
        step->prefill_tokens = record.first;
    } else if (id_of(record) == static_cast<std::uint16_t>(StepValue::decode_tokens)) {
        step->decode_tokens = record.first;
    }
}

void Totals::step_end(Track& track, const Record& record, std::uint64_t ticks) {
    ++scopes_;
    Frame step;
    if (!pop(track, true, &step)) {
        return;
    }
    const auto count = [](std::optional<std::uint64_t>& sum, std::uint64_t more) {
        if (more != 0) {
            sum = sum.value_or(0) + more;
        }
    };
    count(figures_.prefill_tokens, step.prefill_tokens);
    count(figures_.decode_tokens, step.decode_tokens);
    const auto phase = static_cast<std::uint8_t>(id_of(record) < unknown_phase ? id_of(record) : 0);
    Stream& stream = streams_[track.stream];
    if (const double rate = clocks_[stream.clock].ns_per_tick; rate > 0) {
        convert_step(phase, static_cast<double>(ticks) * rate, 1);
    } else if (stream.steps.size() < most_waiting_times) {
        ++stream.steps[{phase, ticks}];
    }
}

// Within a track records stand in the order of their ends.
void Totals::note_time(const recording::RecordBatch& batch) {
    const auto is_timed = [](const Record& record) {
        const RecordKind kind = kind_of(record);
        return kind == RecordKind::scope || kind == RecordKind::step_begin || kind == RecordKind::step_end ||
               kind == RecordKind::layer_begin || kind == RecordKind::layer_end;
    };
    const Record* const end = batch.records + batch.count;
    if (const Record* const first = std::find_if(batch.records, end, is_timed); first != end) {
        first_ticks_ = std::min(first_ticks_, first->first);
    }
    for (std::size_t i = batch.count; i-- > 0;) {
        const Record& last = batch.records[i];
        if (is_timed(last)) {
            const bool begins = kind_of(last) == RecordKind::step_begin || kind_of(last) == RecordKind::layer_begin;
            const std::uint64_t lasts = begins || payload_of(last) == payload_mask ? 0 : payload_of(last);
            last_ticks_ = std::max(last_ticks_, last.first + lasts);
            break;
        }
    }
}

void Totals::convert(Stream& stream) {
    const double rate = clocks_[stream.clock].ns_per_tick;
    if (rate == 0) {
        return;
    }
    for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) {
        for (std::size_t phase = 0; phase < phases; ++phase) {
            Amount& amount = stream.amounts[slot * phases + phase];
            if (amount.calls == 0) {
                continue;
            }
            BrickFigures& figure = figure_of(stream.source, slot, phase);
            figure.ns += static_cast<double>(amount.ticks) * rate;
            figure.calls += amount.calls;
            amount = {};
        }
    }
    for (const auto& [group, ticks] : stream.collectives) {
        const auto name = names_.find(group);
        const std::string label = name != names_.end() ? label_of(name->second.name) : std::string();
        entry_of(figures_.collective_ns, label, most_groups) += static_cast<double>(ticks) * rate;
    }
    stream.collectives.clear();
    for (const auto& [step, count] : stream.steps) {
        convert_step(step.first, static_cast<double>(step.second) * rate, count);
    }
    stream.steps.clear();
}

void Totals::convert_step(std::uint8_t phase, double ns, std::uint64_t count) {
    StepFigures& steps = figures_.steps[phase];
    const auto bucket = std::find_if(step_bounds.begin(), step_bounds.end(), [&](double b) { return ns <= b * 1e9; });
    steps.buckets[static_cast<std::size_t>(bucket - step_bounds.begin())] += count;
    steps.steps += count;
    steps.ns += ns * static_cast<double>(count);
}

void Totals::note_other(std::size_t slot) {
    if (slot != 0 && !slot_in_other_[slot]) {
        slot_in_other_[slot] = true;
        ++figures_.bricks_in_other;
    }
}

BrickFigures& Totals::figure_of(std::size_t source, std::size_t slot, std::size_t phase) {
    std::uint8_t& place = figure_places_[(source * slots + slot) * phases + phase];
    if (place != no_slot) {
        return figures_.bricks[place];
    }
    std::vector<BrickFigures>& all = figures_.bricks;
    const auto make = [&](const std::string& name, const std::string& its_source, std::size_t its_phase) {
        const auto same = std::find_if(all.begin(), all.end(), [&](const BrickFigures& one) {
            return one.brick == name && one.source == its_source && one.phase == its_phase;
        });
        const auto found = static_cast<std::uint8_t>(same - all.begin());
        if (same == all.end()) {
            all.push_back({name, its_source, static_cast<std::uint8_t>(its_phase), 0, 0});
        }
        return found;
    };
    if (slot != 0 && all.size() < most_bricks - kept_for_other) {
        place = make(slot_names_[slot], sources_[source], phase);
        return all[place];
    }
    note_other(slot);
    std::uint8_t& of_other = figure_places_[source * slots * phases + phase];
    if (of_other == no_slot) {
        // The last one takes whatever has none: its labels say no more than that.
        const bool room = all.size() < most_bricks - 1;
        of_other = room ? make(other, sources_[source], phase) : make(other, other, unknown_phase);
    }
    place = of_other;
    return all[place];
}

// As `plumb report` has it, but that time goes on where nothing is recorded.
void Totals::update_own_cost() {
    const double rate = clocks_[0].ns_per_tick;
    if (scope_price_ < 0 || (lap_price_ < 0 && laps_ != 0) || drain_cpu_ns_ == 0 || rate == 0 ||
        last_ticks_ <= first_ticks_) {
        return;
    }
    const double ns =
        static_cast<double>(scopes_) * scope_price_ + static_cast<double>(laps_) * std::max(lap_price_, 0.0) +
        static_cast<double>(cpu_times_) * std::max(cpu_time_price_, 0.0) + static_cast<double>(drain_cpu_ns_);
    figures_.own_cost = ns / (static_cast<double>(last_ticks_ - first_ticks_) * rate);
}

} // namespace plumb::metrics
