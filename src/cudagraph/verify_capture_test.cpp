// SPDX-License-Identifier: Apache-2.0
// Values that a capture bakes in.
#include "cudagraph/cache_testing.hpp"

namespace plumb::cudagraph {
namespace {

class VerifyCapture : public CacheTest {
  protected:
    void SetUp() override {
        vgpu::Config config;
        config.shuffle_nodes = true;
        start(config);
        vgpu::KernelModel model;
        model.param_bytes = {8, 4, 4};
        vgpu::kernel("rope", model);
        vgpu::kernel("gemm", model);
        cache = make_cache();
    }
    void kernel(const char* name, std::uint64_t address, std::int32_t a, std::int32_t b) {
        engine->kernel(engine->stream, name, {&address, &a, &b});
    }
    /// A layer whose rope takes the position by value where `baked` says so.
    void layers(int count, int baked, std::int32_t position) {
        for (int i = 0; i < count; ++i) {
            kernel("gemm", 0x1000 + static_cast<std::uint64_t>(i), i, 0);
            kernel("rope", 0x2000, i, i == baked ? position : 0);
        }
    }
    std::vector<BakedIn> verify(const std::function<void(std::int32_t, std::int32_t)>& step,
                                const CudaVerifyOptions& options = {}) {
        const Result<std::vector<BakedIn>> found = cache->verify_capture(
            1, engine->stream,
            [&](std::int32_t token, std::int32_t position) {
                step(token, position);
                return Status();
            },
            options);
        EXPECT_EQ(message_of(found), "");
        return found ? *found : std::vector<BakedIn>{};
    }
};

TEST_F(VerifyCapture, a_baked_in_position_is_named_by_kernel_parameter_and_bytes) {
    const std::vector<BakedIn> found =
        verify([&](std::int32_t, std::int32_t position) { layers(24, 17, position); }, {{11, 222}, {5, 0x01000006}});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].node, "kernel rope");
    EXPECT_EQ(found[0].occurrence, 17u);
    EXPECT_EQ(found[0].part, "parameter 2");
    EXPECT_EQ(found[0].first_byte, 0u);
    EXPECT_EQ(found[0].last_byte, 3u);
    EXPECT_EQ(found[0].text, "kernel rope #17, parameter 2, bytes 0..3");
    EXPECT_EQ(row(1).baked_in, std::vector<std::string>{found[0].text});
}

TEST_F(VerifyCapture, a_clean_capture_raises_nothing_and_keeps_nothing) {
    EXPECT_TRUE(verify([&](std::int32_t, std::int32_t) { layers(24, -1, 0); }).empty());
    EXPECT_EQ(vgpu::alive().graphs, 0u);
    EXPECT_EQ(cache->size(), 0u);
    vgpu::run_dry();
    EXPECT_EQ(vgpu::operation_count(), 0u);
}

TEST_F(VerifyCapture, a_found_value_that_was_mended_leaves_the_row) {
    EXPECT_EQ(verify([&](std::int32_t token, std::int32_t) { kernel("gemm", 0, token, 0); }).size(), 1u);
    EXPECT_TRUE(verify([&](std::int32_t, std::int32_t) { kernel("gemm", 0, 0, 0); }).empty());
    EXPECT_TRUE(row(1).baked_in.empty());
}

TEST_F(VerifyCapture, equal_branches_in_any_order_raise_nothing) {
    cuda::Stream side = nullptr;
    cuda::Event fork = nullptr;
    cuda::Event join = nullptr;
    Engine::check(engine->calls.stream_create(&side, cuda::stream_non_blocking));
    Engine::check(engine->calls.event_create(&fork, cuda::event_disable_timing));
    Engine::check(engine->calls.event_create(&join, cuda::event_disable_timing));
    const auto step = [&](std::uint64_t one, std::uint64_t two) {
        kernel("gemm", 0, 0, 0);
        Engine::check(engine->calls.event_record(fork, engine->stream));
        Engine::check(engine->calls.stream_wait_event(side, fork, 0));
        std::int32_t zero = 0;
        engine->kernel(side, "rope", {&one, &zero, &zero});
        engine->kernel(engine->stream, "rope", {&two, &zero, &zero});
        Engine::check(engine->calls.event_record(join, side));
        Engine::check(engine->calls.stream_wait_event(engine->stream, join, 0));
        kernel("gemm", 1, 0, 0);
    };
    EXPECT_TRUE(verify([&](std::int32_t, std::int32_t position) {
                    step(position == 5 ? 100 : 200, position == 5 ? 200 : 100);
                }).empty());
    EXPECT_EQ(verify([&](std::int32_t, std::int32_t position) { step(100, position == 5 ? 200 : 300); }).size(), 1u);
    Engine::check(engine->calls.event_destroy(fork));
    Engine::check(engine->calls.event_destroy(join));
    Engine::check(engine->calls.stream_destroy(side));
}

