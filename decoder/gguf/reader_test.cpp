// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/reader.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "decoder/gguf/builder.hpp"
#include "decoder/gguf/text.hpp"

namespace plumb::decoder::gguf {
namespace {

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

std::string error_of(const Builder& builder) {
    const Result<Contents> contents = parse(builder.bytes(), "m.gguf");
    return contents.ok() ? "" : contents.error().message;
}

/// The whole error, so that a changed sentence is noticed.
void expect_error(const Builder& builder, std::string_view sentence) { EXPECT_EQ(error_of(builder), sentence); }

TEST(GgufReader, an_empty_model_is_read) {
    const Result<Contents> contents = parse(Builder().header(0, 0).bytes(), "m.gguf");
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    EXPECT_TRUE(contents->metadata.empty());
    EXPECT_TRUE(contents->tensors.empty());
}

TEST(GgufReader, the_alignment_of_the_file_places_the_data) {
    Builder builder;
    builder.header(1, 1).number("general.alignment", 256).tensor("t", 4, 2, 0, 256).pad(256).zeros(256 + 32);
    const Result<Contents> contents = parse(builder.bytes(), "m.gguf");
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    EXPECT_EQ(contents->tensor("t")->offset, contents->data_offset + 256);
    EXPECT_EQ(contents->data_offset % 256, 0U);
}

TEST(GgufReader, arrays_of_strings_and_of_arrays_are_walked) {
    Builder builder;
    builder.header(0, 2);
    builder.text("words").put(std::uint32_t{9}).put(std::uint32_t{8}).put(std::uint64_t{2}).text("ab").text("c");
    builder.text("nested").put(std::uint32_t{9}).put(std::uint32_t{9}).put(std::uint64_t{2});
    builder.put(std::uint32_t{8}).put(std::uint64_t{1}).text("xyz");
    builder.put(std::uint32_t{1}).put(std::uint64_t{3}).zeros(3);
    const Result<Contents> contents = parse(builder.bytes(), "m.gguf");
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    const Value& words = *contents->find("words");
    std::size_t at = 0;
    EXPECT_EQ(words.next_element(at).as_string(), "ab");
    EXPECT_EQ(words.next_element(at).as_string(), "c");
    EXPECT_EQ(at, words.payload.size());
    const Value& nested = *contents->find("nested");
    at = 0;
    EXPECT_EQ(nested.next_element(at).count, 1U);
    EXPECT_EQ(nested.next_element(at).count, 3U);
    EXPECT_EQ(at, nested.payload.size());
}

TEST(GgufReader, a_file_that_is_no_gguf_is_refused) {
    expect_error(Builder().text("hello"),
                 "m.gguf: is not a GGUF file (it does not start with 'GGUF'); give the path of a "
                 ".gguf model");
}

TEST(GgufReader, other_versions_are_refused_by_name) {
    expect_error(Builder().header(0, 0, 1),
                 "m.gguf: has GGUF version 1, and only 2 and 3 are read; convert the model again "
                 "with a current converter");
    expect_error(Builder().header(0, 0, 0x03000000),
                 "m.gguf: is a big-endian GGUF file; convert it to little-endian first");
}

TEST(GgufReader, counts_beyond_the_file_are_refused_before_anything_is_allocated) {
    expect_error(Builder().header(0, huge),
                 "m.gguf: claims 18446744073709551615 metadata entries, more than the file can "
                 "hold or a model has; copy it again");
    expect_error(Builder().header(huge, 0),
                 "m.gguf: claims 18446744073709551615 tensors, more than the file can hold or a "
                 "model has; copy it again");
}

TEST(GgufReader, a_truncated_tensor_is_named_with_its_end) {
    Builder builder;
    builder.header(1, 0).tensor("blk.3.ffn_up.weight", 64, 64, 0, 0).pad().zeros(100);
    expect_error(builder,
                 "m.gguf: tensor 'blk.3.ffn_up.weight' ends at byte 16480 but the file has 196: it is truncated; "
                 "copy it again");
}

TEST(GgufReader, an_array_longer_than_the_file_is_refused) {
    Builder builder;
    builder.header(0, 1).text("k").put(std::uint32_t{9}).put(std::uint32_t{4}).put(huge);
    expect_error(builder,
                 "m.gguf: metadata 'k' runs past the end of the file (49 bytes): it is truncated or damaged; copy "
                 "it again");
}

TEST(GgufReader, deeply_nested_arrays_are_refused) {
    Builder builder;
    builder.header(0, 1).text("k").put(std::uint32_t{9});
    for (int i = 0; i < 100; ++i) {
        builder.put(std::uint32_t{9}).put(std::uint64_t{1});
    }
    builder.zeros(100);
    expect_error(builder, "m.gguf: metadata 'k' nests arrays more than 4 deep; convert the model again");
}

TEST(GgufReader, tensor_sizes_that_overflow_are_refused) {
    Builder builder;
    builder.header(1, 0).tensor("t", std::uint64_t{1} << 40, std::uint64_t{1} << 40, 0, 0).pad().zeros(64);
    expect_error(builder, "m.gguf: tensor 't' has more elements than 63 bits can count; copy the file again");
    Builder large;
    large.header(1, 0).tensor("t", std::uint64_t{1} << 31, std::uint64_t{1} << 31, 0, 0).pad().zeros(64);
    expect_error(large,
                 "m.gguf: tensor 't' ends at an impossible position but the file has 160: it is truncated; copy it "
                 "again");
    Builder offset;
    offset.header(1, 0).tensor("t", 1, 1, 0, huge - 31).pad().zeros(64);
    expect_error(offset,
                 "m.gguf: tensor 't' starts past the end of the file (160 bytes): it is truncated; copy it again");
}

TEST(GgufReader, names_that_occur_twice_are_refused) {
    Builder keys;
    keys.header(0, 2).number("k", 1).number("k", 2);
    expect_error(keys, "m.gguf: has the metadata 'k' twice; convert the model again");
    Builder tensors;
    tensors.header(2, 0).tensor("t", 1, 1, 0, 0).tensor("t", 1, 1, 0, 32).pad().zeros(64);
    expect_error(tensors, "m.gguf: has the tensor 't' twice; convert the model again");
}

TEST(GgufReader, tensors_that_lie_over_each_other_are_refused) {
    Builder builder;
    builder.header(2, 0).tensor("a", 16, 1, 0, 0).tensor("b", 1, 1, 0, 32).pad().zeros(128);
    expect_error(builder, "m.gguf: tensors 'a' and 'b' lie over each other; copy it again");
}

TEST(GgufReader, alignments_that_cannot_be_are_refused) {
    for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 1U << 21}) {
        Builder builder;
        builder.header(0, 1).number("general.alignment", alignment);
        expect_error(builder,
                     "m.gguf: has a general.alignment that is not a power of two from 8 to 1048576; convert it again");
    }
    Builder misplaced;
    misplaced.header(1, 0).tensor("t", 1, 1, 0, 8).pad().zeros(64);
    expect_error(misplaced,
                 "m.gguf: tensor 't' starts at offset 8, which is not a multiple of the alignment 32; convert the "
                 "model again");
}

