// SPDX-License-Identifier: Apache-2.0
// A whole file, mapped read-only, or memory that takes its place. Owns the mapping; movable; the bytes may be read from any thread.
// A file that another program shortens while it is mapped kills the reader (SIGBUS), as with any mapping.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "plumb/result.hpp"

namespace plumb::decoder::gguf {

class FileMap {
  public:
    /// Errors: not_found, permission, invalid_argument (a folder, a device, an empty file), failed.
    static Result<FileMap> open(const std::string& path);

    /// Memory of so many bytes, zeros but for what `write` puts there; pages that nobody touches take no room.
    /// Errors: out_of_memory.
    static Result<FileMap> make(std::size_t bytes, const std::function<void(std::byte* memory)>& write);

    FileMap() = default;
    FileMap(FileMap&& other) noexcept;
    FileMap& operator=(FileMap&& other) noexcept;
    FileMap(const FileMap&) = delete;
    FileMap& operator=(const FileMap&) = delete;
    ~FileMap();

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

    /// Brings the file into memory and maps its pages, so that the first step does not wait for the disk. Calls
    /// `go_on` with the bytes done after each piece; ends where it returns false.
    void prefault(const std::function<bool(std::size_t done)>& go_on) const;

  private:
    std::span<const std::byte> bytes_;
};

} // namespace plumb::decoder::gguf
