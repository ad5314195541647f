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
    Folder(Store& store, std::uint64_t records_before)
        : store_(store), encoder_(true), records_before_(records_before) {}

    /// First: a record's name comes before it.
    Status fold(const std::vector<NameInfo>& names) {
        Bytes bytes;
        Bytes payload;
        for (const NameInfo& name : names) {
            append_entry(name, payload);
        }
        if (!names.empty()) {
            append_chunk(bytes, header(ChunkType::names, static_cast<std::uint32_t>(names.size())), payload);
        }
        return store_.append(bytes);
    }

    Status fold(const TrackInfo& track, const RingRemainder& ring) {
        Bytes bytes;
        Bytes payload;
        append_entry(track, payload);
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
        return store_.append(bytes);
    }

    /// Last: what says that the ring is not needed any more.
    Status finish(Counters counters, std::uint64_t folded) {
        counters.records = std::max(counters.records, records_before_);
        Bytes payload;
        Bytes bytes;
        append_entry(counters, payload);
        append_chunk(bytes, header(ChunkType::counters, 1), payload);
        append_chunk(bytes, header(ChunkType::recovered, static_cast<std::uint32_t>(folded)), {});
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

Status fold_all(const Index& index, const RingMerge& merge, Store& store) {
    Folder folder(store, index.records_written);
    if (Status folded = folder.fold(merge.names); !folded) {
        return folded;
    }
    for (const RingRemainder& ring : merge.rings) {
        if (Status folded = folder.fold(*index.track(ring.track), ring); !folded) {
            return folded;
        }
    }
    return folder.finish(index.counters, merge.records);
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
    done.cut_bytes = index->torn_bytes;
    index->notes.clear();
    const RingMerge merge = merge_ring(*index);
    done.notes = index->notes;
    Result<std::unique_ptr<Store>> store = continue_file_store(path, std::move(*locked), index->end, write);
    if (!store) {
        return store.error();
    }
    if (!merge.found) {
        return done;
    }
    if (Status folded = fold_all(*index, merge, **store); !folded) {
        return folded.error();
    }
    done.records = merge.records;
    done.ring_removed = unlink(locate_ring(index->metadata.ring_path).c_str()) == 0;
    return done;
}

} // namespace plumb::recording
