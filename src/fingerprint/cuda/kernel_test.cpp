// SPDX-License-Identifier: Apache-2.0
// The text of the CUDA kernel, run on fibres, against the definition element by element.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "fingerprint/cuda/fingerprint_ptx.hpp"
#include "fingerprint/cuda/host_machine_testing.hpp"
#include "fingerprint/cuda/naive_kernel_testing.hpp"
#include "fingerprint/cuda/tensor_device.hpp"
#include "fingerprint/logits.hpp"

namespace plumb::fingerprint {
namespace {

struct Slots {
    explicit Slots(std::uint32_t count, std::uint32_t buckets = default_buckets)
        : words(std::size_t{count} * words_of_slot(buckets), 0) {
        block.host = words.data();
        block.device = reinterpret_cast<std::uintptr_t>(words.data());
        block.count = count;
        block.buckets = buckets;
    }
    std::vector<std::uint64_t> words;
    SlotBlock block;
};

KernelParameters parameters_of(const Tensor& tensor, const Slots& slots, std::uint64_t first_index = 0,
                               bool logits = false) {
    KernelParameters parameters;
    const Result<KernelTensor> made = kernel_tensor_of(tensor, first_index, logits);
    EXPECT_TRUE(made.ok());
    parameters.tensor = *made;
    parameters.site.slots = slots.block.device;
    parameters.site.slot_count = slots.block.count;
    parameters.site.buckets = slots.block.buckets;
    return parameters;
}

SlotResult result_of(HostMachine& machine, const Tensor& tensor, unsigned blocks, std::uint64_t first_index = 0,
                     bool logits = false, std::uint32_t buckets = default_buckets) {
    const Slots slots(1, buckets);
    machine.launch(parameters_of(tensor, slots, first_index, logits), blocks);
    SlotResult result;
    EXPECT_EQ(read_slot(slots.block, 0, result), SlotState::complete);
    result.fingerprint.count = tensor.count();
    return result;
}

/// Bits of any kind: finite ones mostly, with NaNs, infinities, zeros of both signs and subnormals between.
std::vector<std::uint8_t> random_bytes(DType type, std::size_t count, std::mt19937_64& random, bool special) {
    std::vector<std::uint8_t> bytes(count * size_of(type));
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = random();
        const double value = std::normal_distribution<double>(0.0, 3.0)(random);
        const auto as_float = static_cast<float>(value);
        std::uint32_t single;
        std::memcpy(&single, &as_float, sizeof single);
        if (!special || bits % 8 != 0) {
            switch (type) {
            case DType::f32:
                bits = single;
                break;
            case DType::f64:
                std::memcpy(&bits, &value, sizeof bits);
                break;
            case DType::bf16:
                bits = single >> 16;
                break;
            case DType::f16:
                bits = (single >> 16 & 0x8000u) | (random() % 30 << 10) | (random() & 1023u);
                break;
            case DType::i8:
            case DType::i32:
                break;
            }
        } else if (bits % 16 == 0) {
            bits = type == DType::f16    ? 0x7c00u
                   : type == DType::bf16 ? 0xff80u
                   : type == DType::f32  ? 0x7f800000u
                   : type == DType::f64  ? 0x7ff0000000000000u
                                         : bits;
        } else if (bits % 24 == 8) {
            bits = std::uint64_t{1} << (8 * size_of(type) - 1); // -0, or the smallest integer
        } else if (type == DType::f64) {
            bits |= 0x7ff0000000000001u; // any bits are too large to sum
        }
        std::memcpy(bytes.data() + i * size_of(type), &bits, size_of(type));
    }
    return bytes;
}

void expect_same(const Fingerprint& found, const Fingerprint& wanted, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(found.count, wanted.count);
    EXPECT_EQ(found.nans, wanted.nans);
    EXPECT_EQ(found.positive_infs, wanted.positive_infs);
    EXPECT_EQ(found.negative_infs, wanted.negative_infs);
    EXPECT_EQ(found.first_nonfinite, wanted.first_nonfinite);
    EXPECT_EQ(found.largest, wanted.largest);
    EXPECT_EQ(found.hash, wanted.hash);
    EXPECT_TRUE(found.min == wanted.min || (found.min != found.min && wanted.min != wanted.min));
    EXPECT_TRUE(found.max == wanted.max || (found.max != found.max && wanted.max != wanted.max));
    const double n = static_cast<double>(wanted.count) + 1;
    const double scale = std::sqrt(wanted.sum_of_squares) * std::sqrt(n) * n * 1e-16;
    EXPECT_NEAR(found.sum, wanted.sum, scale);
    EXPECT_NEAR(found.sum_of_squares, wanted.sum_of_squares, wanted.sum_of_squares * n * 1e-16);
    ASSERT_EQ(found.sketch.size(), wanted.sketch.size());
    for (std::size_t i = 0; i < found.sketch.size(); ++i) {
        EXPECT_NEAR(found.sketch[i], wanted.sketch[i], scale) << i;
    }
}

TEST(FingerprintKernel, T9_every_type_and_length_agrees_with_the_definition_and_the_host) {
    HostMachine machine;
    std::mt19937_64 random(1);
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32}) {
        for (const std::size_t count : {0u, 1u, 31u, 33u, 257u, 5000u}) {
            const std::vector<std::uint8_t> bytes = random_bytes(type, count, random, count % 2 != 0);
            const Tensor of = tensor(bytes.data(), type, {count});
            const std::string what = std::string(dtype_word(type)) + " " + std::to_string(count);
            const SlotResult found = result_of(machine, of, 1);
            expect_same(found.fingerprint, naive_fingerprint(of, 0, default_buckets), what);
            const Result<Fingerprint> host = fingerprint_of(of);
            ASSERT_TRUE(host.ok());
            expect_same(found.fingerprint, *host, what + " on the host");
        }
    }
}

