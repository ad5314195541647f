// SPDX-License-Identifier: Apache-2.0
#include "backends/measure_selftest.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace plumb {
namespace {

TEST(SelfTest, each_figure_of_each_device_is_measured_or_absent_with_a_reason) {
    const SelfTest test = measure_selftest();
    ASSERT_FALSE(test.backends.empty());
    for (const BackendSelfTest& backend : test.backends) {
        EXPECT_EQ(backend.devices.empty(), !backend.unavailable.empty()) << backend.name;
        for (const DeviceSelfTest& device : backend.devices) {
            for (const Figure* figure :
                 {&device.ticks_per_second, &device.floor_ns, &device.begin_end_ns, &device.clock_read_ns,
                  &device.clock_pair_ns, &device.fit_residual_ns, &device.fit_bound_ns}) {
                EXPECT_NE(figure->value.has_value(), !figure->reason.empty());
                EXPECT_TRUE(!figure->value || (std::isfinite(*figure->value) && *figure->value >= 0.0));
            }
        }
    }
}

TEST(SelfTest, the_cpu_is_always_there_with_its_clock_and_costs) {
    const SelfTest test = measure_selftest();
    const BackendSelfTest& cpu = test.backends.front();
    EXPECT_EQ(cpu.name, "cpu");
    ASSERT_EQ(cpu.devices.size(), 1u);
    const DeviceSelfTest& device = cpu.devices.front();
    EXPECT_EQ(device.source, "cpu_" + test.clock);
    EXPECT_EQ(device.clock, test.clock);
    EXPECT_FALSE(test.clock_reason.empty());
    ASSERT_TRUE(device.ticks_per_second.value.has_value()) << device.ticks_per_second.reason;
    EXPECT_GT(*device.ticks_per_second.value, 1e6);
    EXPECT_LT(*device.ticks_per_second.value, 1e11);
    ASSERT_TRUE(device.begin_end_ns.value.has_value());
    EXPECT_GT(*device.begin_end_ns.value, 0.0);
}

} // namespace
} // namespace plumb
