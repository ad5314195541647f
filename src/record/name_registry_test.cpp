// SPDX-License-Identifier: Apache-2.0
#include "record/name_registry.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace plumb::record {
namespace {

TEST(Names, well_known_bricks_and_their_aliases_have_fixed_ids) {
    EXPECT_EQ(intern_name("rms_norm", Category::other), Name(Brick::rms_norm));
    EXPECT_EQ(intern_name("qkv", Category::other), Name(Brick::qkv_projection));
    EXPECT_EQ(intern_name("out_proj", Category::other), Name(Brick::output_projection));
    EXPECT_EQ(intern_name("o_proj", Category::other), Name(Brick::output_projection));
    EXPECT_EQ(intern_name("gelu", Category::other), Name(Brick::activation));
}

TEST(Names, a_name_is_interned_once_and_keeps_its_first_category) {
    const Name name = intern_name("my fused op", Category::ffn);
    EXPECT_GE(name.id, first_interned_id);
    EXPECT_EQ(intern_name("my fused op", Category::norm), name);
    for (const NameEntry& entry : names_from(name.id)) {
        if (entry.id == name.id) {
            EXPECT_EQ(entry.name, "my fused op");
            EXPECT_EQ(entry.category, Category::ffn);
        }
    }
    EXPECT_GT(names_end(), name.id);
}

TEST(Names, two_long_names_with_one_head_are_two) {
    const std::string head(300, 'k');
    const Name first = intern_name(head + "_128x64", Category::other);
    const Name second = intern_name(head + "_64x64", Category::other);
    EXPECT_NE(first.id, second.id);
    EXPECT_EQ(intern_name(head + "_128x64", Category::other).id, first.id);
    const std::string longest(256, 'm');
    const Name whole = intern_name(longest, Category::other);
    for (const NameEntry& entry : names_from(first_interned_id)) {
        EXPECT_LE(entry.name.size(), 256u);
        if (entry.id == whole.id) {
            EXPECT_EQ(entry.name, longest);
        }
    }
}

TEST(Names, the_empty_name_is_refused_and_counted) {
    const std::uint64_t before = refused_names();
    EXPECT_EQ(intern_name("", Category::other), Name{});
    EXPECT_EQ(refused_names(), before + 1);
}

TEST(Names, concurrent_interning_gives_one_id_to_one_name) {
    std::vector<std::vector<std::uint16_t>> ids(4);
    std::vector<std::thread> threads;
    for (auto& mine : ids) {
        threads.emplace_back([&mine] {
            for (int i = 0; i < 200; ++i) {
                mine.push_back(intern_name("concurrent " + std::to_string(i), Category::other).id);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(std::set<std::uint16_t>(ids[0].begin(), ids[0].end()).size(), 200u);
    for (const auto& mine : ids) {
        EXPECT_EQ(mine, ids[0]);
    }
}

// Last in this file: it fills the one registry of the process.
TEST(NamesFull, M7_the_table_is_capped_and_what_is_refused_is_counted) {
    const std::uint64_t before = refused_names();
    std::uint64_t unnamed = 0;
    for (int i = 0; i < name_capacity + 100; ++i) {
        unnamed += intern_name("name " + std::to_string(i), Category::other) == Name{} ? 1 : 0;
    }
    EXPECT_GE(unnamed, 100u);
    EXPECT_EQ(refused_names(), before + unnamed);
    EXPECT_EQ(names_end(), name_capacity);
    EXPECT_EQ(intern_name("name 0", Category::other).id == 0, false) << "names it has are still found";
}

} // namespace
} // namespace plumb::record
