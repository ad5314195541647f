// SPDX-License-Identifier: Apache-2.0
#include "base/natural_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace plumb::base {
namespace {

TEST(NaturalOrder, numbers_inside_of_names_count_as_numbers) {
    const std::vector<std::string> sorted = {"",
                                             "a",
                                             "host2/r-10.plumb",
                                             "host10/r-1.plumb",
                                             "r-0.plumb",
                                             "r-1.plumb",
                                             "r-2.plumb",
                                             "r-9.5b",
                                             "r-9.10b",
                                             "r-18446744073709551616.plumb",
                                             "r-18446744073709551617.plumb",
                                             "r.plumb",
                                             "r00",
                                             "r0a",
                                             "r01",
                                             "r1",
                                             "r1a",
                                             "r002"};
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        for (std::size_t j = 0; j < sorted.size(); ++j) {
            EXPECT_EQ(natural_before(sorted[i], sorted[j]), i < j) << sorted[i] << " and " << sorted[j];
        }
    }
}

} // namespace
} // namespace plumb::base
