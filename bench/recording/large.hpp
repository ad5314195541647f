// SPDX-License-Identifier: Apache-2.0
// Long runs: what each command needs to read one, and what it takes to stop one. One thread.
#pragma once

#include <string>

#include "recording/run_stream.hpp"
#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace bench {

/// Two recordings of at least `scopes` scopes each, read by everything that reads recordings, each in its own process.
void measure_large(Board& board, const Run& run, const TemporaryFolder& folder, double scopes);

/// Runs of different lengths, recorded without a pause, and how long each takes to stop.
void measure_stopping(Board& board, const TemporaryFolder& folder, double scopes);

} // namespace bench
