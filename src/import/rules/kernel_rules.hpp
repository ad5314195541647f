// SPDX-License-Identifier: Apache-2.0
// Kernel names to bricks, by rules that are data. One thread at a time. Labels hold views into the rules, which must outlive them;
// moving the rules leaves views valid.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/rules/kernel_label.hpp"
#include "import/rules/rules_text.hpp"
#include "plumb/result.hpp"

namespace plumb::imported {

class KernelRules {
  public:
    using Source = RulesText;

    /// The files, first to last, then the rules of plumb itself: kernels.rules of the folder share/plumb beside the folder of
    /// this program, or those built in where there is none.
    [[nodiscard]] static Result<KernelRules> load(const std::vector<std::string>& files);
    /// These alone.
    [[nodiscard]] static Result<KernelRules> compile(std::vector<Source> sources);

    KernelRules(KernelRules&&) noexcept;
    KernelRules& operator=(KernelRules&&) noexcept;
    ~KernelRules();

    /// Call it once a name, as the tool wrote it: a name costs some microseconds, a hostile one some milliseconds. Of a copy or
    /// a fill the name starts with "Memcpy" or "Memset".
    [[nodiscard]] KernelLabel label(std::string_view name);

    /// How often a rule was given up on a name, because matching took too many steps: then it counts as one that did not match.
    [[nodiscard]] std::size_t given_up() const noexcept;

  private:
    struct State;
    explicit KernelRules(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace plumb::imported
