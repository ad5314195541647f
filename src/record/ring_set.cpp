// SPDX-License-Identifier: Apache-2.0
#include "record/ring_set.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/os.hpp"
#include "base/ring_source.hpp"
#include "record/name_registry.hpp"
#include "record/recorder_access.hpp"
#include "record/thread_registry.hpp"

namespace plumb::record {
namespace {

/// The file's first page and its names; rings follow.
constexpr std::size_t file_head = detail::ring_page + base::ring_names_bytes;
/// From so many rings of ended threads on that wait to be drained, a new thread that finds none free wakes the drain.
constexpr std::size_t enough_retired = 8;
/// With so many of them, and as many again as threads lived at once, a new thread gets none.
constexpr std::size_t most_retired = 128;
// Records lost for want of a ring between two looks for one.
constexpr std::uint64_t asked_again = 1024;

std::uint64_t records_for(std::uint64_t bytes) {
    std::uint64_t capacity = 64;
    while (capacity * 2 * sizeof(Record) <= bytes) {
        capacity *= 2;
    }
    return capacity;
}

void touch(void* memory, std::size_t bytes) {
    for (std::size_t offset = 0; offset < bytes; offset += detail::ring_page) {
        static_cast<volatile char*>(memory)[offset] = 0;
    }
}

void copy_text(char* to, std::size_t size, const std::string& text) {
    std::memset(to, 0, size);
    std::memcpy(to, text.data(), text.size() < size ? text.size() : size - 1);
}

/// In full. 0, or an errno.
int allocate(int file, off_t from, std::size_t bytes) noexcept {
    return base::file_may_grow_to(static_cast<std::uint64_t>(from) + bytes)
               ? posix_fallocate(file, from, static_cast<off_t>(bytes))
               : EFBIG;
}

} // namespace

Ring::Ring(void* mapping, std::size_t bytes, std::uint64_t capacity) noexcept
    : header_(new(mapping) detail::RingHeader{}),
      records_(reinterpret_cast<Record*>(static_cast<char*>(mapping) + detail::ring_page)), capacity_(capacity),
      bytes_(bytes), pen_{} {
    touch(records_, capacity * sizeof(Record)); // a first touch costs 1-3 us: pay it here
}

Ring::~Ring() {
    munmap(header_, bytes_);
    if (detail::TileTable* table = tiles(); table != nullptr) {
        munmap(table, tile_bytes_);
    }
}

bool Ring::make_tiles(std::uint32_t most) noexcept {
    std::uint64_t places = 64;
    while (places <
           most + std::uint64_t{most} / 3 + 1) { // at most three quarters full: a search meets a free cell soon
        places *= 2;
    }
    const std::size_t bytes =
        sizeof(detail::TileTable) + places * sizeof(detail::TileCell) + most * sizeof(std::uint32_t);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    touch(memory, bytes);
    auto* table = new (memory) detail::TileTable{};
    table->cells = reinterpret_cast<detail::TileCell*>(table + 1); // zeroed by the system: no key
    table->order = reinterpret_cast<std::uint32_t*>(table->cells + places);
    table->mask = places - 1;
    table->limit = most;
    table->start_over();
    tile_bytes_ = bytes;
    tiles_.store(table, std::memory_order_release);
    return true;
}

void Ring::detach_from_file() noexcept {
    // Same address, other memory: scopes open across the fork end harmlessly here, and the parent's pages are let go.
    (void)mmap(header_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    pen_.limit = capacity_ - pen_.reserved;
}

void Ring::adopt(Recorder& recorder, std::uint32_t track) noexcept {
    pen_ = detail::ThreadRecorder{};
    pen_.records = records_;
    pen_.ring = header_;
    pen_.mask = capacity_ - 1;
    // A free ring is empty, and neither the drain nor recovery looks into it: the new track's records count from 0.
    header_->head.store(0, std::memory_order_relaxed);
    header_->tail.store(0, std::memory_order_relaxed);
    pen_.limit = capacity_;
    pen_.deadline = 0; // the first scope takes a CPU-time sample: the beginning of this thread's account
    pen_.track = track;
    pen_.recorder = &recorder;
    pen_.generation = RecorderAccess::generation(recorder);
    for (detail::KnownWork& known : pen_.known_work) {
        known.id = no_name_id;
    }
    for (auto& count : header_->drops) {
        count.store(0, std::memory_order_relaxed);
    }
    base::set_source(*header_, base::RingSource::clock);
    header_->track = track;
    header_->os_thread = base::thread_id();
    copy_text(header_->thread_name, sizeof header_->thread_name, base::thread_name());
    // Release: the drain sees track and name before the ring is live.
    header_->state.store(static_cast<std::uint32_t>(detail::RingState::live), std::memory_order_release);
}

RingSet::RingSet(RingOptions options) : options_(std::move(options)), capacity_(records_for(options_.bytes_per_ring)) {
    if (options_.directory.empty()) {
        reason_ = "rings were not asked to lie in a file";
        return;
    }
    create_file();
}

RingSet::~RingSet() { leave_file(); }

void RingSet::create_file() {
    static std::atomic<std::uint32_t> serial{0};
    // A killed run of this number leaves its rings for plumb recover: the next free name then.
    constexpr int most_names = 10000;
    for (int tried = 0; file_ < 0 && tried < most_names && (tried == 0 || errno == EEXIST); ++tried) {
        file_path_ = options_.directory + "/plumb-" + std::to_string(getpid()) + "-" +
                     std::to_string(serial.fetch_add(1)) + ".ring";
        file_ = open(file_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    const int allocated = file_ >= 0 ? allocate(file_, 0, file_head) : errno;
    void* mapping = MAP_FAILED;
    if (file_ >= 0 && allocated == 0) {
        mapping = mmap(nullptr, file_head, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    }
    if (mapping == MAP_FAILED) {
        reason_ = options_.directory + ": " + std::strerror(allocated != 0 ? allocated : errno);
        if (file_ >= 0) {
            close(file_);
            unlink(file_path_.c_str());
        }
        file_ = -1;
        file_path_.clear();
        return;
    }
    file_header_ = new (mapping) detail::RingFileHeader{};
    std::memcpy(file_header_->magic, detail::ring_magic, sizeof detail::ring_magic);
    file_header_->version = base::ring_file_version;
    file_header_->capacity = capacity_;
    file_header_->pid = static_cast<std::uint32_t>(getpid());
    const Result<std::uint64_t> start = base::process_start_time(file_header_->pid);
    file_header_->process_start = start.ok() ? *start : 0;
    copy_text(file_header_->boot_id, sizeof file_header_->boot_id, base::boot_id());
    std::memcpy(file_header_->recording_id, options_.recording_id, sizeof file_header_->recording_id);
    copy_text(file_header_->recording, sizeof file_header_->recording, options_.recording_path);
    names_ = new (static_cast<char*>(mapping) + base::ring_names_at) base::RingNames{base::ring_names_bytes, 0};
    keep_names_in(*names_);
}

std::shared_ptr<Ring> RingSet::make_ring() {
    const std::size_t bytes = detail::ring_page + capacity_ * sizeof(Record);
    if (file_ >= 0) {
        const std::uint32_t index = file_header_->ring_count.load(std::memory_order_relaxed);
        const auto offset = static_cast<off_t>(file_head + index * bytes);
        // Allocated in full now: a store into a hole of a full tmpfs would kill the process.
        const int failed = allocate(file_, offset, bytes);
        void* mapping = failed != 0
                            ? MAP_FAILED
                            : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_, offset);
        if (mapping != MAP_FAILED) {
            auto ring = std::make_shared<Ring>(mapping, bytes, capacity_);
            file_header_->ring_count.store(index + 1, std::memory_order_release);
            return ring;
        }
        if (reason_.empty()) {
            reason_ = options_.directory + ": " + std::strerror(failed != 0 ? failed : errno);
        }
        if (ftruncate(file_, offset) != 0) { /* the file keeps a little unused space: harmless */
        }
    }
    void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return mapping == MAP_FAILED ? nullptr : std::make_shared<Ring>(mapping, bytes, capacity_);
}

std::shared_ptr<Ring> RingSet::find_ring() {
    std::size_t retired = 0;
    for (const auto& ring : rings_) {
        const auto state = static_cast<detail::RingState>(ring->header().state.load(std::memory_order_acquire));
        if (state == detail::RingState::free) {
            return ring;
        }
        retired += state == detail::RingState::retired ? 1 : 0;
    }
    most_live_ = std::max(most_live_, rings_.size() - retired + 1);
    if (retired >= enough_retired) {
        crowded_.store(true, std::memory_order_relaxed);
        wake.notify_all(); // a drain that was about to wait may miss it: the next thread says it again
    }
    std::shared_ptr<Ring> ring = retired < most_retired + most_live_ ? make_ring() : nullptr;
    if (ring != nullptr) {
        rings_.push_back(ring);
        ++version_;
    }
    return ring;
}

detail::ThreadRecorder* RingSet::attach(Recorder& recorder) noexcept {
    if (none_left_.load(std::memory_order_relaxed) &&
        drops_without_ring.load(std::memory_order_relaxed) % asked_again != 0) {
        return nullptr;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Ring> ring = find_ring();
    none_left_.store(ring == nullptr, std::memory_order_relaxed);
    if (ring == nullptr) {
        return nullptr;
    }
    ring->adopt(recorder, new_track());
    remember_ring(ring);
    return &ring->pen();
}

bool RingSet::give_tiles(Ring& ring) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_); // the generation cannot change meanwhile
    if (ring.tiles() == nullptr && !ring.make_tiles(options_.tiles)) {
        return false;
    }
    detail::TileTable& table = *ring.tiles();
    table.asked.store(tile_generation_, std::memory_order_relaxed);
    table.start_over(); // of the thread before, all is with the drain
    ring.pen().tiles = &table;
    return true;
}

std::uint32_t RingSet::reset_tiles() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++tile_generation_;
    for (const auto& ring : rings_) {
        if (detail::TileTable* table = ring->tiles(); table != nullptr) {
            table->asked.store(tile_generation_, std::memory_order_relaxed);
        }
    }
    return tile_generation_;
}

bool RingSet::rings(std::uint64_t& version, std::vector<std::shared_ptr<Ring>>& out) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (version == version_) {
        return false;
    }
    version = version_;
    out = rings_;
    return true;
}

std::map<std::uint32_t, std::uint64_t> RingSet::heads() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<std::uint32_t, std::uint64_t> result;
    for (std::uint32_t track = 1; track < next_track_.load(std::memory_order_relaxed); ++track) {
        result[track] = ~std::uint64_t{0}; // of a thread that ended: nothing of it counts any more
    }
    for (const auto& ring : rings_) {
        result[ring->header().track] = ring->header().head.load(std::memory_order_acquire);
    }
    return result;
}

