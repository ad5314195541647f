// SPDX-License-Identifier: Apache-2.0
// Bytes to read from, a window at a time: a file (by pread: one cut short underneath is an end, not a SIGBUS) or memory.
// Owned by one reader; one thread at a time. A copy reads the same file with a window of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "recording/bytes.hpp"
#include "recording/file_access.hpp"

namespace plumb::recording {

class ByteSource {
  public:
    ByteSource(FileHandle file, std::uint64_t size)
        : file_(std::make_shared<const FileHandle>(std::move(file))), size_(size) {}
    explicit ByteSource(std::shared_ptr<const Bytes> bytes) : memory_(std::move(bytes)), size_(memory_->size()) {}

    /// As it was when opened, or at the last measure(); a file may grow.
    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// Takes the size that the file has now. Memory keeps its own.
    void measure();
    [[nodiscard]] int file() const { return file_ != nullptr ? file_->get() : -1; }
    /// `size` bytes at `offset`, valid until the next call; null when they are not (or no longer) there.
    [[nodiscard]] const std::byte* view(std::uint64_t offset, std::size_t size);

  private:
    [[nodiscard]] bool fill(std::uint64_t offset, std::size_t size);

    std::shared_ptr<const FileHandle> file_;
    std::shared_ptr<const Bytes> memory_;
    std::uint64_t size_;
    Bytes window_;
    std::uint64_t window_offset_ = 0;
    std::size_t window_size_ = 0;
};

} // namespace plumb::recording