TEST(FingerprintKernel, blocks_and_buckets_change_nothing_that_is_exact) {
    HostMachine machine;
    std::mt19937_64 random(2);
    const std::size_t count = 20'000;
    const std::vector<std::uint8_t> bytes = random_bytes(DType::f32, count, random, true);
    const Tensor of = tensor(bytes.data(), DType::f32, {count});
    for (const unsigned blocks : {1u, 2u, 7u}) {
        for (const std::uint32_t buckets : {32u, 64u, 256u}) {
            expect_same(result_of(machine, of, blocks, 0, false, buckets).fingerprint,
                        naive_fingerprint(of, 0, buckets),
                        std::to_string(blocks) + " blocks, " + std::to_string(buckets) + " buckets");
        }
    }
}

TEST(FingerprintKernel, the_sums_of_one_grid_are_the_same_bits_each_time) {
    HostMachine machine;
    std::mt19937_64 random(3);
    const std::vector<std::uint8_t> bytes = random_bytes(DType::f32, 9000, random, false);
    const Tensor of = tensor(bytes.data(), DType::f32, {9000});
    const SlotResult a = result_of(machine, of, 3);
    const SlotResult b = result_of(machine, of, 3);
    EXPECT_EQ(a.fingerprint.sum, b.fingerprint.sum);
    EXPECT_EQ(a.fingerprint.sketch, b.fingerprint.sketch);
}

TEST(FingerprintKernel, any_strides_and_pieces_agree_with_the_definition) {
    HostMachine machine;
    std::mt19937_64 random(4);
    const std::vector<std::uint8_t> bytes = random_bytes(DType::bf16, 8192, random, true);
    const Tensor transposed = tensor(bytes.data(), DType::bf16, {7, 5, 9}, {1, 70, 7});
    const Tensor backwards = tensor(bytes.data() + 2 * 900, DType::bf16, {10, 30}, {30, -1});
    const Tensor repeated = tensor(bytes.data(), DType::bf16, {4, 1, 50}, {0, 3, 2});
    const Tensor deep = tensor(bytes.data(), DType::bf16, {2, 1, 2, 2, 2, 2, 2, 2}, {1, 9, 3, 7, 20, 50, 110, 300});
    const Tensor views[] = {transposed, backwards, repeated, deep};
    for (std::size_t i = 0; i < 4; ++i) {
        for (const std::uint64_t first : {0u, 5u, 64u, 1000u}) {
            expect_same(result_of(machine, views[i], 1, first).fingerprint,
                        naive_fingerprint(views[i], first, default_buckets),
                        "view " + std::to_string(i) + " from " + std::to_string(first));
        }
    }
}

