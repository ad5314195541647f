// SPDX-License-Identifier: Apache-2.0
// Prompts by a stand-in libcublasLt on the virtual GPU, beside the same prompts by our own tiles; and the kernels around it.
#include "decoder/kernels/cuda/library_products.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "decoder/kernels/cuda/cuda_backend.hpp"
#include "decoder/kernels/cuda/host_block_testing.hpp"
#include "decoder/kernels/cuda/split_kernels.hpp"
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"
#include "decoder/test_support.hpp"
#include "plumb/plumb.hpp"
#include "virtual_cudart/cublaslt_control.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder {
namespace {

/// The control of the library that the decoder finds.
struct StandIn {
    decltype(&virtual_cublaslt_answer) answer = nullptr;
    decltype(&virtual_cublaslt_products) products = nullptr;
    decltype(&virtual_cublaslt_failure) failure = nullptr;

    StandIn() {
        cuda::VirtualDecoderKernels::of_process(); // opens it by its path
        void* const library = ::dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) {
            answer = reinterpret_cast<decltype(answer)>(::dlsym(library, "virtual_cublaslt_answer"));
            products = reinterpret_cast<decltype(products)>(::dlsym(library, "virtual_cublaslt_products"));
            failure = reinterpret_cast<decltype(failure)>(::dlsym(library, "virtual_cublaslt_failure"));
        }
    }
};

Result<std::unique_ptr<ComputeBackend>> device_with_library(const std::string&, const cpu::CpuOptions&, Graphs graphs) {
    return cuda::make_backend(0, graphs, "no PTX");
}
Result<std::unique_ptr<ComputeBackend>> device_alone(const std::string&, const cpu::CpuOptions&, Graphs graphs) {
    return cuda::make_backend(0, graphs, "no PTX", cuda::no_library);
}

class LibraryPrompts : public testing::TestWithParam<Type> {
  protected:
    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
        kernels();
        ASSERT_NE(stand_in_.answer, nullptr) << "another libcublasLt was found";
    }
    void TearDown() override {
        if (stand_in_.answer != nullptr) {
            for (const char* call : {"cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
                stand_in_.answer(call, 0);
            }
            EXPECT_STREQ(stand_in_.failure(), "");
            EXPECT_EQ(kernels().failure(), "");
            EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        }
    }
    static cuda::VirtualDecoderKernels& kernels() { return cuda::VirtualDecoderKernels::of_process(); }
    /// What a prompt of 37 tokens, in chunks of 16, leaves; or the error.
    struct Outcome {
        std::string device, error;
        std::vector<float> logits;
        std::uint64_t products = 0; // of the library
    };
    Outcome prompt(const char* shape, BackendFunction device, std::size_t batch = 1, Graphs graphs = Graphs::off) {
        Options options;
        options.backend = "cuda";
        options.device = std::move(device);
        options.graphs = graphs;
        options.context = 64;
        options.chunk = 16;
        options.batch = batch;
        Outcome out;
        const std::uint64_t before = stand_in_.products();
        Result<Decoder> decoder = Decoder::load(make_test_model(folder_, shape, GetParam()), options);
        if (!decoder) {
            out.error = decoder.error().message;
            return out;
        }
        Status status;
        for (std::size_t i = 0; i < batch && status; ++i) {
            status = decoder->prefill(decoder->random_prompt(37, 2), off_, {}, i);
        }
        if (batch > 1 && status) {
            const Result<std::size_t> done = decoder->decode(3, off_);
            status = done ? Status{} : Status{done.error()};
        }
        out.error = status ? "" : status.error().message;
        out.device = decoder->description()[1].second;
        if (status) {
            out.logits.assign(decoder->logits().begin(), decoder->logits().end());
        }
        out.products = stand_in_.products() - before;
        return out;
    }
    /// Parts of the largest logit.
    static double apart(const std::vector<float>& a, const std::vector<float>& b) {
        EXPECT_EQ(a.size(), b.size());
        double difference = 0, largest = 0;
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            difference = std::max(difference, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
            largest = std::max(largest, std::abs(static_cast<double>(b[i])));
        }
        EXPECT_GT(largest, 0.0);
        return difference / largest;
    }
    static constexpr double bound = 1e-5; // of every type: only the order of sums differs

    StandIn stand_in_;
    TestFolder folder_;
    OffRecorder off_;
};

TEST_P(LibraryPrompts, have_the_logits_of_our_own_tiles) {
    for (const char* shape : {"test", "test-qwen2", "test-mixtral"}) { // qwen2: with biases; mixtral: experts stay ours
        const Outcome with = prompt(shape, device_with_library), without = prompt(shape, device_alone);
        EXPECT_EQ(with.error + without.error, "") << shape;
        EXPECT_GT(with.products, 0U) << shape;
        EXPECT_EQ(without.products, 0U) << shape;
        EXPECT_EQ(with.device, without.device + ", cuBLASLt 13.0.2") << shape;
        EXPECT_LT(apart(with.logits, without.logits), bound) << shape;
    }
}

