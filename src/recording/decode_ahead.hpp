// SPDX-License-Identifier: Apache-2.0
// Decodes chunks of records on threads of its own, a bounded way ahead of whoever takes them, in their order.
// Owned by one pass over a recording; next() from one thread. Each `Decode` runs on a thread of its own and must not be
// used elsewhere meanwhile.
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
    /// Records handed over at once at least, so that the hand-over costs nothing beside the decoding; groups of a thread
    /// that are decoded and not yet given back at most. Memory: 4 MiB a thread, whatever the chunks are.
    static constexpr std::size_t group_records = 16384;
    static constexpr std::size_t groups = 3;

    /// Writes the place's `count` records; false for a chunk that cannot be read.
    using Decode = std::function<bool(const RecordPlace&, Record*)>;

    /// Whether a thread is worth its start: there is a core for it, and enough to do.
    [[nodiscard]] static bool pays(const std::vector<RecordPlace>& places);

    /// Borrows `places`. Groups are dealt to the decoders in turn. Throws what std::thread throws.
    DecodeAhead(const std::vector<RecordPlace>& places, std::vector<Decode> decoders);

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

    using Worker = base::HandOver<Group, groups>;

    /// The groups of one decoder: every `of`th, from the `number`th on.
    void run(Worker& to, const Decode& decode, std::size_t number, std::size_t of) const;
    void fill(Group& group, const Decode& decode, std::size_t place, std::size_t end) const;
    /// Behind the last place of the group that begins with this one.
    [[nodiscard]] std::size_t end_of_group(std::size_t place) const;

    const std::vector<RecordPlace>& places_;
    const std::vector<Decode> decoders_;
    const Group* group_ = nullptr;                 // being taken
    std::size_t at_ = 0;                           // chunk in it
    std::size_t turn_ = 0;                         // groups taken
    std::vector<std::unique_ptr<Worker>> workers_; // last: their threads use all of the above
};

} // namespace plumb::recording
