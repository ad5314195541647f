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

DecodeAhead::DecodeAhead(const std::vector<RecordPlace>& places, std::vector<Decode> decoders)
    : places_(places), decoders_(std::move(decoders)) {
    for (std::size_t number = 0; number < decoders_.size(); ++number) {
        workers_.push_back(std::make_unique<Worker>(
            [this, number](Worker& to) { run(to, decoders_[number], number, decoders_.size()); }));
    }
}

void DecodeAhead::run(Worker& to, const Decode& decode, std::size_t number, std::size_t of) const {
    std::size_t turn = 0;
    for (std::size_t place = 0; place < places_.size(); ++turn) {
        const std::size_t end = end_of_group(place);
        if (turn % of == number) {
            Group* const group = to.room();
            if (group == nullptr) {
                return;
            }
            fill(*group, decode, place, end);
            to.filled();
        }
        place = end;
    }
}

std::size_t DecodeAhead::end_of_group(std::size_t place) const {
    for (std::size_t records = 0; place < places_.size() && records < group_records; ++place) {
        records += places_[place].count;
    }
    return place;
}

void DecodeAhead::fill(Group& group, const Decode& decode, std::size_t place, std::size_t end) const {
    group.chunks.clear();
    if (group.records == nullptr) {
        group.records = std::make_unique_for_overwrite<Record[]>(group_records + max_chunk_records);
    }
    Record* to = group.records.get();
    for (; place < end; ++place) {
        group.chunks.push_back({&places_[place], decode(places_[place], to), to});
        to += places_[place].count;
    }
}

const DecodeAhead::Chunk* DecodeAhead::next() {
    if (group_ == nullptr || at_ == group_->chunks.size()) {
        group_ = workers_[turn_++ % workers_.size()]->next();
        at_ = 0;
    }
    return group_ != nullptr ? &group_->chunks[at_++] : nullptr;
}

} // namespace plumb::recording
