// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace plumb {
namespace {

TEST(Registry, every_backend_of_the_list_is_found_by_its_name) {
    std::set<std::string> names;
    for (Backend* backend : all_backends()) {
        EXPECT_TRUE(names.insert(backend->name()).second) << backend->name();
        const auto found = find_backend(backend->name());
        ASSERT_TRUE(found.ok());
        EXPECT_EQ(*found, backend);
    }
    EXPECT_TRUE(names.contains("cpu"));
}

TEST(Registry, M8_a_backend_that_measures_no_peaks_says_why_in_one_sentence) {
    for (const char* name : {"vulkan", "metal"}) {
        const auto found = find_backend(name);
        if (!found) {
            continue; // not in this build
        }
        const auto peaks = (*found)->measure_peaks(0, {});
        ASSERT_FALSE(peaks.ok());
        EXPECT_EQ(peaks.error().code, ErrorCode::unsupported);
        EXPECT_NE(peaks.error().message.find("; hold"), std::string::npos) << peaks.error().message;
    }
}

TEST(Registry, an_unknown_backend_is_refused_with_the_known_ones) {
    const auto found = find_backend("abacus");
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, ErrorCode::not_found);
    EXPECT_NE(found.error().message.find("\"abacus\""), std::string::npos);
    EXPECT_NE(found.error().message.find("cpu"), std::string::npos);
}

} // namespace
} // namespace plumb
