// SPDX-License-Identifier: Apache-2.0
#include "backends/stamped_scopes.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace plumb::backends {
namespace {

/// Stamps are numbers in the order they were taken; says which of them are held.
class Counting {
  public:
    struct Stamp {
        int number = 0;
    };
    Status take(Stamp& stamp) noexcept {
        if (refuse) {
            return Error{ErrorCode::failed, "the device said no; ask later"};
        }
        const std::lock_guard lock(mutex_);
        stamp.number = ++taken;
        held_.insert(stamp.number);
        return {};
    }
    void drop(Stamp& stamp) noexcept {
        const std::lock_guard lock(mutex_);
        dropped_twice += held_.erase(stamp.number) == 0 ? 1 : 0;
    }
    void ended(const Stamp& stamp) noexcept { last_end = stamp.number; }

    std::size_t held() {
        const std::lock_guard lock(mutex_);
        return held_.size();
    }
    void adopt(int number) {
        const std::lock_guard lock(mutex_);
        held_.insert(number);
    }

    std::atomic<bool> refuse{false};
    std::atomic<int> last_end{0};
    int taken = 0;
    int dropped_twice = 0;

  private:
    std::mutex mutex_;
    std::set<int> held_;
};

using Scopes = StampedScopes<Counting>;

Result<DeviceSpan> numbers(const Counting::Stamp& begin, const Counting::Stamp& end) {
    return DeviceSpan{static_cast<std::uint64_t>(begin.number), static_cast<std::uint64_t>(end.number), 0};
}

class StampedScopesTest : public testing::Test {
  protected:
    void SetUp() override { scopes_ = std::move(*Scopes::create(stamps_, 4)); }
    void TearDown() override { EXPECT_EQ(stamps_.dropped_twice, 0); }

    Counting stamps_;
    std::unique_ptr<Scopes> scopes_;
};

TEST_F(StampedScopesTest, a_scope_has_two_stamps_and_gives_both_back_when_it_is_collected) {
    const auto token = scopes_->begin();
    ASSERT_TRUE(token.ok() && scopes_->end(*token).ok());
    EXPECT_EQ(stamps_.held(), 2u);
    EXPECT_EQ(stamps_.last_end, 2);
    const auto span = scopes_->collect(*token, numbers);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->begin_ticks, 1u);
    EXPECT_EQ(span->end_ticks, 2u);
    EXPECT_EQ(stamps_.held(), 0u);
    EXPECT_EQ(scopes_->in_flight(), 0u);
}

TEST_F(StampedScopesTest, T2_laps_share_their_border_until_both_have_let_it_go) {
    const auto first = scopes_->begin();
    const auto second = scopes_->lap(*first, true);
    ASSERT_TRUE(second.ok() && scopes_->end(*second).ok());
    EXPECT_EQ(stamps_.taken, 3);
    EXPECT_EQ(scopes_->collect(*first, numbers)->end_ticks, 2u);
    EXPECT_EQ(stamps_.held(), 2u) << "the border is the second lap's, too";
    EXPECT_EQ(scopes_->collect(*second, numbers)->begin_ticks, 2u);
    EXPECT_EQ(stamps_.held(), 0u);
}

TEST_F(StampedScopesTest, laps_from_and_to_steps_that_are_not_timed_take_no_more_stamps_than_they_need) {
    const auto timed = scopes_->lap({token_not_timed}, true);
    ASSERT_TRUE(timed.ok());
    EXPECT_EQ(scopes_->lap(*timed, false)->value, token_not_timed);
    EXPECT_EQ(scopes_->lap({token_not_timed}, false)->value, token_not_timed);
    EXPECT_EQ(stamps_.taken, 2);
    EXPECT_TRUE(scopes_->collect(*timed, numbers).ok());
}

