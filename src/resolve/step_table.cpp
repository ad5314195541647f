// SPDX-License-Identifier: Apache-2.0
#include "resolve/step_table.hpp"

#include <algorithm>

#include "resolve/first_steps.hpp"

namespace plumb::resolve {

std::size_t StepTable::find(std::uint64_t id) const noexcept {
    if (ids_ascend_) {
        const auto found =
            std::lower_bound(steps_.begin(), steps_.end(), id,
                             [](const ResolvedStep& step, std::uint64_t wanted) { return step.id < wanted; });
        return found != steps_.end() && found->id == id ? static_cast<std::size_t>(found - steps_.begin())
                                                        : step_not_found;
    }
    const auto found = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair{id, std::uint32_t{0}});
    return found != by_id_.end() && found->first == id ? found->second : step_not_found;
}

bool StepTable::facts_of(std::uint64_t id, StepFacts& facts) const noexcept {
    const std::size_t found = find(id);
    if (found == step_not_found) {
        return false;
    }
    const ResolvedStep& step = steps_[found];
    facts = {step.kv_length, step.phase, step.has_kv_length, step.warmup, step.left_out};
    return true;
}

namespace {

// The order of ends tiles time; id decides between equal ends so that the table does not depend on the order of chunks.
bool ends_before(const ResolvedStep& a, const ResolvedStep& b) {
    return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.id < b.id;
}

void flag_warmup(Steps& found, std::uint64_t warmup_steps) {
    FirstSteps first(warmup_steps);
    for (const ResolvedStep& step : found) {
        if (step.phase == Phase::decode) {
            first.add(step.host_end_ns, step.id);
        }
    }
    for (ResolvedStep& step : found) {
        step.warmup = step.phase == Phase::decode && first.holds(step.host_end_ns, step.id);
    }
}

std::vector<std::uint64_t> ids_of(const Steps& found, const std::vector<std::uint64_t>& phaseless) {
    std::vector<std::uint64_t> ids = phaseless;
    for (const ResolvedStep& step : found) {
        ids.push_back(step.id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

/// `lossy`: steps are numbered one by one, so where none has the number before, that one was lost.
void set_periods(Steps& found, const std::vector<std::uint64_t>& phaseless, const std::vector<std::int64_t>& breaks,
                 bool lossy) {
    const std::vector<std::uint64_t> known = lossy ? ids_of(found, phaseless) : std::vector<std::uint64_t>();
    auto next_break = breaks.begin();
    for (std::size_t i = 0; i < found.size(); ++i) {
        ResolvedStep& step = found[i];
        bool first =
            i == 0 || !found[i - 1].counted ||
            (lossy && found[i - 1].id + 1 != step.id && !std::binary_search(known.begin(), known.end(), step.id - 1));
        // What a step left to the device may end behind the break.
        while (next_break != breaks.end() && *next_break < step.host_end_ns) {
            first = first || *next_break > found[i - 1].host_end_ns;
            ++next_break;
        }
        step.period_begin_ns = first ? step.begin_ns : found[i - 1].end_ns;
        // Where steps overlap, a step that begins anew may not claim time that was tiled before.
        if (first && i > 0) {
            step.period_begin_ns = std::max(step.period_begin_ns, found[i - 1].end_ns);
        }
    }
}

/// A step ends with the last that it gave to a device. Several may have one id: it is not known which of them gave it.
void set_ends(Steps& found, const DeviceEnds::Ends& ends) {
    if (ends.empty()) {
        return;
    }
    for (ResolvedStep& step : found) {
        const auto last = std::lower_bound(ends.begin(), ends.end(), step.id,
                                           [](const auto& end, std::uint64_t id) { return end.first < id; });
        if (last != ends.end() && last->first == step.id) {
            step.end_ns = std::max(step.end_ns, last->second);
        }
    }
}

} // namespace

StepTable StepTable::build(Steps found, std::vector<std::uint64_t> phaseless, std::vector<std::int64_t> breaks,
                           std::uint64_t warmup_steps, Disturbed disturbed, DeviceEnds device_ends, Losses& losses,
                           bool lossy) {
    set_ends(found, device_ends.sorted());
    if (!std::is_sorted(found.begin(), found.end(), ends_before)) {
        std::sort(found.begin(), found.end(), ends_before);
    }
    std::sort(breaks.begin(), breaks.end());
    flag_warmup(found, warmup_steps);
    set_periods(found, phaseless, breaks, lossy);

    StepTable table;
    table.phaseless_ = std::move(phaseless);
    std::erase_if(found, [](const ResolvedStep& step) { return !step.counted; });
    table.steps_ = std::move(found);
    table.index_by_id(losses);
    table.mark(disturbed);
    table.keep_phases_that_have_no_other_steps();
    return table;
}

void StepTable::index_by_id(Losses& losses) {
    ids_ascend_ = std::adjacent_find(steps_.begin(), steps_.end(), [](const ResolvedStep& a, const ResolvedStep& b) {
                      return a.id >= b.id;
                  }) == steps_.end();
    if (ids_ascend_) {
        return;
    }
    by_id_.reserve(steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        by_id_.emplace_back(steps_[i].id, static_cast<std::uint32_t>(i));
    }
    std::sort(by_id_.begin(), by_id_.end());
    const auto same_id = [](const auto& a, const auto& b) {
        return a.first == b.first;
    };
    const auto unique_end = std::unique(by_id_.begin(), by_id_.end(), same_id);
    losses.count(Loss::step_id_reused, static_cast<std::uint64_t>(by_id_.end() - unique_end));
    by_id_.erase(unique_end, by_id_.end());
}

void StepTable::mark(Disturbed& disturbed) {
    for (const std::uint64_t id : disturbed.by_launches.sorted()) {
        if (const std::size_t at = find(id); at != step_not_found) {
            steps_[at].left_out = true;
        }
    }
    for (const std::uint64_t id : disturbed.by_device.sorted()) {
        if (const std::size_t at = find(id); at != step_not_found) {
            steps_[at].left_out = steps_[at].device_timed = true;
        }
    }
}

void StepTable::keep_phases_that_have_no_other_steps() {
    std::array<bool, 4> plain{};
    std::array<bool, 4> disturbed{};
    for (const ResolvedStep& step : steps_) {
        if (!step.warmup) {
            (step.left_out ? disturbed : plain)[static_cast<std::size_t>(step.phase)] = true;
        }
    }
    for (std::size_t phase = 0; phase < plain.size(); ++phase) {
        all_disturbed_[phase] = disturbed[phase] && !plain[phase];
    }
    for (ResolvedStep& step : steps_) {
        step.left_out = step.left_out && !all_disturbed(step.phase);
    }
}

void StepIds::add(std::uint64_t id) {
    if (!ids_.empty() && ids_.back() == id) {
        return;
    }
    if (ids_.size() >= compact_at_) {
        compact();
    }
    if (ids_.size() < 2 * StepTable::max_steps) {
        ids_.push_back(id);
    }
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
