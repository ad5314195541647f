// SPDX-License-Identifier: Apache-2.0
#include "backends/queue_directory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace plumb::backends {
namespace {

using Made = Result<std::unique_ptr<AbsentTimer>>;

class Directory : public testing::Test {
  protected:
    /// Asks for a key whose timer cannot be made, or can.
    Queue find(int key, ErrorCode code, const std::string& why = "no") {
        return queues_.find(
            key,
            [&] {
                return ++made_, Made(Error{code, why});
            },
            name_of);
    }
    Queue find(int key) {
        return queues_.find(
            key, [&] { return ++made_, Made(std::make_unique<AbsentTimer>(Error{}, "test_event", "test:0")); },
            name_of);
    }
    static std::string name_of(const AbsentTimer&, std::size_t number) { return "queue " + std::to_string(number); }

    QueueDirectory<int> queues_{{"test", "test_event", "test queues", "reuse them"}};
    int made_ = 0;
};

TEST_F(Directory, F1_a_key_that_was_refused_is_timed_once_it_is_valid) {
    for (const ErrorCode passing :
         {ErrorCode::invalid_argument, ErrorCode::unavailable, ErrorCode::pending, ErrorCode::out_of_memory}) {
        const int key = static_cast<int>(passing);
        const Queue refused = find(key, passing);
        ASSERT_NE(refused.timer, nullptr);
        EXPECT_EQ(refused.timer->begin().error().code, passing);
        const Queue later = find(key);
        EXPECT_NE(later.timer, refused.timer);
        EXPECT_EQ(find(key, passing).timer, later.timer) << "once made, it stays";
    }
}

TEST_F(Directory, what_can_never_be_timed_is_asked_for_once) {
    const Queue never = find(1, ErrorCode::unsupported);
    EXPECT_EQ(find(1).timer, never.timer);
    EXPECT_EQ(made_, 1);
}

TEST_F(Directory, any_number_of_refused_keys_takes_one_timer) {
    const Queue first = find(1, ErrorCode::invalid_argument);
    for (int key = 2; key < 3'000; ++key) {
        EXPECT_EQ(find(key, ErrorCode::invalid_argument).timer, first.timer);
    }
    EXPECT_NE(find(5'000).timer, first.timer) << "and fills no place";
}

TEST_F(Directory, each_refused_key_is_told_its_own_reason_and_reasons_are_bounded) {
    for (int key = 1; key < 3'000; ++key) {
        const std::string why = "reason " + std::to_string(key);
        const Error told = find(key, ErrorCode::invalid_argument, why).timer->begin().error();
        EXPECT_EQ(told.code, ErrorCode::invalid_argument);
        EXPECT_EQ(told.message.find("too many reasons") == std::string::npos, key <= 64) << told.message;
        EXPECT_EQ(told.message.find(why) == std::string::npos, key > 64) << told.message;
    }
    EXPECT_EQ(find(9, ErrorCode::invalid_argument, "reason 9").timer,
              find(1, ErrorCode::invalid_argument, "reason 9").timer);
    const std::uint32_t before = record::new_process_track();
    EXPECT_EQ(find(1, ErrorCode::invalid_argument, "new").timer, find(2, ErrorCode::invalid_argument, "newer").timer);
    EXPECT_EQ(record::new_process_track(), before + 1) << "no timer was made for them";
}

} // namespace
} // namespace plumb::backends
