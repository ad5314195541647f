// SPDX-License-Identifier: Apache-2.0
// Tokens and positions on their way to captured kernels.
#include <limits>

#include "cudagraph/cache_testing.hpp"

namespace plumb::cudagraph {
namespace {

struct Read {
    std::int32_t token = 0;
    std::int32_t position = 0;
    std::int32_t kv_length = 0;
    bool operator==(const Read& other) const {
        return token == other.token && position == other.position && kv_length == other.kv_length;
    }
};

class DecodeState : public CacheTest {
  protected:
    void SetUp() override {
        CacheTest::SetUp();
        define_kernel();
    }
    /// A kernel that notes what it finds in device memory when it runs: rows 0 to rows - 1.
    void define_kernel() {
        vgpu::KernelModel model;
        model.param_bytes = {8, 8, 8};
        model.function = [this](const vgpu::KernelRun& run) {
            for (std::size_t i = 0; i < rows; ++i) {
                const auto of = [&run, i](std::size_t index) {
                    return vgpu::at<std::int32_t>(run.param<std::uint64_t>(index), i + 1)[i];
                };
                read.push_back({of(0), of(1), of(2)});
            }
        };
        vgpu::kernel("step", model);
    }
    void enqueue(const CudaDecodeState& state, cuda::Stream stream) {
        std::uint64_t addresses[3] = {state.tokens, state.positions, state.kv_lengths};
        engine->kernel(stream, "step", {&addresses[0], &addresses[1], &addresses[2]});
    }
    void capture_step(std::uint64_t key) {
        ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
        const Result<CudaDecodeState> state = cache->decode_state(engine->stream);
        ASSERT_EQ(message_of(state), "");
        enqueue(*state, engine->stream);
        ASSERT_EQ(message_of(cache->end_capture(key)), "");
    }
    static std::vector<Read> steps(int count) {
        std::vector<Read> expected;
        for (int i = 0; i < count; ++i) {
            expected.push_back({100 + i, i, i + 1});
        }
        return expected;
    }
    /// The host overwrites its own variables right after each call, with four replays in flight.
    void decode(int count, bool batched) {
        for (int i = 0; i < count; ++i) {
            std::int32_t tokens[1] = {100 + i};
            std::int32_t positions[1] = {i};
            const Status set = batched ? cache->set_decode_state(tokens, positions, 1, engine->stream)
                                       : cache->set_decode_state(tokens[0], positions[0], engine->stream);
            ASSERT_EQ(message_of(set), "");
            tokens[0] = -1;
            positions[0] = -1;
            ASSERT_TRUE(replays(1));
            if (i % 4 == 3) {
                vgpu::run_dry();
            }
        }
        vgpu::run_dry();
    }

    std::size_t rows = 1;
    std::vector<Read> read;
};

TEST_F(DecodeState, each_of_four_replays_in_flight_reads_its_own_values) {
    cache = make_cache();
    capture_step(1);
    decode(40, false);
    EXPECT_EQ(read, steps(40));
    EXPECT_GT(vgpu::calls("cuStreamBatchMemOp"), 0u);
    EXPECT_EQ(vgpu::calls("cuMemcpyHtoDAsync"), 0u);
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
}

TEST_F(DecodeState, a_batch_in_the_ring_is_read_by_its_own_replay) {
    cache = make_cache();
    capture_step(1);
    decode(200, true);
    EXPECT_EQ(read, steps(200));
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
}

TEST_F(DecodeState, memory_operations_that_a_device_refuses_become_memsets) {
    cache = make_cache();
    capture_step(1);
    vgpu::fail("cuStreamBatchMemOp", cuda::CuResult::not_supported, 1, 1000);
    decode(8, false);
    EXPECT_EQ(read, steps(8));
    EXPECT_EQ(vgpu::calls("cuStreamBatchMemOp"), 1u) << "it is tried once";
}

TEST_F(DecodeState, every_row_of_a_batch_arrives) {
    cache = make_cache();
    rows = 3;
    capture_step(1);
    const std::vector<std::int32_t> tokens = {7, 8, 9};
    const std::vector<std::int32_t> positions = {0, 41, std::numeric_limits<std::int32_t>::max() - 1};
    ASSERT_TRUE(cache->set_decode_state(tokens.data(), positions.data(), 3, engine->stream));
    ASSERT_TRUE(replays(1));
    vgpu::run_dry();
    const std::vector<Read> expected = {
        {7, 0, 1}, {8, 41, 42}, {9, positions[2], std::numeric_limits<std::int32_t>::max()}};
    EXPECT_EQ(read, expected);
}

TEST_F(DecodeState, a_full_ring_says_so_and_goes_on_when_the_device_has_read) {
    CudaGraphOptions options;
    options.state_slots = 4;
    cache = make_cache(options);
    vgpu::kernel("slow", {{}, 50'000'000, 50'000'000, {}});
    engine->kernel(engine->stream, "slow");
    const std::int32_t one = 1;
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(message_of(cache->set_decode_state(&one, &one, 1, engine->stream)), "");
    }
    const Status full = cache->set_decode_state(&one, &one, 1, engine->stream);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, ErrorCode::pending);
    EXPECT_NE(message_of(full).find("state_slots"), std::string::npos);
    vgpu::run_dry();
    EXPECT_TRUE(cache->set_decode_state(&one, &one, 1, engine->stream));
}

