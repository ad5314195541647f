// SPDX-License-Identifier: Apache-2.0
#include "resolve/step_table.hpp"

#include <algorithm>

namespace plumb::resolve {

std::size_t StepTable::find(std::uint64_t id) const noexcept {
    const auto found = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair{id, std::uint32_t{0}});
    return found != by_id_.end() && found->first == id ? found->second : step_not_found;
}

namespace {

// The order of ends tiles time; id decides between equal ends so that the table does not depend on the order of chunks.
bool ends_before(const StepTable::Found& a, const StepTable::Found& b) {
    return a.step.end_ns != b.step.end_ns ? a.step.end_ns < b.step.end_ns : a.step.id < b.step.id;
}

void flag_warmup(std::vector<StepTable::Found>& found, std::uint64_t warmup_steps) {
    std::uint64_t left = warmup_steps;
    for (StepTable::Found& entry : found) {
        entry.step.warmup = entry.step.phase == Phase::decode && left > 0;
        if (entry.step.warmup)
            --left;
    }
}

void set_periods(std::vector<StepTable::Found>& found, const std::vector<std::int64_t>& breaks) {
    auto next_break = breaks.begin();
    for (std::size_t i = 0; i < found.size(); ++i) {
        Step& step = found[i].step;
        bool first = i == 0 || !found[i - 1].counted;
        while (next_break != breaks.end() && *next_break < step.end_ns) {
            first = first || *next_break > found[i - 1].step.end_ns;
            ++next_break;
        }
        step.period_begin_ns = first ? step.begin_ns : found[i - 1].step.end_ns;
        // Where steps overlap, a step that begins anew may not claim time that was tiled before.
        if (first && i > 0)
            step.period_begin_ns = std::max(step.period_begin_ns, found[i - 1].step.end_ns);
    }
}

} // namespace

StepTable StepTable::build(std::vector<Found> found, std::vector<std::int64_t> breaks, std::uint64_t warmup_steps,
                           Disturbed disturbed, Losses& losses) {
    std::sort(found.begin(), found.end(), ends_before);
    std::sort(breaks.begin(), breaks.end());
    flag_warmup(found, warmup_steps);
    set_periods(found, breaks);

    StepTable table;
    for (const Found& entry : found) {
        if (entry.counted)
            table.steps_.push_back(entry.step);
    }
    table.by_id_.reserve(table.steps_.size());
    for (std::size_t i = 0; i < table.steps_.size(); ++i)
        table.by_id_.emplace_back(table.steps_[i].id, static_cast<std::uint32_t>(i));
    std::sort(table.by_id_.begin(), table.by_id_.end());
    const auto same_id = [](const auto& a, const auto& b) {
        return a.first == b.first;
    };
    const auto unique_end = std::unique(table.by_id_.begin(), table.by_id_.end(), same_id);
    losses.count(Loss::step_id_reused, static_cast<std::uint64_t>(table.by_id_.end() - unique_end));
    table.by_id_.erase(unique_end, table.by_id_.end());
    table.mark(disturbed);
    table.keep_phases_that_have_no_other_steps();
    return table;
}

void StepTable::mark(Disturbed& disturbed) {
    for (const std::uint64_t id : disturbed.by_launches.sorted()) {
        if (const std::size_t at = find(id); at != step_not_found)
            steps_[at].left_out = true;
    }
    for (const std::uint64_t id : disturbed.by_device.sorted()) {
        if (const std::size_t at = find(id); at != step_not_found)
            steps_[at].left_out = steps_[at].device_timed = true;
    }
}

void StepTable::keep_phases_that_have_no_other_steps() {
    std::array<bool, 4> plain{};
    std::array<bool, 4> disturbed{};
    for (const Step& step : steps_) {
        if (!step.warmup)
            (step.left_out ? disturbed : plain)[static_cast<std::size_t>(step.phase)] = true;
    }
    for (std::size_t phase = 0; phase < plain.size(); ++phase)
        all_disturbed_[phase] = disturbed[phase] && !plain[phase];
    for (Step& step : steps_)
        step.left_out = step.left_out && !all_disturbed(step.phase);
}

void StepIds::add(std::uint64_t id) {
    if (!ids_.empty() && ids_.back() == id)
        return;
    if (ids_.size() >= compact_at_)
        compact();
    if (ids_.size() < 2 * StepTable::max_steps)
        ids_.push_back(id);
}

void StepIds::compact() {
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
    compact_at_ = std::max(compact_at_, 2 * ids_.size());
}

const std::vector<std::uint64_t>& StepIds::sorted() {
    compact();
    return ids_;
}

} // namespace plumb::resolve
