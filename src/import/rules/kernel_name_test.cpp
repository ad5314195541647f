// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_name.hpp"

#include <gtest/gtest.h>

namespace plumb::imported {
namespace {

TEST(KernelName, IsDemangledWhereItCanBe) {
    EXPECT_EQ(readable_kernel_name("_ZN4vllm10activationIfEEvPT_"), "void vllm::activation<float>(float*)");
    const std::string bf16 = "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi64EEEvPT_";
    EXPECT_TRUE(readable_kernel_name(bf16) == bf16 || readable_kernel_name(bf16).starts_with("void aiter::"));
    EXPECT_EQ(readable_kernel_name("nvjet_tst_64x16"), "nvjet_tst_64x16");
    EXPECT_EQ(readable_kernel_name("_ZNot a mangled name"), "_ZNot a mangled name");
    EXPECT_EQ(readable_kernel_name(""), "");
}

TEST(KernelName, BaseHasNeitherReturnTypeNorArguments) {
    EXPECT_EQ(base_kernel_name("void vllm::act_and_mul<c10::Half, &vllm::silu>(c10::Half*)"), "vllm::act_and_mul");
    EXPECT_EQ(base_kernel_name("void at::native::(anonymous namespace)::softmax<float, (int)2>(float*) const"),
              "at::native::softmax");
    EXPECT_EQ(base_kernel_name("void (anonymous namespace)::elementwise_kernel_with_index<int>(int)"),
              "elementwise_kernel_with_index");
    EXPECT_EQ(base_kernel_name("void at::native::<unnamed>::layer_norm<float, (bool)0>(int, T2)"),
              "at::native::layer_norm");
    EXPECT_EQ(base_kernel_name("std::enable_if<(((8)>(0)))&&(4<8), void>::type vllm::rms_norm_kernel<8>(int)"),
              "vllm::rms_norm_kernel");
    EXPECT_EQ(base_kernel_name("void ns::Outer<int>::kernel<float>(float)"), "ns::Outer::kernel");
    EXPECT_EQ(base_kernel_name("_rms_norm_fwd_fused"), "_rms_norm_fwd_fused");
    EXPECT_EQ(base_kernel_name("void cut::off<at::native::vect"), "cut::off");
    EXPECT_EQ(base_kernel_name("<<<>>>((("), "");
}

TEST(KernelName, BaseOfAMangledNameIsItsIdentifiers) {
    EXPECT_EQ(base_kernel_name("_ZN5aiter12_GLOBAL__N_112topk_softmaxIDF16bEEvPT_"), "aiter::topk_softmax");
    EXPECT_EQ(base_kernel_name("_Z7my_gemmIDF16bEvPT_"), "my_gemm");
    EXPECT_EQ(base_kernel_name("_ZN99999999999999999999999short"), "short");
    EXPECT_EQ(base_kernel_name("_Z"), "");
}

TEST(KernelName, OneThatWouldGrowWithoutEndStaysAsItIs) {
    // 24 levels of pairs of the level below are 400 MB of text, 120 levels are more than there are atoms.
    std::string name = "_Z1f1AIiE";
    for (char level = '1'; level <= '9'; ++level) {
        name += std::string("S_IS") + level + "_S" + level + "_E";
    }
    for (char level = 'A'; level <= 'Z'; ++level) {
        name += std::string("S_IS") + level + "_S" + level + "_E";
    }
    EXPECT_EQ(readable_kernel_name(name), name);
    EXPECT_EQ(readable_kernel_name("_Z1f1AIiES_IS0_S0_E"), "f(A<int>, A<A<int>, A<int> >)");
    EXPECT_EQ(readable_kernel_name("_Z1f" + std::string(10'000, 'i')).size(), longest_kernel_name);
}

} // namespace
} // namespace plumb::imported
