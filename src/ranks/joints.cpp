// SPDX-License-Identifier: Apache-2.0
#include "ranks/joints.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace plumb::ranks {
namespace {

using StreamKey = std::tuple<std::string, std::string, int>; // brick, group, instance

std::optional<JointKind> kind_of_brick(const std::string& brick) {
    if (brick == "all_reduce" || brick == "all_gather" || brick == "reduce_scatter" || brick == "all_to_all") {
        return JointKind::blocking;
    }
    if (brick == "moe_dispatch" || brick == "moe_combine") {
        return JointKind::exchange;
    }
    if (brick == "send" || brick == "recv") {
        return JointKind::message;
    }
    return brick == "kv_transfer" ? std::optional(JointKind::transfer) : std::nullopt;
}

/// Of a scope that does not say its group: the usual one, where the recordings know such a group.
const char* usual_group(JointKind kind) {
    switch (kind) {
    case JointKind::blocking:
        return "tp";
    case JointKind::exchange:
        return "ep";
    case JointKind::message:
        return "pp";
    case JointKind::transfer:
        break;
    }
    return "";
}

/// What one rank has of a stream, in the order of their begins.
struct Own {
    std::uint32_t rank = 0;
    int index = 0;
    bool receives = false; // of messages
    std::vector<std::uint32_t> events;
};

using Members = std::deque<Own>; // addresses stay

class Matcher {
  public:
    explicit Matcher(const Job& job) : job_(job), instances_(instances_of(job, out_.notes)) {}

    Joints match() {
        for (std::uint32_t r = 0; r < job_.ranks.size(); ++r) {
            sort_out(r);
        }
        for (auto& [key, members] : streams_) {
            const auto& [brick, group, instance] = key;
            out_.streams.push_back({brick, group, instance, *kind_of_brick(brick)});
            if (out_.streams.back().kind == JointKind::exchange) {
                keep_longest_of_layer(members, brick);
            }
            if (out_.streams.back().kind == JointKind::message) {
                match_messages(members, instances_.at(group).sizes[static_cast<std::size_t>(instance)]);
                continue;
            }
            std::vector<const Own*> all;
            for (const Own& own : members) {
                all.push_back(&own);
            }
            match_together(all);
        }
        say_losses();
        return std::move(out_);
    }

  private:
    void sort_out(std::uint32_t r) {
        const RankEvents& events = job_.ranks[r].events;
        std::map<std::pair<std::uint16_t, std::uint8_t>, std::vector<std::uint32_t>*> known;
        for (std::uint32_t e = 0; e < events.events.size(); ++e) {
            const RankEvent& event = events.events[e];
            const auto [found, is_new] = known.try_emplace({event.name, event.group}, nullptr);
            if (is_new) {
                found->second = place_of(r, events.names[event.name], events.groups[event.group]);
            }
            if (found->second != nullptr) {
                found->second->push_back(e);
            }
        }
    }

    /// Where the scopes of that brick and group of a rank are put; null: nowhere.
    std::vector<std::uint32_t>* place_of(std::uint32_t r, const std::string& brick, std::string group) {
        const auto kind = kind_of_brick(brick);
        if (!kind) {
            others_.insert(brick);
            return nullptr;
        }
        if (group.empty() && instances_.contains(usual_group(*kind))) {
            group = usual_group(*kind);
        }
        if (!instances_.contains(group)) { // a name of the engine's own: all ranks that use it
            instances_[group] = instances_.at("");
        }
        const Instances& instances = instances_.at(group);
        if (instances.of[r] == Instances::none) {
            return nullptr;
        }
        Members& members = streams_[{brick == "recv" ? "send" : brick, group, instances.of[r]}];
        for (Own& own : members) {
            if (own.rank == r && own.receives == (brick == "recv")) {
                return &own.events; // scopes that say the usual group, and scopes that say none
            }
        }
        members.push_back({r, instances.index[r], brick == "recv", {}});
        return &members.back().events;
    }

    /// Where a layer has several scopes of an exchange, as of kernels before and after it, it is the one that takes longest.
    void keep_longest_of_layer(Members& members, const std::string& brick) {
        std::vector<std::int64_t> took; // by place in the layer, all ranks together
        const auto each = [this](const Own& own, auto&& take) {
            std::pair<std::uint64_t, std::uint16_t> before{not_said, 0};
            std::size_t place = 0;
            for (const std::uint32_t e : own.events) {
                const RankEvent& event = event_of(own, e);
                const std::pair<std::uint64_t, std::uint16_t> here{event.step, event.layer_plus_one};
                const bool again = here == before && event.layer_plus_one != 0 && event.sequence == not_said;
                place = again ? place + 1 : 0;
                before = here;
                take(e, place, event);
            }
        };
        for (const Own& own : members) {
            each(own, [&](std::uint32_t, std::size_t place, const RankEvent& event) {
                took.resize(std::max(took.size(), place + 1));
                took[place] += event.end - event.begin;
            });
        }
        if (took.size() < 2) {
            return;
        }
        const auto longest = static_cast<std::size_t>(std::max_element(took.begin(), took.end()) - took.begin());
        for (Own& own : members) {
            std::vector<std::uint32_t> kept;
            each(own, [&](std::uint32_t e, std::size_t place, const RankEvent&) {
                if (place == longest) {
                    kept.push_back(e);
                }
            });
            own.events = std::move(kept);
        }
        out_.notes.push_back("A layer has up to " + std::to_string(took.size()) + " scopes of " + brick +
                             ": the one that takes longest is taken for the exchange, the others for work beside it.");
    }

