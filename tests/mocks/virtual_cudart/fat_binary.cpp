// SPDX-License-Identifier: Apache-2.0
#include "fat_binary.hpp"

#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace {

struct Wrapper { // __fatBinC_Wrapper_t
    std::int32_t magic, version;
    const unsigned char* container;
    const void* file;
};
constexpr std::int32_t wrapper_magic = 0x466243b1;

struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes; // of all entries
};
constexpr std::uint32_t container_magic = 0xba55ed50;

struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;            // behind the header
    std::uint32_t compressed_bytes; // of them, the rest is padding; 0: it is the text itself
    std::uint32_t options;
    std::uint16_t minor, major;
    std::uint32_t architecture; // 90: compute capability 9.0
};
constexpr std::uint16_t kind_ptx = 1;

std::string unpacked(const unsigned char* data, const Entry& entry) {
    if (entry.compressed_bytes == 0) {
        const std::string_view text(reinterpret_cast<const char*>(data), entry.bytes);
        return text.find(".version") != text.npos ? std::string(text.substr(0, text.find('\0'))) : std::string();
    }
    const unsigned long long bytes = ZSTD_getFrameContentSize(data, entry.compressed_bytes);
    if (bytes == ZSTD_CONTENTSIZE_ERROR || bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes > (1U << 30U)) {
        return {};
    }
    std::string made(bytes, '\0');
    const std::size_t got = ZSTD_decompress(made.data(), made.size(), data, entry.compressed_bytes);
    return ZSTD_isError(got) != 0 ? std::string() : made;
}

} // namespace

std::string ptx_of(const void* wrapper) {
    Wrapper outer{};
    Container container{};
    if (wrapper != nullptr) {
        std::memcpy(&outer, wrapper, sizeof outer);
    }
    if (outer.magic != wrapper_magic) {
        return {};
    }
    std::memcpy(&container, outer.container, sizeof container);
    if (container.magic != container_magic) {
        return {};
    }
    const unsigned char* at = outer.container + container.header_bytes;
    const unsigned char* const end = at + container.bytes;
    const unsigned char* found = nullptr;
    Entry newest{};
    while (at < end) {
        Entry entry{};
        std::memcpy(&entry, at, sizeof entry);
        if (entry.kind == kind_ptx && entry.architecture >= newest.architecture) {
            newest = entry;
            found = at + entry.header_bytes;
        }
        at += entry.header_bytes + entry.bytes;
    }
    return found != nullptr ? unpacked(found, newest) : std::string();
}