void RingSet::release(Ring& ring) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    ring.header().state.store(static_cast<std::uint32_t>(detail::RingState::free), std::memory_order_release);
    none_left_.store(false, std::memory_order_relaxed);
}

std::string RingSet::file_path() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return file_path_;
}

std::string RingSet::reason() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reason_;
}

void RingSet::remove_file() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!file_path_.empty()) {
        unlink(file_path_.c_str());
        file_path_.clear();
    }
}

void RingSet::before_fork() noexcept { mutex_.lock(); }
void RingSet::in_parent() noexcept { mutex_.unlock(); }

void RingSet::in_child() noexcept {
    for (const auto& ring : rings_) {
        ring->detach_from_file();
    }
    leave_file();
    file_path_.clear();
    mutex_.unlock();
}

void RingSet::warm_up() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::shared_ptr<Ring> ring = make_ring(); ring != nullptr) {
        rings_.push_back(std::move(ring)); // free: the first thread takes it
        ++version_;
    }
    if (file_ >= 0 && file_header_->ring_count.load(std::memory_order_relaxed) == 0) {
        drop_file(); // not even one ring fits
    }
}

void RingSet::drop_file() noexcept {
    leave_file();
    unlink(file_path_.c_str());
    file_path_.clear();
}

void RingSet::leave_file() noexcept {
    if (file_header_ != nullptr) {
        forget_names_in(*names_);
        munmap(file_header_, file_head);
        names_ = nullptr;
        file_header_ = nullptr;
    }
    if (file_ >= 0) {
        close(file_);
        file_ = -1;
    }
}

void RingSet::names_written(std::uint16_t end) {
    if (names_ != nullptr) {
        record::names_written(*names_, end);
    }
}

} // namespace plumb::record
