// SPDX-License-Identifier: Apache-2.0
// The instructions of a function as they lie in a program or library, by objdump. One thread.
#pragma once

#include <string>
#include <vector>

namespace bench {

/// One line per instruction, addresses and jump targets made relative to the function. Empty where objdump is missing
/// or does not know the function.
[[nodiscard]] std::vector<std::string> listing_of(const std::string& file, const std::string& function);

} // namespace bench
