// SPDX-License-Identifier: Apache-2.0
// The exporters: one function per format, data in, stream out, memory bounded by the tables of the recording.
// Pure but for the stream; one thread per call. An output that refuses data gives an error, never a shorter file unsaid.
#pragma once

#include <iosfwd>

#include "export/sample_feed.hpp"
#include "plumb/result.hpp"

namespace plumb::exporting {

/// Chrome trace format, JSON object form, for any Chrome or Perfetto trace viewer: a lane per track with true start
/// stamps, spans in lanes of their own.
Status chrome_trace(const SampleFeed& source, std::ostream& out);
/// One header line {"schema":"plumb.samples/1",…}, then one sample per line, then one check of a
/// tensor per line.
Status jsonl(const SampleFeed& source, std::ostream& out);
/// A header row, then one row per sample (RFC 4180); empty cells where nothing was given.
Status csv(const SampleFeed& source, std::ostream& out);

} // namespace plumb::exporting
