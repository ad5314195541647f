// SPDX-License-Identifier: Apache-2.0
// The facade: what a prompt and steps give, what is refused, how a stop ends.
#include "decoder/decoder.hpp"

#include <algorithm>
#include <utility>

#include "decoder/test_support.hpp"

namespace plumb::decoder {
namespace {

class DecoderTest : public testing::Test {
  protected:
    Options options() const {
        Options out;
        out.threads = test_threads();
        out.context = 100;
        out.chunk = 16;
        return out;
    }
    Decoder load(const Options& wanted) {
        Result<Decoder> decoder = Decoder::load(model_, wanted);
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        return std::move(*decoder);
    }

    TestFolder folder_;
    const std::string model_ = make_test_model(folder_, "test-qwen2", Type::bf16);
    OffRecorder off_;
};

TEST_F(DecoderTest, n_steps_after_a_prompt_leave_n_plus_one_tokens) {
    Decoder decoder = load(options());
    const auto prompt = decoder.random_prompt(20, 1);
    ASSERT_TRUE(decoder.prefill(prompt, off_).ok());
    EXPECT_EQ(decoder.tokens().size(), 1U);
    EXPECT_EQ(decoder.position(), 20U);
    ASSERT_EQ(decoder.decode(7, off_).value(), 7U);
    EXPECT_EQ(decoder.tokens().size(), 8U);
    EXPECT_EQ(decoder.position(), 27U);
}

TEST_F(DecoderTest, a_reset_repeats_the_same_tokens) {
    for (const float temperature : {0.0F, 1.0F}) {
        Options wanted = options();
        wanted.sampling.temperature = temperature;
        Decoder decoder = load(wanted);
        const auto prompt = decoder.random_prompt(20, 1);
        ASSERT_TRUE(decoder.prefill(prompt, off_).ok());
        ASSERT_TRUE(decoder.decode(30, off_).ok());
        const auto first = decoder.tokens();
        decoder.reset();
        ASSERT_TRUE(decoder.prefill(prompt, off_).ok());
        ASSERT_TRUE(decoder.decode(30, off_).ok());
        EXPECT_EQ(decoder.tokens(), first);
    }
}

TEST_F(DecoderTest, the_number_of_threads_does_not_change_the_tokens) {
    std::vector<std::int32_t> first;
    for (int threads = 1; threads <= test_threads(); ++threads) {
        Options wanted = options();
        wanted.threads = threads;
        Decoder decoder = load(wanted);
        ASSERT_TRUE(decoder.prefill(decoder.random_prompt(33, 1), off_).ok());
        ASSERT_TRUE(decoder.decode(40, off_).ok());
        if (first.empty()) {
            first = decoder.tokens();
        }
        EXPECT_EQ(decoder.tokens(), first);
    }
}

TEST_F(DecoderTest, prompts_that_cannot_be_fed_are_refused) {
    Decoder decoder = load(options());
    EXPECT_EQ(decoder.prefill({}, off_).error().message, "the prompt is empty; give at least one token");
    const std::vector<std::int32_t> foreign{1, 300};
    EXPECT_EQ(decoder.prefill(foreign, off_).error().message,
              "token 300 is not one of the model's 300; use ids from 0 to 299");
    const std::vector<std::int32_t> negative{-1};
    EXPECT_FALSE(decoder.prefill(negative, off_).ok());
    EXPECT_EQ(decoder.prefill(decoder.random_prompt(101, 1), off_).error().message,
              "the prompt of 101 tokens does not fit the cache of 100; use a larger --ctx");
    EXPECT_EQ(decoder.position(), 0U) << "a refused prompt feeds nothing";
    EXPECT_EQ(decoder.decode(1, off_).error().message, "there is nothing to go on from; feed a prompt first");
}

TEST_F(DecoderTest, what_would_be_refused_is_known_before_anything_is_fed) {
    Decoder decoder = load(options());
    const std::vector<std::int32_t> prompt = decoder.random_prompt(40, 1);
    EXPECT_TRUE(decoder.check(prompt, 60).ok());
    EXPECT_EQ(decoder.check(prompt, 61).error().message,
              "61 steps after 40 positions do not fit the cache of 100; use a larger --ctx");
    EXPECT_EQ(decoder.check({}, 1).error().message, "the prompt is empty; give at least one token");
    const std::vector<std::int32_t> foreign{1, 300};
    EXPECT_FALSE(decoder.check(foreign, 1).ok());
    EXPECT_EQ(decoder.position(), 0U);
}

TEST_F(DecoderTest, the_cache_can_be_filled_to_the_last_position_and_no_further) {
    Decoder decoder = load(options());
    ASSERT_TRUE(decoder.prefill(decoder.random_prompt(90, 1), off_).ok());
    EXPECT_EQ(decoder.decode(11, off_).error().message,
              "11 steps after 90 positions do not fit the cache of 100; use a larger --ctx");
    EXPECT_EQ(decoder.decode(10, off_).value(), 10U);
    EXPECT_FALSE(decoder.decode(1, off_).ok());
}

TEST_F(DecoderTest, a_stop_ends_before_the_next_step) {
    std::atomic<bool> stop{false};
    Options wanted = options();
    wanted.stop = &stop;
    Decoder decoder = load(wanted);
    const auto feed = [&](std::size_t until) {
        EXPECT_TRUE(decoder
                        .prefill(decoder.random_prompt(20, 1), off_,
                                 [&](std::size_t done, std::size_t) { stop = done == until; })
                        .ok());
        return decoder.position();
    };
    EXPECT_EQ(feed(16), 16U) << "the first chunk alone";
    stop = false;
    decoder.reset();
    EXPECT_EQ(feed(0), 20U);
    const auto steps = decoder.decode(50, off_, [&](std::size_t done, std::size_t) { stop = done == 5; });
    EXPECT_EQ(steps.value(), 5U);
    decoder.reset();
    EXPECT_TRUE(decoder.prefill(decoder.random_prompt(20, 1), off_).ok());
    EXPECT_EQ(decoder.position(), 0U);
    EXPECT_EQ(decoder.decode(5, off_).value(), 0U);
}

TEST_F(DecoderTest, a_stop_while_loading_is_one_sentence_and_loading_says_how_far_it_is) {
    std::atomic<bool> stop{false};
    Options wanted = options();
    wanted.stop = &stop;
    std::uint64_t loaded = 0;
    wanted.loading = [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_LE(done, total);
        loaded = done;
    };
    ASSERT_TRUE(Decoder::load(model_, wanted).ok());
    EXPECT_EQ(loaded, std::filesystem::file_size(model_));
    wanted.loading = [&](std::uint64_t, std::uint64_t) {
        stop = true;
    };
    const Result<Decoder> stopped = Decoder::load(model_, wanted);
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().message, model_ + ": loading was interrupted and nothing was run; start again");
}

TEST_F(DecoderTest, a_sequence_ends_behind_its_stop_token_while_the_others_of_its_batch_go_on) {
    Options wanted = options();
    wanted.batch = 2;
    wanted.sampling.temperature = 1;
    const auto tokens_of = [&](Decoder& decoder, std::size_t steps) {
        for (std::size_t i = 0; i < wanted.batch; ++i) {
            EXPECT_TRUE(decoder.prefill(decoder.random_prompt(20, i), off_, {}, i).ok());
        }
        EXPECT_TRUE(decoder.decode(steps, off_).ok());
        return std::pair{decoder.tokens(0), decoder.tokens(1)};
    };
    Decoder free = load(wanted);
    const auto [first, second] = tokens_of(free, 40);
    const auto stop = std::find_if(first.begin() + 1, first.end(), [&](std::int32_t token) {
        return std::find(second.begin(), second.end(), token) == second.end();
    });
    ASSERT_NE(stop, first.end());
    wanted.stop_tokens = {*stop};
    Decoder decoder = load(wanted);
    const auto [ended, other] = tokens_of(decoder, 40);
    EXPECT_EQ(ended, std::vector<std::int32_t>(first.begin(), std::find(first.begin(), first.end(), *stop) + 1));
    EXPECT_EQ(other, second);
}

TEST_F(DecoderTest, a_prompt_after_a_stop_token_goes_on) {
    Decoder free = load(options());
    ASSERT_TRUE(free.prefill(free.random_prompt(20, 1), off_).ok());
    Options wanted = options();
    wanted.stop_tokens = {free.tokens().back()};
    Decoder decoder = load(wanted);
    ASSERT_TRUE(decoder.prefill(decoder.random_prompt(20, 1), off_).ok());
    EXPECT_EQ(decoder.decode(5, off_).value(), 0U) << "the prompt's own step gave the stop token";
    const auto more = decoder.random_prompt(9, 2);
    ASSERT_TRUE(decoder.prefill(more, off_).ok());
    ASSERT_NE(decoder.tokens().back(), wanted.stop_tokens[0]) << "another prompt is needed here";
    EXPECT_GT(decoder.decode(5, off_).value(), 0U);
}

TEST_F(DecoderTest, progress_counts_every_chunk_and_step) {
    Decoder decoder = load(options());
    std::vector<std::size_t> seen;
    const auto note = [&](std::size_t done, std::size_t) {
        seen.push_back(done);
    };
    ASSERT_TRUE(decoder.prefill(decoder.random_prompt(40, 1), off_, note).ok());
    EXPECT_EQ(seen, (std::vector<std::size_t>{16, 32, 40}));
    seen.clear();
    ASSERT_TRUE(decoder.decode(3, off_, note).ok());
    EXPECT_EQ(seen, (std::vector<std::size_t>{1, 2, 3}));
}

TEST_F(DecoderTest, options_that_cannot_be_are_refused) {
    const auto refused = [&](auto change) {
        Options wanted = options();
        change(wanted);
        return !Decoder::load(model_, wanted).ok();
    };
    EXPECT_TRUE(refused([](Options& o) { o.context = 0; }));
    EXPECT_TRUE(refused([](Options& o) { o.chunk = 0; }));
    EXPECT_TRUE(refused([](Options& o) { o.chunk = 1000000; }));
    EXPECT_TRUE(refused([](Options& o) { o.threads = -1; }));
    EXPECT_TRUE(refused([](Options& o) { o.sampling.temperature = -1; }));
    EXPECT_FALSE(refused([](Options&) {}));
}

TEST_F(DecoderTest, random_prompts_depend_on_the_seed_alone) {
    Decoder decoder = load(options());
    EXPECT_EQ(decoder.random_prompt(50, 3), decoder.random_prompt(50, 3));
    EXPECT_NE(decoder.random_prompt(50, 3), decoder.random_prompt(50, 4));
    for (const std::int32_t token : decoder.random_prompt(500, 5)) {
        EXPECT_LT(token, 300);
    }
}

} // namespace
} // namespace plumb::decoder
