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

TEST(Registry, an_unknown_backend_is_refused_with_the_known_ones) {
    const auto found = find_backend("abacus");
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, ErrorCode::not_found);
    EXPECT_NE(found.error().message.find("\"abacus\""), std::string::npos);
    EXPECT_NE(found.error().message.find("cpu"), std::string::npos);
}

} // namespace
} // namespace plumb