TEST_F(DecodeState, it_is_refused_while_the_stream_is_captured_and_the_capture_lives_on) {
    cache = make_cache();
    ASSERT_TRUE(cache->begin_capture(engine->stream));
    const std::int32_t one = 1;
    for (const Status& refused :
         {cache->set_decode_state(1, 1, engine->stream), cache->set_decode_state(&one, &one, 1, engine->stream)}) {
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(message_of(refused).find("captured"), std::string::npos);
    }
    engine->kernels("gemm", 1);
    EXPECT_EQ(message_of(cache->end_capture(1)), "");
    EXPECT_EQ(row(1).nodes, (std::vector<CudaGraphRow::Count>{{"kernel", 1}}));
}

TEST_F(DecodeState, values_that_are_no_step_are_refused) {
    CudaGraphOptions options;
    options.max_batch = 2;
    cache = make_cache(options);
    const std::int32_t values[3] = {1, 2, 3};
    const std::int32_t bad[1] = {-1};
    EXPECT_FALSE(cache->set_decode_state(1, -1, engine->stream));
    EXPECT_FALSE(cache->set_decode_state(1, std::numeric_limits<std::int32_t>::max(), engine->stream));
    EXPECT_FALSE(cache->set_decode_state(values, bad, 1, engine->stream));
    EXPECT_FALSE(cache->set_decode_state(values, values, 0, engine->stream));
    EXPECT_FALSE(cache->set_decode_state(nullptr, values, 1, engine->stream));
    EXPECT_NE(message_of(cache->set_decode_state(values, values, 3, engine->stream)).find("max_batch"),
              std::string::npos);
}

TEST_F(DecodeState, streams_and_keys_have_arrays_of_their_own) {
    cache = make_cache();
    cuda::Stream other = nullptr;
    Engine::check(engine->calls.stream_create(&other, cuda::stream_non_blocking));
    const Result<CudaDecodeState> mine = cache->decode_state(engine->stream);
    const Result<CudaDecodeState> theirs = cache->decode_state(other);
    const Result<CudaDecodeState> of_key = cache->decode_state_of(1, engine->stream);
    ASSERT_TRUE(mine.ok() && theirs.ok() && of_key.ok());
    EXPECT_NE(mine->tokens, theirs->tokens);
    EXPECT_NE(mine->tokens, of_key->tokens);
    EXPECT_EQ(cache->decode_state(engine->stream)->tokens, mine->tokens);
    ASSERT_TRUE(cache->set_decode_state(1, 10, engine->stream));
    ASSERT_TRUE(cache->set_decode_state(2, 20, other));
    ASSERT_TRUE(cache->set_decode_state_of(1, 3, 30, other));
    vgpu::run_dry();
    EXPECT_EQ(*vgpu::at<std::int32_t>(mine->positions), 10);
    EXPECT_EQ(*vgpu::at<std::int32_t>(theirs->positions), 20);
    EXPECT_EQ(*vgpu::at<std::int32_t>(of_key->positions), 30);
    EXPECT_EQ(*vgpu::at<std::int32_t>(of_key->kv_lengths), 31);
    Engine::check(engine->calls.stream_destroy(other));
}

TEST_F(DecodeState, a_stream_with_a_handle_used_before_starts_anew) {
    cache = make_cache();
    cuda::Stream first = nullptr;
    Engine::check(engine->calls.stream_create(&first, cuda::stream_non_blocking));
    const Result<CudaDecodeState> before = cache->decode_state(first);
    Engine::check(engine->calls.stream_destroy(first));
    cuda::Stream second = nullptr;
    Engine::check(engine->calls.stream_create(&second, cuda::stream_non_blocking));
    ASSERT_EQ(first, second) << "the virtual GPU gives the handle out again";
    EXPECT_NE(cache->decode_state(second)->tokens, before->tokens);
    Engine::check(engine->calls.stream_destroy(second));
}

TEST_F(DecodeState, arrays_of_a_key_end_with_their_context_and_are_made_anew_in_the_next) {
    cache = make_cache();
    ASSERT_EQ(message_of(cache->set_decode_state_of(7, 1, 2, engine->stream)), "");
    engine.reset();
    engine = std::make_unique<Engine>();
    const Result<CudaDecodeState> state = cache->decode_state_of(7, engine->stream);
    ASSERT_EQ(message_of(state), "");
    ASSERT_NE(vgpu::memory(state->positions, 4), nullptr) << "it points into memory that went with the old context";
    ASSERT_EQ(message_of(cache->set_decode_state_of(7, 5, 9, engine->stream)), "");
    vgpu::run_dry();
    EXPECT_EQ(*vgpu::at<std::int32_t>(state->positions), 9);
}

TEST_F(DecodeState, switched_off_it_does_nothing) {
    cache = make_cache();
    EXPECT_TRUE(cache->uses_device_state());
    cache->use_device_state(false);
    EXPECT_FALSE(cache->uses_device_state());
    const std::uint64_t before = vgpu::calls("*");
    EXPECT_TRUE(cache->set_decode_state(1, 1, engine->stream));
    EXPECT_EQ(vgpu::calls("*"), before);
}

} // namespace
} // namespace plumb::cudagraph
