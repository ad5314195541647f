// SPDX-License-Identifier: Apache-2.0
#include "ranks/job.hpp"

#include <gtest/gtest.h>

#include <set>

namespace plumb::ranks {
namespace {

Rank rank_of(const std::string& path, const std::string& number, std::uint64_t world = 0,
             std::vector<recording::RankGroup> groups = {}) {
    Rank rank;
    rank.path = path;
    rank.metadata.rank = number;
    rank.metadata.world = world;
    rank.metadata.groups = std::move(groups);
    return rank;
}

std::string all_of(const std::vector<std::string>& notes) {
    std::string text;
    for (const std::string& note : notes) {
        text += note + "\n";
    }
    return text;
}

TEST(Job, ranks_stand_by_number_and_missing_ones_are_named) {
    std::vector<Rank> ranks;
    for (const char* number : {"6", "0", "1"}) {
        ranks.push_back(rank_of("r" + std::string(number), number, 8));
    }
    const Result<Job> job = assemble(std::move(ranks));
    ASSERT_TRUE(job.ok());
    EXPECT_EQ(job->ranks[0].path, "r0");
    EXPECT_EQ(job->ranks[2].number, 6U);
    ASSERT_EQ(job->notes.size(), 1U);
    EXPECT_EQ(job->notes[0].substr(0, 61), "Of 8 ranks no recording was given of rank 2 to 5, 7: who wait");
}

TEST(Job, without_ranks_they_are_numbered_by_their_names_as_a_reader_counts) {
    std::vector<Rank> ranks;
    for (const char* number : {"0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"}) { // as a shell has them
        ranks.push_back(rank_of("r-" + std::string(number) + ".plumb", ""));
    }
    const Result<Job> job = assemble(std::move(ranks));
    ASSERT_TRUE(job.ok());
    EXPECT_TRUE(job->numbered);
    for (std::uint32_t i = 0; i < 12; ++i) {
        EXPECT_EQ(job->ranks[i].number, i);
        EXPECT_EQ(job->ranks[i].path, "r-" + std::to_string(i) + ".plumb");
    }
    EXPECT_NE(all_of(job->notes).find("in the order of their names"), std::string::npos) << all_of(job->notes);
    EXPECT_FALSE(assemble({rank_of("r-10", "0"), rank_of("r-2", "1")})->numbered);
}

Rank open_between(const std::string& path, const std::string& number, std::int64_t begin, std::int64_t end) {
    Rank rank = rank_of(path, number, 3);
    rank.metadata.boot_id = "one";
    rank.metadata.time_namespace = 7;
    rank.clock_pairs = {{0, 0, begin, 0, 0}, {0, 0, end, 0, 0}};
    rank.events.samples = 1;
    rank.events.first_ns = begin + 10;
    rank.events.last_ns = end - 10;
    return rank;
}

TEST(Job, what_was_recorded_at_another_time_of_one_clock_is_of_another_job) {
    std::vector<Rank> ranks;
    ranks.push_back(open_between("stale", "2", 0, 1000));
    ranks.push_back(open_between("a", "0", 5000, 6000));
    ranks.push_back(open_between("b", "1", 5900, 8000)); // only just beside the other
    const Result<Job> job = assemble(std::vector<Rank>(ranks));
    ASSERT_TRUE(job.ok()) << job.error().message;
    ASSERT_EQ(job->ranks.size(), 2U);
    EXPECT_EQ(job->ranks[1].path, "b");
    EXPECT_NE(all_of(job->notes).find("stale has the clock of others"), std::string::npos) << all_of(job->notes);

    ranks[0].metadata.boot_id = "another"; // its clock says nothing of theirs
    EXPECT_EQ(assemble(std::move(ranks))->ranks.size(), 3U);
}

TEST(Job, two_recordings_of_one_rank_are_an_error_that_names_both) {
    std::vector<Rank> ranks;
    ranks.push_back(rank_of("a.plumb", "1"));
    ranks.push_back(rank_of("b.plumb", "0"));
    ranks.push_back(rank_of("c.plumb", "1"));
    const Result<Job> job = assemble(std::move(ranks));
    ASSERT_FALSE(job.ok());
    EXPECT_EQ(job.error().message, "two recordings are of rank 1: a.plumb and c.plumb; give one of them");
}

TEST(Job, one_recording_named_twice_is_an_error_whether_or_not_it_says_its_rank) {
    for (const char* number : {"", "1"}) {
        std::vector<Rank> ranks;
        ranks.push_back(rank_of("a.plumb", number));
        ranks.push_back(rank_of("copy.plumb", number));
        ranks[0].metadata.recording_id[1] = ranks[1].metadata.recording_id[1] = 7;
        const Result<Job> job = assemble(std::move(ranks));
        ASSERT_FALSE(job.ok()) << number;
        EXPECT_EQ(job.error().message, "a.plumb and copy.plumb are the same recording; name it once");
    }
}

TEST(Job, a_rank_of_another_job_is_named_and_left_out) {
    std::vector<Rank> ranks;
    ranks.push_back(rank_of("a", "0", 2));
    ranks.push_back(rank_of("b", "1", 2));
    ranks.push_back(rank_of("c", "1", 16));
    ranks.push_back(rank_of("d", "2", 2));
    ranks.push_back(rank_of("e", "none", 2));
    const Result<Job> job = assemble(std::move(ranks));
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(job->ranks.size(), 2U);
    for (const char* path : {"c is rank 1 of 16", "d is rank 2 of 2", "e does not say which rank it is"}) {
        EXPECT_NE(all_of(job->notes).find(path), std::string::npos) << path << "\n" << all_of(job->notes);
    }
}

TEST(Job, where_nobody_says_a_rank_the_order_given_counts) {
    // Of one name; others stand by their names.
    std::vector<Rank> ranks;
    for (const char* path : {"b", "a", "a"}) {
        ranks.push_back(rank_of(path, ""));
        ranks.back().metadata.pid = static_cast<std::uint32_t>(ranks.size());
    }
    const Result<Job> job = assemble(std::move(ranks));
    ASSERT_TRUE(job.ok());
    EXPECT_EQ(job->ranks[0].metadata.pid, 2U);
    EXPECT_EQ(job->ranks[1].metadata.pid, 3U);
    EXPECT_EQ(job->ranks[1].number, 1U);
    EXPECT_EQ(job->ranks[2].path, "b");
    EXPECT_EQ(job->notes.size(), 1U);
}

TEST(Job, one_rank_alone_is_an_error) {
    std::vector<Rank> ranks;
    ranks.push_back(rank_of("a", "0", 8));
    EXPECT_FALSE(assemble(std::move(ranks)).ok());
}

/// Who is in one instance with whom, as sets of rank numbers.
std::set<std::set<std::uint32_t>> sets_of(const Job& job, const Instances& instances) {
    std::map<int, std::set<std::uint32_t>> by_instance;
    for (std::size_t r = 0; r < job.ranks.size(); ++r) {
        if (instances.of[r] != Instances::none) {
            by_instance[instances.of[r]].insert(job.ranks[r].number);
        }
    }
    std::set<std::set<std::uint32_t>> sets;
    for (const auto& [instance, members] : by_instance) {
        sets.insert(members);
    }
    return sets;
}

TEST(Job, instances_of_groups_are_told_from_the_other_groups) {
    // 16 ranks: tp of 4 inside dp of 2 inside pp of 2, and ep of 8 over tp and dp.
    std::vector<Rank> ranks;
    for (std::uint32_t r = 0; r < 16; ++r) {
        const std::uint32_t tp = r % 4, dp = r / 4 % 2, pp = r / 8;
        ranks.push_back(rank_of("r", std::to_string(r), 16,
                                {{"tp", tp, 4, {}}, {"dp", dp, 2, {}}, {"pp", pp, 2, {}}, {"ep", r % 8, 8, {}}}));
    }
    const Result<Job> job = assemble(std::move(ranks));
    ASSERT_TRUE(job.ok());
    std::vector<std::string> notes;
    const auto found = instances_of(*job, notes);
    EXPECT_TRUE(notes.empty()) << all_of(notes);
    EXPECT_EQ(sets_of(*job, found.at("tp")),
              (std::set<std::set<std::uint32_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
    EXPECT_EQ(sets_of(*job, found.at("ep")),
              (std::set<std::set<std::uint32_t>>{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
    EXPECT_EQ(sets_of(*job, found.at("pp")).size(), 8U);
    EXPECT_EQ(sets_of(*job, found.at("")).size(), 1U);
}

TEST(Job, members_that_are_said_suffice) {
    std::vector<Rank> ranks;
    for (std::uint32_t r = 0; r < 4; ++r) {
        ranks.push_back(rank_of(
            "r", std::to_string(r), 4,
            {{"tp", r / 2, 2, r % 2 == 0 ? std::vector<std::uint32_t>{0, 2} : std::vector<std::uint32_t>{1, 3}}}));
    }
    const Result<Job> job = assemble(std::move(ranks));
    std::vector<std::string> notes;
    EXPECT_EQ(sets_of(*job, instances_of(*job, notes).at("tp")), (std::set<std::set<std::uint32_t>>{{0, 2}, {1, 3}}));
}

TEST(Job, groups_that_do_not_add_up_are_left_out_and_said) {
    std::vector<Rank> ranks;
    for (std::uint32_t r = 0; r < 4; ++r) {
        ranks.push_back(rank_of("r", std::to_string(r), 4, {{"tp", r % 3, 3, {}}}));
    }
    const Result<Job> job = assemble(std::move(ranks));
    std::vector<std::string> notes;
    const auto found = instances_of(*job, notes);
    EXPECT_FALSE(found.contains("tp"));
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_NE(notes[0].find("\"tp\""), std::string::npos);
}

} // namespace
} // namespace plumb::ranks
