// SPDX-License-Identifier: Apache-2.0
// Replays against the eager step, with data that really flows.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "cudagraph/cache_testing.hpp"
#include "fingerprint/cuda/cuda_tensors.hpp"
#include "fingerprint/cuda/virtual_kernels_testing.hpp"
#include "fingerprint/tensor_watch.hpp"
#include "plumb/cuda.hpp"
#include "plumb/tensor.hpp"
#include "record/recorder_testing.hpp"

namespace plumb::cudagraph {
namespace {

constexpr std::size_t width = 64;
constexpr std::uint32_t layers = 4;

std::string any_image() { return "any image"; }

/// A decode step of four layers: each mixes its input with the position (rope), then with what earlier steps left (the kv
/// cache). A step says what is wrong with it.
class VerifyReplay : public CacheTest {
  protected:
    struct Flaw {
        int by_value = -1;  // layer whose rope gets the position as a number
        int copied = -1;    // layer whose position is copied from a place in host memory that the engine leaves
        int buffer = -1;    // layer that reads a buffer of which the engine has two, in turns
        bool embed = false; // the token is a number
    };

    void SetUp() override {
        vgpu::Config config;
        config.kernel_min_ns = config.kernel_max_ns = 500;
        start(config);
        kernels = std::make_unique<fingerprint::VirtualKernels>();
        define();
        for (vgpu::DevicePointer* const made : {&hidden, &kv, &kept, &scratch, &scale[0], &scale[1]}) {
            Engine::check(engine->calls.mem_alloc(made, width * sizeof(float)));
        }
        void* pinned = nullptr;
        Engine::check(engine->calls.mem_host_alloc(&pinned, 4096, cuda::memory_host_portable));
        host_positions = static_cast<std::int32_t*>(pinned);
        begin();
    }
    void begin(GraphHost* given = nullptr) {
        auto made = std::make_unique<Cache>(&*cuda::driver(), Error{}, CudaGraphOptions{}, given, &vgpu::host_clock());
        made->fingerprint_image = any_image;
        cache = std::make_unique<CudaGraphCache>(made.release());
        state = *cache->decode_state(engine->stream);
    }
    void TearDown() override {
        RecorderAccess::connect_tensors(recorder, nullptr);
        checks.reset();
        cache.reset();
        for (const vgpu::DevicePointer made : {hidden, kv, kept, scratch, scale[0], scale[1]}) {
            Engine::check(engine->calls.mem_free(made));
        }
        Engine::check(engine->calls.mem_free_host(host_positions));
        engine.reset();
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        EXPECT_TRUE(vgpu::invalidations().empty());
        vgpu::reset();
    }
    void check_tensors() {
        std::vector<std::unique_ptr<fingerprint::DeviceTensors>> devices;
        devices.push_back(fingerprint::make_cuda_tensors({any_image}));
        TensorConfig all;
        all.level = TensorConfig::Level::all;
        checks = std::make_unique<fingerprint::TensorWatch>(
            all, std::move(devices), [this](const std::string& sentence) { EXPECT_TRUE(may_drop) << sentence; });
        recorder.off();
        RecorderAccess::connect_tensors(recorder, checks.get());
        recorder.on();
        queue = plumb::cuda(engine->stream);
    }

