// SPDX-License-Identifier: Apache-2.0
// A writer for tests that bring records of their own. A plain function; no thread rule.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "recording/records_testing.hpp"
#include "recording/writer.hpp"

namespace plumb::recording::testing {

/// Of a recording with full_metadata().
inline std::unique_ptr<Writer> writer_of(WriterOptions options = {}) {
    auto writer = Writer::create(std::move(options), full_metadata());
    EXPECT_TRUE(writer.ok());
    return std::move(*writer);
}

} // namespace plumb::recording::testing
