// SPDX-License-Identifier: Apache-2.0
#include "resolve/packed_steps.hpp"

#include <algorithm>
#include <limits>

namespace plumb::resolve {
namespace {

// A word: 26 bits of kv length, 2 of phase, 4 flags.
constexpr std::uint32_t kv_bits = 26;
constexpr std::uint32_t long_kv = (std::uint32_t{1} << kv_bits) - 1; // it stands elsewhere
constexpr std::uint32_t phase_shift = kv_bits;
constexpr std::uint32_t has_kv = std::uint32_t{1} << 28, is_warmup = has_kv << 1, is_left_out = has_kv << 2;
constexpr std::size_t not_found = std::numeric_limits<std::size_t>::max();
constexpr std::size_t most_long_kv = 65536;

std::size_t phase_of(std::uint32_t word) { return word >> phase_shift & 3; }

} // namespace

std::uint32_t PackedSteps::word_of(std::uint64_t id, const StepFacts& facts) {
    std::uint32_t word = static_cast<std::uint32_t>(facts.phase) << phase_shift;
    if (!facts.has_kv_length) {
        return word;
    }
    if (facts.kv_length >= long_kv) {
        if (long_kv_.size() >= most_long_kv) {
            return word; // rather unknown than wrong
        }
        long_kv_.try_emplace(id, facts.kv_length);
        return word | has_kv | long_kv;
    }
    return word | has_kv | static_cast<std::uint32_t>(facts.kv_length);
}

std::uint64_t PackedSteps::id_after_last() const noexcept {
    return runs_.empty() ? 0 : runs_.back().first_id + (words_.size() - runs_.back().first_index);
}

void PackedSteps::add(std::uint64_t id, const StepFacts& facts) {
    const std::uint32_t word = word_of(id, facts);
    if (id >= id_after_last()) {
        append(id, word);
        return;
    }
    late_.emplace_back(id, word);
    if (late_.size() >= most_late) {
        put_in_order();
    }
}

void PackedSteps::append(std::uint64_t id, std::uint32_t word) {
    if (runs_.empty() || id != id_after_last()) {
        runs_.push_back({id, words_.size()});
    }
    words_.push_back(word);
}

void PackedSteps::put_in_order() {
    std::stable_sort(late_.begin(), late_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Run> runs = std::move(runs_);
    Words words = std::move(words_);
    runs_.clear();
    words_.clear();
    auto next = late_.begin();
    const auto append_late_before = [&](std::uint64_t id) {
        for (; next != late_.end() && next->first < id; ++next) {
            if (next->first < id_after_last()) {
                ++reused_;
            } else {
                append(next->first, next->second);
            }
        }
    };
    std::size_t index = 0;
    for (std::size_t run = 0; run < runs.size(); ++run) {
        const std::size_t end = run + 1 < runs.size() ? runs[run + 1].first_index : index + words.size();
        for (std::uint64_t id = runs[run].first_id; index < end; ++id, ++index) {
            append_late_before(id);
            append(id, words.front());
            words.pop_front(); // so that both together are hardly more than one
        }
    }
    append_late_before(std::numeric_limits<std::uint64_t>::max());
    late_.clear();
}

std::uint64_t PackedSteps::finish() {
    put_in_order();
    late_.shrink_to_fit();
    return reused_;
}

std::size_t PackedSteps::index_of(std::uint64_t id) const noexcept {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), id,
                                        [](std::uint64_t wanted, const Run& run) { return wanted < run.first_id; });
    if (after == runs_.begin()) {
        return not_found;
    }
    const Run& run = *std::prev(after);
    const std::size_t index = run.first_index + (id - run.first_id);
    const std::size_t end = after == runs_.end() ? words_.size() : after->first_index;
    return id - run.first_id < end - run.first_index ? index : not_found;
}

void PackedSteps::set_warmup(std::uint64_t id) {
    if (const std::size_t index = index_of(id); index != not_found) {
        words_[index] |= is_warmup;
    }
}

void PackedSteps::set_left_out(std::uint64_t id) {
    if (const std::size_t index = index_of(id); index != not_found) {
        words_[index] |= is_left_out;
    }
}

void PackedSteps::keep_phases_that_have_no_other_steps() {
    std::array<bool, 4> plain{};
    for (const std::uint32_t word : words_) {
        if ((word & (is_warmup | is_left_out)) == 0) {
            plain[phase_of(word)] = true;
        }
    }
    std::array<bool, 4> disturbed{};
    for (const std::uint32_t word : words_) {
        if ((word & is_warmup) == 0 && (word & is_left_out) != 0) {
            disturbed[phase_of(word)] = true;
        }
    }
    for (std::uint32_t& word : words_) {
        if (disturbed[phase_of(word)] && !plain[phase_of(word)]) {
            word &= ~is_left_out;
            no_other_steps_ = true;
        }
    }
}

bool PackedSteps::facts_of(std::uint64_t id, StepFacts& facts) const noexcept {
    const std::size_t index = index_of(id);
    if (index == not_found) {
        return false;
    }
    const std::uint32_t word = words_[index];
    facts.phase = static_cast<Phase>(phase_of(word));
    facts.warmup = (word & is_warmup) != 0;
    facts.left_out = (word & is_left_out) != 0;
    facts.has_kv_length = (word & has_kv) != 0;
    facts.kv_length = word & long_kv;
    if (facts.kv_length == long_kv) {
        const auto found = long_kv_.find(id);
        facts.has_kv_length = found != long_kv_.end();
        facts.kv_length = facts.has_kv_length ? found->second : 0;
    }
    return true;
}

} // namespace plumb::resolve
