// SPDX-License-Identifier: Apache-2.0
#include "decoder/model_maker/maker.hpp"

#include <iterator>

#include "decoder/test_support.hpp"
#include "support/text_of_file.hpp"

namespace plumb::decoder {
namespace {

/// FNV-1a of a file: enough to see that a byte changed.
std::uint64_t digest(const std::string& path) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : support::text_of_file(path)) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    return hash;
}

Status make(const std::string& path, Type type, std::uint64_t seed) {
    MakeOptions options;
    options.type = type;
    options.seed = seed;
    return make_model(*find_shape("test-qwen2"), path, options);
}

TEST(ModelMaker, the_bytes_depend_on_shape_type_and_seed_alone) {
    const TestFolder folder;
    ASSERT_TRUE(make(folder.file("a"), Type::bf16, 7).ok());
    ASSERT_TRUE(make(folder.file("b"), Type::bf16, 7).ok());
    ASSERT_TRUE(make(folder.file("c"), Type::bf16, 8).ok());
    EXPECT_EQ(support::text_of_file(folder.file("a")), support::text_of_file(folder.file("b")));
    EXPECT_NE(support::text_of_file(folder.file("a")), support::text_of_file(folder.file("c")));
}

TEST(ModelMaker, the_bytes_are_the_same_on_every_machine) {
    // Digests seen once; a change of them is a change of every model that was ever made.
    const TestFolder folder;
    ASSERT_TRUE(make(folder.file("bf16"), Type::bf16, 7).ok());
    ASSERT_TRUE(make(folder.file("f32"), Type::f32, 7).ok());
    EXPECT_EQ(digest(folder.file("bf16")), 13694487216525566148U);
    EXPECT_EQ(digest(folder.file("f32")), 8810653135223773783U);
}

TEST(ModelMaker, every_shape_has_a_name_that_finds_it) {
    for (const Shape& shape : shapes()) {
        EXPECT_EQ(find_shape(shape.name), &shape);
    }
    EXPECT_EQ(find_shape("qwen9"), nullptr);
}

TEST(ModelMaker, the_activations_of_a_made_model_stay_sane) {
    const TestFolder folder;
    for (const std::string_view shape : {"test", "test-qwen2", "tiny-llama"}) {
        Options options;
        options.threads = test_threads();
        options.context = 64;
        Result<Decoder> decoder = Decoder::load(make_test_model(folder, shape, Type::bf16), options);
        ASSERT_TRUE(decoder.ok()) << decoder.error().message;
        OffRecorder off;
        ASSERT_TRUE(decoder->prefill(decoder->random_prompt(32, 1), off).ok());
        ASSERT_TRUE(decoder->decode(8, off).ok());
        double squares = 0;
        for (const float logit : decoder->logits()) {
            squares += static_cast<double>(logit) * static_cast<double>(logit);
        }
        const double size = squares / static_cast<double>(decoder->vocabulary());
        EXPECT_GT(size, 0.1) << shape;
        EXPECT_LT(size, 10) << shape;
    }
}

TEST(ModelMaker, progress_ends_at_the_size_of_the_file_and_a_stop_leaves_nothing) {
    const TestFolder folder;
    std::uint64_t last = 0, total = 0;
    MakeOptions options;
    options.progress = [&](std::uint64_t done, std::uint64_t of) {
        last = done, total = of;
    };
    ASSERT_TRUE(make_model(*find_shape("test"), folder.file("m"), options).ok());
    EXPECT_EQ(last, total);
    EXPECT_EQ(total, std::filesystem::file_size(folder.file("m")));
    const std::atomic<bool> stop{true};
    options.stop = &stop;
    EXPECT_FALSE(make_model(*find_shape("test"), folder.file("n"), options).ok());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

} // namespace
} // namespace plumb::decoder