    void match_messages(const Members& members, int size) {
        for (const Own& sender : members) {
            for (const Own& receiver : members) {
                if (!sender.receives && receiver.receives && size > 1 && receiver.index == (sender.index + 1) % size) {
                    match_together({&sender, &receiver});
                }
            }
        }
    }

    [[nodiscard]] const RankEvent& event_of(const Own& own, std::uint32_t event) const {
        return job_.ranks[own.rank].events.events[event];
    }

    struct Keyed {
        std::uint64_t step, number;
        std::uint32_t member, event;
    };

    void match_together(const std::vector<const Own*>& members) {
        const bool said = std::all_of(members.begin(), members.end(), [this](const Own* own) {
            return std::all_of(own->events.begin(), own->events.end(),
                               [&](std::uint32_t e) { return event_of(*own, e).sequence != not_said; });
        });
        const bool alike = std::all_of(members.begin(), members.end(), [&](const Own* own) {
            return own->events.size() == members.front()->events.size();
        });
        if (out_.streams.back().kind == JointKind::transfer && !said && members.size() != 2) {
            for (const Own* own : members) {
                unmatched_ += own->events.size();
            }
            return;
        }
        std::vector<Keyed> all;
        for (std::uint32_t m = 0; m < members.size(); ++m) {
            const Own& own = *members[m];
            std::map<std::uint64_t, std::uint64_t> in_step;
            for (std::uint64_t i = 0; i < own.events.size(); ++i) {
                const RankEvent& event = event_of(own, own.events[i]);
                const std::uint64_t step = said || alike ? 0 : event.step;
                const std::uint64_t number = said ? event.sequence : alike ? i : in_step[step]++;
                all.push_back({step, number, m, own.events[i]});
            }
        }
        std::sort(all.begin(), all.end(), [](const Keyed& a, const Keyed& b) {
            return std::tie(a.step, a.number, a.member, a.event) < std::tie(b.step, b.number, b.member, b.event);
        });
        if (!said && !alike) {
            leave_out_unequal_steps(all);
        }
        for (std::size_t i = 0; i < all.size();) {
            std::size_t end = i + 1;
            bool twice = false;
            for (; end < all.size() && all[end].step == all[i].step && all[end].number == all[i].number; ++end) {
                twice = twice || all[end].member == all[end - 1].member;
            }
            add(members, all, i, end, twice);
            i = end;
        }
    }

    /// Of a step in which two ranks have different numbers of scopes it is not known which are the same.
    void leave_out_unequal_steps(std::vector<Keyed>& all) {
        std::map<std::uint64_t, std::map<std::uint32_t, std::uint64_t>> counts; // by step and member
        for (const Keyed& one : all) {
            ++counts[one.step][one.member];
        }
        unmatched_ += std::erase_if(all, [&counts](const Keyed& one) {
            const auto& of_step = counts.at(one.step);
            return std::any_of(of_step.begin(), of_step.end(),
                               [&](const auto& count) { return count.second != of_step.begin()->second; });
        });
    }

    void add(const std::vector<const Own*>& members, const std::vector<Keyed>& all, std::size_t begin, std::size_t end,
             bool twice) {
        const std::size_t parts = end - begin;
        const bool pair =
            out_.streams.back().kind == JointKind::transfer || out_.streams.back().kind == JointKind::message;
        if (twice || parts < 2 || (pair && parts != 2)) {
            unmatched_ += parts;
            return;
        }
        out_.joints.push_back({static_cast<std::uint32_t>(out_.streams.size() - 1),
                               static_cast<std::uint32_t>(out_.parts.size()), static_cast<std::uint32_t>(parts),
                               out_.streams.back().kind == JointKind::message, false});
        for (std::size_t i = begin; i < end; ++i) {
            out_.parts.push_back({members[all[i].member]->rank, all[i].event});
        }
        if (out_.streams.back().kind == JointKind::transfer) {
            JointPart& first = out_.parts[out_.parts.size() - 2];
            JointPart& second = out_.parts.back();
            const bool turned = sends_alone(job_.ranks[second.rank]);
            out_.joints.back().directed = turned != sends_alone(job_.ranks[first.rank]);
            if (turned) {
                std::swap(first, second);
            }
        }
    }

    void say_losses() {
        if (unmatched_ != 0) {
            out_.notes.push_back(
                std::to_string(unmatched_) +
                " scopes of collectives were found on one rank only, or as different numbers on two: they "
                "are left out. Say plumb::sequence() where ranks may lose records.");
        }
        if (!others_.empty()) {
            std::string names;
            for (const std::string& brick : others_) {
                names += (names.empty() ? "" : ", ") + brick;
            }
            out_.notes.push_back("Who waits for whom in " + names + " is not known: these bricks are left out.");
        }
    }

    const Job& job_;
    Joints out_;
    std::map<std::string, Instances> instances_; // by group
    std::map<StreamKey, Members> streams_;
    std::set<std::string> others_;
    std::uint64_t unmatched_ = 0;
};

} // namespace

Joints match(const Job& job) { return Matcher(job).match(); }

} // namespace plumb::ranks