TEST(FingerprintKernel, logits_of_the_last_row_have_their_largest_and_margin) {
    HostMachine machine;
    std::mt19937_64 random(5);
    for (const std::size_t width : {1u, 2u, 40u, 3000u}) {
        std::vector<float> values(3 * width);
        for (float& value : values) {
            value = static_cast<float>(static_cast<int>(random() % 50)) - 25; // with ties
        }
        values[width] = 1e9f; // not of the last row
        if (width > 2) {
            values[2 * width] = std::numeric_limits<float>::infinity();
        }
        const Tensor of = tensor(values.data(), DType::f32, {3, width});
        const SlotResult found = result_of(machine, of, 2, 0, true);
        const LargestLogit wanted = largest_logit(of);
        EXPECT_EQ(found.argmax, wanted.index) << width;
        EXPECT_TRUE(found.margin == wanted.margin || (found.margin != found.margin && wanted.margin != wanted.margin))
            << width << ": " << found.margin << " for " << wanted.margin;
    }
    const std::vector<float> values(8, 1.0f);
    EXPECT_EQ(result_of(machine, tensor(values.data(), DType::f32, {8}), 1).argmax, no_index) << "nobody asked";
}

TEST(FingerprintKernel, replays_are_numbered_and_carry_the_launch_that_was_announced) {
    HostMachine machine;
    const std::vector<float> values(100, 2.0f);
    const Slots slots(4);
    KernelParameters parameters = parameters_of(tensor(values.data(), DType::f32, {100}), slots);
    parameters.site.site = 9;
    parameters.site.group_plus_one = 3;
    SlotResult result;
    const std::uint64_t tags[] = {0, 17, 17, 18, 21, 21};
    const std::uint64_t reported[] = {0, 17, 0, 18, 21, 0};
    for (std::uint64_t replay = 0; replay < 6; ++replay) {
        machine.set_tag(2, tags[replay]);
        machine.launch(parameters, 1);
        ASSERT_EQ(read_slot(slots.block, replay, result), SlotState::complete);
        EXPECT_EQ(result.number, replay);
        EXPECT_EQ(result.tag, reported[replay]) << replay;
    }
    EXPECT_EQ(read_slot(slots.block, 1, result), SlotState::complete);
    EXPECT_EQ(result.number, 5u) << "replay 5 took the slot of replay 1";
}

TEST(FingerprintKernel, a_slot_that_is_being_written_is_never_believed) {
    HostMachine machine;
    const std::vector<float> values(100, 2.0f);
    Slots slots(2);
    SlotResult result;
    EXPECT_EQ(read_slot(slots.block, 0, result), SlotState::empty);
    machine.launch(parameters_of(tensor(values.data(), DType::f32, {100}), slots), 1);
    ASSERT_EQ(read_slot(slots.block, 0, result), SlotState::complete);
    *slots.block.slot(0) = 2 * 2 + 1; // result 2 goes to slot 0 too
    EXPECT_EQ(read_slot(slots.block, 0, result), SlotState::torn);
    EXPECT_EQ(result.number, 2u);
}

TEST(FingerprintKernel, the_module_that_was_built_in_has_both_kernels) {
    if (fingerprint_ptx == nullptr) {
        GTEST_SKIP() << "built without nvcc";
    }
    const std::string text = fingerprint_ptx();
    EXPECT_NE(text.find(".version 7.8"), std::string::npos);
    EXPECT_NE(text.find(".target sm_70"), std::string::npos);
    EXPECT_NE(text.find(".entry plumb_fingerprint("), std::string::npos);
    EXPECT_NE(text.find("plumb_fingerprint_param_0[208]"), std::string::npos);
    EXPECT_NE(text.find(".entry plumb_fingerprint_tag("), std::string::npos);
}

} // namespace
} // namespace plumb::fingerprint
