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
    : places_(places), decode_(std::move(decode)), hand_over_([this](auto& to) {
          for (std::size_t place = 0; place < places_.size(); to.filled()) {
              Group* const group = to.room();
              if (group == nullptr) {
                  return;
              }
              fill(*group, place);
          }
      }) {}

void DecodeAhead::fill(Group& group, std::size_t& place) const {
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

const DecodeAhead::Chunk* DecodeAhead::next() {
    if (group_ == nullptr || at_ == group_->chunks.size()) {
        group_ = hand_over_.next();
        at_ = 0;
    }
    return group_ != nullptr ? &group_->chunks[at_++] : nullptr;
}

} // namespace plumb::recording
