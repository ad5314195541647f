// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/peaks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "backends/cpu/fma_peak.hpp"
#include "backends/cpu/read_bandwidth.hpp"
#include "backends/peak_measurement.hpp"

namespace plumb::backends::cpu {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(CpuPeaks, memory_to_read_is_far_larger_than_the_caches_and_a_part_of_what_is_free) {
    EXPECT_EQ(bytes_to_read(32 * mib, 64 * gib), gib);
    EXPECT_EQ(bytes_to_read(512 * mib, 64 * gib), 4 * gib);
    EXPECT_EQ(bytes_to_read(1024 * mib, 1024 * gib), 8 * gib);
    EXPECT_EQ(bytes_to_read(32 * mib, gib), gib / 4);
    EXPECT_EQ(bytes_to_read(32 * mib, 0), gib);
}

TEST(CpuPeaks, T7_where_memory_is_too_small_there_is_no_bandwidth_instead_of_that_of_a_cache) {
    EXPECT_EQ(bytes_to_read(512 * mib, 4 * gib), 0u);
    EXPECT_EQ(bytes_to_read(0, 128 * mib), 0u);
}

TEST(CpuPeaks, multiply_adds_are_counted_as_done) {
    float sink = 1;
    const double few = widest_multiply_adds()(10, &sink);
    EXPECT_EQ(widest_multiply_adds()(1000, &sink), 100 * few);
    // Each chain halves its way to 2, whatever it began with: they were all done.
    EXPECT_NEAR(std::fmod(sink, 2.0F), 0, 1e-3);
    EXPECT_GE(sink, 2 * 12 - 1e-3F);
}

TEST(CpuPeaks, no_two_chains_of_multiply_adds_are_one) {
    const float begin = 5;
    float sink = begin;
    const double operations = widest_multiply_adds()(3, &sink);
    // Chain i begins with begin + i. Those that begin alike are done once by a compiler, and counted as often as written.
    double apart = 0;
    int chains = 0;
    for (; chains < 12; ++chains) {
        apart += 2 + double{begin + static_cast<float>(chains) - 2} / 8;
    }
    EXPECT_FLOAT_EQ(sink, static_cast<float>(apart));
    EXPECT_EQ(std::fmod(operations, 2.0 * 3 * chains), 0);
}

TEST(CpuPeaks, bandwidth_of_a_part_of_the_cores_is_measured_too) {
    ReadBandwidth bandwidth(8 * mib);
    for (const unsigned threads : {0U, 1U, 4096U}) {
        const Result<double> read = bandwidth.measure(threads);
        ASSERT_TRUE(read.ok());
        EXPECT_GT(*read, 0);
    }
}

TEST(CpuPeaks, memory_that_cannot_be_had_is_an_error) {
    ReadBandwidth bandwidth(std::size_t{1} << 60);
    const Result<double> read = bandwidth.measure();
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::out_of_memory);
}

} // namespace
} // namespace plumb::backends::cpu
