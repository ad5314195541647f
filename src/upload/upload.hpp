// SPDX-License-Identifier: Apache-2.0
// Recordings into ClickHouse, over HTTP, into the tables of share/plumb/clickhouse/tables.sql (docs/reference/clickhouse.md). The one header that the
// command includes. Memory: a batch of rows, packed. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "upload/target.hpp"

namespace plumb::exporting {
struct SampleFeed;
}

namespace plumb::upload {

struct Uploaded {
    std::string recording; // as the tables call it
    std::string shard;     // "127.0.0.1:8123"
    std::uint64_t scopes = 0, steps = 0;
};

/// Bodies are cut there; one is one block of the server, and comes whole or not at all.
inline constexpr std::uint64_t rows_of_a_batch = std::uint64_t{1} << 18;

/// What progress shows.
struct UploadProgress {
    std::atomic<std::uint64_t> bytes{0}; // sent
};

/// Drops what an earlier attempt left of this recording, sends it, compares counts and sums, and commits. Until then no query of the shipped
/// tables sees any of it. Errors: what opening the file gives, what post() gives, what the server says, and failed where the sums differ or
/// `stop` became true.
[[nodiscard]] Result<Uploaded> upload_recording(const std::string& recording, const Target& target,
                                                const std::atomic<bool>& stop, UploadProgress& progress);
/// The same of samples from elsewhere.
[[nodiscard]] Result<Uploaded> upload_samples(const exporting::SampleFeed& source, const Target& target,
                                              const std::atomic<bool>& stop, UploadProgress& progress,
                                              const HttpLimits& limits = {});

} // namespace plumb::upload