TEST(GgufReader, block_types_need_whole_blocks) {
    Builder builder;
    builder.header(1, 0).tensor("t", 48, 1, 2, 0).pad().zeros(64);
    expect_error(builder,
                 "m.gguf: tensor 't' has rows of 48 elements, not a multiple of the 32 that a block of Q4_0 holds; "
                 "convert the model again");
}

TEST(GgufReader, values_convert_only_where_they_fit) {
    Builder builder;
    builder.header(0, 3);
    builder.text("negative").put(std::uint32_t{5}).put(std::int32_t{-1});
    builder.text("nan").put(std::uint32_t{6}).put(std::numeric_limits<float>::quiet_NaN());
    builder.text("text").put(std::uint32_t{8}).text("7");
    const Result<Contents> contents = parse(builder.bytes(), "m.gguf");
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    EXPECT_FALSE(contents->find("negative")->as_unsigned());
    EXPECT_EQ(contents->find("negative")->as_number(), -1.0);
    EXPECT_FALSE(contents->find("nan")->as_number());
    EXPECT_FALSE(contents->find("text")->as_unsigned());
    EXPECT_FALSE(contents->find("text")->as_bool());
}

TEST(GgufReader, files_that_are_none_are_refused_in_one_sentence) {
    EXPECT_EQ(File::open("absent.gguf").error().message,
              "absent.gguf: there is no such file; check the path, or make one with `plumb model make`");
    EXPECT_EQ(File::open("/").error().message, "/: is not a regular file; give the path of a .gguf file");
    EXPECT_EQ(File::open("/dev/zero").error().message,
              "/dev/zero: is not a regular file; give the path of a .gguf file");
}

TEST(PrintableText, keeps_utf8_and_escapes_everything_else) {
    EXPECT_EQ(printable("größe €"), "größe €");
    EXPECT_EQ(printable("a\x1b[31m\x7f"), "a\\x1b[31m\\x7f");
    EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
    EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");          // overlong
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80"); // surrogate
    EXPECT_EQ(printable(std::string(500, 'x')), std::string(80, 'x') + "…");
}

} // namespace
} // namespace plumb::decoder::gguf
