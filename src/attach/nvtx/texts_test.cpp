// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/texts.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "base/layout.hpp"
#include "record/name_registry.hpp"

namespace plumb::attach::nvtx {
namespace {

constexpr const char* rules_of_test = "count \", seq = \"\n"
                                      "hide * - ^hidden\n"
                                      "step:decode * - ^decode (?<decode>\\d+)\n"
                                      "layer * - ^layer (?<layer>\\d+)\n"
                                      "down_projection * bytes ^down (?<m>\\d+) (?<k>\\d+) (?<n>\\d+)\n"
                                      "moe_router mine - ^store\n";

imported::RangeRules rules() {
    Result<imported::RangeRules> made = imported::RangeRules::compile({{"test.rules", rules_of_test}});
    EXPECT_TRUE(made.ok());
    return std::move(*made);
}

std::string name_of(Name name) {
    for (const record::NameEntry& entry : record::names_from(0)) {
        if (entry.id == name.id) {
            return entry.name;
        }
    }
    return "?";
}

Category category_of(Name name) {
    for (const record::NameEntry& entry : record::names_from(0)) {
        if (entry.id == name.id) {
            return entry.category;
        }
    }
    return Category::other;
}

class RangeTexts : public testing::Test {
  protected:
    const KnownRange& find(std::string_view text, std::uint32_t domain = 0, std::uint32_t category = 0) {
        return texts_.find(domain, text, false, category, place_);
    }

