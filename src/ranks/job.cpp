// SPDX-License-Identifier: Apache-2.0
#include "ranks/job.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/natural_order.hpp"

namespace plumb::ranks {
namespace {

constexpr std::size_t most_numbers_named = 8; // in one sentence
constexpr std::size_t most_told = 8;          // groups whose members are not said

std::optional<std::uint32_t> number_in(const std::string& text) {
    std::uint32_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failed == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "3, 5 to 7 and 12 more".
std::string listed(const std::vector<std::uint64_t>& numbers) {
    std::string text;
    std::size_t named = 0;
    std::size_t i = 0;
    for (; i < numbers.size() && named < most_numbers_named; ++named) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
            ++last;
        }
        text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]) +
                (last == i ? "" : (last == i + 1 ? ", " : " to ") + std::to_string(numbers[last]));
        i = last + 1;
    }
    return text + (i < numbers.size() ? " and " + std::to_string(numbers.size() - i) + " more" : "");
}

/// What most of those that say a number say; 0: none does.
std::uint64_t world_of(const std::vector<Rank>& ranks) {
    std::map<std::uint64_t, std::size_t> said;
    for (const Rank& rank : ranks) {
        ++said[rank.metadata.world];
    }
    said.erase(0);
    const auto most =
        std::max_element(said.begin(), said.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == said.end() ? 0 : most->first;
}

bool same_recording(const Rank& a, const Rank& b) {
    const auto& id = a.metadata.recording_id;
    return (id[0] | id[1]) != 0 && std::equal(std::begin(id), std::end(id), b.metadata.recording_id);
}

/// Of two that are one the indices: a copy would wait for itself. Both 0: each stands there once.
std::pair<std::size_t, std::size_t> given_twice(const std::vector<Rank>& ranks) {
    for (std::size_t i = 1; i < ranks.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (same_recording(ranks[i], ranks[j])) {
                return {j, i};
            }
        }
    }
    return {0, 0};
}

void number_ranks(Job& job) {
    std::vector<Rank> numbered;
    std::vector<std::string> silent;
    for (Rank& rank : job.ranks) {
        if (const auto number = number_in(rank.metadata.rank)) {
            rank.number = *number;
            numbered.push_back(std::move(rank));
        } else {
            silent.push_back(rank.path);
        }
    }
    if (!numbered.empty()) {
        job.ranks = std::move(numbered);
        for (const std::string& path : silent) {
            job.notes.push_back(path + " does not say which rank it is, and is left out: record with PLUMB=rank=…");
        }
        return;
    }
    std::stable_sort(job.ranks.begin(), job.ranks.end(),
                     [](const Rank& a, const Rank& b) { return base::natural_before(a.path, b.path); });
    for (std::size_t i = 0; i < job.ranks.size(); ++i) {
        job.ranks[i].number = static_cast<std::uint32_t>(i);
    }
    job.numbered = true;
    job.notes.emplace_back("No recording says which rank it is: they are numbered in the order of their names, r-2 "
                           "before r-10, however they were given.");
}

void leave_out_others(Job& job) {
    job.world = world_of(job.ranks);
    std::erase_if(job.ranks, [&job](const Rank& rank) {
        const bool other = rank.metadata.world != 0 && rank.metadata.world != job.world;
        const bool beyond = job.world != 0 && rank.number >= job.world;
        if (other || beyond) {
            job.notes.push_back(rank.path + " is rank " + std::to_string(rank.number) + " of " +
                                std::to_string(other ? rank.metadata.world : job.world) + ", the others are of " +
                                std::to_string(job.world) + " ranks: it is of another job, and left out");
        }
        return other || beyond;
    });
}

