// SPDX-License-Identifier: Apache-2.0
// Walks over the chunks of a recording, whatever state it is in: what fails a checksum is skipped and counted, and the walk
// goes on at the next chunk that holds. Time and memory are linear in the file. Pure but for reading; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "recording/byte_source.hpp"
#include "recording/format.hpp"

namespace plumb::recording {

struct ScanOutcome {
    std::uint64_t damaged_places = 0;
    std::uint64_t damaged_bytes = 0;
    std::uint64_t torn_bytes = 0; // at the end: a chunk that was being written when the writer stopped
};

/// Calls `visit(header, payload, offset of the header)` for each chunk whose checksums hold, in file order, from offset `from` on.
ScanOutcome scan_chunks(ByteSource& source,
                        const std::function<void(const ChunkHeader&, const std::byte*, std::uint64_t)>& visit,
                        std::uint64_t from = preamble_size);

} // namespace plumb::recording
