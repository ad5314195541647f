// SPDX-License-Identifier: Apache-2.0
// The rings of another process, as that process left them in tmpfs: hostile input, read by pread into memory and checked
// field by field. Creating and mapping rings is the record room's business; the layout is <plumb/layout.hpp>.
// Plain functions; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/layout.hpp"
#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

/// What one ring held that its drain had not yet confirmed.
struct RingRemainder {
    std::uint32_t track = 0;
    std::uint64_t first_sequence = 0;
    std::uint64_t os_thread = 0;
    std::string thread_name;
    bool of_ranges = false; // base::RingSource::nvtx
    std::uint64_t drops[drop_reasons] = {};
    std::vector<Record> records;
};

struct RingFile {
    std::string path;
    std::uint32_t pid = 0;
    std::uint64_t process_start = 0;
    std::string boot_id;
    std::uint64_t recording_id[2] = {0, 0};
    std::string recording;            // absolute path that the writer gave its recording
    std::vector<RingRemainder> rings; // live and retired ones, also those with nothing left
    std::vector<NameInfo> names;      // that its drain had perhaps not written
    std::vector<std::string> notes;   // what could not be used, in words
};

/// Ring files are named plumb-<something>.ring; nothing else is ever opened or removed.
[[nodiscard]] bool is_ring_name(const std::string& path);
/// `path` as it is when absolute; else looked for where rings lie: $XDG_RUNTIME_DIR, then /dev/shm.
[[nodiscard]] std::string locate_ring(const std::string& path);
/// Errors: not_found; corrupt, with the field that cannot be true; unsupported for another layout version.
Result<RingFile> read_ring_file(const std::string& path);
/// What it says of its process and recording, without the rings.
Result<RingFile> read_ring_header(const std::string& path);
/// The same as read_ring_file() from bytes in memory; `path` only names them in errors.
Result<RingFile> read_ring_bytes(const std::byte* data, std::size_t size, const std::string& path);

} // namespace plumb::recording