    static void define() {
        vgpu::KernelModel embed;
        embed.param_bytes = {8, 8, 4};
        embed.function = [](const vgpu::KernelRun& run) {
            const auto tokens = run.param<std::uint64_t>(1);
            const std::int32_t read = tokens != 0 ? *vgpu::at<std::int32_t>(tokens) : run.param<std::int32_t>(2);
            for (std::size_t i = 0; i < width; ++i) {
                vgpu::at<float>(run.param<std::uint64_t>(0), width)[i] =
                    static_cast<float>(std::sin(0.1 * static_cast<double>(read) + static_cast<double>(i)));
            }
        };
        vgpu::kernel("embed", embed);
        vgpu::KernelModel rope;
        rope.param_bytes = {8, 8, 4};
        rope.function = [](const vgpu::KernelRun& run) {
            const auto from = run.param<std::uint64_t>(1);
            const std::int32_t read = from != 0 ? *vgpu::at<std::int32_t>(from) : run.param<std::int32_t>(2);
            float* const x = vgpu::at<float>(run.param<std::uint64_t>(0), width);
            for (std::size_t i = 0; i < width; ++i) {
                x[i] += static_cast<float>(std::cos(static_cast<double>(read) / static_cast<double>(i + 1)));
            }
        };
        vgpu::kernel("rope", rope);
        vgpu::KernelModel attend;
        attend.param_bytes = {8, 8, 8};
        attend.function = [](const vgpu::KernelRun& run) {
            float* const x = vgpu::at<float>(run.param<std::uint64_t>(0), width);
            float* const cached = vgpu::at<float>(run.param<std::uint64_t>(1), width);
            const float* const by = vgpu::at<float>(run.param<std::uint64_t>(2), width);
            for (std::size_t i = 0; i < width; ++i) {
                cached[i] = 0.5f * cached[i] + x[i];
                x[i] = x[i] * (1.0f + by[i]) + 0.25f * cached[i];
            }
        };
        vgpu::kernel("attend", attend);
        vgpu::KernelModel plant;
        plant.param_bytes = {8, 8, 4};
        plant.function = [](const vgpu::KernelRun& run) {
            const auto what = run.param<std::uint64_t>(1);
            const auto size = static_cast<std::size_t>(run.param<std::int32_t>(2));
            std::memcpy(vgpu::at<char>(run.param<std::uint64_t>(0), size), &what, size);
        };
        vgpu::kernel("plant", plant);
    }
    void launch(const char* name, vgpu::DevicePointer a, std::uint64_t b, std::uint64_t c) {
        auto small = static_cast<std::int32_t>(c);
        engine->kernel(engine->stream, name, {&a, &b, name == std::string("attend") ? static_cast<void*>(&c) : &small});
    }

    Status step(const Flaw& flaw) {
        launch("embed", hidden, flaw.embed ? 0 : state.tokens, flaw.embed ? static_cast<std::uint64_t>(token) : 0);
        PLUMB_TENSOR(recorder, queue, Brick::embedding, of(hidden));
        for (std::uint32_t layer = 0; layer < layers; ++layer) {
            const Layer of_model(recorder, recorder.mode(), layer);
            const auto at = static_cast<int>(layer);
            PLUMB_TENSOR_INPUT(recorder, queue, Brick::rope_embedding, of(hidden));
            if (flaw.copied == at) {
                Engine::check(engine->calls.memcpy_htod_async(scratch, host_positions + turn % 8, 4, engine->stream));
                launch("rope", hidden, scratch, 0);
            } else if (flaw.by_value == at) {
                launch("rope", hidden, 0, static_cast<std::uint64_t>(position));
            } else {
                launch("rope", hidden, state.positions, 0);
            }
            PLUMB_TENSOR(recorder, queue, Brick::rope_embedding, of(hidden));
            launch("attend", hidden, kv, scale[flaw.buffer == at ? turn % 2 : 0]);
            PLUMB_TENSOR(recorder, queue, Brick::attention, of(hidden));
        }
        return {};
    }
    static Tensor of(vgpu::DevicePointer memory) {
        return tensor(reinterpret_cast<const void*>(memory), DType::f32, {1, width});
    }
    /// As the engine feeds a replay.
    Status feed(unsigned round) {
        turn = round;
        token = static_cast<std::int32_t>(7 + 13 * round);
        position = static_cast<std::int32_t>(20 + 9 * round);
        host_positions[turn % 8] = position;
        float* const by = vgpu::at<float>(scale[turn % 2], width);
        for (std::size_t i = 0; i < width; ++i) {
            by[i] = 0.01f * static_cast<float>(i + 1 + (turn % 2));
        }
        return cache->set_decode_state(token, position, engine->stream);
    }
    Status copy(vgpu::DevicePointer to, vgpu::DevicePointer from) {
        Engine::check(engine->calls.memcpy_dtod_async(to, from, width * sizeof(float), engine->stream));
        return {};
    }
    CudaReplayCheck check_of(const Flaw& flaw, std::vector<CudaOutput> outputs = {}) {
        CudaReplayCheck check;
        check.eager = [this, flaw] {
            return step(flaw);
        };
        check.vary = [this](unsigned round) {
            return feed(round + 1);
        };
        check.save = [this] {
            return copy(kept, kv);
        };
        check.restore = [this] {
            return copy(kv, kept);
        };
        check.outputs = std::move(outputs);
        return check;
    }
    void capture_flawed(const Flaw& flaw) {
        (void)feed(0);
        ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
        (void)step(flaw);
        ASSERT_EQ(message_of(cache->end_capture(1)), "");
    }
    std::vector<StaleInput> verify(const CudaReplayCheck& check) {
        const Result<std::vector<StaleInput>> found = cache->verify_replay(1, engine->stream, check);
        EXPECT_EQ(message_of(found), "");
        return found ? *found : std::vector<StaleInput>{};
    }
    std::vector<CudaOutput> hidden_out() { return {{"hidden", of(hidden)}}; }

