// SPDX-License-Identifier: Apache-2.0
#include "recording/chunk_scan.hpp"

#include <algorithm>
#include <cstring>

namespace plumb::recording {
namespace {

constexpr std::size_t search_block = std::size_t{64} << 10;

class ChunkScanner {
  public:
    ChunkScanner(ByteSource& source, std::uint64_t from)
        : source_(source), from_(std::min(from, source.size())), rehash_left_(8 * (source.size() - from_)) {}

    ScanOutcome run(const std::function<void(const ChunkHeader&, const std::byte*, std::uint64_t)>& visit) {
        std::uint64_t at = from_;
        while (at < source_.size()) {
            ChunkHeader header;
            const State state = look(at, header);
            if (state == State::good) {
                const std::byte* payload = source_.view(at + chunk_header_size, header.payload_size);
                visit(header, payload, at);
                at += chunk_header_size + header.payload_size;
                continue;
            }
            const std::uint64_t next = state == State::bad_payload ? behind(at, header) : find_header(at + 1);
            if (next == source_.size() && state != State::bad_payload) {
                count_tail(at, state);
            } else {
                ++outcome_.damaged_places;
                outcome_.damaged_bytes += next - at;
            }
            at = next;
        }
        return outcome_;
    }

  private:
    enum class State { good, bad_payload, cut, no_header };

    State look(std::uint64_t at, ChunkHeader& header) {
        const std::byte* bytes = source_.view(at, chunk_header_size);
        if (bytes == nullptr || !read_chunk_header(bytes, header)) {
            return State::no_header;
        }
        const std::byte* whole = source_.view(at, chunk_header_size + header.payload_size);
        if (whole == nullptr) {
            return State::cut;
        }
        const bool holds = checksum(whole + chunk_header_size, header.payload_size) == header.payload_checksum;
        return holds ? State::good : State::bad_payload;
    }

    /// Where to go on after a chunk whose header holds and whose payload does not.
    std::uint64_t behind(std::uint64_t at, const ChunkHeader& header) {
        const std::uint64_t end = at + chunk_header_size + header.payload_size;
        ChunkHeader next;
        const std::byte* bytes = source_.view(end, chunk_header_size);
        if (end == source_.size() || (bytes != nullptr && read_chunk_header(bytes, next))) {
            return end;
        }
        // Bytes may be missing inside, so chunks may begin earlier. Each such look hashes a payload again: in a file made
        // to waste our time that would be quadratic, hence the budget.
        if (rehash_left_ < header.payload_size) {
            return end;
        }
        rehash_left_ -= header.payload_size;
        return find_header(at + 1);
    }

    /// The next place at or after `at` with a header that holds, or the end.
    std::uint64_t find_header(std::uint64_t at) {
        while (at < source_.size()) {
            const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(search_block, source_.size() - at));
            const std::byte* block = source_.view(at, size);
            if (block == nullptr || size < chunk_header_size) {
                return source_.size();
            }
            for (std::size_t i = 0; i + chunk_header_size <= size;) {
                const void* found = std::memchr(block + i, chunk_magic[0], size - chunk_header_size + 1 - i);
                if (found == nullptr) {
                    break;
                }
                i = static_cast<std::size_t>(static_cast<const std::byte*>(found) - block);
                ChunkHeader header;
                if (read_chunk_header(block + i, header)) {
                    return at + i;
                }
                ++i;
            }
            at += size - chunk_header_size + 1;
        }
        return source_.size();
    }

    /// Nothing good follows: the chunk being written when the writer stopped, or damage.
    void count_tail(std::uint64_t at, State state) {
        const std::uint64_t bytes = source_.size() - at;
        const auto seen = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, sizeof chunk_magic));
        const std::byte* start = source_.view(at, seen);
        const bool begun = start != nullptr && std::memcmp(start, chunk_magic, seen) == 0;
        if (state == State::cut || (begun && bytes < chunk_header_size)) {
            outcome_.torn_bytes += bytes;
        } else {
            ++outcome_.damaged_places;
            outcome_.damaged_bytes += bytes;
        }
    }

    ByteSource& source_;
    std::uint64_t from_;
    std::uint64_t rehash_left_;
    ScanOutcome outcome_;
};

} // namespace

ScanOutcome scan_chunks(ByteSource& source,
                        const std::function<void(const ChunkHeader&, const std::byte*, std::uint64_t)>& visit,
                        std::uint64_t from) {
    return ChunkScanner(source, from).run(visit);
}

} // namespace plumb::recording