/// Steps of more sequences than our kernel for few rows takes are the library's, replayed too.
TEST_P(LibraryPrompts, of_a_large_batch_are_replayed_with_the_library) {
    const Outcome with = prompt("test", device_with_library, 10, Graphs::verify);
    const Outcome without = prompt("test", device_alone, 10, Graphs::verify);
    EXPECT_EQ(with.error + without.error, "");
    EXPECT_GT(with.products, 0U);
    EXPECT_LT(apart(with.logits, without.logits), bound);
}

TEST_P(LibraryPrompts, that_the_library_refuses_are_by_our_own_tiles) {
    const Outcome without = prompt("test", device_alone);
    for (const auto& [call, status] : {std::pair{"cublasLtCreate", 1},
                                       {"cublasLtMatmulAlgoGetHeuristic", cuda::lt_not_supported},
                                       {"cublasLtMatmul", cuda::lt_not_supported}}) {
        stand_in_.answer(call, status);
        const Outcome refused = prompt("test", device_with_library);
        stand_in_.answer(call, 0);
        EXPECT_EQ(refused.error, "") << call;
        EXPECT_EQ(refused.products, 0U) << call;
        EXPECT_EQ(refused.logits, without.logits) << call;
    }
}

TEST_P(LibraryPrompts, that_fail_in_the_library_end_in_one_sentence) {
    stand_in_.answer("cublasLtMatmul", 13);
    EXPECT_EQ(prompt("test", device_with_library).error,
              "cublasLtMatmul answers CUBLAS_STATUS_EXECUTION_FAILED (13); check the driver with nvidia-smi, or use "
              "--backend cpu");
}

/// Else the shape would be found the next time, and its products go into scratch that is not there.
TEST_P(LibraryPrompts, whose_scratch_was_refused_are_prepared_anew) {
    const Result<cuda::CudaDriver>& calls = cuda::driver();
    ASSERT_TRUE(calls);
    const auto device = cuda::CudaDevice::open(*calls, "no PTX", 0);
    ASSERT_TRUE(device);
    (*device)->enter();
    const auto products = cuda::LibraryProducts::make(**device, *cuda::cublaslt());
    ASSERT_NE(products, nullptr);
    const Weight weight{nullptr, GetParam(), 64, 32};
    // Its own scratch, twice, then that of the pieces, then that of their scales; what was had remains.
    const std::vector<std::uint64_t> refused =
        GetParam() == Type::f32 ? std::vector<std::uint64_t>{1, 1} : std::vector<std::uint64_t>{1, 1, 2, 2};
    for (const std::uint64_t nth : refused) {
        vgpu::fail("cuMemAlloc", vgpu::CuResult::out_of_memory, nth);
        EXPECT_FALSE(products->prepare(weight, 16)) << nth;
    }
    EXPECT_TRUE(vgpu::all_failures_struck());
    EXPECT_TRUE(products->prepare(weight, 16));
    (*device)->leave();
    vgpu::clear_failures();
}

INSTANTIATE_TEST_SUITE_P(Types, LibraryPrompts, testing::Values(Type::f32, Type::bf16, Type::f16),
                         [](const auto& parameter) { return std::string(layout_of(parameter.param).word); });

/// Memory of a test as the kernels see it.
class SplitInputs : public testing::Test {
  protected:
    static constexpr unsigned rows = 4, cols = 24;

    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
        std::uint32_t state = 1;
        for (unsigned i = 0; i < rows * cols; ++i) {
            state = state * 1664525U + 1013904223U;
            const auto fraction = static_cast<float>(state) * 0x1p-32F - 0.5F;
            in_[i] = std::ldexp(fraction, static_cast<int>(state % 24) - 12);
        }
        std::transform(in_ + cols, in_ + 2 * cols, in_ + cols, [](float x) { return x * 1e30F; });
        std::transform(in_ + 2 * cols, in_ + 3 * cols, in_ + 2 * cols, [](float x) { return x * 1e-30F; });
        std::fill_n(in_ + 3 * cols, cols, 0.0F);
    }
    static std::uint64_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
    std::string run(unsigned grid, unsigned threads, unsigned shared,
                    void (*body)(cuda::HostBlock::Lane&, const cuda::SplitArgs&)) {
        std::memset(pieces_, 0xff, sizeof pieces_);
        const cuda::SplitArgs args{address(in_), address(pieces_), address(scales_), rows, cols};
        return block_.launch({{grid, 1, 1}, threads, shared}, body, args);
    }

    void expect_pieces_of_f16() {
        ASSERT_EQ(run(rows, 64, 8, [](auto& m, const auto& a) { split_f16(m, a); }), "");
        for (unsigned r = 0; r < rows; ++r) {
            const float* row = in_ + std::size_t{r} * cols;
            double largest = 0;
            for (unsigned i = 0; i < cols; ++i) {
                largest = std::max(largest, std::abs(static_cast<double>(row[i])));
            }
            for (unsigned i = 0; i < cols; ++i) {
                const auto piece = [&](unsigned p) {
                    return static_cast<double>(
                        cuda::HostBlock::Lane::from_half(pieces_[p * rows * cols + r * cols + i]));
                };
                const float size = std::abs(row[i]);
                const double unit = static_cast<double>(std::nextafter(size, INFINITY)) - static_cast<double>(size);
                const double sum = (piece(0) + piece(1)) * static_cast<double>(scales_[r]);
                EXPECT_LE(std::abs(sum - static_cast<double>(row[i])), std::max(unit, largest * 0x1p-39))
                    << r << " " << i;
            }
        }
    }

    // Whole lines, so that no other's memory shares one.
    alignas(64) float in_[rows * cols];
    alignas(64) std::uint16_t pieces_[3 * rows * cols];
    alignas(64) float scales_[16];
    cuda::HostBlock block_{[this](std::uint64_t at, std::size_t bytes) -> void* {
        const bool inside = (at >= address(in_) && at + bytes <= address(in_) + sizeof in_) ||
                            (at >= address(pieces_) && at + bytes <= address(pieces_) + sizeof pieces_) ||
                            (at >= address(scales_) && at + bytes <= address(scales_) + sizeof scales_);
        return inside ? reinterpret_cast<void*>(at) : nullptr;
    }};
};

