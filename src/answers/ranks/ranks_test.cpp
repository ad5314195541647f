// SPDX-License-Identifier: Apache-2.0
// Ranks of planted runs: the late one is named, quiet ones name nobody; recordings that are missing, cut or foreign.
#include "answers/ranks/ranks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "answers/ranks/summary.hpp"
#include "answers/rendered_testing.hpp"
#include "planted/tape.hpp"
#include "ranks/planted_ranks_testing.hpp"
#include "recording/files_testing.hpp"
#include "support/sanitizers.hpp"

namespace plumb {
namespace {

using answers::contains;
using answers::render_text;
using planted::Tape;
using planted::us;
using ranks::testing::Planted;
using ranks::testing::RankPlan;
using recording::testing::TemporaryFolder;

RanksReport report_of(const RankPlan& plan) {
    const Planted planted = ranks::testing::plant(plan);
    ranks::Joints joints = ranks::match(planted.job);
    const ranks::RankAlignment alignment = ranks::align(planted.job, joints);
    return ranks::summary_of(planted.job, joints, alignment);
}

bool names(const RanksReport& report, std::uint32_t rank) {
    return std::any_of(report.late.begin(), report.late.end(), [rank](const LateRank& l) { return l.rank == rank; });
}

TEST(Ranks, the_rank_that_is_50_us_late_is_named_and_no_other) {
    int named = 0, others = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        RankPlan plan;
        plan.late = static_cast<std::uint32_t>(seed % plan.ranks);
        plan.seed = seed;
        const RanksReport report = report_of(plan);
        named += names(report, *plan.late) ? 1 : 0;
        others += static_cast<int>(report.late.size()) - (names(report, *plan.late) ? 1 : 0);
    }
    EXPECT_GE(named, 95);
    EXPECT_EQ(others, 0);
}

/// Chance alone makes each the last in half of them: who is last tells nothing, by how much does.
TEST(Ranks, of_two_the_one_that_is_late_now_and_then_is_named) {
    int named = 0, others = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        RankPlan plan;
        plan.ranks = 2;
        plan.late = static_cast<std::uint32_t>(seed % 2);
        plan.late_ns = 200e3;
        plan.late_share = 0.1;
        plan.seed = 5000 + seed;
        const RanksReport report = report_of(plan);
        named += names(report, *plan.late) ? 1 : 0;
        others += names(report, 1 - *plan.late) ? 1 : 0;
    }
    EXPECT_GE(named, 95);
    EXPECT_EQ(others, 0);
}

TEST(Ranks, of_64_the_late_one_is_named_too) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        RankPlan plan;
        plan.ranks = 64;
        plan.late = static_cast<std::uint32_t>(seed * 11 % 64);
        plan.seed = seed;
        const RanksReport report = report_of(plan);
        ASSERT_EQ(report.late.size(), 1U) << seed;
        EXPECT_EQ(report.late[0].rank, *plan.late);
        EXPECT_GT(report.late[0].alone_ns, 20e3);
    }
}

/// The first hides the second, which is last little more often than one of eight would be by chance.
TEST(Ranks, of_two_late_ones_both_are_named) {
    int both = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        RankPlan plan;
        plan.late = 2;
        plan.late_else = 5;
        plan.late_share = 0.8; // of the second 0.16
        plan.seed = seed;
        const RanksReport report = report_of(plan);
        ASSERT_GE(report.late.size(), 1U) << seed;
        EXPECT_EQ(report.late[0].rank, 2U);
        both += report.late.size() == 2 && report.late[1].rank == 5 ? 1 : 0;
    }
    EXPECT_GE(both, 18);
}

TEST(Ranks, F14_what_the_error_does_not_decide_is_inconclusive) {
    const auto verdict_of = [](const RankPlan& plan) {
        const RanksReport report = report_of(plan);
        EXPECT_EQ(report.groups.size(), 1U);
        const CollectiveRow& row = report.groups.at(0);
        EXPECT_LT(row.least_share, row.most_share);
        return row.verdict;
    };
    RankPlan plan; // ranks differ by as much as their clocks are uncertain
    EXPECT_EQ(verdict_of(plan), WaitVerdict::inconclusive);
    plan.jitter_ns = 60e3;
    EXPECT_EQ(verdict_of(plan), WaitVerdict::arrival);
    plan.jitter_ns = 300;
    plan.least_move_ns = 20e3;
    plan.move_jitter_ns = 40e3;
    EXPECT_NE(verdict_of(plan), WaitVerdict::arrival);
}

TEST(Ranks, F14_quiet_runs_name_nobody) {
    for (std::uint64_t seed = 1; seed <= draws(1000); ++seed) {
        RankPlan plan;
        plan.seed = 1000 + seed;
        plan.jitter_ns = seed % 3 == 0 ? 60e3 : 3e3; // where chance alone costs as much as a late rank does
        EXPECT_TRUE(report_of(plan).late.empty()) << plan.seed;
    }
}