/// Of what shares a clock, the most that were open at one time together are the job: ranks that never ran beside one
/// another do not wait for one another.
void leave_out_of_another_time(Job& job) {
    std::map<std::string, std::vector<std::pair<std::int64_t, std::size_t>>> by_clock; // when each began
    const auto open_from = [](const Rank& rank) {
        return std::min(rank.clock_pairs.front().monotonic_ns, rank.events.first_ns);
    };
    const auto open_until = [](const Rank& rank) {
        return std::max(rank.clock_pairs.back().monotonic_ns, rank.events.last_ns);
    };
    for (std::size_t r = 0; r < job.ranks.size(); ++r) {
        const std::string clock = shared_clock(job.ranks[r]);
        if (!clock.empty() && !job.ranks[r].clock_pairs.empty() && job.ranks[r].events.samples != 0) {
            by_clock[clock].emplace_back(open_from(job.ranks[r]), r);
        }
    }
    std::set<std::string> others;
    for (auto& [clock, begins] : by_clock) {
        std::sort(begins.begin(), begins.end());
        std::vector<std::vector<std::size_t>> together;
        std::int64_t until = 0;
        for (const auto& [begin, r] : begins) {
            if (together.empty() || begin > until) {
                together.emplace_back();
                until = open_until(job.ranks[r]);
            }
            until = std::max(until, open_until(job.ranks[r]));
            together.back().push_back(r);
        }
        const auto most = std::max_element(together.begin(), together.end(),
                                           [](const auto& a, const auto& b) { return a.size() < b.size(); });
        for (auto group = together.begin(); group != together.end(); ++group) {
            for (std::size_t i = 0; group != most && i < group->size(); ++i) {
                others.insert(job.ranks[(*group)[i]].path);
            }
        }
    }
    std::erase_if(job.ranks, [&](const Rank& rank) { return others.contains(rank.path); });
    for (const std::string& path : others) {
        job.notes.push_back(
            path + " has the clock of others and was recorded at another time: it is of another job, and left out");
    }
}

void note_missing(Job& job) {
    std::set<std::uint64_t> there;
    for (const Rank& rank : job.ranks) {
        there.insert(rank.number);
    }
    std::vector<std::uint64_t> missing;
    for (std::uint64_t i = 0; i < job.world && missing.size() < 65536; ++i) {
        if (!there.contains(i)) {
            missing.push_back(i);
        }
    }
    if (!missing.empty()) {
        job.notes.push_back("Of " + std::to_string(job.world) + " ranks no recording was given of rank " +
                            listed(missing) + ": who waited for them cannot be told from who waited for nobody.");
    }
}

} // namespace

std::string shared_clock(const Rank& rank) {
    const recording::Metadata& who = rank.metadata;
    const bool fed = std::any_of(who.clocks.begin(), who.clocks.end(), [](const recording::ClockInfo& clock) {
        return clock.id == 0 && clock.name == "caller";
    });
    return who.boot_id.empty() || who.time_namespace == 0 || fed
               ? ""
               : who.boot_id + " " + std::to_string(who.time_namespace);
}

Result<Job> assemble(std::vector<Rank> ranks) {
    if (const auto [first, second] = given_twice(ranks); second != 0) {
        return Error{ErrorCode::invalid_argument,
                     ranks[first].path + " and " + ranks[second].path + " are the same recording; name it once"};
    }
    Job job;
    job.ranks = std::move(ranks);
    number_ranks(job);
    leave_out_others(job);
    leave_out_of_another_time(job);
    std::stable_sort(job.ranks.begin(), job.ranks.end(),
                     [](const Rank& a, const Rank& b) { return a.number < b.number; });
    for (std::size_t i = 1; i < job.ranks.size(); ++i) {
        if (job.ranks[i].number == job.ranks[i - 1].number) {
            return Error{ErrorCode::invalid_argument,
                         "two recordings are of rank " + std::to_string(job.ranks[i].number) + ": " +
                             job.ranks[i - 1].path + " and " + job.ranks[i].path + "; give one of them"};
        }
    }
    if (job.ranks.size() < 2) {
        std::string why = "there is one rank only: give the recordings of all ranks, or the folder that holds them";
        for (const std::string& note : job.notes) {
            why += "; " + note;
        }
        return Error{ErrorCode::invalid_argument, why};
    }
    note_missing(job);
    return job;
}

