// SPDX-License-Identifier: Apache-2.0
// For tests: what an answer says of a planted run. Plain functions.
#pragma once

#include <string>

#include "answers/answer.hpp"
#include "planted/tape.hpp"
#include "support/json_schema.hpp"

namespace plumb::answers {

struct Said {
    support::json document; // {"error": …} where there is no answer
    std::string text;
};

[[nodiscard]] Said said_of(const Entry& entry, planted::Tape tape, const OptionValues& values = {});

} // namespace plumb::answers
