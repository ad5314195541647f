// SPDX-License-Identifier: Apache-2.0
// The best logits as the device finds them against those that a sort finds, and tokens sampled from them against those that the
// sampler draws from all logits.
#include "decoder/kernels/cuda/best_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "decoder/kernels/cuda/cuda_backend.hpp"
#include "decoder/kernels/cuda/host_block_testing.hpp"
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"
#include "decoder/sampling/sampler.hpp"
#include "decoder/test_support.hpp"
#include "plumb/plumb.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder {
namespace {

struct FoundLogit {
    float value;
    std::uint32_t index;
    bool operator==(const FoundLogit&) const = default;
};

std::vector<FoundLogit> best_by_sorting(const std::vector<float>& row, std::size_t wanted) {
    std::vector<FoundLogit> out;
    for (std::size_t i = 0; i < row.size(); ++i) {
        out.push_back({std::isnan(row[i]) ? -INFINITY : row[i], static_cast<std::uint32_t>(i)});
    }
    std::sort(out.begin(), out.end(), [](const FoundLogit& a, const FoundLogit& b) {
        return a.value != b.value ? a.value > b.value : a.index < b.index;
    });
    out.resize(std::min(wanted, out.size()));
    return out;
}

class BestValues : public testing::Test {
  protected:
    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
    }
    static std::uint64_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

    /// Memory that the kernels may use: 64-byte lines of its own.
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    std::vector<Line>& buffer(std::size_t bytes) {
        buffers_.emplace_back((bytes + sizeof(Line) - 1) / sizeof(Line));
        return buffers_.back();
    }

    std::vector<FoundLogit> find(const std::vector<float>& rows, unsigned cols, unsigned parts, unsigned wanted) {
        buffers_.clear();
        buffers_.reserve(3);
        const unsigned count = static_cast<unsigned>(rows.size()) / cols;
        auto& values = buffer(rows.size() * sizeof(float));
        std::memcpy(values.data(), rows.data(), rows.size() * sizeof(float));
        auto& found = buffer(std::size_t{count} * parts * wanted * 8);
        auto& out = buffer(std::size_t{count} * wanted * 8);
        const unsigned threads = cuda::largest_threads, shared = threads / 32 * 16;
        const auto launch = [&](unsigned blocks, const cuda::BestArgs& args) {
            EXPECT_EQ(block_.launch(
                          {{blocks, count, 1}, threads, shared},
                          [](auto& m, const cuda::BestArgs& a) { best_values(m, a); }, args),
                      "");
        };
        launch(parts, {address(values.data()), address(found.data()), cols, parts, wanted, 0});
        launch(1, {address(found.data()), address(out.data()), parts * wanted, 1, wanted, 1});
        std::vector<FoundLogit> all(std::size_t{count} * wanted);
        std::memcpy(all.data(), out.data(), all.size() * sizeof(FoundLogit));
        return all;
    }

    std::vector<std::vector<Line>> buffers_;
    cuda::HostBlock block_{[this](std::uint64_t at, std::size_t bytes) -> void* {
        for (const std::vector<Line>& one : buffers_) {
            if (at >= address(one.data()) && at + bytes <= address(one.data() + one.size())) {
                return reinterpret_cast<void*>(at);
            }
        }
        return nullptr;
    }};
};

TEST_F(BestValues, are_those_of_a_sort_with_equals_infinities_and_what_is_no_number) {
    constexpr unsigned cols = 2100;
    std::vector<float> rows;
    std::uint32_t state = 7;
    const auto next = [&] {
        return state = state * 1664525U + 1013904223U;
    };
    for (unsigned i = 0; i < cols; ++i) { // many equals
        rows.push_back(static_cast<float>(next() >> 25) * 0.5F - 20);
    }
    for (unsigned i = 0; i < cols; ++i) {
        rows.push_back(static_cast<float>(next()) * 0x1p-32F);
    }
    for (unsigned i = 0; i < cols; ++i) { // fewer numbers than wanted
        rows.push_back(i % 100 == 3 ? 1.0F : i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -INFINITY);
    }
    for (unsigned i = 0; i < cols; ++i) { // all best ones in one thread's part
        rows.push_back(i % 256 == 9 ? static_cast<float>(i) : -1.0F);
    }
    for (const unsigned parts : {1U, 2U, 5U}) {
        for (const unsigned wanted : {1U, 7U, 64U}) {
            const std::vector<FoundLogit> found = find(rows, cols, parts, wanted);
            for (unsigned row = 0; row < 4; ++row) {
                const auto* const begin = rows.data() + std::size_t{row} * cols;
                const std::vector<FoundLogit> sorted = best_by_sorting({begin, begin + cols}, wanted);
                EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), found.begin() + row * wanted))
                    << row << " " << parts << " " << wanted;
            }
        }
    }
    const std::vector<float> few{3, 1, 2, 3};
    EXPECT_EQ(find(few, 4, 2, 4), best_by_sorting(few, 4));
}

/// The device's k best and the sampler's draw among them, against the draw from all of the same logits.
TEST_F(BestValues, give_the_tokens_that_all_logits_give) {
    cuda::VirtualDecoderKernels& kernels = cuda::VirtualDecoderKernels::of_process();
    const TestFolder folder;
    OffRecorder off;
    const std::string path = make_test_model(folder, "test", Type::f32);
    for (const auto& [k, p, min_p, on_device] : {std::tuple{1U, 1.0F, 0.0F, true},
                                                 {5U, 0.9F, 0.0F, true},
                                                 {64U, 0.5F, 0.05F, true},
                                                 {65U, 1.0F, 0.0F, false},
                                                 {0U, 0.9F, 0.0F, false}}) {
        Options options;
        options.backend = "cuda";
        options.device = [](const std::string&, const cpu::CpuOptions&, Graphs graphs) {
            return cuda::make_backend(0, graphs, "no PTX");
        };
        options.context = 64;
        options.batch = 10; // more than the device finds at once
        options.sampling.temperature = 1.5F;
        options.sampling.top_k = k;
        options.sampling.top_p = p;
        options.sampling.min_p = min_p;
        Result<Decoder> decoder = Decoder::load(path, options);
        ASSERT_TRUE(decoder.ok()) << decoder.error().message;
        std::vector<Sampler> samplers;
        for (std::size_t i = 0; i < options.batch; ++i, ++options.sampling.seed) {
            samplers.push_back(Sampler::make(options.sampling, decoder->vocabulary()).value());
        }
        const std::size_t before = vgpu::operation_count();
        const auto check = [&](std::size_t sequence) {
            EXPECT_EQ(decoder->tokens(sequence).back(), samplers[sequence].pick(decoder->logits(sequence)))
                << k << ", sequence " << sequence;
        };
        for (std::size_t i = 0; i < options.batch; ++i) {
            ASSERT_TRUE(decoder->prefill(decoder->random_prompt(3, i), off, {}, i).ok());
            check(i);
        }
        for (int step = 0; step < 5; ++step) {
            ASSERT_TRUE(decoder->decode(1, off).ok());
            for (std::size_t i = 0; i < options.batch; ++i) {
                check(i);
            }
        }
        const auto all = vgpu::operations();
        const auto found =
            std::count_if(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(), [](const vgpu::Operation& one) {
                return std::string(one.name) == "plumb_decoder_best_values";
            });
        EXPECT_EQ(found, on_device ? 2 * (10 + 5 * 2) : 0) << k;
    }
    EXPECT_EQ(kernels.failure(), "");
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

} // namespace
} // namespace plumb::decoder