    record::TestRecorder recorder{record::TestOptions{}};
    std::unique_ptr<fingerprint::VirtualKernels> kernels;
    std::unique_ptr<fingerprint::TensorWatch> checks;
    Queue queue;
    CudaDecodeState state;
    vgpu::DevicePointer hidden = 0, kv = 0, kept = 0, scratch = 0, scale[2] = {};
    std::int32_t* host_positions = nullptr;
    std::int32_t token = 0, position = 0;
    unsigned turn = 0;
    bool may_drop = false;
};

TEST_F(VerifyReplay, a_clean_graph_raises_nothing) {
    check_tensors();
    capture_flawed({});
    EXPECT_TRUE(verify(check_of({}, hidden_out())).empty());
    EXPECT_TRUE(row(1).stale_inputs.empty());
}

TEST_F(VerifyReplay, a_clean_graph_without_checks_raises_nothing) {
    capture_flawed({});
    EXPECT_TRUE(verify(check_of({}, hidden_out())).empty());
}

TEST_F(VerifyReplay, T16_a_position_by_value_is_named_by_node_brick_and_layer) {
    check_tensors();
    for (int layer = 0; layer < static_cast<int>(layers); ++layer) {
        Flaw flaw;
        flaw.by_value = layer;
        capture_flawed(flaw);
        const std::vector<StaleInput> found = verify(check_of(flaw, hidden_out()));
        ASSERT_EQ(found.size(), 1u) << layer;
        EXPECT_EQ(found[0].brick, "rope_embedding");
        EXPECT_EQ(found[0].layer, layer);
        EXPECT_EQ(found[0].round, 0u);
        EXPECT_EQ(found[0].node, "kernel rope #" + std::to_string(layer) + ", parameter 2, bytes 0..0");
        EXPECT_GT(found[0].distance, 0);
        EXPECT_EQ(row(1).stale_inputs, std::vector<std::string>{found[0].text});
        EXPECT_NE(found[0].text.find("layer " + std::to_string(layer) + ", brick rope_embedding"), std::string::npos)
            << found[0].text;
    }
}

TEST_F(VerifyReplay, a_wrong_buffer_is_named_by_the_parameter_that_points_to_it) {
    check_tensors();
    Flaw flaw;
    flaw.buffer = 2;
    capture_flawed(flaw);
    const std::vector<StaleInput> found = verify(check_of(flaw, hidden_out()));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].brick, "attention");
    EXPECT_EQ(found[0].layer, 2);
    EXPECT_NE(found[0].node.find("kernel attend #2, parameter 2"), std::string::npos) << found[0].node;
}

