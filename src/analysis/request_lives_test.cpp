// SPDX-License-Identifier: Apache-2.0
// Lives of requests from marks in any order, and from a recording that claims too many.
#include "analysis/request_lives.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace plumb::analysis {
namespace {

using resolve::RequestEvent;

RequestEvent mark(std::uint64_t id, RequestMark which, std::int64_t time) {
    RequestEvent event;
    event.id = id;
    event.mark = which;
    event.time_ns = time;
    return event;
}
RequestEvent end(std::uint64_t id, std::int64_t time, std::uint64_t tokens) {
    RequestEvent event = mark(id, RequestMark::end, time);
    event.has_tokens = true;
    event.tokens = tokens;
    return event;
}
RequestEvent in_step(std::uint64_t id, std::uint64_t step, std::int64_t begin) {
    RequestEvent event = mark(id, RequestMark::in_step, begin);
    event.step = step;
    return event;
}

struct Told {
    std::vector<RequestLife> lives;
    RequestCounts counts;
};

constexpr std::uint64_t endless = 1000; // from that number on, steps have no known end

/// Step n ends at 100 n + 90.
Told told_of(const std::vector<RequestEvent>& events, RequestLives::Keep keep = {16, 16}) {
    Told told;
    RequestLives lives(
        keep,
        [](std::uint64_t step) {
            return step < endless ? std::optional(static_cast<std::int64_t>(100 * step + 90)) : std::nullopt;
        },
        [&told](const RequestLife& life) { told.lives.push_back(life); });
    for (const RequestEvent& event : events) {
        lives.take(event);
    }
    lives.finish();
    told.counts = lives.counts();
    return told;
}

TEST(RequestLives, a_phase_lasts_to_the_next_mark_and_the_first_token_ends_the_prefill) {
    const Told told =
        told_of({mark(7, RequestMark::queue, 10), mark(7, RequestMark::prefill, 30), mark(7, RequestMark::prefill, 35),
                 mark(7, RequestMark::kv_transfer, 60), mark(7, RequestMark::decode, 100), end(7, 200, 9)});
    ASSERT_EQ(told.lives.size(), 1U);
    const RequestLife& life = told.lives[0];
    EXPECT_TRUE(life.arrived && life.ended);
    EXPECT_EQ(life.in(RequestPhase::queue), 20);
    EXPECT_EQ(life.in(RequestPhase::prefill), 30) << "said twice is one phase";
    EXPECT_EQ(life.in(RequestPhase::kv_transfer), 40);
    EXPECT_EQ(life.in(RequestPhase::decode), 100);
    EXPECT_EQ(life.first_token_ns, 60);
    EXPECT_EQ(life.tokens, 9U);
    EXPECT_EQ(life.stretches.size(), 4U);
    EXPECT_EQ(life.longest_wait.end_ns, 30);
}

TEST(RequestLives, one_that_is_preempted_in_its_prefill_has_no_token_yet_and_waits_again) {
    const Told told = told_of({mark(7, RequestMark::queue, 10), mark(7, RequestMark::prefill, 30),
                               mark(7, RequestMark::queue, 40), mark(7, RequestMark::prefill, 100),
                               mark(7, RequestMark::decode, 120), mark(7, RequestMark::queue, 130),
                               mark(7, RequestMark::prefill, 135), mark(7, RequestMark::decode, 150), end(7, 160, 4)});
    ASSERT_EQ(told.lives.size(), 1U);
    const RequestLife& life = told.lives[0];
    EXPECT_EQ(life.first_token_ns, 120);
    EXPECT_EQ(life.in(RequestPhase::queue), 20 + 60 + 5);
    EXPECT_EQ(life.longest_wait.begin_ns, 40);
    EXPECT_EQ(life.longest_wait.end_ns, 100);
}

TEST(RequestLives, one_that_was_given_up_before_its_first_token_has_none) {
    const Told told = told_of({mark(7, RequestMark::queue, 10), mark(7, RequestMark::prefill, 30), end(7, 50, 0),
                               mark(8, RequestMark::queue, 60), mark(8, RequestMark::prefill, 70), end(8, 90, 1)});
    ASSERT_EQ(told.lives.size(), 2U);
    EXPECT_EQ(told.lives[0].first_token_ns, std::nullopt);
    EXPECT_EQ(told.lives[1].first_token_ns, 90);
}

TEST(RequestLives, an_end_behind_the_prefill_is_when_the_first_token_was_there_only_if_it_gave_that_one) {
    const Told told = told_of({mark(7, RequestMark::prefill, 10), end(7, 50, 2), mark(8, RequestMark::prefill, 60),
                               mark(8, RequestMark::end, 90)});
    ASSERT_EQ(told.lives.size(), 2U);
    EXPECT_EQ(told.lives[0].first_token_ns, std::nullopt) << "it came before the second";
    EXPECT_EQ(told.lives[1].first_token_ns, std::nullopt) << "nobody says how many it gave";
}

TEST(RequestLives, it_is_stalled_while_no_step_has_it_in_its_batch) {
    // Steps 1 and 3 have it, step 2 has not; it is marked inside step 1.
    const Told told =
        told_of({mark(7, RequestMark::queue, 50), in_step(7, 1, 100), mark(7, RequestMark::prefill, 110),
                 mark(7, RequestMark::decode, 190), in_step(7, 3, 300), in_step(7, 4, 400), end(7, 495, 3)});
    ASSERT_EQ(told.lives.size(), 1U);
    const RequestLife& life = told.lives[0];
    EXPECT_EQ(life.step_count, 3U);
    EXPECT_EQ(life.steps, (std::vector<std::uint64_t>{1, 3, 4}));
    EXPECT_EQ(life.stalled_ns, (300 - 190) + (400 - 390) + (495 - 490));
    EXPECT_EQ(life.longest_wait.phase, RequestPhase::decode);
    EXPECT_EQ(life.longest_wait.begin_ns, 190);
    EXPECT_EQ(life.longest_wait.end_ns, 300);
}

TEST(RequestLives, what_is_left_of_a_phase_after_its_last_step_is_stalled_too) {
    const Told told = told_of({mark(7, RequestMark::prefill, 100), in_step(7, 1, 100),
                               mark(7, RequestMark::decode, 260), in_step(7, 3, 300), end(7, 485, 2)});
    ASSERT_EQ(told.lives.size(), 1U);
    EXPECT_EQ(told.lives[0].stalled_ns, (260 - 190) + (300 - 260) + (485 - 390));
    EXPECT_EQ(told.lives[0].longest_wait.phase, RequestPhase::decode);
    EXPECT_EQ(told.lives[0].longest_wait.begin_ns, 390);
    EXPECT_EQ(told.lives[0].longest_wait.end_ns, 485);
}

TEST(RequestLives, how_long_it_was_stalled_behind_a_step_without_an_end_is_not_known) {
    const Told told =
        told_of({mark(7, RequestMark::prefill, 100), in_step(7, 1, 100), mark(7, RequestMark::decode, 190),
                 in_step(7, endless, 210), in_step(7, 4, 400), end(7, 495, 3), mark(8, RequestMark::decode, 100),
                 in_step(8, endless, 150), in_step(9, endless, 500), mark(9, RequestMark::prefill, 510),
                 in_step(9, 6, 600), end(9, 690, 2)});
    ASSERT_EQ(told.lives.size(), 3U);
    EXPECT_TRUE(told.lives[0].stalls_unknown);
    EXPECT_EQ(told.lives[0].longest_wait.begin_ns, 190) << "no wait is made up from 210 to 400";
    EXPECT_EQ(told.lives[0].longest_wait.end_ns, 210);
    EXPECT_TRUE(told.lives[1].stalls_unknown) << "it may have begun within that step";
    EXPECT_FALSE(told.lives[2].stalls_unknown) << "nothing of it is known behind that step";
    EXPECT_EQ(told.lives[2].stalled_ns, 50);
    EXPECT_EQ(told.counts.steps_without_end, 2U);
}

TEST(RequestLives, one_whose_steps_nobody_names_waits_in_the_queue_alone) {
    const Told told = told_of({mark(7, RequestMark::queue, 10), mark(7, RequestMark::prefill, 30), end(7, 900, 1)});
    ASSERT_EQ(told.lives.size(), 1U);
    EXPECT_EQ(told.lives[0].longest_wait.phase, RequestPhase::queue);
    EXPECT_EQ(told.lives[0].longest_wait.end_ns, 30);
}

TEST(RequestLives, an_id_may_come_again_and_ends_that_end_nothing_are_counted) {
    const Told told = told_of({end(9, 5, 1), mark(7, RequestMark::queue, 10), end(7, 20, 0), end(7, 21, 0),
                               in_step(7, 0, 25), mark(7, RequestMark::queue, 130), mark(7, RequestMark::prefill, 140),
                               mark(8, RequestMark::decode, 150)});
    ASSERT_EQ(told.lives.size(), 3U);
    EXPECT_TRUE(told.lives[0].ended);
    EXPECT_EQ(told.lives[1].id, 7U);
    EXPECT_EQ(told.lives[1].begin_ns, 130);
    EXPECT_FALSE(told.lives[1].ended);
    EXPECT_FALSE(told.lives[1].left(RequestPhase::prefill)) << "cut in it, so how long it was is not known";
    EXPECT_FALSE(told.lives[2].arrived) << "its first mark is no arrival";
    EXPECT_EQ(told.counts.begun, 3U);
    EXPECT_EQ(told.counts.ended, 1U);
    EXPECT_EQ(told.counts.ends_without_begin, 2U);
    EXPECT_EQ(told.counts.steps_without_begin, 1U);
}

TEST(RequestLives, one_that_begins_within_a_step_is_in_its_batch_and_waits_for_it_no_longer_than_for_the_next) {
    // Step 1 lasts from 100 to 190, and asks for work at its begin.
    const Told told =
        told_of({in_step(7, 1, 100), mark(7, RequestMark::queue, 110), mark(7, RequestMark::prefill, 115),
                 in_step(7, 2, 200), end(7, 290, 3), in_step(8, 1, 100), mark(8, RequestMark::queue, 195)});
    ASSERT_EQ(told.lives.size(), 2U);
    EXPECT_EQ(told.lives[0].steps, (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(told.lives[0].stalled_ns, 10) << "from 190 to 200";
    EXPECT_TRUE(told.lives[1].steps.empty()) << "it came when the step had ended";
    EXPECT_EQ(told.counts.steps_without_begin, 1U);
}

TEST(RequestLives, in_whatever_order_marks_are_read_the_lives_are_the_same) {
    std::vector<RequestEvent> events;
    for (std::uint64_t id = 0; id < 50; ++id) {
        const auto at = static_cast<std::int64_t>(id * 7);
        events.insert(events.end(), {mark(id, RequestMark::queue, at), mark(id, RequestMark::prefill, at + 40),
                                     mark(id, RequestMark::decode, at + 90), end(id, at + 300, id)});
    }
    const auto first_tokens = [](const Told& told) {
        std::vector<std::int64_t> all;
        for (const RequestLife& life : told.lives) {
            all.push_back(life.first_token_ns.value_or(-1) - life.begin_ns);
        }
        return all;
    };
    const std::vector<std::int64_t> expected(50, 90);
    std::mt19937 random(1);
    for (int i = 0; i < 20; ++i) {
        std::shuffle(events.begin(), events.end(), random);
        const Told told = told_of(events);
        ASSERT_EQ(first_tokens(told), expected);
        EXPECT_EQ(told.counts.out_of_order, 0U);
    }
}

TEST(RequestLives, a_million_at_once_are_followed_as_far_as_memory_is_meant_to_go_and_the_others_counted) {
    constexpr std::uint64_t many = 1'000'000;
    std::uint64_t lives = 0, most_kept = 0;
    RequestLives all({2, 2}, {}, [&](const RequestLife& life) {
        ++lives;
        most_kept = std::max<std::uint64_t>(most_kept, std::max(life.stretches.size(), life.steps.size()));
    });
    for (std::uint64_t i = 0; i < many; ++i) { // none ends
        all.take(mark(i << 32, RequestMark::queue, static_cast<std::int64_t>(i)));
    }
    for (std::int64_t i = 0; i < 100; ++i) { // one that never gives up
        all.take(mark(0, i % 2 == 0 ? RequestMark::prefill : RequestMark::queue, static_cast<std::int64_t>(many) + i));
        all.take(in_step(0, 1, static_cast<std::int64_t>(many) + i));
    }
    all.finish();
    EXPECT_EQ(lives, RequestLives::most_open);
    EXPECT_EQ(all.counts().not_followed, many - RequestLives::most_open);
    EXPECT_EQ(most_kept, 2U);
}

TEST(RequestLives, one_that_was_not_followed_is_no_new_request_when_there_is_room_again) {
    constexpr std::uint64_t beyond = 100, many = RequestLives::most_open + beyond;
    std::uint64_t lives = 0;
    RequestLives all({}, {}, [&](const RequestLife&) { ++lives; });
    std::int64_t at = 0;
    for (std::uint64_t i = 0; i < many; ++i) {
        all.take(mark(i, RequestMark::queue, at++));
    }
    for (std::uint64_t i = 0; i < many - beyond; ++i) {
        all.take(end(i, at++, 1));
    }
    for (std::uint64_t i = many - beyond; i < many; ++i) {
        all.take(mark(i, RequestMark::prefill, at++));
        all.take(in_step(i, 1, at++));
        all.take(mark(i, RequestMark::decode, at++));
        all.take(end(i, at++, 1));
    }
    all.take(mark(many - 1, RequestMark::queue, at++)); // its id comes again
    all.finish();
    EXPECT_EQ(lives, RequestLives::most_open + 1);
    EXPECT_EQ(all.counts().begun, RequestLives::most_open + 1);
    EXPECT_EQ(all.counts().not_followed, beyond);
    EXPECT_EQ(all.counts().ends_without_begin, 0U);
    EXPECT_EQ(all.counts().steps_without_begin, 0U);
}

TEST(RequestLives, where_even_the_forgotten_are_too_many_nothing_that_begins_later_is_followed) {
    constexpr std::uint64_t many = RequestLives::most_open + RequestLives::most_forgotten;
    std::uint64_t lives = 0;
    RequestLives all({}, {}, [&](const RequestLife&) { ++lives; });
    std::int64_t at = 0;
    for (std::uint64_t i = 0; i < many + 10; ++i) {
        all.take(mark(i, RequestMark::queue, at++));
    }
    for (std::uint64_t i = 0; i < many + 10; ++i) {
        all.take(end(i, at++, 1));
    }
    all.take(mark(many, RequestMark::decode, at++));
    all.finish();
    EXPECT_EQ(lives, RequestLives::most_open);
    EXPECT_EQ(all.counts().not_followed, RequestLives::most_forgotten);
    EXPECT_TRUE(all.counts().rest_not_followed);
}

TEST(RequestLives, a_million_one_after_the_other_are_all_there) {
    constexpr std::uint64_t many = 1'000'000;
    std::uint64_t lives = 0;
    RequestLives all({}, {}, [&](const RequestLife& life) { lives += life.ended ? 1 : 0; });
    for (std::uint64_t i = 0; i < many; ++i) {
        const auto at = static_cast<std::int64_t>(i * 10);
        all.take(mark(i, RequestMark::queue, at));
        all.take(end(i, at + 500, 1));
    }
    all.finish();
    EXPECT_EQ(lives, many);
    EXPECT_EQ(all.counts().out_of_order, 0U);
}

TEST(RequestLives, marks_that_lie_too_far_behind_are_counted) {
    RequestLives all({}, {}, [](const RequestLife&) {});
    for (std::size_t i = 0; i < RequestLives::most_marks + 10; ++i) {
        all.take(mark(1, i % 2 == 0 ? RequestMark::queue : RequestMark::prefill, static_cast<std::int64_t>(100 + i)));
    }
    all.take(mark(1, RequestMark::decode, 0));
    all.finish();
    EXPECT_EQ(all.counts().out_of_order, 1U);
}

} // namespace
} // namespace plumb::analysis
