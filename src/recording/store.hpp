// SPDX-License-Identifier: Apache-2.0
// Where a writer's bytes go: a file, or memory with the same bytes. Append-only but for replace().
// Owned by one writer; one thread at a time. The file holds an exclusive flock as long as it is open: readers and other
// writers tell a live writer by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/bytes.hpp"
#include "recording/file_access.hpp"

namespace plumb::recording {

/// pwrite(2), or a stand-in that fails where a test wants it to: file, data, size, offset.
using WriteFunction = std::function<std::int64_t(int, const void*, std::size_t, std::uint64_t)>;

/// Part of the present content.
struct ByteRange {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};

class Store {
  public:
    virtual ~Store() = default;
    /// All of it or nothing: after an error the content is what it was, and a later append may succeed.
    virtual Status append(const Bytes& bytes) = 0;
    /// The content becomes `head` followed by `kept`, at once: whoever opens it sees the old content or the new.
    virtual Status replace(const Bytes& head, const std::vector<ByteRange>& kept) = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// A copy of the content; empty for a file.
    [[nodiscard]] virtual Bytes bytes() const = 0;
    /// Lets go without a word: in a forked child the file is the parent's.
    virtual void forget() noexcept = 0;
};

/// Behind a recording's path: the file of its replays (CudaGraphOptions::profile_path), which is kept aside with it.
inline constexpr const char* replays_beside = ".replays.jsonl";

std::unique_ptr<Store> make_memory_store();

/// Creates the file with mode 0600 and `head` as its first bytes. A file already there is kept aside as path.1, .2 …;
/// error already_exists when somebody is still writing it.
Result<std::unique_ptr<Store>> create_file_store(const std::string& path, const Bytes& head, WriteFunction write);
/// Opens a recording that nobody writes and keeps others from writing it; error already_exists when a writer is live.
Result<FileHandle> lock_recording(const std::string& path);
/// Goes on behind the first `size` bytes of a locked recording; what follows them is cut off.
Result<std::unique_ptr<Store>> continue_file_store(const std::string& path, FileHandle file, std::uint64_t size,
                                                   WriteFunction write);

} // namespace plumb::recording