TEST_F(VerifyReplay, a_copy_from_a_place_that_the_engine_left_is_named) {
    check_tensors();
    Flaw flaw;
    flaw.copied = 1;
    capture_flawed(flaw);
    const std::vector<StaleInput> found = verify(check_of(flaw, hidden_out()));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].brick, "rope_embedding");
    EXPECT_EQ(found[0].layer, 1);
    EXPECT_NE(found[0].node.find("memcpy #0, source"), std::string::npos) << found[0].node;
}

TEST_F(VerifyReplay, without_checks_the_output_and_the_node_are_named) {
    Flaw flaw;
    flaw.by_value = 3;
    capture_flawed(flaw);
    const std::vector<StaleInput> found = verify(check_of(flaw, hidden_out()));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].brick, "hidden");
    EXPECT_EQ(found[0].layer, -1);
    EXPECT_NE(found[0].node.find("kernel rope #3, parameter 2"), std::string::npos) << found[0].node;
}

TEST_F(VerifyReplay, a_stale_token_is_named_at_the_first_brick_of_all) {
    check_tensors();
    Flaw flaw;
    flaw.embed = true;
    capture_flawed(flaw);
    const std::vector<StaleInput> found = verify(check_of(flaw));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].brick, "embedding");
    EXPECT_EQ(found[0].layer, -1);
    EXPECT_NE(found[0].node.find("kernel embed #0, parameter 2"), std::string::npos) << found[0].node;
}

TEST_F(VerifyReplay, a_step_that_cannot_be_captured_again_leaves_the_nodes_between_the_checks) {
    check_tensors();
    Flaw flaw;
    flaw.by_value = 2;
    capture_flawed(flaw);
    CudaReplayCheck check = check_of(flaw);
    check.eager = [this, flaw]() -> Status {
        cuda::CaptureStatus status = cuda::CaptureStatus::none;
        Engine::check(engine->calls.stream_is_capturing(engine->stream, &status));
        return status == cuda::CaptureStatus::none ? step(flaw) : Status(Error{ErrorCode::failed, "not in a capture."});
    };
    const std::vector<StaleInput> found = verify(check);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].node, "kernel rope");
    EXPECT_EQ(vgpu::alive().captures, 0u);
}

TEST_F(VerifyReplay, T16_a_replay_that_starts_from_another_state_is_no_excuse) {
    check_tensors();
    capture_flawed({});
    CudaReplayCheck check = check_of({}, hidden_out());
    check.save = check.restore = nullptr; // the kv cache then differs
    const std::vector<StaleInput> found = verify(check);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].brick, "attention");
    EXPECT_EQ(found[0].layer, 0);
}

TEST_F(VerifyReplay, a_difference_within_the_tolerance_is_none) {
    check_tensors();
    Flaw flaw;
    flaw.by_value = 1;
    capture_flawed(flaw);
    CudaReplayCheck check = check_of(flaw, hidden_out());
    check.tolerance = 1e3;
    EXPECT_TRUE(verify(check).empty());
}

