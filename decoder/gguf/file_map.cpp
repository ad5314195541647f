// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/file_map.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace plumb::decoder::gguf {
namespace {

Error open_error(const std::string& path, int code) {
    if (code == ENOENT) {
        return {ErrorCode::not_found,
                path + ": there is no such file; check the path, or make one with `plumb model make`"};
    }
    if (code == EACCES || code == EPERM) {
        return {ErrorCode::permission, path + ": you may not read this file; check its permissions"};
    }
    return {ErrorCode::failed, path + ": cannot be opened (" + std::strerror(code) + "); check the path"};
}

constexpr std::size_t prefault_piece = std::size_t{64} << 20; // whole pages; some hundredths of a second

} // namespace

Result<FileMap> FileMap::open(const std::string& path) {
    // Non-blocking, or the open of a named pipe would wait for ever.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return open_error(path, errno);
    }
    struct stat info {};
    if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(descriptor);
        return Error{ErrorCode::invalid_argument, path + ": is not a regular file; give the path of a .gguf file"};
    }
    if (info.st_size <= 0) {
        ::close(descriptor);
        return Error{ErrorCode::corrupt, path + ": the file is empty; copy it again"};
    }
    const auto size = static_cast<std::size_t>(info.st_size);
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    const int map_error = errno;
    ::close(descriptor);
    if (address == MAP_FAILED) {
        return Error{ErrorCode::failed,
                     path + ": cannot be mapped (" + std::strerror(map_error) + "); copy it to a local disk"};
    }
#if defined(MADV_HUGEPAGE)
    // Best effort: what the disk still has to give comes in huge pages, through which weights are read some 4 % faster.
    (void)::madvise(address, size, MADV_HUGEPAGE);
#endif
    FileMap map;
    map.bytes_ = {static_cast<const std::byte*>(address), size};
    return map;
}

Result<FileMap> FileMap::make(std::size_t bytes, const std::function<void(std::byte* memory)>& write) {
    void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
        return Error{ErrorCode::out_of_memory, "the addresses of a model of " + std::to_string(bytes >> 20) +
                                                   " MiB cannot be had (" + std::strerror(errno) +
                                                   "); use a smaller model, or raise ulimit -v"};
    }
    FileMap map;
    map.bytes_ = {static_cast<const std::byte*>(address), bytes};
    write(static_cast<std::byte*>(address));
    return map;
}

FileMap::FileMap(FileMap&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
}

FileMap::~FileMap() {
    if (!bytes_.empty()) {
        ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

void FileMap::prefault(const std::function<bool(std::size_t done)>& go_on) const {
#if defined(MADV_POPULATE_READ)
    // Best effort: where the kernel is older than 5.14 the pages come in with the first step.
    constexpr int advice = MADV_POPULATE_READ;
#else
    constexpr int advice = MADV_WILLNEED;
#endif
    for (std::size_t done = 0; done < bytes_.size();) {
        const auto piece = bytes_.subspan(done, std::min(prefault_piece, bytes_.size() - done));
        (void)::madvise(const_cast<std::byte*>(piece.data()), piece.size(), advice);
        done += piece.size();
        if (!go_on(done)) {
            return;
        }
    }
}

} // namespace plumb::decoder::gguf
