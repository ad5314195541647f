// SPDX-License-Identifier: Apache-2.0
// Registered kernels through writer and reader.
#include "recording/kernel_codec.hpp"

#include <gtest/gtest.h>

#include <random>

#include "recording/files_testing.hpp"
#include "recording/reader.hpp"
#include "recording/records_testing.hpp"
#include "recording/writer.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

KernelInfo gemm() { return {0xabcdef0123456789, "gemm", "kernels/gemm.cu", "__global__ void gemm() {}\n", 26, 999, 5}; }

void expect_same(const KernelInfo& a, const KernelInfo& b) {
    EXPECT_EQ(a.code_hash, b.code_hash);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.file, b.file);
    EXPECT_EQ(a.source, b.source);
    EXPECT_EQ(a.source_bytes, b.source_bytes);
    EXPECT_EQ(a.code_bytes, b.code_bytes);
    EXPECT_EQ(a.code_checksum, b.code_checksum);
}

Reader reader_of_kernels(const std::vector<KernelInfo>& kernels) {
    auto writer = Writer::create({}, full_metadata());
    EXPECT_TRUE(writer.ok());
    for (const KernelInfo& kernel : kernels) {
        EXPECT_TRUE((*writer)->add_kernel(kernel).ok());
    }
    return *Reader::from_bytes((*writer)->snapshot());
}

TEST(KernelCodec, an_entry_comes_back_field_for_field_and_once) {
    KernelInfo bare;
    bare.code_hash = 1;
    const Reader reader = reader_of_kernels({gemm(), bare, gemm()});
    EXPECT_TRUE(reader.notes().empty()) << joined_notes(reader);
    ASSERT_EQ(reader.kernels().size(), 2u);
    expect_same(reader.kernels()[0], gemm());
    expect_same(reader.kernels()[1], bare);
}

TEST(KernelCodec, kernels_of_one_module_share_their_hash_and_are_no_collision) {
    KernelInfo other = gemm();
    other.name = "rope";
    const Reader reader = reader_of_kernels({gemm(), other});
    EXPECT_EQ(reader.kernels().size(), 2u);
    EXPECT_TRUE(reader.notes().empty()) << joined_notes(reader);
}

TEST(KernelCodec, different_code_or_source_under_one_hash_is_told) {
    for (const int what : {0, 1, 2, 3}) {
        KernelInfo other = gemm();
        (what == 0 ? other.code_bytes : what == 1 ? other.code_checksum : other.source_bytes) += 1;
        if (what == 3) {
            other = gemm();
            other.file = "kernels/other.cu";
        }
        const Reader reader = reader_of_kernels({gemm(), other});
        EXPECT_EQ(reader.kernels().size(), 2u);
        ASSERT_EQ(reader.notes().size(), 1u) << what;
        EXPECT_EQ(reader.notes()[0].find("code hash abcdef0123456789 stands for gemm (kernels/gemm.cu) and for gemm ("),
                  0u)
            << reader.notes()[0];
    }
}

TEST(KernelCodec, what_is_beyond_the_bounds_is_cut_and_a_long_source_left_out_with_its_size) {
    KernelInfo large = gemm();
    large.name.assign(1 << 20, 'n');
    large.file.assign(1 << 20, 'f');
    large.source.assign(most_kernel_source + 1, 's');
    large.source_bytes = large.source.size();
    const Reader reader = reader_of_kernels({large});
    ASSERT_EQ(reader.kernels().size(), 1u);
    EXPECT_EQ(reader.kernels()[0].name.size(), most_kernel_name);
    EXPECT_EQ(reader.kernels()[0].file.size(), most_kernel_file);
    EXPECT_TRUE(reader.kernels()[0].source.empty());
    EXPECT_EQ(reader.kernels()[0].source_bytes, most_kernel_source + 1);
}

TEST(KernelCodec, a_bounded_recording_keeps_kernels_and_as_much_source_as_its_share) {
    WriterOptions options;
    options.max_bytes = 64 << 10;
    auto writer = Writer::create(options, full_metadata());
    ASSERT_TRUE(writer.ok());
    for (std::uint64_t i = 0; i < 3; ++i) {
        KernelInfo kernel = gemm();
        kernel.code_hash = i;
        kernel.source.assign(5000, 's');
        ASSERT_TRUE((*writer)->add_kernel(kernel).ok());
    }
    std::mt19937_64 random(1);
    std::vector<Record> records(4096);
    for (std::uint64_t sequence = 0; sequence < 16 * records.size(); sequence += records.size()) {
        for (Record& record : records) {
            record = {random(), pack(RecordKind::label, 1)};
        }
        ASSERT_TRUE((*writer)->append({1, sequence, records.data(), records.size()}).ok());
    }
    EXPECT_GT((*writer)->records_removed(), 0u);
    const auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(reader->kernels().size(), 3u);
    EXPECT_EQ(reader->kernels()[0].source.size(), 5000u);
    EXPECT_TRUE(reader->kernels()[1].source.empty()) << "an eighth of 64 KiB holds one of them";
}

TEST(KernelCodec, an_entry_without_its_hash_or_cut_short_is_none) {
    Bytes bytes;
    encode(gemm(), bytes);
    KernelInfo kernel;
    EXPECT_TRUE(decode(bytes.data(), bytes.size(), kernel));
    for (std::size_t size = 1; size < bytes.size(); ++size) {
        KernelInfo cut;
        if (decode(bytes.data(), size, cut)) {
            EXPECT_EQ(cut.code_hash, gemm().code_hash) << size; // cut between two fields
        }
    }
    EXPECT_FALSE(decode(bytes.data() + 14, bytes.size() - 14, kernel)) << "the first field is the hash";
}

} // namespace
} // namespace plumb::recording
