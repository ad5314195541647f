// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "numerics/planted_checks_testing.hpp"

namespace {

using namespace plumb;
using namespace plumb::numerics;

TEST(Distance, T15_equal_bytes_of_two_element_types_are_not_the_same_values) {
    Values f16 = planted_values(1, 256);
    Values bf16 = f16;
    for (double& value : bf16) { // the same bytes read as another type
        value *= 0x1p-100;
    }
    const Fingerprint a = planted_fingerprint(f16);
    Fingerprint b = planted_fingerprint(bf16);
    b.hash = a.hash;
    EXPECT_GT(relative_distance(a, b).low, 0.5);
    Values turned = f16;
    for (double& value : turned) {
        value = -value;
    }
    Fingerprint c = planted_fingerprint(turned);
    c.hash = a.hash;
    EXPECT_LT(cosine(a, c), -0.99);
    EXPECT_EQ(relative_distance(a, a).high, 0);
    EXPECT_EQ(cosine(a, a), 1);
}

TEST(Distance, tensors_without_a_finite_element_equal_themselves) {
    const Fingerprint lost = planted_fingerprint(Values(8, std::numeric_limits<double>::quiet_NaN()));
    EXPECT_EQ(relative_distance(lost, lost).high, 0);
}

} // namespace