// --- Recordings ---

/// Two steps of four layers a hundred times, with a clock that is ahead by so much and gains so much.
struct Clock {
    std::int64_t ahead = 0;
    double gains = 0;
};

Tape tape_of(std::uint32_t rank, std::uint32_t world, const Clock& clock = {}, std::int64_t late = 0) {
    Tape tape;
    tape.metadata_.rank = std::to_string(rank);
    tape.metadata_.world = world;
    tape.metadata_.host = "host" + std::to_string(rank / 2);
    tape.metadata_.groups = {{"tp", rank, world, {}}};
    const auto shown = [&clock](std::int64_t ns) {
        return ns + clock.ahead + static_cast<std::int64_t>(clock.gains * static_cast<double>(ns));
    };
    for (recording::ClockPair& pair : tape.clock_pairs_) {
        pair.monotonic_ns = shown(pair.monotonic_ns);
    }
    tape.names_.push_back({300, Category::other, "tp"});
    tape.track(1);
    std::mt19937_64 random(rank);
    std::int64_t t = 0;
    std::uint64_t number = 0;
    for (std::uint64_t step = 0; step < 100; ++step) {
        const std::int64_t step_begin = t;
        tape.step_begin(1, step, Phase::decode, t);
        for (std::uint16_t layer = 0; layer < 4; ++layer) {
            const std::int64_t layer_begin = t;
            tape.layer_begin(1, layer, t);
            const std::int64_t slow = layer == 2 && step % 2 == 0 ? late : 0;
            // Everybody ends 200 us after the layer began; who has more to do waits less.
            const std::int64_t work = 100 * us + static_cast<std::int64_t>(random() % 20'000) / 2 * 2 + slow;
            tape.scope(1, Brick::attention, t, t + work);
            tape.work(1, Brick::moe_experts, WorkQuantity::elements, rank == 1 ? 300 : 100);
            tape.scope(1, Brick::moe_experts, t + work, t + work + 2 * us, flag_work);
            tape.collective(1, Brick::all_reduce, number++, Name(300));
            tape.scope(1, Brick::all_reduce, t + work + 2 * us, t + 200 * us);
            t += 200 * us;
            tape.layer_end(1, layer, layer_begin, t);
        }
        tape.step_end(1, Phase::decode, step_begin, t);
    }
    return tape;
}

std::vector<std::string> save(const TemporaryFolder& folder, std::uint32_t world, std::int64_t late = 0) {
    std::vector<std::string> files;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        const Clock clock{static_cast<std::int64_t>(rank) * 1'000'000'000, rank * 10e-6};
        files.push_back(folder.file("r" + std::to_string(rank) + ".plumb"));
        EXPECT_TRUE(tape_of(rank, world, clock, rank == 3 ? late : 0).save(files.back()).ok());
    }
    return files;
}

TEST(Ranks, of_recordings_are_put_on_one_clock_and_the_late_one_is_named) {
    const TemporaryFolder folder;
    save(folder, 4, 80 * us);
    const Result<RanksReport> report = read_ranks({folder.path()}, {});
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->ranks.size(), 4U);
    EXPECT_EQ(report->collectives, 400U);
    EXPECT_EQ(report->hosts, 2U);
    EXPECT_EQ(report->steps, 100U);
    for (std::uint32_t rank = 1; rank < 4; ++rank) {
        const RankRow& row = report->ranks[rank];
        EXPECT_EQ(row.clock, ranks::ClockSource::bounds);
        EXPECT_NEAR(*row.offset_ns.value, -1e9 * rank, 1e6) << "less its drift in the middle";
        EXPECT_EQ(row.layers.size(), 4U);
    }
    ASSERT_EQ(report->groups.size(), 1U);
    EXPECT_EQ(report->groups[0].brick, "all_reduce");
    EXPECT_EQ(report->groups[0].group, "tp");
    EXPECT_EQ(report->layers.size(), 4U);
    EXPECT_EQ(report->experts.size(), 4U);
    EXPECT_EQ(report->experts[0].rank, 1U);
    EXPECT_DOUBLE_EQ(report->experts[0].imbalance, 2);
    EXPECT_TRUE(report->contradictions.empty());
    EXPECT_TRUE(report->notes.empty()) << report->notes[0];
    EXPECT_TRUE(contains(render_text(*report), "4 of 4 ranks on 2 hosts"));
}

