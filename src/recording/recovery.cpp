// SPDX-License-Identifier: Apache-2.0
#include "recording/recovery.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "recording/format.hpp"
#include "recording/record_codec.hpp"
#include "recording/ring_merge.hpp"

namespace plumb::recording {
namespace {

class Folder {
  public:
    Folder(const Index& index, Store& store) : store_(store), encoder_(true), records_before_(index.records_written) {}

    Status fold(const Index& index, const RingRemainder& ring) {
        Bytes bytes;
        Bytes payload;
        append_entry(*index.track(ring.track), payload);
        append_chunk(bytes, header(ChunkType::tracks, 1), payload);
        for (std::size_t done = 0; done < ring.records.size();) {
            const std::size_t count = std::min(ring.records.size() - done, max_chunk_records);
            payload.clear();
            encoder_.encode(ring.records.data() + done, count, payload);
            ChunkHeader made = header(ChunkType::records, static_cast<std::uint32_t>(count));
            made.codec = Codec::columns;
            made.track = ring.track;
            made.first_sequence = ring.first_sequence + done;
            append_chunk(bytes, made, payload);
            records_before_ += count;
            done += count;
        }
        // In the same write: a reader sees the records and their account, or neither.
        append_chunk(bytes, header(ChunkType::recovered, static_cast<std::uint32_t>(ring.records.size())), {});
        return store_.append(bytes);
    }

    Status write_counters(Counters counters) {
        counters.records = std::max(counters.records, records_before_);
        Bytes payload;
        Bytes bytes;
        append_entry(counters, payload);
        append_chunk(bytes, header(ChunkType::counters, 1), payload);
        append_chunk(bytes, header(ChunkType::closed, 0), {});
        return store_.append(bytes);
    }

  private:
    [[nodiscard]] ChunkHeader header(ChunkType type, std::uint32_t count) const {
        ChunkHeader made;
        made.type = type;
        made.count = count;
        made.records_before = records_before_;
        return made;
    }

    Store& store_;
    RecordEncoder encoder_;
    std::uint64_t records_before_;
};

Status fold_all(const Index& index, const std::vector<RingRemainder>& rings, Store& store, Recovery& done) {
    Folder folder(index, store);
    for (const RingRemainder& ring : rings) {
        if (ring.records.empty()) {
            continue;
        }
        if (Status folded = folder.fold(index, ring); !folded) {
            return folded;
        }
        done.records += ring.records.size();
    }
    return index.closed && done.records == 0 ? Status() : folder.write_counters(index.counters);
}

} // namespace

Result<Recovery> recover(const std::string& path, const WriteFunction& write) {
    Result<FileHandle> locked = lock_recording(path);
    if (!locked) {
        return locked.error();
    }
    std::uint64_t size = 0;
    Result<FileHandle> file = open_to_read(path, size);
    if (!file) {
        return file.error();
    }
    ByteSource source(std::move(*file), size);
    Result<Index> index = read_index(source, path);
    if (!index) {
        return index.error();
    }
    Recovery done;
    done.cut_bytes = index->tail_bytes;
    index->notes.clear();
    const std::vector<RingRemainder> rings = merge_ring(*index);
    Result<std::unique_ptr<Store>> store = continue_file_store(path, std::move(*locked), index->end, write);
    if (!store) {
        return store.error();
    }
    if (Status folded = fold_all(*index, rings, **store, done); !folded) {
        return folded.error();
    }
    if (!rings.empty()) {
        done.ring_removed = unlink(locate_ring(index->metadata.ring_path).c_str()) == 0;
    }
    return done;
}

} // namespace plumb::recording
