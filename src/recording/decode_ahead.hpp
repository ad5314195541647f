// SPDX-License-Identifier: Apache-2.0
// Decodes chunks of records on a thread of its own, a bounded way ahead of whoever takes them, in their order.
// Owned by one pass over a recording; next() from one thread. `decode` runs on the other thread and must not be used
// elsewhere meanwhile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/hand_over.hpp"
#include "base/layout.hpp"
#include "recording/index.hpp"

namespace plumb::recording {

class DecodeAhead {
  public:
    /// Records handed over at once at least, so that the hand-over costs nothing beside the decoding; groups decoded
    /// and not yet given back at most. Memory: 4 MiB, whatever the chunks are.
    static constexpr std::size_t group_records = 16384;
    static constexpr std::size_t groups = 3;

    /// Writes the place's `count` records; false for a chunk that cannot be read.
    using Decode = std::function<bool(const RecordPlace&, Record*)>;

    /// Whether a thread is worth its start: there is a core for it, and enough to do.
    [[nodiscard]] static bool pays(const std::vector<RecordPlace>& places);

    /// Borrows `places`. Throws what std::thread throws.
    DecodeAhead(const std::vector<RecordPlace>& places, Decode decode);

    struct Chunk {
        const RecordPlace* place = nullptr;
        bool readable = false;
        const Record* records = nullptr; // place->count of them
    };
    /// The next chunk, valid until the next call; null after the last. Throws what `decode` threw.
    [[nodiscard]] const Chunk* next();

  private:
    struct Group {
        std::vector<Chunk> chunks;
        std::unique_ptr<Record[]> records;
    };

    void fill(Group& group, std::size_t& place) const;

    const std::vector<RecordPlace>& places_;
    Decode decode_;
    const Group* group_ = nullptr;            // being taken
    std::size_t at_ = 0;                      // chunk in it
    base::HandOver<Group, groups> hand_over_; // last: its thread uses all of the above
};

} // namespace plumb::recording