TEST_F(VerifyReplay, T16_no_tolerance_excuses_non_finite_elements_or_lengths_that_nobody_can_tell) {
    const auto bits = [](auto value) {
        std::uint64_t made = 0;
        std::memcpy(&made, &value, sizeof value);
        return made;
    };
    struct Planted {
        std::size_t element;
        std::uint64_t bits;
    };
    const std::uint64_t nan = bits(std::numeric_limits<float>::quiet_NaN());
    const std::uint64_t infinite = bits(std::numeric_limits<float>::infinity());
    const std::uint64_t zero = 0;
    struct Case {
        const char* what;
        DType dtype;
        std::vector<Planted> eager, replay;
        bool differs;
    };
    const Case cases[] = {
        {"the first NaN moves", DType::f32, {{3, nan}}, {{5, nan}}, true},
        {"a later NaN moves", DType::f32, {{3, nan}, {5, nan}}, {{3, nan}, {6, nan}}, true},
        {"a later infinity moves", DType::f32, {{3, infinite}, {5, infinite}}, {{3, infinite}, {6, infinite}}, true},
        {"the same NaN", DType::f32, {{3, nan}}, {{3, nan}}, false},
        {"finite", DType::f32, {{3, zero}}, {{5, zero}}, false},
        {"squares overflow", DType::f64, {{3, bits(1e200)}}, {{3, bits(-1e200)}}, true},
        {"squares of the replay overflow", DType::f64, {{3, bits(1.0)}}, {{3, bits(1e200)}}, true},
        {"finite doubles", DType::f64, {{3, bits(1.0)}}, {{3, bits(2.0)}}, false},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.what);
        const std::size_t size = one.dtype == DType::f64 ? 8 : 4;
        const auto put = [&](const std::vector<Planted>& planted) {
            for (std::size_t i = 0; i < width * sizeof(float) / size; ++i) {
                launch("plant", hidden + i * size, size == 8 ? bits(0.5) : bits(0.5f), size);
            }
            for (const Planted& element : planted) {
                launch("plant", hidden + element.element * size, element.bits, size);
            }
        };
        (void)feed(0);
        ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
        put(one.replay);
        ASSERT_EQ(message_of(cache->end_capture(1)), "");
        CudaReplayCheck check = check_of({});
        check.tolerance = 1e300;
        check.eager = [&]() -> Status {
            put(one.eager);
            return {};
        };
        check.outputs = {
            {"hidden", tensor(reinterpret_cast<const void*>(hidden), one.dtype, {1, width * sizeof(float) / size})}};
        const std::vector<StaleInput> found = verify(check);
        ASSERT_EQ(found.size(), one.differs ? 1u : 0u);
        EXPECT_TRUE(!one.differs || std::isinf(found[0].distance));
    }
}

TEST_F(VerifyReplay, what_eager_changes_on_the_host_is_afterwards_as_it_was_saved) {
    check_tensors();
    Flaw flaw;
    flaw.by_value = 2;
    capture_flawed(flaw);
    int written = 17, saved = 0, calls = 0;
    CudaReplayCheck check = check_of(flaw, hidden_out());
    const CudaReplayCheck inner = check;
    check.eager = [&] {
        ++written;
        ++calls;
        return inner.eager();
    };
    check.save = [&] {
        saved = written;
        return inner.save();
    };
    check.restore = [&] {
        written = saved;
        return inner.restore();
    };
    EXPECT_EQ(verify(check).size(), 1u);
    EXPECT_EQ(calls, static_cast<int>(check.rounds) + 1) << "once more, to name the node";
    EXPECT_EQ(written, 17);
}

TEST_F(VerifyReplay, the_state_is_afterwards_as_it_was_saved) {
    capture_flawed({});
    float* const cached = vgpu::at<float>(kv, width);
    cached[5] = 42;
    EXPECT_TRUE(verify(check_of({}, hidden_out())).empty());
    vgpu::run_dry();
    EXPECT_EQ(cached[5], 42);
}

TEST_F(VerifyReplay, what_cannot_be_verified_is_an_error_and_changes_nothing) {
    const auto code = [&](const CudaReplayCheck& check, std::uint64_t key = 1) {
        const Result<std::vector<StaleInput>> found = cache->verify_replay(key, engine->stream, check);
        return found ? ErrorCode::failed : found.error().code;
    };
    EXPECT_EQ(code(check_of({}, hidden_out())), ErrorCode::not_found);
    capture_flawed({});
    EXPECT_EQ(code(check_of({}, hidden_out()), 2), ErrorCode::not_found);
    EXPECT_EQ(code(check_of({})), ErrorCode::invalid_argument) << "nothing to compare";
    CudaReplayCheck check = check_of({}, hidden_out());
    check.rounds = 0;
    EXPECT_EQ(code(check), ErrorCode::invalid_argument);
    check = check_of({}, hidden_out());
    check.restore = nullptr;
    EXPECT_EQ(code(check), ErrorCode::invalid_argument);
    check = check_of({}, hidden_out());
    check.vary = nullptr;
    EXPECT_EQ(code(check), ErrorCode::invalid_argument);
    ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
    EXPECT_EQ(code(check_of({}, hidden_out())), ErrorCode::invalid_argument) << "captured";
    ASSERT_EQ(message_of(cache->abort_capture()), "");
    check = check_of({}, hidden_out());
    check.eager = [] {
        return Status(Error{ErrorCode::failed, "no weights."});
    };
    EXPECT_EQ(message_of(cache->verify_replay(1, engine->stream, check)), "no weights.");
    EXPECT_TRUE(replays(1));
}