    Texts texts_{rules(), [] {
                     return false;
                 }};
    KnownRange place_;
};

TEST_F(RangeTexts, a_text_is_settled_once) {
    const KnownRange& first = find("down 2 3 4");
    EXPECT_EQ(&find(std::string("down 2 3 4")), &first);
    EXPECT_EQ(texts_.counts().kept, 1U);
    EXPECT_EQ(name_of(first.name()), "down_projection");
    EXPECT_EQ(first.payload, RangePayload::bytes);
    EXPECT_EQ(first.work.flops, 48);
    EXPECT_TRUE(std::isnan(first.work.bytes));
    EXPECT_NE(first.bits & flag_work, 0U);
    EXPECT_NE(&find("down 2 3 5"), &first);
}

TEST(RangeTextsOnADevice, T1_the_time_of_the_host_says_nothing_of_a_rate) {
    Texts texts(rules(), [] { return true; });
    KnownRange place;
    const KnownRange& known = texts.find(0, "down 2 3 4", false, 0, place);
    EXPECT_EQ(name_of(known.name()), "down_projection");
    EXPECT_TRUE(std::isnan(known.work.flops));
    EXPECT_EQ(known.bits & flag_work, 0U);
    EXPECT_EQ(known.payload, RangePayload::none);
}

TEST_F(RangeTexts, texts_that_differ_by_a_counter_are_one) {
    EXPECT_EQ(&find("aten::mm, seq = 1"), &find("aten::mm, seq = 99999"));
    EXPECT_EQ(texts_.counts().kept, 1U);
}

TEST_F(RangeTexts, steps_and_layers_are_known_by_their_rules) {
    const KnownRange& step = find("decode 5");
    EXPECT_EQ(step.kind, RangeKind::step);
    EXPECT_EQ(step.phase, Phase::decode);
    EXPECT_EQ(step.step.decode_tokens, 5U);
    EXPECT_EQ(find("layer 7").layer, 7);
    EXPECT_EQ(find("hidden").kind, RangeKind::hidden);
}

TEST_F(RangeTexts, a_name_belongs_to_its_domain) {
    const std::uint32_t mine = texts_.domain("mine");
    EXPECT_NE(mine, 0U);
    EXPECT_EQ(texts_.domain("mine"), mine);
    EXPECT_EQ(texts_.domain(""), 0U);
    EXPECT_EQ(name_of(find("store", mine).name()), "moe_router");
    EXPECT_EQ(name_of(find("store").name()), "store");
    EXPECT_EQ(name_of(find("load", mine).name()), "mine:load");
}

TEST_F(RangeTexts, a_category_that_is_called_as_one_of_ours_is_that) {
    texts_.name_category(0, 7, "attention");
    texts_.name_category(0, 8, "my own");
    EXPECT_EQ(category_of(find("texts test: scores", 0, 7).name()), Category::attention);
    EXPECT_EQ(category_of(find("texts test: mine", 0, 8).name()), Category::other);
}

TEST_F(RangeTexts, marks_have_names_of_their_own) {
    const KnownRange& mark = texts_.find(0, "texts test: evicted", true, 0, place_);
    EXPECT_EQ(name_of(mark.name()), "mark texts test: evicted");
    EXPECT_NE(&find("texts test: evicted"), &mark);
}

TEST_F(RangeTexts, a_registered_string_is_found_by_its_number_and_no_other_number_finds_one) {
    const std::uint32_t handle = texts_.register_string(0, "registered");
    ASSERT_NE(handle, 0U);
    ASSERT_NE(texts_.registered(handle), nullptr);
    EXPECT_EQ(texts_.registered(handle), &find("registered"));
    EXPECT_EQ(texts_.register_string(0, "registered"), handle) << "a second time gives no second number";
    EXPECT_EQ(texts_.registered(0), nullptr);
    EXPECT_EQ(texts_.registered(handle + 1), nullptr);
    EXPECT_EQ(texts_.registered(0x7fff12345678), nullptr);
}

TEST_F(RangeTexts, a_million_names_are_bounded_and_counted) {
    constexpr std::uint32_t names = 1'000'000;
    std::uint64_t others = 0;
    const Name other = Name(record::intern_name("other", Category::other));
    for (std::uint32_t i = 0; i < names; ++i) {
        others += find("name of its own " + std::to_string(i)).name() == other;
    }
    const TextCounts counts = texts_.counts();
    EXPECT_EQ(counts.kept, Texts::most_texts);
    EXPECT_LE(counts.own, Texts::most_own_names);
    EXPECT_EQ(others, names - counts.own);
    EXPECT_EQ(counts.other, others);
    EXPECT_EQ(counts.anew, names - Texts::most_texts);
    EXPECT_EQ(name_of(find("down 2 3 4").name()), "down_projection") << "what a rule knows is known still";
    const std::uint32_t handle = texts_.register_string(0, "one more");
    ASSERT_NE(texts_.registered(handle), nullptr);
    EXPECT_EQ(texts_.registered(handle)->name(), other);
}

TEST_F(RangeTexts, long_texts_are_bounded_too) {
    const std::string longest(longest_text, 'x');
    for (int i = 0; i < 5000; ++i) {
        const std::string number = std::to_string(i);
        (void)find(number + longest.substr(number.size()));
    }
    const TextCounts counts = texts_.counts();
    EXPECT_EQ(counts.kept, Texts::most_text_bytes / longest_text);
    EXPECT_EQ(counts.kept + counts.anew, 5000U);
    EXPECT_EQ(&find(longest + "one"), &find(longest + "other")) << "what comes behind is not looked at";
}

TEST_F(RangeTexts, domains_beyond_the_bound_share_one) {
    for (std::uint32_t i = 0; i < 3 * Texts::most_domains; ++i) {
        EXPECT_LE(texts_.domain("domain " + std::to_string(i)), Texts::most_domains);
    }
    EXPECT_EQ(texts_.domain("yet another"), Texts::most_domains);
    EXPECT_EQ(texts_.domain("domain 5"), 6U) << "known ones stay";
    EXPECT_EQ(name_of(find("last", Texts::most_domains).name()), "other:last");
}

TEST_F(RangeTexts, threads_that_meet_a_text_first_agree_on_it) {
    constexpr int threads = 8;
    constexpr int names = 500;
    std::vector<std::vector<const KnownRange*>> found(threads);
    std::vector<std::thread> running;
    for (auto& of_thread : found) {
        running.emplace_back([&of_thread, this] {
            KnownRange place;
            for (int i = 0; i < names; ++i) {
                of_thread.push_back(&texts_.find(0, "down 1 1 " + std::to_string(i), false, 0, place));
            }
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    for (const auto& of_thread : found) {
        EXPECT_EQ(of_thread, found.front());
    }
    EXPECT_EQ(texts_.counts().kept, static_cast<std::uint64_t>(names));
}

} // namespace
} // namespace plumb::attach::nvtx
