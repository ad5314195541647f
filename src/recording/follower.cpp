// SPDX-License-Identifier: Apache-2.0
#include "recording/follower.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/os.hpp"
#include "recording/file_access.hpp"
#include "recording/retention.hpp"

namespace plumb::recording {
namespace {

bool same_run(const Metadata& a, const Metadata& b) {
    return a.recording_id[0] == b.recording_id[0] && a.recording_id[1] == b.recording_id[1];
}

Result<std::shared_ptr<ByteSource>> open_source(const std::string& path) {
    std::uint64_t size = 0;
    Result<FileHandle> file = open_to_read(path, size);
    return file ? Result<std::shared_ptr<ByteSource>>(std::make_shared<ByteSource>(std::move(*file), size))
                : Result<std::shared_ptr<ByteSource>>(file.error());
}

} // namespace

Result<Follower> Follower::open(const std::string& path) {
    Result<std::shared_ptr<ByteSource>> file = open_source(path);
    return file ? Result<Follower>(Follower(path, std::move(*file))) : Result<Follower>(file.error());
}

/// A writer with a limit puts a new file in the place of the old one; so does another run.
Status Follower::reopen_if_replaced() {
    struct stat ours = {};
    struct stat there = {};
    if (fstat(file_->file(), &ours) != 0 || stat(path_.c_str(), &there) != 0) {
        return Error{ErrorCode::not_found, path_ + " was removed while it was followed: its run records into no file"};
    }
    if (ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
        return {};
    }
    Result<std::shared_ptr<ByteSource>> file = open_source(path_);
    if (!file) {
        return file.error();
    }
    GrowingIndex index;
    if (Status grown = index.grow(**file, path_); !grown) {
        return grown;
    }
    if (facts_->metadata.pid != 0 && !same_run(index.index().metadata, facts_->metadata)) {
        return Error{ErrorCode::corrupt, path_ + " is the recording of another run by now, of process " +
                                             std::to_string(index.index().metadata.pid) +
                                             ": name it again to follow that"};
    }
    file_ = std::move(*file);
    index_ = std::move(index);
    return {};
}

void Follower::take_over(Index& index) {
    for (RecordPlace& place : index.places) {
        const auto [entry, first] = next_sequence_.emplace(place.track, place.first_sequence + place.skip);
        const std::uint64_t end = place.first_sequence + place.count;
        if (end <= entry->second) {
            continue;
        }
        if (entry->second > place.first_sequence) {
            place.skip =
                static_cast<std::uint32_t>(std::max<std::uint64_t>(place.skip, entry->second - place.first_sequence));
        }
        entry->second = end;
        chunks_.push_back({place, file_});
    }
    index.places.clear();
    index.check_places.clear();
    thin_clock_pairs(index.clock_pairs);
    thin_out(index.off_cpu, 4096);
    *facts_ = index;
}

void Follower::ask_for_writer(bool grew) {
    if (facts_->closed) {
        writer_ = Writer::closed;
    } else if (!grew) {
        // The lock is asked for only where nothing came: whoever opens a recording for writing must not meet us often.
        const bool runs = may_run(writer_of(facts_->metadata));
        writer_ = runs && is_locked(file_->file()) ? Writer::alive : Writer::gone;
    }
    facts_->being_written = writer_ == Writer::alive;
}

Status Follower::look() {
    const std::uint64_t known = index_.index().end;
    const std::shared_ptr<ByteSource> before = file_;
    if (Status replaced = reopen_if_replaced(); !replaced) {
        return replaced;
    }
    file_->measure();
    if (file_ == before && file_->size() < known) {
        return Error{ErrorCode::corrupt, path_ + " became shorter while it was followed: somebody else writes to it"};
    }
    if (Status grown = index_.grow(*file_, path_); !grown) {
        return grown;
    }
    const bool grew = file_ != before || index_.index().end > known;
    bytes_read_ += index_.index().end - (file_ == before ? known : 0);
    take_over(index_.index());
    ask_for_writer(grew && known != 0);
    return {};
}

std::vector<Follower::Chunk> Follower::take_chunks() { return std::exchange(chunks_, {}); }

bool Follower::decode(const Chunk& chunk, std::vector<Record>& records) {
    records.resize(chunk.place.count);
    return read_records(*chunk.file, decoder_, chunk.place, records.data());
}

} // namespace plumb::recording
