// SPDX-License-Identifier: Apache-2.0
// Perl's regular expressions (PCRE2), found anywhere in a text, case ignored, each match with a bound on its steps and memory.
// Thread rule: a Regex may be shared; a RegexMatcher belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::imported {

class Regex {
  public:
    /// An error names `file` and `line`. Groups capture by name alone: (?<layer>\d+).
    [[nodiscard]] static Result<Regex> compile(std::string_view text, const std::string& file, std::size_t line);

    Regex(Regex&&) noexcept;
    Regex& operator=(Regex&&) noexcept;
    ~Regex();

    /// Its groups, by their numbers from 1.
    [[nodiscard]] const std::vector<std::string>& groups() const noexcept { return groups_; }

  private:
    friend class RegexMatcher;
    struct Code;
    explicit Regex(std::unique_ptr<Code> code);

    std::unique_ptr<Code> code_;
    std::vector<std::string> groups_;
};

class RegexMatcher {
  public:
    RegexMatcher();
    ~RegexMatcher();

    /// False: there was no memory for it, and it matches nothing.
    [[nodiscard]] bool usable() const noexcept;
    [[nodiscard]] bool matches(const Regex& regex, std::string_view text);
    /// Of the last match that was found: what the group holds, in the text that was matched; empty where it took no part.
    [[nodiscard]] std::string_view group(std::size_t number) const;
    /// How often a match was given up because it took too many steps: then it counts as none.
    [[nodiscard]] std::size_t given_up() const noexcept { return given_up_; }

  private:
    struct State;
    std::unique_ptr<State> state_;
    std::string_view text_;
    std::size_t given_up_ = 0;
};

} // namespace plumb::imported
