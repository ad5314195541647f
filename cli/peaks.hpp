// SPDX-License-Identifier: Apache-2.0
// The work behind `plumb selftest --peaks`: measure, keep, and show. Used by that command; one thread.
#pragma once

namespace plumb::cli {

/// Returns the exit code.
int measure_and_store_peaks(bool as_json);

} // namespace plumb::cli
