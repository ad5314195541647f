// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <limits>

namespace plumb::base {
namespace {

template <class A, class B>
concept Subtractable = requires(A a, B b) { a - b; };
template <class A, class B>
concept Comparable = requires(A a, B b) { a < b; };

TEST(Units, two_clocks_can_neither_be_subtracted_nor_compared) {
    EXPECT_TRUE((Subtractable<HostTicks, HostTicks>));
    EXPECT_TRUE((Subtractable<DeviceTicks, DeviceTicks>));
    EXPECT_FALSE((Subtractable<HostTicks, DeviceTicks>));
    EXPECT_FALSE((Subtractable<DeviceTicks, HostTicks>));
    EXPECT_FALSE((Subtractable<HostTicks, Nanoseconds>));
    EXPECT_FALSE((Comparable<HostTicks, DeviceTicks>));
    EXPECT_FALSE((std::same_as<TickSpan<struct HostClockTag>, TickSpan<struct DeviceClockTag>>));
}

TEST(Units, a_difference_of_ticks_is_signed_and_survives_a_wrap) {
    EXPECT_EQ((HostTicks{5} - HostTicks{8}).value, -3);
    EXPECT_EQ((HostTicks{2} - HostTicks{std::numeric_limits<std::uint64_t>::max()}).value, 3);
}

} // namespace
} // namespace plumb::base