TEST_F(StampedScopesTest, what_the_device_refuses_leaves_the_scope_as_it_was) {
    const auto token = scopes_->begin();
    stamps_.refuse = true;
    EXPECT_FALSE(scopes_->begin().ok());
    EXPECT_FALSE(scopes_->end(*token).ok());
    EXPECT_EQ(scopes_->in_flight(), 1u);
    stamps_.refuse = false;
    EXPECT_TRUE(scopes_->end(*token).ok()) << "it was still open";
    const auto other = scopes_->begin();
    stamps_.refuse = true;
    EXPECT_FALSE(scopes_->lap(*other, true).ok());
    EXPECT_EQ(scopes_->in_flight(), 1u) << "a lap that fails gives both up";
    EXPECT_TRUE(scopes_->collect(*token, numbers).ok());
    EXPECT_EQ(stamps_.held(), 0u);
}

TEST_F(StampedScopesTest, the_bound_is_met_before_the_device_is_asked_for_anything) {
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(scopes_->begin().ok());
    }
    EXPECT_EQ(scopes_->begin().error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(scopes_->adopt({77}).error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(stamps_.taken, 4);
    scopes_->drop_all();
    EXPECT_EQ(stamps_.held(), 0u);
}

TEST_F(StampedScopesTest, an_adopted_stamp_is_both_ends_and_is_given_back_once) {
    stamps_.adopt(77);
    const auto token = scopes_->adopt({77});
    ASSERT_TRUE(token.ok());
    const auto span = scopes_->collect(*token, numbers);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->begin_ticks, 77u);
    EXPECT_EQ(span->end_ticks, 77u);
    EXPECT_EQ(stamps_.held(), 0u);
}

TEST_F(StampedScopesTest, a_pending_read_keeps_the_token_and_any_other_error_spends_it) {
    const auto token = scopes_->begin();
    ASSERT_TRUE(scopes_->end(*token).ok());
    const auto fail_with = [](ErrorCode code) {
        return [code](const auto&, const auto&) {
            return Result<DeviceSpan>(Error{code, "no; ask later"});
        };
    };
    EXPECT_EQ(scopes_->collect(*token, fail_with(ErrorCode::pending)).error().code, ErrorCode::pending);
    EXPECT_EQ(scopes_->in_flight(), 1u);
    EXPECT_EQ(scopes_->collect(*token, fail_with(ErrorCode::failed)).error().code, ErrorCode::failed);
    EXPECT_EQ(scopes_->in_flight(), 0u);
    EXPECT_EQ(scopes_->collect(*token, numbers).error().code, ErrorCode::not_found);
}

TEST_F(StampedScopesTest, preparing_reaches_every_border_that_is_asked_for_and_stops_at_an_error) {
    int prepared = 0;
    EXPECT_TRUE(scopes_->prepare(8, [&](Counting::Stamp&) { return ++prepared, Status(); }).ok());
    EXPECT_EQ(prepared, 8);
    const auto refuse = [&](Counting::Stamp&) {
        return Status(Error{ErrorCode::failed, "no; ask later"});
    };
    EXPECT_FALSE(scopes_->prepare(8, refuse).ok());
    EXPECT_TRUE(scopes_->begin().ok()) << "the borders are free again";
}

TEST_F(StampedScopesTest, threads_that_lap_and_collect_lose_no_stamp) {
    auto many = std::move(*Scopes::create(stamps_, 64));
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int round = 0; round < 500; ++round) {
                auto token = many->begin();
                std::vector<DeviceToken> ended;
                for (int lap = 0; lap < 5 && token; ++lap) {
                    ended.push_back(*token);
                    token = many->lap(*token, true);
                }
                wrong += token && many->end(*token) ? 0 : 1;
                ended.push_back(*token);
                for (const DeviceToken one : ended) {
                    wrong += many->collect(one, numbers) ? 0 : 1;
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(many->in_flight(), 0u);
    EXPECT_EQ(stamps_.held(), 0u);
}

TEST(StampedScopes, an_impossible_number_of_scopes_is_refused) {
    Counting stamps;
    for (const std::uint32_t count : {0u, Scopes::most_in_flight + 1, ~0u}) {
        const auto made = Scopes::create(stamps, count);
        ASSERT_FALSE(made.ok());
        EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
    }
}

} // namespace
} // namespace plumb::backends
