// SPDX-License-Identifier: Apache-2.0
#include "recording/ring_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/os.hpp"
#include "base/ring_names.hpp"
#include "base/ring_source.hpp"
#include "recording/byte_source.hpp"
#include "recording/file_access.hpp"

namespace plumb::recording {
namespace {

/// 2^26 records are a ring of 1 GiB: more is no ring of ours.
constexpr std::uint64_t most_capacity = std::uint64_t{1} << 26;
constexpr std::uint32_t most_name_bytes = 1U << 24; // more than all the names that there can be

template <class T>
T field(const std::byte* page, std::size_t offset) {
    T value;
    std::memcpy(&value, page + offset, sizeof value); // native order: rings never leave their machine
    return value;
}

std::string text(const std::byte* page, std::size_t offset, std::size_t size) {
    const char* begin = reinterpret_cast<const char*>(page + offset);
    return {begin, std::find(begin, begin + size, '\0')};
}

Error unusable(const std::string& path, const std::string& why) {
    return {ErrorCode::corrupt, path + " is no ring of this version: " + why + "; what it held is lost, remove it"};
}

/// False when the ring contradicts itself; `why` then says how.
bool read_remainder(ByteSource& source, std::uint64_t offset, std::uint64_t capacity, RingRemainder& ring,
                    std::string& why) {
    const std::byte* page = source.view(offset, detail::ring_page);
    if (page == nullptr) {
        why = "its header is cut off";
        return false;
    }
    const auto head = field<std::uint64_t>(page, offsetof(detail::RingHeader, head));
    const auto tail = field<std::uint64_t>(page, offsetof(detail::RingHeader, tail));
    ring.track = field<std::uint32_t>(page, offsetof(detail::RingHeader, track));
    ring.os_thread = field<std::uint64_t>(page, offsetof(detail::RingHeader, os_thread));
    ring.thread_name = text(page, offsetof(detail::RingHeader, thread_name), sizeof detail::RingHeader::thread_name);
    ring.of_ranges =
        field<std::uint32_t>(page, base::ring_source_at) == static_cast<std::uint32_t>(base::RingSource::nvtx);
    for (std::size_t i = 0; i < drop_reasons; ++i) {
        const std::size_t slot =
            i < detail::drop_slots
                ? offsetof(detail::RingHeader, drops) + i * sizeof(std::uint64_t)
                : offsetof(detail::RingHeader, later_drops) + (i - detail::drop_slots) * sizeof(std::uint64_t);
        ring.drops[i] = field<std::uint64_t>(page, slot);
    }
    if (head < tail || head - tail > capacity) {
        why = "its head and tail contradict each other";
        return false;
    }
    ring.first_sequence = tail;
    if (head - tail > source.size() / sizeof(Record)) {
        why = "its records are cut off";
        return false;
    }
    ring.records.reserve(static_cast<std::size_t>(head - tail));
    for (std::uint64_t n = tail; n < head;) {
        const std::uint64_t index = n & (capacity - 1);
        const std::uint64_t run = std::min({head - n, capacity - index, std::uint64_t{4096}});
        const std::byte* bytes = source.view(offset + detail::ring_page + index * sizeof(Record),
                                             static_cast<std::size_t>(run) * sizeof(Record));
        if (bytes == nullptr) {
            why = "its records are cut off";
            return false;
        }
        const std::size_t have = ring.records.size();
        ring.records.resize(have + static_cast<std::size_t>(run));
        std::memcpy(static_cast<void*>(ring.records.data() + have), bytes,
                    static_cast<std::size_t>(run) * sizeof(Record));
        n += run;
    }
    return true;
}

/// Up to the first that cannot be true.
void read_names(ByteSource& source, std::uint32_t used, RingFile& file) {
    const std::byte* text = used != 0 ? source.view(detail::ring_page, used) : nullptr;
    std::uint32_t at = 0;
    while (text != nullptr && used - at >= sizeof(base::RingName)) {
        const auto head = field<base::RingName>(text, at);
        at += sizeof head;
        if (head.id < first_interned_id || head.id >= name_capacity || head.size == 0 || head.size > used - at ||
            head.category > static_cast<std::uint16_t>(Category::transfer)) {
            break;
        }
        file.names.push_back({head.id, static_cast<Category>(head.category),
                              std::string(reinterpret_cast<const char*>(text + at), head.size)});
        at += head.size;
    }
    if (at != used) {
        file.notes.push_back("its names cannot be read: some may be lost");
    }
}

/// Where its names and rings lie.
struct RingFileLayout {
    std::uint64_t capacity = 0, count = 0;
    std::uint32_t names_used = 0, name_bytes = 0;
};

Result<RingFile> read_header(ByteSource& source, const std::string& path, RingFileLayout& layout) {
    const std::byte* page = source.view(0, detail::ring_page);
    if (page == nullptr || std::memcmp(page, detail::ring_magic, sizeof detail::ring_magic) != 0) {
        return unusable(path, "it does not begin as one");
    }
    const auto version = field<std::uint32_t>(page, offsetof(detail::RingFileHeader, version));
    if (version == 0 || version > base::ring_file_version) {
        return Error{ErrorCode::unsupported, path + " has ring layout " + std::to_string(version) +
                                                 ", this program reads " + std::to_string(base::ring_file_version) +
                                                 ": use the version that wrote it"};
    }
    const auto capacity = field<std::uint64_t>(page, offsetof(detail::RingFileHeader, capacity));
    if (capacity == 0 || (capacity & (capacity - 1)) != 0 || capacity > most_capacity) {
        return unusable(path, "a capacity of " + std::to_string(capacity) + " records cannot be");
    }
    constexpr std::size_t names_at = base::ring_names_at;
    const auto name_bytes = version == 1 ? 0 : field<std::uint32_t>(page, names_at + offsetof(base::RingNames, bytes));
    const auto names_used = version == 1 ? 0 : field<std::uint32_t>(page, names_at + offsetof(base::RingNames, used));
    if (name_bytes % detail::ring_page != 0 ||
        name_bytes > std::min<std::uint64_t>(most_name_bytes, source.size() - detail::ring_page) ||
        names_used > name_bytes) {
        return unusable(path, "it cannot have " + std::to_string(names_used) + " of " + std::to_string(name_bytes) +
                                  " bytes of names");
    }
    RingFile file;
    file.path = path;
    file.pid = field<std::uint32_t>(page, offsetof(detail::RingFileHeader, pid));
    file.process_start = field<std::uint64_t>(page, offsetof(detail::RingFileHeader, process_start));
    file.boot_id = text(page, offsetof(detail::RingFileHeader, boot_id), sizeof detail::RingFileHeader::boot_id);
    file.recording_id[0] = field<std::uint64_t>(page, offsetof(detail::RingFileHeader, recording_id));
    file.recording_id[1] = field<std::uint64_t>(page, offsetof(detail::RingFileHeader, recording_id) + 8);
    file.recording = text(page, offsetof(detail::RingFileHeader, recording), sizeof detail::RingFileHeader::recording);
    layout = {capacity, field<std::uint32_t>(page, offsetof(detail::RingFileHeader, ring_count)), names_used,
              name_bytes};
    return file;
}

Result<RingFile> read_rings(ByteSource& source, const std::string& path) {
    RingFileLayout layout;
    Result<RingFile> read = read_header(source, path, layout);
    if (!read) {
        return read;
    }
    RingFile& file = *read;
    const auto [capacity, count, names_used, name_bytes] = layout;
    const std::uint64_t stride = detail::ring_page + capacity * sizeof(Record);
    read_names(source, names_used, file);
    const std::uint64_t rings_at = detail::ring_page + name_bytes;
    // Each ring was allocated in full before it was counted.
    const std::uint64_t room = (source.size() - rings_at) / stride;
    if (count > room) {
        file.notes.push_back(std::to_string(count - room) + " of " + std::to_string(count) +
                             " rings are cut off: what they held is lost");
    }
    for (std::uint64_t i = 0; i < std::min(count, room); ++i) {
        const std::uint64_t offset = rings_at + i * stride;
        const std::byte* header = source.view(offset, detail::ring_page);
        if (header == nullptr) {
            break;
        }
        const auto state = field<std::uint32_t>(header, offsetof(detail::RingHeader, state));
        if (state == static_cast<std::uint32_t>(detail::RingState::free)) {
            continue;
        }
        RingRemainder ring;
        std::string why = "its state is none";
        const bool known = state == static_cast<std::uint32_t>(detail::RingState::live) ||
                           state == static_cast<std::uint32_t>(detail::RingState::retired);
        if (!known || !read_remainder(source, offset, capacity, ring, why)) {
            if (file.notes.size() < 16) {
                file.notes.push_back("ring " + std::to_string(i) + " cannot be used: " + why +
                                     "; what it held is lost");
            }
            continue;
        }
        file.rings.push_back(std::move(ring));
    }
    return read;
}

} // namespace

bool is_ring_name(const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name.size() > 11 && name.compare(0, 6, "plumb-") == 0 && name.compare(name.size() - 5, 5, ".ring") == 0;
}

std::string locate_ring(const std::string& path) {
    if (path.empty() || path.find('/') != std::string::npos) {
        return path;
    }
    const char* folder = base::environment("XDG_RUNTIME_DIR");
    if (folder != nullptr && *folder != '\0' && access((std::string(folder) + "/" + path).c_str(), F_OK) == 0) {
        return std::string(folder) + "/" + path;
    }
    return "/dev/shm/" + path;
}

Result<RingFile> read_ring_file(const std::string& path) {
    std::uint64_t size = 0;
    Result<FileHandle> file = open_to_read(path, size);
    if (!file) {
        return file.error();
    }
    ByteSource source(std::move(*file), size);
    return read_rings(source, path);
}

Result<RingFile> read_ring_header(const std::string& path) {
    std::uint64_t size = 0;
    RingFileLayout layout;
    Result<FileHandle> file = open_to_read(path, size);
    if (!file) {
        return file.error();
    }
    ByteSource source(std::move(*file), size);
    return read_header(source, path, layout);
}

Result<RingFile> read_ring_bytes(const std::byte* data, std::size_t size, const std::string& path) {
    ByteSource source(std::make_shared<const Bytes>(data, data + size));
    return read_rings(source, path);
}

} // namespace plumb::recording
