// SPDX-License-Identifier: Apache-2.0
// As JSON: what recover_recording() of plumb/results.hpp and the functions of plumb/selftest.hpp give. Programs that call these link
// plumb::analysis. Any thread.
#pragma once

#include <string>

#include "plumb/api.hpp"
#include "plumb/results.hpp"
#include "plumb/selftest.hpp"

namespace plumb {

PLUMB_API std::string render_json(const RecoverSummary& summary); // schema plumb.recover/1
PLUMB_API std::string render_json(const SelfTest& test);          // schema plumb.selftest/1
/// `file`: which keeps them. Schema plumb.peaks/1.
PLUMB_API std::string render_json(const PeakTest& test, const std::string& file);

} // namespace plumb