TEST_F(SplitInputs, add_up_to_every_bit_of_a_float_in_three_pieces_of_bf16) {
    in_[5] = INFINITY, in_[6] = -INFINITY, in_[7] = NAN;
    const std::uint32_t low_nan = 0x7f800001;
    std::memcpy(&in_[8], &low_nan, 4);
    in_[9] = 3.4028234e38F;
    ASSERT_EQ(run(1, 256, 0, [](auto& m, const auto& a) { split_bf16(m, a); }), "");
    for (unsigned i = 0; i < rows * cols; ++i) {
        float sum = 0;
        for (unsigned piece = 3; piece-- > 0;) {
            sum += cuda::float_of(std::uint32_t{pieces_[piece * rows * cols + i]} << 16);
        }
        if (std::isfinite(in_[i])) { // what lies below the smallest bf16 is lost
            EXPECT_LE(std::abs(sum - in_[i]), std::abs(in_[i]) < 0x1p-109F ? 0x1p-133F : 0.0F) << in_[i];
        } else {
            EXPECT_TRUE(sum == in_[i] || (std::isnan(sum) && std::isnan(in_[i]))) << in_[i] << " " << sum;
        }
    }
}

TEST_F(SplitInputs, add_up_but_for_a_last_bit_in_two_pieces_of_f16) { expect_pieces_of_f16(); }

/// What is left of them lies among the halves without an exponent.
TEST_F(SplitInputs, in_two_pieces_of_f16_lose_2_to_the_minus_39_of_the_largest_where_they_are_far_below_it) {
    constexpr int exponents[rows] = {0, 120, -80, -127}; // of the last row all floats are subnormal
    std::uint32_t state = 1;
    for (const float largest : {1.0F, std::nextafter(2.0F, 0.0F), 1.5F}) {
        for (unsigned i = 0; i < rows * cols; ++i) {
            state = state * 1664525U + 1013904223U;
            const float fraction = 1 + static_cast<float>(state >> 9) * 0x1p-23F;
            const unsigned col = i % cols;
            in_[i] = std::ldexp(col == 0 ? largest : fraction, exponents[i / cols] - static_cast<int>(2 * col));
        }
        expect_pieces_of_f16();
    }
}

TEST(HostHalves, are_the_nearest_and_even_of_two) {
    using Lane = cuda::HostBlock::Lane;
    for (unsigned bits = 0; bits < 0x7c00; ++bits) {
        const float here = Lane::from_half(static_cast<std::uint16_t>(bits));
        const float next = bits == 0x7bff ? 65536.0F : Lane::from_half(static_cast<std::uint16_t>(bits + 1));
        const float middle = (here + next) / 2; // exact
        const unsigned even = bits + bits % 2;
        ASSERT_EQ(Lane::to_half(here), bits);
        ASSERT_EQ(Lane::to_half(-here), bits | 0x8000);
        ASSERT_EQ(Lane::to_half(middle), even);
        ASSERT_EQ(Lane::to_half(std::nextafter(middle, 0.0F)), bits);
        ASSERT_EQ(Lane::to_half(std::nextafter(middle, INFINITY)), bits + 1);
    }
    EXPECT_EQ(Lane::to_half(INFINITY), 0x7c00);
    EXPECT_TRUE(std::isnan(Lane::from_half(Lane::to_half(NAN))));
}

} // namespace
} // namespace plumb::decoder
