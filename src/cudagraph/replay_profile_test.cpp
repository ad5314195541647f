// SPDX-License-Identifier: Apache-2.0
// The records of every n-th replay.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cudagraph/cache_testing.hpp"

namespace plumb::cudagraph {
namespace {

using Json = nlohmann::json;

class ReplayRecords : public CacheTest {
  protected:
    void SetUp() override {
        path = testing::TempDir() + "plumb_replays_" + testing::UnitTest::GetInstance()->current_test_info()->name() +
               ".jsonl";
        std::remove(path.c_str());
        vgpu::Config config;
        config.kernel_min_ns = config.kernel_max_ns = 100'000;
        start(config);
    }
    void make(std::uint64_t every, bool sync = false, bool upload_each = false) {
        CudaGraphOptions options;
        options.profile_every = every;
        options.profile_path = path;
        options.sync = sync;
        options.upload_each = upload_each;
        cache = make_cache(options);
        ASSERT_TRUE(engine->capture(*cache, 8, 3));
    }
    [[nodiscard]] std::vector<Json> lines() const {
        std::vector<Json> found;
        std::ifstream file(path);
        for (std::string line; std::getline(file, line);) {
            found.push_back(Json::parse(line));
        }
        return found;
    }
    std::string path;
};

TEST_F(ReplayRecords, F11_every_nth_replay_has_its_key_and_the_devices_own_time_without_a_wait) {
    make(4);
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(replays(8));
    }
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
    vgpu::run_dry();
    EXPECT_EQ(message_of(cache->flush_profile()), "");
    const std::vector<Json> records = lines();
    ASSERT_EQ(records.size(), 5u);
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Json& record = records[i];
        EXPECT_EQ(record["key"], 8);
        EXPECT_EQ(record["call"], 4 * (i + 1));
        EXPECT_TRUE(record["upload_ns"].is_null());
        EXPECT_TRUE(record["sync_ns"].is_null());
        EXPECT_GE(record["launch_ns"], 5000);
        EXPECT_GE(record["device_ns"], 300'000) << "three kernels of 100 us";
        EXPECT_LT(record["device_ns"], 320'000);
        EXPECT_EQ(record["total_ns"], record["launch_ns"].get<double>() + record["device_ns"].get<double>())
            << "the device's share is never left out";
        EXPECT_FALSE(record["includes_launch_wait"]) << "the stream was busy";
    }
}

TEST_F(ReplayRecords, F11_device_time_that_cannot_be_had_is_null_with_a_reason) {
    make(1);
    vgpu::fail("cuEventCreate", cuda::CuResult::out_of_memory);
    ASSERT_TRUE(replays(8));
    vgpu::run_dry();
    ASSERT_TRUE(replays(8));
    vgpu::run_dry();
    ASSERT_TRUE(cache->flush_profile());
    vgpu::fail("cuEventElapsedTime", cuda::CuResult::invalid_handle);
    ASSERT_TRUE(replays(8));
    cache.reset();
    const std::vector<Json> records = lines();
    ASSERT_EQ(records.size(), 3u);
    ASSERT_TRUE(records[0]["device_ns"].is_null());
    EXPECT_TRUE(records[0]["total_ns"].is_null());
    EXPECT_NE(records[0]["reason"].get<std::string>().find("cuEventCreate"), std::string::npos);
    EXPECT_TRUE(records[1]["device_ns"].is_number());
    EXPECT_TRUE(records[2]["device_ns"].is_null());
    EXPECT_NE(records[2]["reason"], "");
}

TEST_F(ReplayRecords, F11_no_lock_is_held_while_the_device_runs) {
    make(1, true);
    ASSERT_TRUE(engine->capture(*cache, 9, 1));
    vgpu::Hold hold("cuStreamSynchronize");
    std::thread other([&] {
        const cuda::CurrentContext current(engine->calls, engine->context);
        EXPECT_TRUE(replays(8));
    });
    hold.wait_until_inside();
    cuda::Stream stream = nullptr;
    Engine::check(engine->calls.stream_create(&stream, cuda::stream_non_blocking));
    const Result<bool> replayed = cache->replay(8, stream);
    EXPECT_TRUE(replayed.ok() && *replayed);
    hold.release();
    other.join();
    Engine::check(engine->calls.stream_destroy(stream));
}

TEST_F(ReplayRecords, with_a_wait_the_total_is_the_hosts_own) {
    make(2, true, true);
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(replays(8));
    }
    const std::vector<Json> records = lines();
    ASSERT_EQ(records.size(), 2u) << "written at once: the device has finished";
    for (const Json& record : records) {
        EXPECT_GT(record["upload_ns"], 0);
        EXPECT_GT(record["sync_ns"], 200'000);
        EXPECT_GE(record["device_ns"], 300'000);
        EXPECT_EQ(record["total_ns"], record["upload_ns"].get<double>() + record["launch_ns"].get<double>() +
                                          record["sync_ns"].get<double>());
        EXPECT_TRUE(record["includes_launch_wait"]) << "the stream was empty";
    }
}

TEST_F(ReplayRecords, what_has_not_finished_when_the_cache_ends_is_written_without_device_time) {
    make(1);
    ASSERT_TRUE(replays(8));
    cache.reset();
    const std::vector<Json> records = lines();
    ASSERT_EQ(records.size(), 1u);
    ASSERT_TRUE(records[0]["device_ns"].is_null());
    EXPECT_NE(records[0]["reason"].get<std::string>().find("not finished"), std::string::npos);
}

TEST_F(ReplayRecords, a_file_that_cannot_be_written_is_told_and_the_replay_goes_on) {
    path = "/nonexistent/replays.jsonl";
    make(1);
    ASSERT_TRUE(replays(8));
    vgpu::run_dry();
    const Status status = cache->flush_profile();
    ASSERT_FALSE(status);
    EXPECT_NE(message_of(status).find("/nonexistent/replays.jsonl"), std::string::npos);
    EXPECT_TRUE(replays(8));
}

TEST_F(ReplayRecords, nothing_is_written_unless_it_was_asked_for) {
    make(0);
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(replays(8));
    }
    cache.reset();
    EXPECT_TRUE(lines().empty());
    EXPECT_EQ(vgpu::calls("cuEventRecord"), 0u);
}

} // namespace
} // namespace plumb::cudagraph
