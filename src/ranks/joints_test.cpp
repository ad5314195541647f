// SPDX-License-Identifier: Apache-2.0
#include "ranks/joints.hpp"

#include <gtest/gtest.h>

namespace plumb::ranks {
namespace {

/// Ranks of which each does what it is told, a microsecond apart.
class Told {
  public:
    explicit Told(std::uint32_t ranks) {
        job_.world = ranks;
        for (std::uint32_t r = 0; r < ranks; ++r) {
            job_.ranks.emplace_back().number = r;
        }
    }
    Told& does(std::uint32_t rank, const std::string& brick, std::uint64_t step = not_said,
               std::uint64_t sequence = not_said, const std::string& group = "") {
        RankEvents& events = job_.ranks[rank].events;
        RankEvent event;
        event.begin = static_cast<std::int64_t>(events.events.size()) * 1000;
        event.end = event.begin + 10;
        event.step = step;
        event.sequence = sequence;
        event.name = static_cast<std::uint16_t>(index_in(events.names, brick));
        event.group = static_cast<std::uint8_t>(index_in(events.groups, group));
        events.events.push_back(event);
        return *this;
    }
    Job job_;

  private:
    static std::size_t index_in(std::vector<std::string>& list, const std::string& word) {
        const auto found = std::find(list.begin(), list.end(), word);
        const auto index = static_cast<std::size_t>(found - list.begin());
        if (found == list.end()) {
            list.push_back(word);
        }
        return index;
    }
};

TEST(Joints, are_counted_where_no_rank_says_which_is_which) {
    Told told(2);
    for (const std::uint32_t rank : {0U, 1U}) {
        told.does(rank, "all_reduce").does(rank, "all_gather").does(rank, "all_reduce");
    }
    const Joints found = match(told.job_);
    EXPECT_EQ(found.joints.size(), 3U);
    EXPECT_EQ(found.streams.size(), 2U);
    EXPECT_TRUE(found.notes.empty());
}

TEST(Joints, what_is_said_survives_a_loss_that_counting_would_not) {
    Told told(2);
    for (std::uint64_t k = 0; k < 10; ++k) {
        told.does(0, "all_reduce", not_said, k);
        if (k != 4) {
            told.does(1, "all_reduce", not_said, k);
        }
    }
    const Joints found = match(told.job_);
    ASSERT_EQ(found.joints.size(), 9U);
    for (const Joint& joint : found.joints) {
        const JointPart& a = found.parts[joint.first_part];
        const JointPart& b = found.parts[joint.first_part + 1];
        EXPECT_EQ(told.job_.ranks[a.rank].events.events[a.event].sequence,
                  told.job_.ranks[b.rank].events.events[b.event].sequence);
    }
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_EQ(found.notes[0].substr(0, 9), "1 scopes ");
}

TEST(Joints, a_loss_costs_its_step_where_only_counting_is_left) {
    Told told(3);
    for (std::uint64_t step = 0; step < 5; ++step) {
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
            for (int k = 0; k < 4; ++k) {
                if (!(rank == 1 && step == 2 && k == 0)) {
                    told.does(rank, "all_reduce", step);
                }
            }
        }
    }
    const Joints found = match(told.job_);
    EXPECT_EQ(found.joints.size(), 16U);
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_EQ(found.notes[0].substr(0, 10), "11 scopes ");
}

TEST(Joints, a_rank_that_ended_early_takes_part_as_far_as_it_came) {
    Told told(3);
    for (std::uint64_t step = 0; step < 5; ++step) {
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
            if (rank != 2 || step < 3) {
                told.does(rank, "all_reduce", step);
            }
        }
    }
    const Joints found = match(told.job_);
    ASSERT_EQ(found.joints.size(), 5U);
    EXPECT_EQ(found.joints[2].parts, 3U);
    EXPECT_EQ(found.joints[4].parts, 2U);
}

TEST(Joints, groups_part_what_has_one_name) {
    Told told(4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        told.job_.ranks[rank].metadata.groups = {{"tp", rank % 2, 2, {}}, {"dp", rank / 2, 2, {}}};
        told.does(rank, "all_reduce").does(rank, "all_reduce", not_said, 7, "dp");
    }
    const Joints found = match(told.job_);
    EXPECT_EQ(found.streams.size(), 4U) << "tp, which a scope that says nothing is of, and dp, twice each";
    EXPECT_EQ(found.joints.size(), 4U);
    for (const Joint& joint : found.joints) {
        EXPECT_EQ(joint.parts, 2U);
    }
}

TEST(Joints, a_send_meets_the_receive_of_the_next_stage) {
    Told told(3);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        told.job_.ranks[rank].metadata.groups = {{"pp", rank, 3, {}}};
        told.does(rank, "recv").does(rank, "send").does(rank, "recv").does(rank, "send");
    }
    const Joints found = match(told.job_);
    ASSERT_EQ(found.joints.size(), 6U);
    for (const Joint& joint : found.joints) {
        const JointPart& send = found.parts[joint.first_part];
        const JointPart& receive = found.parts[joint.first_part + 1];
        EXPECT_EQ(receive.rank, (send.rank + 1) % 3);
        EXPECT_TRUE(joint.directed);
        EXPECT_EQ(told.job_.ranks[send.rank].events.names[told.job_.ranks[send.rank].events.events[send.event].name],
                  "send");
    }
}

TEST(Joints, a_cache_goes_from_the_rank_that_prefills) {
    Told told(2);
    told.job_.ranks[1].events.steps = told.job_.ranks[1].events.prefill_steps = 3;
    told.job_.ranks[0].events.steps = 3;
    told.does(0, "kv_transfer", not_said, 41).does(1, "kv_transfer", not_said, 41);
    told.does(0, "kv_transfer", not_said, 43).does(1, "kv_transfer", not_said, 42);
    const Joints found = match(told.job_);
    ASSERT_EQ(found.joints.size(), 1U);
    EXPECT_TRUE(found.joints[0].directed);
    EXPECT_EQ(found.parts[0].rank, 1U);
}

TEST(Joints, what_nobody_knows_who_waits_in_is_said) {
    Told told(2);
    told.does(0, "broadcast").does(1, "broadcast");
    const Joints found = match(told.job_);
    EXPECT_TRUE(found.joints.empty());
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_NE(found.notes[0].find("broadcast"), std::string::npos);
}

} // namespace
} // namespace plumb::ranks
