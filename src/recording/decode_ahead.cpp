// SPDX-License-Identifier: Apache-2.0
#include "recording/decode_ahead.hpp"

#include <utility>

#include "base/os.hpp"
#include "recording/format.hpp"

namespace plumb::recording {
namespace {

// About 3 ms of decoding; starting and joining a thread takes some 0.05 ms.
constexpr std::uint64_t least_records = 262144;

} // namespace

bool DecodeAhead::pays(const std::vector<RecordPlace>& places) {
    std::uint64_t records = 0;
    for (const RecordPlace& place : places) {
        records += place.count;
        if (records >= least_records) {
            return base::usable_cpus() > 1;
        }
    }
    return false;
}

DecodeAhead::DecodeAhead(const std::vector<RecordPlace>& places, Decode decode)
    : places_(places), decode_(std::move(decode)), thread_(base::start_quiet_thread([this] { run(); })) {}

DecodeAhead::~DecodeAhead() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void DecodeAhead::fill(Group& group, std::size_t& place) {
    group.chunks.clear();
    if (group.records == nullptr) {
        group.records = std::make_unique_for_overwrite<Record[]>(group_records + max_chunk_records);
    }
    std::size_t records = 0;
    while (place < places_.size() && records < group_records) {
        const RecordPlace& next = places_[place++];
        Record* const to = group.records.get() + records;
        group.chunks.push_back({&next, decode_(next, to), to});
        records += next.count;
    }
}

void DecodeAhead::run() {
    std::size_t place = 0;
    std::size_t filled = 0;
    std::exception_ptr failure;
    while (place < places_.size() && failure == nullptr) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stop_ || filled - taken_ < groups; });
            if (stop_) {
                return;
            }
        }
        try {
            fill(ring_[filled % groups], place);
        } catch (...) {
            failure = std::current_exception();
        }
        {
            const std::lock_guard lock(mutex_);
            filled_ = failure == nullptr ? ++filled : filled;
        }
        changed_.notify_all();
    }
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
        failure_ = failure;
    }
    changed_.notify_all();
}

const DecodeAhead::Chunk* DecodeAhead::next() {
    // Only this thread moves taken_ on, and a filled group is left alone until then.
    if (holding_ && at_ < ring_[taken_ % groups].chunks.size()) {
        return &ring_[taken_ % groups].chunks[at_++];
    }
    {
        std::unique_lock lock(mutex_);
        taken_ += holding_ ? 1 : 0;
        holding_ = false;
        changed_.notify_all();
        changed_.wait(lock, [this] { return done_ || taken_ < filled_; });
        if (taken_ == filled_) {
            if (failure_ != nullptr) {
                std::rethrow_exception(failure_);
            }
            return nullptr;
        }
    }
    holding_ = true;
    at_ = 1;
    return &ring_[taken_ % groups].chunks[0];
}

} // namespace plumb::recording
