// SPDX-License-Identifier: Apache-2.0
// Every call to the system or the vendor fails once, at each of its uses: an error, never a wrong number or a leak.
#include "conformance/suite.hpp"

namespace plumb::conformance {
namespace {

class FailureConformance : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, FailureConformance, testing::ValuesIn(subjects()), subject_name);

/// Everything a timer can be asked, once. Counts errors; every one must say something.
class Script {
  public:
    explicit Script(Subject& subject) : subject_(subject) {}

    int run() {
        Result<std::unique_ptr<QueueTimer>> made = subject_.make_timer();
        if (!note(made)) {
            return errors_;
        }
        QueueTimer& queue = **made;
        for (int i = 0; i < 2; ++i) {
            scope(queue);
        }
        note(queue.clock_pair());
        note(queue.duration({0, 100, 0}));
        note(queue.floor_ns());
        subject_.fail("", 0);
        const int before = errors_;
        scope(queue);
        EXPECT_EQ(errors_, before) << "after a failure the next scope is timed again";
        EXPECT_EQ(queue.in_flight(), 0u);
        return errors_;
    }

  private:
    void scope(QueueTimer& queue) {
        const Result<DeviceToken> token = queue.begin();
        if (!note(token)) {
            return;
        }
        subject_.work(1'000);
        const bool ended = note(queue.end(*token));
        subject_.settle();
        if (!ended) {
            queue.cancel(*token);
            return;
        }
        const Result<DeviceSpan> span = queue.collect(*token);
        if (note(span)) {
            EXPECT_LT(span->begin_ticks, span->end_ticks) << "a failed stamp must not look like a free operation";
        } else if (span.error().code == ErrorCode::pending) {
            queue.cancel(*token);
        }
    }

    template <class T>
    bool note(const Result<T>& result) {
        if (result) {
            return true;
        }
        ++errors_;
        EXPECT_FALSE(result.error().message.empty());
        return false;
    }

    Subject& subject_;
    int errors_ = 0;
};

TEST_P(FailureConformance, each_call_fails_once_at_each_of_its_uses_and_nothing_is_wrong_or_left_behind) {
    for (const std::string& call : subject_->calls()) {
        unsigned use = 1;
        for (;; ++use) {
            SCOPED_TRACE(call + ", use " + std::to_string(use));
            subject_->fail(call, use);
            const int errors = Script(*subject_).run();
            EXPECT_EQ(subject_->resources(), 0u);
            if (!subject_->has_failed()) {
                break;
            }
            EXPECT_GE(errors, 1) << "the failure was swallowed";
            ASSERT_LT(use, 10'000u);
        }
        EXPECT_GT(use, 1u) << call << " was never used";
    }
}

TEST_P(FailureConformance, without_a_failure_the_script_has_no_error) {
    subject_->fail("", 0);
    EXPECT_EQ(Script(*subject_).run(), 0);
}

TEST_P(FailureConformance, a_timer_that_goes_away_with_scopes_in_flight_leaves_nothing_behind) {
    {
        const auto queue = timer();
        const auto open = queue->begin();
        const auto ended = queue->begin();
        ASSERT_TRUE(open.ok() && ended.ok());
        ASSERT_TRUE(queue->end(*ended).ok());
        EXPECT_GT(subject_->resources(), 0u);
    }
    EXPECT_EQ(subject_->resources(), 0u);
}

} // namespace
} // namespace plumb::conformance