TEST(Ranks, that_share_a_clock_are_exact) {
    const TemporaryFolder folder;
    std::vector<std::string> files;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        Tape tape = tape_of(rank, 4, {}, rank == 3 ? 80 * us : 0);
        tape.metadata_.boot_id = "one";
        tape.metadata_.time_namespace = 7;
        tape.metadata_.clocks = {{0, "monotonic"}};
        files.push_back(folder.file("r" + std::to_string(rank) + ".plumb"));
        ASSERT_TRUE(tape.save(files.back()).ok());
    }
    const Result<RanksReport> report = read_ranks(files, {});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(contains(render_text(*report), "one clock, exact"));
    ASSERT_EQ(report->late.size(), 1U);
    EXPECT_EQ(report->late[0].rank, 3U);
    EXPECT_EQ(report->late[0].host_bound, false);
    const auto layer_2 = std::find_if(report->layers.begin(), report->layers.end(),
                                      [](const CollectiveRow& row) { return row.layer == 2U; });
    EXPECT_EQ(layer_2->last_rank, 3U);
    EXPECT_NEAR(layer_2->wait.least_ns, layer_2->wait.most_ns, 10) << "nothing is uncertain but the nanosecond";
}

/// Twelve that do not say their rank; one of them is late.
TEST(Ranks, that_were_only_numbered_stand_with_the_names_of_their_recordings) {
    const TemporaryFolder folder;
    std::vector<std::string> files;
    for (std::uint32_t i = 0; i < 12; ++i) {
        Tape tape = tape_of(i, 12, {}, i == 8 ? 80 * us : 0);
        tape.metadata_.rank.clear();
        tape.metadata_.world = 0;
        tape.metadata_.groups.clear();
        tape.metadata_.boot_id = "one";
        tape.metadata_.time_namespace = 7;
        tape.metadata_.clocks = {{0, "monotonic"}};
        tape.descriptions_.push_back({"trace", "rank" + std::to_string(i) + ".json"});
        files.push_back(folder.file("r-" + std::to_string(i) + ".plumb"));
        ASSERT_TRUE(tape.save(files.back()).ok());
    }
    std::sort(files.begin(), files.end()); // as a shell does
    for (const std::vector<std::string>& given : {files, {folder.path()}}) {
        const Result<RanksReport> report = read_ranks(given, {});
        ASSERT_TRUE(report.ok()) << report.error().message;
        ASSERT_EQ(report->late.size(), 1U);
        EXPECT_EQ(report->late[0].rank, 8U);
        EXPECT_EQ(report->ranks[8].file, folder.file("r-8.plumb"));
        EXPECT_EQ(report->ranks[8].trace, "rank8.json");
        const std::string text = render_text(*report);
        EXPECT_TRUE(contains(text, "LATE  rank 8 (r-8.plumb of rank8.json) is the last")) << text;
        EXPECT_TRUE(contains(text, "10     r-10.plumb of rank10.json ")) << text;
        answers::expect_valid<RanksReport>(PLUMB_TEST_SOURCE_DIR, {*report});
    }
    EXPECT_FALSE(contains(render_text(report_of({})), "recording")) << "who says its rank needs no name";
}

TEST(Ranks, whose_clocks_contradict_did_meet_in_collectives) {
    Planted planted = ranks::testing::plant({});
    planted.job.ranks.resize(2);
    for (ranks::RankEvent& event : planted.job.ranks[1].events.events) {
        const std::int64_t set = event.step >= 5 ? 1'000'000 : 0;
        event.begin += set;
        event.end += set;
    }
    const auto text_of = [&planted] {
        ranks::Joints joints = ranks::match(planted.job);
        const ranks::RankAlignment alignment = ranks::align(planted.job, joints);
        return render_text(ranks::summary_of(planted.job, joints, alignment));
    };
    const std::string text = text_of();
    EXPECT_TRUE(contains(text, "CLOCKS CONTRADICT")) << text;
    EXPECT_FALSE(contains(text, "No collective was found")) << text;
    planted.job.ranks[1].events.events.clear();
    EXPECT_TRUE(contains(text_of(), "No collective was found on two ranks"));
}

/// Recordings of one name in several folders are told apart by these.
TEST(Ranks, of_one_name_in_several_folders_stand_with_their_paths) {
    RanksReport report;
    report.numbered = true;
    report.ranks.resize(2);
    report.ranks[0].file = "host0/r.plumb";
    report.ranks[1].file = "host1/r.plumb";
    report.ranks[1].rank = 1;
    EXPECT_TRUE(contains(render_text(report), "host1/r.plumb"));
    report.ranks[1].file = "host1/s.plumb";
    EXPECT_FALSE(contains(render_text(report), "host1"));
}

