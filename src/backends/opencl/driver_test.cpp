// SPDX-License-Identifier: Apache-2.0
// Machines without OpenCL, and what is said there.
#include "backends/opencl/driver.hpp"

#include <gtest/gtest.h>

#include "mocks/virtual_opencl.hpp"
#include "plumb/backend.hpp"
#include "plumb/opencl.hpp"

namespace plumb::backends::opencl {
namespace {

TEST(OpenClDriver, without_a_loader_it_is_unavailable_with_a_sentence_that_says_what_to_install) {
    const auto driver = load_driver("libOpenCL-that-nobody-has.so.9");
    ASSERT_FALSE(driver.ok());
    EXPECT_EQ(driver.error().code, ErrorCode::unavailable);
    EXPECT_NE(driver.error().message.find("install"), std::string::npos) << driver.error().message;
}

TEST(OpenClDriver, a_library_that_is_no_opencl_loader_names_the_call_that_is_missing) {
    const auto driver = load_driver("libm.so.6");
    ASSERT_FALSE(driver.ok());
    EXPECT_EQ(driver.error().code, ErrorCode::unavailable);
    EXPECT_NE(driver.error().message.find("clGetPlatformIDs"), std::string::npos) << driver.error().message;
}

TEST(OpenClDriver, a_loader_without_platforms_or_devices_says_what_to_install) {
    vocl::reset();
    for (const char* call : {"clGetPlatformIDs", "clGetDeviceIDs"}) {
        vocl::fail(call, 1);
        const auto devices = devices_of(vocl::driver());
        ASSERT_FALSE(devices.ok());
        EXPECT_EQ(devices.error().code, ErrorCode::unavailable);
        EXPECT_NE(devices.error().message.find("install a driver"), std::string::npos) << devices.error().message;
    }
    EXPECT_TRUE(devices_of(vocl::driver()).ok());
}

TEST(OpenClDriver, a_text_comes_without_its_end) {
    vocl::reset();
    const auto text = device_text(vocl::driver(), vocl::device(), device_version);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, "OpenCL 3.0 virtual");
}

TEST(OpenClDriver, errors_name_the_call_its_number_and_what_to_do) {
    const Error error = error_of(static_cast<ClResult>(-77), "clFlush", "check it");
    EXPECT_EQ(error.message, "clFlush: an error (-77); check it");
    EXPECT_EQ(error.code, ErrorCode::failed);
    EXPECT_EQ(error_of(ClResult::out_of_host_memory, "x", "y").code, ErrorCode::out_of_memory);
}

TEST(OpenClQueue, M8_a_queue_that_cannot_be_timed_drops_its_scopes_with_a_reason) {
    const Queue queue = plumb::opencl(nullptr);
    ASSERT_NE(queue.timer, nullptr);
    const auto token = queue.timer->begin();
    ASSERT_FALSE(token.ok());
    EXPECT_FALSE(token.error().message.empty());
    EXPECT_FALSE(queue.timer->attach(nullptr).ok());
    EXPECT_EQ(plumb::opencl(nullptr).track, queue.track) << "the same queue again";
}

} // namespace
} // namespace plumb::backends::opencl
