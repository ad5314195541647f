// SPDX-License-Identifier: Apache-2.0
// The text that an event of NVTX carries, in any of the forms there are. Pure; safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "attach/nvtx/abi.hpp"
#include "attach/nvtx/texts.hpp"

namespace plumb::attach::nvtx {

/// In UTF-8 where it was wide, at most longest_text bytes; empty where there is none. A view into the event, into `texts`, or into
/// `place`, which is overwritten.
[[nodiscard]] std::string_view plain_text(const Attributes* attributes, const Texts& texts,
                                          std::string& place) noexcept;

} // namespace plumb::attach::nvtx
