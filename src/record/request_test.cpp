// SPDX-License-Identifier: Apache-2.0
// Requests as they are recorded.
#include "plumb/request.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

// The example of the W3C recommendation.
constexpr const char* traced = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Request, a_mark_is_a_moment_and_the_id_of_the_caller_whatever_integer_that_is) {
    TestRecorder recorder;
    PLUMB_REQUEST(recorder, ~std::uint64_t{0}, RequestPhase::queue);
    PLUMB_REQUEST(recorder, 7, RequestPhase::end, tokens(128));
    EXPECT_EQ(recorder.take(), (Words{"request_part 0=1000", "request 18446744073709551615 mark=1",
                                      "request_part 0=1000", "request_part 1=128", "request 7 mark=5"}));
}

TEST(Request, a_negative_id_is_kept_as_an_unsigned_one_whatever_its_width) {
    TestRecorder recorder;
    PLUMB_STEP_REQUEST(recorder, -1);
    PLUMB_STEP_REQUEST(recorder, std::int64_t{-1});
    EXPECT_EQ(recorder.take(), (Words{"request 18446744073709551615 mark=0", "request 18446744073709551615 mark=0"}));
}

TEST(Request, in_a_step_it_is_one_record) {
    TestRecorder recorder;
    PLUMB_STEP_REQUEST(recorder, 7U);
    EXPECT_EQ(recorder.take(), (Words{"request 7 mark=0"}));
}

TEST(Request, the_ids_of_a_w3c_header_are_kept_whole) {
    TestRecorder recorder;
    PLUMB_REQUEST(recorder, 7, RequestPhase::queue, trace_parent(traced));
    EXPECT_EQ(recorder.take(),
              (Words{"request_part 0=1000", "request_part 2=" + std::to_string(0x0af7651916cd43ddU) + " 1",
                     "request_part 3=" + std::to_string(0x8448eb211c80319cU),
                     "request_part 4=" + std::to_string(0xb7ad6b7169203331U), "request 7 mark=1"}));
}

std::string trace_of(const std::string& header) {
    TestRecorder recorder;
    PLUMB_REQUEST(recorder, 7, RequestPhase::queue, trace_parent(header.c_str()));
    return recorder.take().at(2);
}

TEST(Request, a_header_that_the_standard_does_not_allow_gives_a_trace_id_of_0_wherever_it_is_cut_or_changed) {
    const std::string header = traced;
    for (std::size_t length = 0; length < header.size(); ++length) {
        EXPECT_EQ(trace_of(header.substr(0, length)), "request_part 3=0") << length;
        std::string changed = header;
        changed[length] = 'g';
        EXPECT_EQ(trace_of(changed), "request_part 3=0") << changed;
        if (std::isalpha(static_cast<unsigned char>(header[length])) != 0) {
            changed[length] = static_cast<char>(std::toupper(static_cast<unsigned char>(header[length])));
            EXPECT_EQ(trace_of(changed), "request_part 3=0") << changed;
        }
    }
    EXPECT_EQ(trace_of(header + "-"), "request_part 3=0");
    EXPECT_EQ(trace_of("ff" + header.substr(2)), "request_part 3=0");
    EXPECT_EQ(trace_of("00-00000000000000000000000000000000-b7ad6b7169203331-01"), "request_part 3=0");
    EXPECT_EQ(trace_of("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"), "request_part 3=0");
}

TEST(Request, a_header_of_a_later_version_is_read_as_far_as_this_one_goes) {
    const std::string later = "01" + std::string(traced).substr(2);
    const std::string low = "request_part 3=" + std::to_string(0x8448eb211c80319cU);
    EXPECT_EQ(trace_of(later), low);
    EXPECT_EQ(trace_of(later + "-anything"), low);
    EXPECT_EQ(trace_of(later + "anything"), "request_part 3=0");
}

TEST(Request, no_header_and_a_recording_that_hides_traces_say_nothing_of_them) {
    TestRecorder plain;
    PLUMB_REQUEST(plain, 7, RequestPhase::queue, trace_parent(nullptr));
    TestOptions options;
    options.stamps.hide_traces = true;
    TestRecorder hiding(options);
    PLUMB_REQUEST(hiding, 7, RequestPhase::queue, trace_parent(traced));
    const Words untraced{"request_part 0=1000", "request 7 mark=1"};
    EXPECT_EQ(plain.take(), untraced);
    EXPECT_EQ(hiding.take(), untraced);
}

TEST(Request, in_a_full_ring_a_mark_is_dropped_whole_and_counted) {
    TestRecorder recorder;
    const std::uint64_t room = recorder.thread()->mask + 1;
    ASSERT_GT(room, 6U);
    for (std::uint64_t i = 0; i + 5 < room; ++i) { // 5 slots are left
        PLUMB_STEP_REQUEST(recorder, i);
    }
    PLUMB_REQUEST(recorder, 7, RequestPhase::queue, trace_parent(traced));
    EXPECT_EQ(recorder.drops(Drop::ring_full), 1U);
    EXPECT_EQ(recorder.take().back(), "request " + std::to_string(room - 6) + " mark=0");
}

TEST(Request, T5_off_its_arguments_are_not_evaluated) {
    TestRecorder recorder;
    recorder.off();
    int evaluated = 0;
    PLUMB_REQUEST(recorder, ++evaluated, RequestPhase::queue);
    PLUMB_STEP_REQUEST(recorder, ++evaluated);
    EXPECT_EQ(evaluated, 0);
    EXPECT_EQ(recorder.take(), Words{});
}

} // namespace
} // namespace plumb::record