TEST_F(VerifyReplay, each_call_that_fails_once_is_an_error_or_harmless_and_nothing_leaks) {
    check_tensors();
    Flaw flaw;
    flaw.by_value = 2;
    capture_flawed(flaw);
    (void)verify(check_of(flaw, hidden_out()));
    (void)verify(check_of(flaw, hidden_out()));
    const std::string before = vgpu::leaks();
    may_drop = true;
    int errors = 0;
    for (const char* const call :
         {"cuStreamSynchronize", "cuGraphLaunch", "cuStreamGetCaptureInfo", "cuThreadExchangeStreamCaptureMode",
          "cuCtxPushCurrent", "cuStreamGetCtx", "cuCtxGetId", "cuStreamBeginCapture", "cuStreamEndCapture",
          "cuGraphGetNodes", "cuGraphGetEdges", "cuGraphKernelNodeGetParams", "cuFuncGetParamInfo", "cuFuncGetName",
          "cuStreamIsCapturing", "cuGraphNodeGetType", "cuGraphMemcpyNodeGetParams", "cuGraphDestroy"}) {
        for (std::uint64_t nth = 1; nth <= 40; nth += nth < 5 ? 1 : 7) {
            SCOPED_TRACE(std::string(call) + " " + std::to_string(nth));
            vgpu::fail(call, vgpu::CuResult::unknown, nth);
            const Result<std::vector<StaleInput>> found =
                cache->verify_replay(1, engine->stream, check_of(flaw, hidden_out()));
            vgpu::clear_failures();
            vgpu::run_dry();
            drain::FeedRound round;
            checks->collect(round);
            errors += found ? 0 : 1;
            if (found) {
                ASSERT_EQ(found->size(), 1u);
                EXPECT_EQ((*found)[0].brick, "rope_embedding");
                EXPECT_EQ((*found)[0].layer, 2);
            }
            EXPECT_EQ(vgpu::leaks(), before);
            EXPECT_TRUE(replays(1));
        }
    }
    EXPECT_GT(errors, 10);
}

TEST_F(VerifyReplay, verify_capture_does_not_take_our_own_nodes_for_baked_in) {
    check_tensors();
    const auto step_of = [&](bool flawed) {
        return [this, flawed](std::int32_t of_token, std::int32_t of_position) {
            token = of_token;
            position = of_position;
            Flaw flaw;
            flaw.by_value = flawed ? 1 : -1;
            return step(flaw);
        };
    };
    const Result<std::vector<BakedIn>> clean = cache->verify_capture(1, engine->stream, step_of(false));
    ASSERT_EQ(message_of(clean), "");
    EXPECT_TRUE(clean->empty());
    const Result<std::vector<BakedIn>> baked = cache->verify_capture(1, engine->stream, step_of(true));
    ASSERT_EQ(message_of(baked), "");
    ASSERT_EQ(baked->size(), 1u);
    EXPECT_EQ((*baked)[0].node, "kernel rope");
}

TEST_F(VerifyReplay, the_profiler_hears_what_both_ways_of_looking_found) {
    cache.reset();
    begin(&host);
    check_tensors();
    Flaw flaw;
    flaw.by_value = 0;
    capture_flawed(flaw);
    ASSERT_EQ(verify(check_of(flaw)).size(), 1u);
    const std::vector<std::string> told = host.row(1).baked_in;
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].rfind("stale in replay: layer 0, brick rope_embedding", 0), 0u) << told[0];
    cache.reset();
}

} // namespace
} // namespace plumb::cudagraph
