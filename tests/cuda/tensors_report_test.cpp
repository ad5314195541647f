// SPDX-License-Identifier: Apache-2.0
// tensors=all on the virtual GPU, from PLUMB_TENSOR to plumb diverge: a decode that runs eagerly against its own graph.
#include <cmath>
#include <string>
#include <vector>

#include "engine.hpp"
#include "fingerprint/cuda/virtual_kernels_testing.hpp"
#include "numerics/diverge.hpp"
#include "plumb/cuda.hpp"

namespace plumb::cuda_test {
namespace {

constexpr std::size_t width = 64;
constexpr std::uint32_t rope_layers = 3;
constexpr int decode_steps = 40;

/// Three layers whose rope reads the position from device memory; in the layer that is stale, from its own parameter.
class TensorsReport : public testing::Test {
  protected:
    void SetUp() override {
        vgpu::Config config;
        config.kernel_min_ns = config.kernel_max_ns = 1'000;
        vgpu::reset(config);
        kernels = std::make_unique<fingerprint::VirtualKernels>();
        vgpu::KernelModel mix;
        mix.param_bytes = {8, 8, 4};
        mix.function = [](const vgpu::KernelRun& run) {
            const auto from = run.param<std::uint64_t>(1);
            const std::int32_t value = from != 0 ? *vgpu::at<std::int32_t>(from) : run.param<std::int32_t>(2);
            float* const x = vgpu::at<float>(run.param<std::uint64_t>(0), width);
            for (std::size_t i = 0; i < width; ++i) {
                x[i] = 0.5f * x[i] + static_cast<float>(std::cos(value / static_cast<double>(i + 1)));
            }
        };
        vgpu::kernel("rope", mix);
        vgpu::kernel("embed", mix);
        must(calls().init(0));
        must(calls().primary_ctx_retain(&context, 0));
        must(calls().ctx_push_current(context));
        must(calls().module_load_data(&module, "an image"));
        must(calls().module_get_function(&rope, module, "rope"));
        must(calls().module_get_function(&embed, module, "embed"));
        must(calls().stream_create(&stream, cuda::stream_non_blocking));
        must(calls().mem_alloc(&hidden, width * sizeof(float)));
    }
    void TearDown() override {
        for (const char* which : {"eager", "clean", "stale"}) {
            std::remove(path(which).c_str());
        }
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        EXPECT_TRUE(vgpu::invalidations().empty());
    }
    static const cuda::Driver& calls() { return *cuda::driver(); }
    static void must(cuda::CuResult result) { ASSERT_EQ(result, cuda::CuResult::success); }
    static std::string path(const std::string& which) {
        return testing::TempDir() + "plumb_checks_" + which + "-" + std::to_string(getpid()) + ".plumb";
    }

    void launch(cuda::Function function, std::uint64_t from, std::int32_t value) {
        void* params[] = {&hidden, &from, &value};
        must(calls().launch_kernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr));
    }
    void enqueue(Profiler& prof, const CudaDecodeState& state, int stale) {
        const Queue queue = plumb::cuda(stream);
        const Tensor of = tensor(reinterpret_cast<const void*>(hidden), DType::f32, {1, width});
        launch(embed, state.tokens, 0);
        PLUMB_TENSOR(prof, queue, Brick::embedding, of);
        for (std::uint32_t layer = 0; layer < rope_layers; ++layer) {
            PLUMB_LAYER(prof, layer);
            PLUMB_TENSOR_INPUT(prof, queue, Brick::rope_embedding, of);
            {
                PLUMB_BRICK(prof, queue, Brick::rope_embedding);
                const bool by_value = stale == static_cast<int>(layer);
                launch(rope, by_value ? 0 : state.positions, by_value ? position : 0);
            }
            PLUMB_TENSOR(prof, queue, Brick::rope_embedding, of);
        }
    }
    /// A decode of forty steps; false: this library has no kernels.
    bool decode(const std::string& which, bool graph, int stale) {
        Config config = *Config::parse("on,tensors=all,graph.every=4,out=" + path(which));
        std::string said;
        config.clock = &vgpu::host_clock();
        config.diagnostic = [](const char* sentence, void* user) {
            *static_cast<std::string*>(user) += sentence;
        };
        config.diagnostic_user = &said;
        std::memset(vgpu::at<float>(hidden, width), 0, width * sizeof(float));
        Profiler prof(config);
        CudaGraphCache cache(&prof);
        const CudaDecodeState state = *cache.decode_state(stream);
        position = 100;
        if (graph) {
            EXPECT_TRUE(cache.begin_capture(stream).ok());
            enqueue(prof, state, stale);
            EXPECT_TRUE(cache.end_capture(1).ok());
        }
        for (int step = 0; step < decode_steps; ++step) {
            position = 100 + step;
            PLUMB_STEP(prof, plumb::cuda(stream), Phase::decode, tokens(1),
                       kv_length(static_cast<std::uint64_t>(position) + 1));
            EXPECT_TRUE(cache.set_decode_state(7 * step, position, stream).ok());
            if (graph) {
                const Result<bool> replayed = cache.replay(1, stream);
                EXPECT_TRUE(replayed.ok() && *replayed);
            } else {
                enqueue(prof, state, stale);
            }
            must(calls().stream_synchronize(stream));
            if (step % 8 == 0) {
                EXPECT_TRUE(prof.flush().ok());
            }
        }
        EXPECT_TRUE(prof.flush().ok());
        EXPECT_TRUE(prof.close().ok());
        if (said.find("built without nvcc") != std::string::npos) {
            return false;
        }
        EXPECT_EQ(said, "");
        return true;
    }

    std::unique_ptr<fingerprint::VirtualKernels> kernels;
    cuda::Context context = nullptr;
    cuda::Module module = nullptr;
    cuda::Function rope = nullptr;
    cuda::Function embed = nullptr;
    cuda::Stream stream = nullptr;
    cuda::DevicePointer hidden = 0;
    std::int32_t position = 0;
};

TEST_F(TensorsReport, F3_a_graph_with_a_stale_input_parts_from_the_eager_run_at_that_brick_and_layer) {
    if (!decode("eager", false, -1)) {
        GTEST_SKIP() << "built without nvcc";
    }
    EXPECT_TRUE(decode("clean", true, -1));
    EXPECT_TRUE(decode("stale", true, 1));
    DivergeOptions exact;
    exact.exact = true;
    const Result<DivergeReport> clean = diverge_recordings(path("eager"), path("clean"), exact);
    ASSERT_TRUE(clean.ok()) << clean.error().message;
    EXPECT_TRUE(clean->same()) << clean->divergent;
    EXPECT_EQ(clean->compared, std::uint64_t{decode_steps} * (1 + 2 * rope_layers));
    EXPECT_EQ(clean->identical, clean->compared);

    const Result<DivergeReport> stale = diverge_recordings(path("eager"), path("stale"), exact);
    ASSERT_TRUE(stale.ok()) << stale.error().message;
    ASSERT_TRUE(stale->first.has_value()) << stale->compared << " compared";
    const TensorPlace& place = stale->first->tensor.place;
    EXPECT_EQ(place.brick, "rope_embedding");
    EXPECT_EQ(place.layer, 1u);
    EXPECT_EQ(place.position, 101) << "the position of the capture is right in the first step";
    EXPECT_EQ(place.role, TensorRole::output);
    EXPECT_EQ(stale->first->inputs, InputState::agree);
}

} // namespace
} // namespace plumb::cuda_test