namespace {

const recording::RankGroup* group_of(const Rank& rank, const std::string& name) {
    for (const recording::RankGroup& group : rank.metadata.groups) {
        if (group.name == name) {
            return &group;
        }
    }
    return nullptr;
}

/// Numbers of instances, given out in the order of ranks.
class Numbering {
  public:
    explicit Numbering(std::size_t ranks) { made_.of.assign(ranks, Instances::none), made_.index.assign(ranks, 0); }
    void put(std::size_t rank, const std::vector<std::uint64_t>& key, const recording::RankGroup& group) {
        const auto [found, is_new] = known_.try_emplace(key, static_cast<int>(made_.sizes.size()));
        if (is_new) {
            made_.sizes.push_back(static_cast<int>(group.size));
            taken_.emplace_back();
        }
        const auto instance = static_cast<std::size_t>(found->second);
        fits_ = fits_ && made_.sizes[instance] == static_cast<int>(group.size) &&
                taken_[instance].insert(group.index).second;
        made_.of[rank] = found->second;
        made_.index[rank] = static_cast<int>(group.index);
    }
    /// The members of all instances add up: no index twice, and all of one size. `whole`: none is missing either.
    [[nodiscard]] bool fits(bool whole) const {
        return fits_ && (!whole || std::all_of(taken_.begin(), taken_.end(), [this](const auto& taken) {
                   return taken.size() ==
                          static_cast<std::size_t>(made_.sizes[static_cast<std::size_t>(&taken - taken_.data())]);
               }));
    }
    [[nodiscard]] Instances take() { return std::move(made_); }

  private:
    Instances made_;
    std::map<std::vector<std::uint64_t>, int> known_;
    std::vector<std::set<std::uint32_t>> taken_; // indexes, by instance
    bool fits_ = true;
};

/// Ranks are in one instance where they are alike in as many other groups as can be: in all of "pp" and "dp" for "tp".
std::optional<Instances> told_apart(const Job& job, const std::string& name, const std::vector<std::string>& all) {
    std::vector<std::string> others;
    std::copy_if(all.begin(), all.end(), std::back_inserter(others),
                 [&](const std::string& other) { return other != name; });
    const bool whole = job.world != 0 && job.ranks.size() == job.world;
    std::vector<unsigned> choices(std::size_t{1} << others.size());
    for (unsigned i = 0; i < choices.size(); ++i) {
        choices[i] = i;
    }
    std::stable_sort(choices.begin(), choices.end(),
                     [](unsigned a, unsigned b) { return __builtin_popcount(a) > __builtin_popcount(b); });
    for (const unsigned choice : choices) {
        Numbering numbering(job.ranks.size());
        for (std::size_t r = 0; r < job.ranks.size(); ++r) {
            const recording::RankGroup* own = group_of(job.ranks[r], name);
            if (own == nullptr) {
                continue;
            }
            std::vector<std::uint64_t> key(own->members.begin(),
                                           own->members.end()); // where they are said they suffice
            for (std::size_t i = 0; i < others.size() && own->members.empty(); ++i) {
                const recording::RankGroup* other =
                    (choice >> i & 1) != 0 ? group_of(job.ranks[r], others[i]) : nullptr;
                key.push_back(other == nullptr ? 0 : other->index + std::uint64_t{1});
            }
            numbering.put(r, key, *own);
        }
        if (numbering.fits(whole)) {
            return numbering.take();
        }
    }
    return std::nullopt;
}

} // namespace

std::map<std::string, Instances> instances_of(const Job& job, std::vector<std::string>& notes) {
    std::map<std::string, Instances> found;
    Instances& everybody = found[""];
    everybody.of.assign(job.ranks.size(), 0);
    everybody.sizes = {static_cast<int>(std::max<std::uint64_t>(job.world, job.ranks.size()))};
    std::set<std::string> names;
    std::vector<std::string> told, by_members;
    for (const Rank& rank : job.ranks) {
        everybody.index.push_back(static_cast<int>(rank.number));
        for (const recording::RankGroup& group : rank.metadata.groups) {
            if (names.insert(group.name).second) {
                (group.members.empty() ? told : by_members).push_back(group.name);
            }
        }
    }
    told.resize(std::min(told.size(), most_told));
    std::vector<std::string> all = told;
    all.insert(all.end(), by_members.begin(), by_members.end());
    for (const std::string& name : all) {
        if (auto instances = told_apart(job, name, told)) {
            found.emplace(name, *std::move(instances));
        } else {
            notes.push_back("Which ranks make up the groups \"" + name +
                            "\" cannot be told from what the recordings say of them: their collectives are left out.");
        }
    }
    return found;
}

} // namespace plumb::ranks
