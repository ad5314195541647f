// SPDX-License-Identifier: Apache-2.0
// For tests: the tape under its former name.
#pragma once

#include "planted/tape.hpp"

namespace plumb::resolve {

using PlantedSource = planted::Tape;

} // namespace plumb::resolve
