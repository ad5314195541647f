// SPDX-License-Identifier: Apache-2.0
// All rings of one profiler: a file in tmpfs (so that a killed process leaves its records), or anonymous memory where
// that fails. Threads attach once and get a ring of their own; a ring of an ended thread is reused once it is drained.
// Ownership: a ring is kept by the set and by its thread, whoever lets go last unmaps it: a profiler may be destroyed
// while a thread that recorded still runs.
// Thread rule: attach() from any thread (takes a lock, once per thread that gets a ring); rings(), release() from the drain
// thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/layout.hpp"
#include "base/ring_names.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"
#include "plumb/tile.hpp"

namespace plumb::record {

/// A mapping of one header page and its records, with the pen of the thread that writes it.
class Ring {
  public:
    Ring(void* mapping, std::size_t bytes, std::uint64_t capacity) noexcept;
    ~Ring();
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    [[nodiscard]] detail::RingHeader& header() noexcept { return *header_; }
    [[nodiscard]] const Record* records() const noexcept { return records_; }
    [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] detail::ThreadRecorder& pen() noexcept { return pen_; }
    /// In a forked child: nothing written here reaches the parent any more.
    void detach_from_file() noexcept;
    /// Makes the ring the calling thread's. REQUIRES: state free.
    void adopt(Recorder& recorder, std::uint32_t track) noexcept;
    /// What its thread adds tiles up in; null until there was one. Stays when the ring gets another thread.
    [[nodiscard]] detail::TileTable* tiles() noexcept { return tiles_.load(std::memory_order_acquire); }
    /// Makes the table, for so many tiles kept apart, touched. False: there is no memory for it.
    bool make_tiles(std::uint32_t most) noexcept;

  private:
    detail::RingHeader* header_;
    Record* records_;
    std::uint64_t capacity_;
    std::size_t bytes_;
    std::atomic<detail::TileTable*> tiles_{nullptr}; // release, acquire: who finds it finds it complete
    std::size_t tile_bytes_ = 0;
    detail::ThreadRecorder pen_;
};

struct RingOptions {
    std::uint64_t bytes_per_ring = std::uint64_t{1} << 20;
    std::string directory;      // of the ring file; empty: anonymous memory
    std::string recording_path; // absolute
    std::uint64_t recording_id[2] = {0, 0};
    std::uint32_t tiles = 0; // that each thread keeps apart
};

class RingSet {
  public:
    explicit RingSet(RingOptions options);
    ~RingSet();
    RingSet(const RingSet&) = delete;
    RingSet& operator=(const RingSet&) = delete;

    /// Null when no memory can be had, or too many ended threads wait to be drained; counted by drops_without_ring. A thread
    /// asks again with each record: only where a ring was released since, and now and then, is there more than a look.
    detail::ThreadRecorder* attach(Recorder& recorder) noexcept;
    /// The rings, when there are more than at `version`.
    bool rings(std::uint64_t& version, std::vector<std::shared_ptr<Ring>>& out) const;
    /// Records written so far by track: where a reset begins to count.
    [[nodiscard]] std::map<std::uint32_t, std::uint64_t> heads() const;
    /// A retired, fully drained ring may be given to the next thread.
    void release(Ring& ring) noexcept;
    [[nodiscard]] std::uint32_t new_track() noexcept { return next_track_.fetch_add(1, std::memory_order_relaxed); }

    /// The ring's thread gets its table of tiles, empty. False: there is no memory for it.
    bool give_tiles(Ring& ring) noexcept;
    /// All tables start over, each with its thread's next tile. Returns the generation that counts from now on.
    std::uint32_t reset_tiles() noexcept;
    [[nodiscard]] bool has_tiles() const noexcept { return options_.tiles != 0; }

    /// Empty when every ring lies in anonymous memory.
    [[nodiscard]] std::string file_path() const;
    /// Why some ring lies in anonymous memory; empty when none does.
    [[nodiscard]] std::string reason() const;
    /// Removes the ring file: everything in it is in the recording.
    void remove_file() noexcept;
    /// Makes the first ring before a thread needs it, so that file_path() and reason() tell where rings lie.
    void warm_up();
    /// Names of the process below `end` are in the recording: the file need not keep them.
    void names_written(std::uint16_t end);
    /// Around a fork. In the child the file and what lies in it stay the parent's.
    void before_fork() noexcept;
    void in_parent() noexcept;
    void in_child() noexcept;
    /// Scopes recorded where no ring could be had, or from a thread's last destructors.
    std::atomic<std::uint64_t> drops_without_ring{0};
    /// What the drain waits at between its rounds.
    std::condition_variable wake;
    /// Whether rings of ended threads ran up since the last call.
    [[nodiscard]] bool take_crowded() noexcept { return crowded_.exchange(false, std::memory_order_relaxed); }

  private:
    std::shared_ptr<Ring> find_ring();
    std::shared_ptr<Ring> make_ring();
    void create_file();
    void drop_file() noexcept;
    void leave_file() noexcept;

    RingOptions options_;
    std::uint64_t capacity_;
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Ring>> rings_; // only grows
    std::uint64_t version_ = 0;
    std::size_t most_live_ = 0; // threads at once
    std::atomic<bool> crowded_{false};
    std::atomic<bool> none_left_{false};       // the last thread that asked got no ring, and none was released since
    std::atomic<std::uint32_t> next_track_{1}; // 0 is nobody's track, so that it cannot be mistaken for "unset"
    int file_ = -1;
    detail::RingFileHeader* file_header_ = nullptr; // one mapping with the names
    base::RingNames* names_ = nullptr;
    std::string file_path_;
    std::string reason_;
    std::uint32_t tile_generation_ = 1;
};

} // namespace plumb::record
