// SPDX-License-Identifier: Apache-2.0
// Cuts text into words before byte pairs are merged, by the rule that the file names: each family has its own.
// Owned by a tokenizer; split() may be called from one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::decoder {

class Splitter {
  public:
    /// `pre` as in `tokenizer.ggml.pre`. Errors: unsupported, naming it.
    static Result<Splitter> make(const std::string& pre);

    /// Words that together are the text, byte for byte; bytes that are no UTF-8 are words of their own.
    /// Error: failed, where the rule gives up on a text.
    [[nodiscard]] Result<std::vector<std::string_view>> split(std::string_view text) const;

  private:
    struct Rule;
    struct Free {
        void operator()(Rule* rule) const noexcept;
    };
    explicit Splitter(Rule* rule) : rule_(rule) {}
    std::unique_ptr<Rule, Free> rule_;
};

} // namespace plumb::decoder
