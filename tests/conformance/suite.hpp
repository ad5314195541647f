// SPDX-License-Identifier: Apache-2.0
// The parameterised fixture of the conformance suite: a fresh subject per test. Test-only; one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "conformance/subject.hpp"

namespace plumb::conformance {

class Conformance : public testing::TestWithParam<Entry> {
  protected:
    void SetUp() override { subject_ = GetParam().make(); }

    std::unique_ptr<QueueTimer> timer(const TimerOptions& options = {}) {
        Result<std::unique_ptr<QueueTimer>> made = subject_->make_timer(options);
        if (made) {
            return std::move(*made);
        }
        ADD_FAILURE() << made.error().message;
        return nullptr;
    }

    std::unique_ptr<Subject> subject_;
};

inline std::string subject_name(const testing::TestParamInfo<Entry>& info) { return info.param.name; }

} // namespace plumb::conformance
