// SPDX-License-Identifier: Apache-2.0
#include "analysis/kernel_roofline.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace plumb::analysis {
namespace {

constexpr KernelPeaks peaks{100e9, 1000e9}; // the ridge lies at 10 flops per byte
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double share(double bytes, double flops, double ns) {
    const Figure figure = roofline_share(bytes, flops, ns, peaks);
    EXPECT_TRUE(figure.value) << figure.reason;
    return figure.value.value_or(-1);
}

TEST(KernelRoofline, is_that_of_bandwidth_below_the_ridge_and_of_flops_above) {
    EXPECT_DOUBLE_EQ(share(50e9, 50e9, 1e9), 0.5) << "half of the bandwidth";
    EXPECT_DOUBLE_EQ(share(1e9, 250e9, 1e9), 0.25) << "a quarter of the flops";
    EXPECT_DOUBLE_EQ(share(100e9, 1000e9, 1e9), 1) << "at the ridge both";
    EXPECT_DOUBLE_EQ(share(200e9, 200e9, 1e9), 2) << "more than the peak is shown, not clamped";
}

TEST(KernelRoofline, T11_without_intensity_it_is_absent_with_a_reason_and_never_nan) {
    for (const auto& [bytes, flops] : {std::pair{0.0, 1.0},
                                       {1.0, 0.0},
                                       {0.0, 0.0},
                                       {unknown, 1.0},
                                       {1.0, unknown},
                                       {-1.0, 1.0},
                                       {std::numeric_limits<double>::infinity(), 1.0},
                                       {1e-308, 1e308}}) {
        const Figure figure = roofline_share(bytes, flops, 1000, peaks);
        EXPECT_FALSE(figure.value) << bytes << " " << flops;
        EXPECT_FALSE(figure.reason.empty());
    }
}

TEST(KernelRoofline, without_time_or_peaks_it_is_absent_with_a_reason) {
    EXPECT_EQ(roofline_share(1, 1, 0, peaks).reason, "the kernel has no time of its own");
    EXPECT_NE(roofline_share(1, 1, 5, std::nullopt).reason.find("no measured peaks"), std::string::npos);
    EXPECT_FALSE(roofline_share(1, 1, 5, KernelPeaks{100e9, 0}).value);
}

} // namespace
} // namespace plumb::analysis