TEST(Ranks, json_is_valid_whatever_is_known) {
    const TemporaryFolder folder;
    std::vector<std::string> files = save(folder, 3, 80 * us);
    Planted planted = ranks::testing::plant({});
    for (ranks::RankEvent& event : planted.job.ranks[2].events.events) {
        const std::int64_t set = event.step >= 5 ? 1'000'000 : 0; // its clock, in the middle of the run
        event.begin += set;
        event.end += set;
    }
    planted.job.ranks[3].events.events.clear();
    ranks::Joints joints = ranks::match(planted.job);
    const ranks::RankAlignment alignment = ranks::align(planted.job, joints);
    const RanksReport odd = ranks::summary_of(planted.job, joints, alignment);
    EXPECT_FALSE(odd.contradictions.empty());
    EXPECT_EQ(outcome_of(odd), Outcome::unknown);
    EXPECT_TRUE(contains(render_text(odd), "CLOCKS CONTRADICT  rank 2: "));
    RankPlan late;
    late.late = 5;
    answers::expect_valid<RanksReport>(PLUMB_TEST_SOURCE_DIR, {{}, *read_ranks(files, {}), odd, report_of(late)});
}

TEST(Ranks, missing_cut_and_foreign_ones_are_named_and_the_rest_answered) {
    const TemporaryFolder folder;
    std::vector<std::string> files = save(folder, 5);
    std::filesystem::remove(files[1]);
    files.erase(files.begin() + 1);
    std::filesystem::resize_file(files[1], std::filesystem::file_size(files[1]) * 2 / 3);
    const std::string foreign = folder.file("notes.txt");
    std::ofstream(foreign) << "these are no scopes";
    files.push_back(foreign);
    const Result<RanksReport> report = read_ranks(files, {});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->ranks.size(), 4U);
    EXPECT_GT(report->collectives, 0U);
    const std::string text = render_text(*report);
    EXPECT_TRUE(contains(text, "no recording was given of rank 1")) << text;
    EXPECT_TRUE(contains(text, "rank 2: ")) << text;
    EXPECT_TRUE(contains(text, "notes.txt is no plumb recording")) << text;
}

TEST(Ranks, two_recordings_of_one_are_an_error_that_names_both) {
    const TemporaryFolder folder;
    std::vector<std::string> files = save(folder, 2);
    files.push_back(folder.file("copy.plumb"));
    std::filesystem::copy_file(files[0], files[2]);
    const Result<RanksReport> report = read_ranks(files, {});
    ASSERT_FALSE(report.ok());
    EXPECT_TRUE(contains(report.error().message, files[0] + " and " + files[2])) << report.error().message;
}

TEST(Ranks, an_offset_that_is_none_is_refused_with_its_form) {
    for (const char* bad : {"", "1", "1=5", "x=1+-1", "1=1+--1", "1=+-", "-1=0+-1", "1=0+-1x"}) {
        const Result<RanksReport> report = read_ranks({"/nowhere"}, {{bad}});
        ASSERT_FALSE(report.ok());
        EXPECT_TRUE(contains(report.error().message, "RANK=US+-US")) << report.error().message;
    }
    EXPECT_EQ(read_ranks({"/nowhere"}, {{"all=0+-10"}}).error().code, ErrorCode::not_found);
}

TEST(Ranks, a_folder_without_recordings_is_one_sentence) {
    const TemporaryFolder folder;
    const Result<RanksReport> report = read_ranks({folder.path()}, {});
    ASSERT_FALSE(report.ok());
    EXPECT_TRUE(contains(report.error().message, "holds no recording")) << report.error().message;
}

TEST(Ranks, mutants_of_a_recording_give_an_answer_or_one_sentence) {
    const TemporaryFolder folder;
    std::vector<std::string> files = save(folder, 2);
    const recording::Bytes whole = recording::testing::read_bytes(files[1]);
    std::mt19937_64 random(11);
    int answered = 0, refused = 0;
    const char* wanted = std::getenv("PLUMB_RANKS_MUTANTS");
    for (int i = 0; i < (wanted != nullptr ? std::atoi(wanted) : 2000); ++i) {
        recording::Bytes mutant = whole;
        const auto at = [&] {
            return static_cast<std::size_t>(random() % mutant.size());
        };
        for (std::uint64_t n = 1 + random() % 4; n != 0; --n) {
            mutant[at()] = static_cast<std::byte>(random());
        }
        if (i % 4 == 0) {
            mutant.resize(at());
        }
        recording::testing::write_bytes(files[1], mutant);
        const Result<RanksReport> report = read_ranks(files, {});
        if (report.ok()) {
            ++answered;
            EXPECT_FALSE(render_text(*report).empty());
        } else {
            ++refused;
            EXPECT_FALSE(report.error().message.empty());
            EXPECT_EQ(report.error().message.find('\n'), std::string::npos);
        }
    }
    EXPECT_GT(answered, 0);
    EXPECT_GT(refused, 0);
}

} // namespace
} // namespace plumb
