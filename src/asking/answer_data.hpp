// SPDX-License-Identifier: Apache-2.0
// What was found, behind a plumb::Answer: immutable, owned by it. The analysis library derives from it (src/answers/answer.hpp).
// Any thread.
#pragma once

#include <string>

#include "plumb/answer.hpp"

namespace plumb::answers {

class AnswerData {
  public:
    virtual ~AnswerData() = default;
    [[nodiscard]] virtual std::string text(const TextOptions& options) const = 0;
    [[nodiscard]] virtual std::string markdown() const = 0;
    [[nodiscard]] virtual std::string json() const = 0;
    [[nodiscard]] virtual Outcome outcome() const noexcept = 0;
};

} // namespace plumb::answers
