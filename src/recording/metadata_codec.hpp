// SPDX-License-Identifier: Apache-2.0
// Everything but records to and from bytes: metadata, tracks, names, clock pairs, counters, descriptions, removals.
// Each is a list of numbered fields; unknown fields are skipped, so later versions may add some.
// Pure functions; no thread rule. Decoding takes hostile input: false when a part that must be there is not.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

/// Records of one track that max_size= or keep= took out of the file.
struct Removal {
    std::uint32_t track = 0;
    std::uint64_t until_sequence = 0; // none below this is in the file
    std::uint64_t records = 0;
};

using Description = std::pair<std::string, std::string>;

/// Of one text of an entry, in bytes: key and value of a description fit into one chunk.
inline constexpr std::size_t most_text = 1'000'000;
/// A longer text is cut, and says so at its end.
[[nodiscard]] std::string bounded(std::string text);

void encode(const Metadata& from, Bytes& to);
void encode(const TrackInfo& from, Bytes& to);
void encode(const NameInfo& from, Bytes& to);
void encode(const ClockPair& from, Bytes& to);
void encode(const Counters& from, Bytes& to);
void encode(const Description& from, Bytes& to);
void encode(const Removal& from, Bytes& to);
void encode(const OffCpuSample& from, Bytes& to);

[[nodiscard]] bool decode(const std::byte* data, std::size_t size, Metadata& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, TrackInfo& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, NameInfo& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, ClockPair& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, Counters& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, Description& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, Removal& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, OffCpuSample& to);

/// Entries of one chunk: size (4 bytes) and fields, one after the other.
template <class T>
void append_entry(const T& from, Bytes& to) {
    const std::size_t at = to.size();
    append_le(to, std::uint32_t{0});
    encode(from, to);
    store_le(to.data() + at, static_cast<std::uint32_t>(to.size() - at - sizeof(std::uint32_t)));
}

/// Calls `take` with each entry that decodes. False when some did not.
template <class T, class Take>
[[nodiscard]] bool for_each_entry(const std::byte* data, std::size_t size, Take&& take) {
    bool whole = true;
    while (size >= sizeof(std::uint32_t)) {
        const std::size_t length = load_le<std::uint32_t>(data);
        data += sizeof(std::uint32_t);
        size -= sizeof(std::uint32_t);
        if (length > size) {
            return false;
        }
        T entry;
        if (decode(data, length, entry)) {
            take(std::move(entry));
        } else {
            whole = false;
        }
        data += length;
        size -= length;
    }
    return whole && size == 0;
}

} // namespace plumb::recording