TEST_F(VerifyCapture, copies_and_memsets_are_compared_too) {
    const Result<CudaDecodeState> memory = cache->decode_state(engine->stream);
    ASSERT_TRUE(memory);
    const std::vector<BakedIn> found = verify([&](std::int32_t token, std::int32_t position) {
        (void)engine->calls.memset_d32_async(memory->tokens, static_cast<unsigned>(token), 1, engine->stream);
        (void)engine->calls.memcpy_dtod_async(
            memory->positions, memory->tokens + static_cast<std::uint64_t>(position == 5 ? 0 : 4), 4, engine->stream);
    });
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].node, "memset");
    EXPECT_EQ(found[0].part, "value");
    EXPECT_EQ(found[1].node, "memcpy");
    EXPECT_EQ(found[1].part, "source");
}

TEST_F(VerifyCapture, a_value_that_a_batch_operation_writes_is_compared) {
    const Result<CudaDecodeState> memory = cache->decode_state(engine->stream);
    ASSERT_TRUE(memory);
    const auto step = [&](std::int32_t value) {
        cuda::WriteValueOp operations[2] = {};
        operations[0].operation = operations[1].operation = cuda::mem_op_write_value_32;
        operations[0].address = memory->tokens;
        operations[0].value = 7 | std::uint64_t{static_cast<std::uint32_t>(value)} << 32; // the upper half is not read
        operations[1].address = memory->positions;
        operations[1].value = static_cast<std::uint32_t>(value);
        (void)engine->calls.stream_batch_mem_op(engine->stream, 2, operations, 0);
    };
    const std::vector<BakedIn> found = verify([&](std::int32_t, std::int32_t position) { step(position); });
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].node, "batch memory operation");
    EXPECT_EQ(found[0].part, "operation 1 value");
    EXPECT_TRUE(verify([&](std::int32_t, std::int32_t) { step(5); }).empty());
}

TEST_F(VerifyCapture, T16_nodes_that_cannot_be_compared_are_never_called_clean) {
    cuda::Event event = nullptr;
    Engine::check(engine->calls.event_create(&event, cuda::event_default));
    const std::vector<BakedIn> found = verify([&](std::int32_t, std::int32_t) {
        kernel("gemm", 0, 0, 0);
        for (int i = 0; i < 2; ++i) {
            Engine::check(engine->calls.event_record_with_flags(event, engine->stream, cuda::event_record_external));
        }
    });
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].part, "not compared");
    EXPECT_EQ(found[0].text, "not compared: 2 nodes of type event record");
    EXPECT_EQ(row(1).baked_in, std::vector<std::string>{found[0].text});
    Engine::check(engine->calls.event_destroy(event));
}

TEST_F(VerifyCapture, another_structure_is_named_with_the_kernels_that_differ) {
    const std::vector<BakedIn> found =
        verify([&](std::int32_t, std::int32_t position) { layers(position == 5 ? 24 : 22, -1, 0); });
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].part, "structure");
    EXPECT_NE(found[0].text.find("kernel rope 24 against 22"), std::string::npos) << found[0].text;
}

TEST_F(VerifyCapture, launch_geometry_that_follows_the_position_is_found) {
    const std::vector<BakedIn> found = verify([&](std::int32_t, std::int32_t position) {
        (void)engine->calls.launch_kernel(engine->function("plain"), static_cast<unsigned>(position), 1, 1, 32, 1, 1, 0,
                                          engine->stream, nullptr, nullptr);
    });
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].part, "grid");
}

TEST_F(VerifyCapture, an_error_of_the_step_ends_the_capture_and_is_returned) {
    const Result<std::vector<BakedIn>> found = cache->verify_capture(1, engine->stream, [](std::int32_t, std::int32_t) {
        return Status(Error{ErrorCode::failed, "no weights."});
    });
    EXPECT_EQ(message_of(found), "no weights.");
    EXPECT_EQ(vgpu::alive().captures, 0u);
    EXPECT_EQ(message_of(engine->capture(*cache, 1, 3, "plain")), "");
}

TEST_F(VerifyCapture, the_two_steps_must_differ) {
    const auto step = [](std::int32_t, std::int32_t) {
        return Status();
    };
    EXPECT_FALSE(cache->verify_capture(1, engine->stream, step, {{3, 3}, {1, 2}}));
    EXPECT_FALSE(cache->verify_capture(1, engine->stream, step, {{3, 4}, {1, 1}}));
    EXPECT_FALSE(cache->verify_capture(1, engine->stream, nullptr));
}

TEST_F(VerifyCapture, an_older_driver_is_told_to_be_too_old) {
    cache.reset();
    engine.reset();
    vgpu::Config config;
    config.driver_version = 12030;
    vgpu::reset(config);
    const Result<cuda::Driver> old = cuda::load_driver("libcuda.so.1");
    ASSERT_EQ(message_of(old), "");
    engine = std::make_unique<Engine>();
    cache = make_cache({}, nullptr, &*old);
    const Result<std::vector<BakedIn>> found =
        cache->verify_capture(1, engine->stream, [&](std::int32_t, std::int32_t) {
            engine->kernels("gemm", 1);
            return Status();
        });
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::unsupported);
    EXPECT_NE(message_of(found).find("12.4"), std::string::npos);
    cache.reset();
}

} // namespace
} // namespace plumb::cudagraph
