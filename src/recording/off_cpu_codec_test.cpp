// SPDX-License-Identifier: Apache-2.0
// Samples of what the kernel counted: through a recording, through a limit, and cut anywhere.
#include <gtest/gtest.h>

#include "recording/files_testing.hpp"
#include "recording/metadata_codec.hpp"
#include "recording/recorded_run.hpp"
#include "recording/retention.hpp"
#include "recording/writer.hpp"

namespace plumb::recording {
namespace {

OffCpuSample sample(std::uint64_t i) {
    OffCpuSample made;
    made.monotonic_ns = static_cast<std::int64_t>(1'000 + i);
    made.process = {i, 2 * i, 3 * i, base::not_counted, 5 * i};
    made.threads_left_out = i % 3;
    for (std::uint32_t track = 0; track < i % 5; ++track) {
        made.threads.push_back({track + 1, {i + track, i * track, base::not_counted}});
    }
    return made;
}

void expect_same(const OffCpuSample& a, const OffCpuSample& b) {
    EXPECT_EQ(a.monotonic_ns, b.monotonic_ns);
    EXPECT_EQ(a.process.minor_faults, b.process.minor_faults);
    EXPECT_EQ(a.process.major_faults, b.process.major_faults);
    EXPECT_EQ(a.process.voluntary_switches, b.process.voluntary_switches);
    EXPECT_EQ(a.process.involuntary_switches, b.process.involuntary_switches);
    EXPECT_EQ(a.process.stolen_ns, b.process.stolen_ns);
    EXPECT_EQ(a.threads_left_out, b.threads_left_out);
    ASSERT_EQ(a.threads.size(), b.threads.size());
    for (std::size_t i = 0; i < a.threads.size(); ++i) {
        EXPECT_EQ(a.threads[i].track, b.threads[i].track);
        EXPECT_EQ(a.threads[i].times.run_ns, b.threads[i].times.run_ns);
        EXPECT_EQ(a.threads[i].times.waited_ns, b.threads[i].times.waited_ns);
        EXPECT_EQ(a.threads[i].times.migrations, b.threads[i].times.migrations);
    }
}

TEST(OffCpuCodec, samples_come_back_in_their_order) {
    auto writer = Writer::create(WriterOptions{}, testing::full_metadata());
    ASSERT_TRUE(writer.ok());
    for (std::uint64_t i = 0; i < 10; ++i) {
        ASSERT_TRUE((*writer)->add_off_cpu(sample(i)).ok());
    }
    const RecordedRun run = run_of(*Reader::from_bytes((*writer)->snapshot()));
    ASSERT_EQ(run.facts->off_cpu.size(), 10u);
    for (std::uint64_t i = 0; i < 10; ++i) {
        expect_same(run.facts->off_cpu[i], sample(i));
    }
}

TEST(OffCpuCodec, a_sample_cut_anywhere_is_refused_or_holds_whole_threads) {
    Bytes bytes;
    encode(sample(4), bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        OffCpuSample read;
        if (decode(bytes.data(), size, read)) {
            EXPECT_LE(read.threads.size(), 4u);
        }
    }
    OffCpuSample whole;
    ASSERT_TRUE(decode(bytes.data(), bytes.size(), whole));
    expect_same(whole, sample(4));
    OffCpuSample without_time;
    EXPECT_FALSE(decode(bytes.data(), 0, without_time));
}

TEST(OffCpuCodec, many_samples_are_thinned_out_where_they_are_old) {
    std::vector<OffCpuSample> all;
    for (std::uint64_t i = 0; i < 100; ++i) {
        all.push_back(sample(i));
        thin_out(all, 64);
    }
    EXPECT_LE(all.size(), 64u);
    EXPECT_GT(all.size(), 32u);
    EXPECT_EQ(all.front().monotonic_ns, 1'000) << "the ends stay";
    EXPECT_EQ(all.back().monotonic_ns, 1'099);
    EXPECT_EQ(all[all.size() - 2].monotonic_ns, 1'098) << "and the newest are whole";
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const OffCpuSample& a, const OffCpuSample& b) {
        return a.monotonic_ns < b.monotonic_ns;
    }));
}

} // namespace
} // namespace plumb::recording
