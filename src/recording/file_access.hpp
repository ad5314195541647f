// SPDX-License-Identifier: Apache-2.0
// Small help around files: a handle that closes itself, errors in words, who wrote a recording.
// Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

/// Owns a file descriptor; -1 is none.
class FileHandle {
  public:
    FileHandle() = default;
    explicit FileHandle(int file) : file_(file) {}
    FileHandle(FileHandle&& other) noexcept : file_(other.release()) {}
    FileHandle& operator=(FileHandle&& other) noexcept {
        reset(other.release());
        return *this;
    }
    FileHandle(const FileHandle&) = delete;
    FileHandle& operator=(const FileHandle&) = delete;
    ~FileHandle() { reset(-1); }

    [[nodiscard]] int get() const { return file_; }
    void reset(int file) noexcept;
    int release() noexcept {
        const int file = file_;
        file_ = -1;
        return file;
    }

  private:
    int file_ = -1;
};

/// One sentence for errno `code`: "<path> could not be <done>: … : <what to do>".
[[nodiscard]] Error system_error(int code, const std::string& path, const std::string& done);

/// The process that began a recording.
struct WriterIdentity {
    bool known = false;
    std::uint32_t pid = 0;
    std::uint64_t process_start = 0;
    std::string boot_id;
    std::uint64_t time_namespace = 0;
};

/// Whether that process may still run; its lock says whether it does. The start times of another time namespace are not ours: then
/// the lock alone says it.
[[nodiscard]] bool may_run(const WriterIdentity& writer);
[[nodiscard]] WriterIdentity writer_of(const Metadata& metadata);

/// Reads the first chunk of an open file; `known` stays false for anything but a recording.
[[nodiscard]] WriterIdentity read_writer_identity(int file);

/// Whether somebody holds the exclusive lock of a recording: only a writer or `plumb recover` does.
[[nodiscard]] bool is_locked(int file);

/// Opens an ordinary file for reading; a pipe, folder or device is an error, and nothing blocks.
Result<FileHandle> open_to_read(const std::string& path, std::uint64_t& size);

} // namespace plumb::recording
