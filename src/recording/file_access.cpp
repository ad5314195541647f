// SPDX-License-Identifier: Apache-2.0
#include "recording/file_access.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/os.hpp"
#include "recording/format.hpp"
#include "recording/metadata_codec.hpp"

namespace plumb::recording {
namespace {

/// False unless all of it is there.
bool read_exactly(int file, std::byte* to, std::size_t size, std::uint64_t offset) {
    while (size > 0) {
        const std::int64_t got = pread(file, to, size, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        to += got;
        size -= static_cast<std::size_t>(got);
        offset += static_cast<std::uint64_t>(got);
    }
    return true;
}

} // namespace

void FileHandle::reset(int file) noexcept {
    if (file_ >= 0) {
        close(file_);
    }
    file_ = file;
}

Error system_error(int code, const std::string& path, const std::string& done) {
    const std::string what = path + " could not be " + done + ": ";
    switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return {ErrorCode::no_space,
                what + "its disk, quota or size limit is full: free some space or bound the recording with max_size="};
    case EROFS:
        return {ErrorCode::permission, what + "its file system is read-only: choose a place you may write to"};
    case EACCES:
    case EPERM:
        return {ErrorCode::permission, what + "permission denied: choose a place you may write to, or change its mode"};
    case ENOENT:
    case ENOTDIR:
        return {ErrorCode::not_found,
                what + "there is no such file or folder: check the path, or create the folder first"};
    case EEXIST:
        return {ErrorCode::already_exists,
                what + "others keep creating it at the same time: give each process its own file, as in run-%p.plumb"};
    default:
        return {ErrorCode::failed, what + std::strerror(code) + ": try another place"};
    }
}

WriterIdentity read_writer_identity(int file) {
    WriterIdentity writer;
    std::byte head[preamble_size + chunk_header_size];
    Preamble preamble;
    ChunkHeader header;
    if (!read_exactly(file, head, sizeof head, 0) || read_preamble(head, preamble) == PreambleState::foreign ||
        !read_chunk_header(head + preamble_size, header) || header.type != ChunkType::metadata) {
        return writer;
    }
    Bytes payload(header.payload_size);
    Metadata metadata;
    if (!read_exactly(file, payload.data(), payload.size(), sizeof head) ||
        checksum(payload.data(), payload.size()) != header.payload_checksum ||
        !decode(payload.data(), payload.size(), metadata)) {
        return writer;
    }
    return writer_of(metadata);
}

WriterIdentity writer_of(const Metadata& metadata) {
    return {metadata.pid != 0, metadata.pid, metadata.process_start, metadata.boot_id, metadata.time_namespace};
}

bool may_run(const WriterIdentity& writer) {
    const bool elsewhere = writer.time_namespace != 0 && writer.time_namespace != base::time_namespace();
    return !writer.known || elsewhere || base::process_alive(writer.pid, writer.process_start, writer.boot_id);
}

bool is_locked(int file) {
    if (flock(file, LOCK_SH | LOCK_NB) == 0) {
        flock(file, LOCK_UN);
        return false;
    }
    return errno == EWOULDBLOCK;
}

Result<FileHandle> open_to_read(const std::string& path, std::uint64_t& size) {
    // O_NONBLOCK: a pipe would wait for its other end.
    FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
        const int code = errno;
        if (code == EACCES || code == EPERM) {
            return Error{ErrorCode::permission,
                         path + " could not be read: permission denied: change its mode or ask its owner"};
        }
        if (code == ENOENT || code == ENOTDIR) {
            return Error{ErrorCode::not_found, path + " does not exist: check the path"};
        }
        return system_error(code, path, "read");
    }
    struct stat facts = {};
    if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return Error{ErrorCode::invalid_argument, path + " is no ordinary file: name a recording"};
    }
    size = static_cast<std::uint64_t>(facts.st_size);
    return file;
}

} // namespace plumb::recording
