// SPDX-License-Identifier: Apache-2.0
// From the out= of a config to the absolute path of a recording. Plain functions, safe from any thread.
#pragma once

#include <string>

namespace plumb::session {

/// %p pid, %h host name, %r rank ("0" where there is none), %% a percent sign.
std::string expand_words(const std::string& pattern, const std::string& rank = {});
/// The same as a path, relative to the working folder.
std::string expand_path(const std::string& pattern, const std::string& rank = {});

} // namespace plumb::session
