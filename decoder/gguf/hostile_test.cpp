// SPDX-License-Identifier: Apache-2.0
// Thousands of damaged files, the same ones in every run: the reader refuses each with one sentence or gives contents that
// can be walked to the end, and never reads outside the bytes (the sanitizer builds watch). What loads is run in decoder/hostile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "decoder/gguf/describe.hpp"
#include "decoder/gguf/reader.hpp"
#include "decoder/sampling/random.hpp"
#include "decoder/test_support.hpp"
#include "support/text_of_file.hpp"

namespace plumb::decoder::gguf {
namespace {

using Bytes = std::vector<std::byte>;

Bytes read_all(const std::string& path) {
    const std::string text = support::text_of_file(path);
    const auto raw = std::as_bytes(std::span(text));
    return {raw.begin(), raw.end()};
}

/// What a good answer is: contents that can be read to the end, or one sentence without line breaks.
/// Returns whether the bytes were accepted.
bool check(std::span<const std::byte> bytes) {
    const Result<Contents> contents = parse(bytes, "m.gguf");
    if (!contents.ok()) {
        const std::string& sentence = contents.error().message;
        EXPECT_TRUE(sentence.starts_with("m.gguf: ") && sentence.size() < 400) << sentence;
        EXPECT_EQ(
            std::count_if(sentence.begin(), sentence.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }),
            0)
            << sentence;
        return false;
    }
    for (const TensorInfo& tensor : contents->tensors) {
        EXPECT_LE(tensor.offset, bytes.size());
        const Bytes copy(tensor.data.data(), tensor.data.data() + tensor.data.size()); // reads all of it
        EXPECT_LE(tensor.offset + copy.size(), bytes.size());
    }
    EXPECT_FALSE(describe_text(*contents, "m.gguf").empty());
    EXPECT_FALSE(describe_json(*contents, "m.gguf").empty());
    return true;
}

/// An exact copy on the heap, so that a sanitizer sees a read one byte past the end.
bool check_copy(std::span<const std::byte> bytes) {
    const Bytes exact(bytes.begin(), bytes.end());
    return check(exact);
}

class HostileGguf : public testing::Test {
  protected:
    HostileGguf() : whole_(read_all(make_test_model(folder_, "test-qwen2", Type::bf16))) {
        const Result<Contents> contents = parse(whole_, "m.gguf");
        EXPECT_TRUE(contents.ok());
        header_ = contents.ok() ? static_cast<std::size_t>(contents->data_offset) : 0;
    }

    TestFolder folder_;
    Bytes whole_;
    std::size_t header_ = 0;
};

TEST_F(HostileGguf, every_truncation_is_refused) {
    ASSERT_TRUE(check_copy(whole_));
    ASSERT_GT(header_, 1000U);
    for (std::size_t length = 0; length < header_; ++length) {
        ASSERT_FALSE(check_copy(std::span(whole_).first(length))) << length;
    }
    for (std::size_t length = header_; length + 32 < whole_.size(); length += 997) {
        ASSERT_FALSE(check_copy(std::span(whole_).first(length))) << length;
    }
}

TEST_F(HostileGguf, every_flipped_byte_of_the_header_is_survived) {
    for (std::size_t at = 0; at < header_; ++at) {
        for (const unsigned flip : {0x01U, 0x80U, 0xffU}) {
            whole_[at] ^= static_cast<std::byte>(flip);
            check(whole_);
            whole_[at] ^= static_cast<std::byte>(flip);
        }
    }
    EXPECT_TRUE(check(whole_)) << "the file must be whole again";
}

TEST_F(HostileGguf, four_thousand_mutations_are_survived) {
    constexpr std::uint64_t interesting[] = {0,
                                             1,
                                             7,
                                             31,
                                             0x7f,
                                             0xff,
                                             0xffff,
                                             0x7fffffff,
                                             0xffffffff,
                                             1ULL << 32,
                                             1ULL << 62,
                                             0x7fffffffffffffff,
                                             0xffffffffffffffe0,
                                             0xffffffffffffffff};
    int accepted = 0;
    for (std::uint64_t round = 0; round < 4000; ++round) {
        Bytes bytes = whole_;
        const std::uint64_t key = stream_key(11, std::to_string(round));
        const std::uint64_t edits = 1 + random_bits(key, 0) % 4;
        for (std::uint64_t edit = 0; edit < edits; ++edit) {
            const std::uint64_t value = interesting[random_bits(key, 10 * edit + 1) % std::size(interesting)];
            const std::size_t width = std::size_t{1} << (random_bits(key, 10 * edit + 2) % 4);
            const std::size_t at = static_cast<std::size_t>(random_bits(key, 10 * edit + 3) % (header_ - width));
            std::memcpy(bytes.data() + at, &value, width);
        }
        if (random_bits(key, 99) % 4 == 0) {
            bytes.resize(static_cast<std::size_t>(random_bits(key, 98) % bytes.size()));
        }
        accepted += check_copy(bytes) ? 1 : 0;
    }
    EXPECT_GT(accepted, 10) << "mutations that all fail at the first byte test nothing";
    EXPECT_LT(accepted, 3000);
}

} // namespace
} // namespace plumb::decoder::gguf
