// SPDX-License-Identifier: Apache-2.0
// The words that tell rows of one name apart.
#include "analysis/row_origin.hpp"

#include <gtest/gtest.h>

namespace plumb::analysis {
namespace {

TEST(RowOrigin, rows_of_one_name_are_told_apart_by_no_more_words_than_it_takes) {
    const RowOrigin host{"cpu_tsc", false, RowBasis::steps};
    const RowOrigin queue{"cpu_tsc", true, RowBasis::steps};
    const RowOrigin events{"cuda_event", true, RowBasis::steps};
    const RowOrigin sampled{"cuda_event", true, RowBasis::timed_steps};
    const RowOrigin replays{"cuda_event", true, RowBasis::replays};
    EXPECT_EQ(words_apart(host, {host}), "");
    EXPECT_EQ(words_apart(host, {host, queue}), "host");
    EXPECT_EQ(words_apart(queue, {host, queue}), "device");
    EXPECT_EQ(words_apart(host, {host, events}), "cpu_tsc");
    EXPECT_EQ(words_apart(events, {host, queue, events}), "cuda_event");
    EXPECT_EQ(words_apart(queue, {host, queue, events}), "cpu_tsc, device");
    EXPECT_EQ(words_apart(events, {events, replays}), "every step");
    EXPECT_EQ(words_apart(sampled, {sampled, replays}), "some steps");
    EXPECT_EQ(words_apart(replays, {sampled, replays}), "replays");
}

} // namespace
} // namespace plumb::analysis
