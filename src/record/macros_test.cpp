// SPDX-License-Identifier: Apache-2.0
// The macros as statements: where one may stand, what it covers there, and what it takes for a name.
#include <gtest/gtest.h>
#include <string_view>
#include <utility>

#include "plumb/tile.hpp"
#include "record/name_registry.hpp"
#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

struct Macros : testing::Test {
    TestRecorder recorder{TestOptions{false, 64 * 1024, "", {}, 16}};
    void work() { recorder.clock.advance(5); }
};

TEST_F(Macros, in_a_block_a_macro_lives_to_the_end_of_the_block) {
    {
        PLUMB_LAYER(recorder, 3);
        PLUMB_BRICK(recorder, host, Brick::attention);
        work();
        EXPECT_EQ(recorder.take(), (Words{"layer_begin 3 @1000"}));
    }
    EXPECT_EQ(recorder.take(), (Words{"scope 9 @1000 +5", "layer_end 3 @1000 +5"}));
}

// clang-format off: without the braces that the formatter would add
TEST_F(Macros, each_is_the_one_statement_of_a_loop_or_branch) {
    for (int layer = 0; layer < 2; ++layer) {
        PLUMB_LAYER(recorder, layer);
    }
    EXPECT_EQ(recorder.take(),
              (Words{"layer_begin 0 @1000", "layer_end 0 @1000 +0", "layer_begin 1 @1000", "layer_end 1 @1000 +0"}));
    for (const bool taken : {true, false}) {
        if (taken) {
            PLUMB_BRICK(recorder, host, Brick::attention, bytes(64));
        } else {
            PLUMB_BRICK(recorder, host, Brick::rms_norm);
        }
    }
    EXPECT_EQ(recorder.take(), (Words{"work 9 bytes=64", "work 9 flops=none", "work 9 elements=none",
                                      "work 9 bytes_per_kv=none", "scope 9 @1000 +0 work", "scope 1 @1000 +0"}));
    if (recorder.enabled()) {
        PLUMB_CONTEXT(recorder, Context{});
    }
    if (recorder.enabled()) {
        PLUMB_STEP(recorder, host, Phase::decode);
    }
    if (recorder.enabled()) {
        PLUMB_TILE(recorder, TileLevel::midi, 0, 0);
    }
    if (recorder.enabled()) {
        PLUMB_LAP(recorder, host, Brick::rms_norm);
    }
    if (recorder.enabled()) {
        PLUMB_LAP_END(recorder, host);
    }
    EXPECT_EQ(recorder.drops(Drop::lap_outside_scope), 1u);
}
// clang-format on

TEST_F(Macros, a_structured_binding_may_stand_in_the_arguments) {
    const auto [layer, size] = std::pair<int, double>(7, 32);
    {
        PLUMB_LAYER(recorder, layer);
        PLUMB_BRICK(recorder, host, Brick::rms_norm, bytes(size));
    }
    EXPECT_EQ(recorder.take().front(), "layer_begin 7 @1000");
}

std::size_t times_in_registry(std::string_view text) {
    std::size_t found = 0;
    for (const NameEntry& entry : names_from(0)) {
        found += entry.name == text ? 1 : 0;
    }
    return found;
}

TEST_F(Macros, a_literal_is_a_name_that_is_interned_when_it_is_first_recorded) {
    recorder.off();
    for (const bool on : {false, true}) {
        if (on) {
            recorder.on();
        }
        for (int i = 0; i < 2; ++i) {
            PLUMB_BRICK(recorder, host, "dequantise of macros_test");
            PLUMB_LAP(recorder, host, "lap of macros_test");
        }
        EXPECT_EQ(times_in_registry("dequantise of macros_test"), on ? 1u : 0u);
        EXPECT_EQ(times_in_registry("lap of macros_test"), on ? 1u : 0u);
    }
    const Name scope = intern_name("dequantise of macros_test", Category::other);
    const Name lap = intern_name("lap of macros_test", Category::other);
    ASSERT_NE(scope, lap);
    const std::string pair[] = {"scope " + std::to_string(lap.id) + " @1000 +0 lap",
                                "scope " + std::to_string(scope.id) + " @1000 +0"};
    EXPECT_EQ(recorder.take(), (Words{pair[0], pair[1], pair[0], pair[1]}));
}

TEST_F(Macros, a_literal_that_is_the_word_of_a_brick_is_that_brick) {
    { PLUMB_BRICK(recorder, host, "attention"); }
    { PLUMB_BRICK(recorder, host, "softmax"); } // an alias
    EXPECT_EQ(recorder.take(), (Words{"scope 9 @1000 +0", "scope 7 @1000 +0"}));
}

template <int Size>
void generic(Recorder& recorder) {
    if constexpr (Size == 1) {
        PLUMB_BRICK(recorder, host, "small of macros_test");
    } else {
        PLUMB_BRICK(recorder, host, "large of macros_test");
    }
}

TEST_F(Macros, places_with_different_literals_have_different_names) {
    generic<1>(recorder);
    generic<2>(recorder);
    generic<1>(recorder);
    const Words words = recorder.take();
    ASSERT_EQ(words.size(), 3u);
    EXPECT_NE(words[0], words[1]);
    EXPECT_EQ(words[0], words[2]);
}

TEST_F(Macros, a_tile_takes_a_literal_too) {
    { PLUMB_TILE(recorder, TileLevel::midi, 1, 2, bytes(64), "tiled of macros_test"); }
    EXPECT_EQ(times_in_registry("tiled of macros_test"), 1u);
}

} // namespace
} // namespace plumb::record
