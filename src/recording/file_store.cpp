// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/os.hpp"
#include "recording/file_access.hpp"
#include "recording/store.hpp"

namespace plumb::recording {
namespace {

constexpr unsigned most_kept_aside = 100000;
/// A reader that probes the lock holds it for microseconds: worth a few tries, and more when the writer is known to be dead.
constexpr int lock_tries_if_dead = 50;
constexpr int lock_tries_if_alive = 5;
constexpr useconds_t lock_pause_us = 2000;

std::int64_t plain_write(int file, const void* data, std::size_t size, std::uint64_t offset) {
    if (!base::file_may_grow_to(offset + size)) {
        errno = EFBIG;
        return -1;
    }
    return pwrite(file, data, size, static_cast<off_t>(offset));
}

/// 0, or errno.
int write_all(const WriteFunction& write, int file, const std::byte* data, std::size_t size, std::uint64_t offset) {
    while (size > 0) {
        const std::int64_t done = write(file, data, size, offset);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return done < 0 ? errno : ENOSPC;
        }
        data += done;
        offset += static_cast<std::uint64_t>(done);
        size -= static_cast<std::size_t>(done);
    }
    return 0;
}

Error live_writer(const std::string& path, int file) {
    const WriterIdentity writer = read_writer_identity(file);
    const std::string who = writer.known ? "process " + std::to_string(writer.pid) : std::string("another process");
    return {ErrorCode::already_exists,
            path + " is still being written by " + who + ": wait for its end, or choose another file"};
}

/// Locks the recording at `path`, or says who writes it. `file` stays -1 when there is none.
Status lock_existing(const std::string& path, int flags, FileHandle& file) {
    for (int tries = 0;; ++tries) {
        file.reset(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK));
        if (file.get() < 0) {
            return errno == ENOENT ? Status() : Status(system_error(errno, path, "opened"));
        }
        struct stat facts = {};
        if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
            return Error{ErrorCode::invalid_argument, path + " is no ordinary file: name another one"};
        }
        if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
            return {};
        }
        const WriterIdentity writer = read_writer_identity(file.get());
        const bool alive = may_run(writer);
        if (tries >= (alive ? lock_tries_if_alive : lock_tries_if_dead)) {
            return live_writer(path, file.get());
        }
        usleep(lock_pause_us);
    }
}

/// Renames without ever replacing; 0 or errno.
int rename_to_free(const std::string& from, const std::string& to) {
#if defined(RENAME_NOREPLACE)
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return errno;
    }
#endif
    // A file system without it: the moment between test and rename is open, as it must be there.
    if (access(to.c_str(), F_OK) == 0) {
        return EEXIST;
    }
    return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

Status keep_aside(const std::string& path) {
    FileHandle old;
    if (Status locked = lock_existing(path, O_RDONLY, old); !locked) {
        return locked;
    }
    struct stat named = {}; // a link that leads nowhere goes aside like one that leads to a file
    const bool there = old.get() >= 0 || (lstat(path.c_str(), &named) == 0 && S_ISLNK(named.st_mode));
    const std::string replays = path + replays_beside; // of the old run, also where its recording was removed
    if (!there && access(replays.c_str(), F_OK) != 0) {
        return {};
    }
    for (unsigned n = 1; n <= most_kept_aside; ++n) {
        const std::string kept = path + "." + std::to_string(n), kept_replays = kept + replays_beside;
        if (access(kept.c_str(), F_OK) == 0 || access(kept_replays.c_str(), F_OK) == 0) {
            continue;
        }
        const int failed = rename_to_free(path, kept);
        if (failed == 0 || failed == ENOENT) {
            (void)rename_to_free(replays, kept_replays);
            return {};
        }
        if (failed != EEXIST) {
            return system_error(failed, path, "kept aside");
        }
    }
    return Error{ErrorCode::already_exists, "too many older recordings lie beside " + path + ": remove some of them"};
}

/// A new file beside `path` that nobody else can take for a finished one: locked before it gets its name.
Status make_beside(const std::string& path, std::string& name, FileHandle& file) {
    name = path + ".new-" + std::to_string(getpid());
    for (int tries = 0; tries < 2; ++tries) {
        file.reset(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file.get() >= 0) {
            break;
        }
        if (errno != EEXIST) {
            return system_error(errno, path, "created");
        }
        unlink(name.c_str()); // left by a killed process that had our pid
    }
    if (file.get() < 0) {
        return system_error(errno, path, "created");
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        const int failed = errno;
        unlink(name.c_str());
        return system_error(failed, path, "locked");
    }
    return {};
}

class FileStore final : public Store {
  public:
    FileStore(std::string path, FileHandle file, std::uint64_t size, WriteFunction write)
        : path_(std::move(path)), file_(std::move(file)), size_(size), write_(std::move(write)) {}

    Status append(const Bytes& bytes) override {
        if (Status there = not_removed(); !there) {
            return there;
        }
        const int failed = write_all(write_, file_.get(), bytes.data(), bytes.size(), size_);
        if (failed != 0) {
            cut_torn_tail();
            return system_error(failed, path_, "written");
        }
        size_ += bytes.size();
        return {};
    }

    Status replace(const Bytes& head, const std::vector<ByteRange>& kept) override {
        if (Status there = not_removed(); !there) {
            return there;
        }
        if (!in_place()) {
            return Error{ErrorCode::failed, path_ + " was moved while it was being written, so max_size= "
                                                    "and keep= cannot shorten it any more: leave it in place"};
        }
        std::string name;
        FileHandle next;
        if (Status made = make_beside(path_, name, next); !made) {
            return made;
        }
        std::uint64_t size = head.size();
        int failed = write_all(write_, next.get(), head.data(), head.size(), 0);
        for (const ByteRange& range : kept) {
            failed = failed != 0 ? failed : copy(range, next.get(), size);
            size += range.size;
        }
        if (failed == 0 && rename(name.c_str(), path_.c_str()) != 0) {
            failed = errno;
        }
        if (failed != 0) {
            unlink(name.c_str());
            return system_error(failed, path_, "shortened");
        }
        file_ = std::move(next);
        size_ = size;
        return {};
    }

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] Bytes bytes() const override { return {}; }
    void forget() noexcept override { file_.reset(-1); }

  private:
    [[nodiscard]] bool in_place() const {
        struct stat ours = {};
        struct stat named = {};
        return fstat(file_.get(), &ours) == 0 && stat(path_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
               ours.st_dev == named.st_dev;
    }

    /// The system takes bytes for a file that has no name any more, and nobody will see them.
    [[nodiscard]] Status not_removed() const {
        struct stat ours = {};
        if (fstat(file_.get(), &ours) != 0 || ours.st_nlink != 0 || in_place()) {
            return {};
        }
        return Error{ErrorCode::not_found, path_ + " was removed while it was being written, and what it held is lost: "
                                                   "leave a recording in place while its program runs"};
    }

    void cut_torn_tail() {
        // Should this fail as well, the next append writes over the torn bytes, and a reader skips them.
        while (ftruncate(file_.get(), static_cast<off_t>(size_)) != 0 && errno == EINTR) {
        }
    }

    int copy(ByteRange range, int to, std::uint64_t at) {
        buffer_.resize(std::size_t{1} << 18);
        while (range.size > 0) {
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(range.size, buffer_.size()));
            const std::int64_t got = pread(file_.get(), buffer_.data(), want, static_cast<off_t>(range.offset));
            if (got <= 0) {
                return got < 0 ? errno : EIO;
            }
            if (const int failed = write_all(write_, to, buffer_.data(), static_cast<std::size_t>(got), at);
                failed != 0) {
                return failed;
            }
            at += static_cast<std::uint64_t>(got);
            range.offset += static_cast<std::uint64_t>(got);
            range.size -= static_cast<std::uint64_t>(got);
        }
        return 0;
    }

    std::string path_;
    FileHandle file_;
    std::uint64_t size_;
    WriteFunction write_;
    Bytes buffer_;
};

} // namespace

Result<std::unique_ptr<Store>> create_file_store(const std::string& path, const Bytes& head, WriteFunction write) {
    if (!write) {
        write = plain_write;
    }
    std::string name;
    FileHandle file;
    if (Status made = make_beside(path, name, file); !made) {
        return made.error();
    }
    int failed = write_all(write, file.get(), head.data(), head.size(), 0);
    if (failed == 0) {
        failed = EEXIST;
        // Somebody else may create the same name at the same moment: then that one is the writer we must not disturb.
        for (int tries = 0; tries < 16 && failed == EEXIST; ++tries) {
            if (Status aside = keep_aside(path); !aside) {
                unlink(name.c_str());
                return aside.error();
            }
            failed = rename_to_free(name, path);
        }
    }
    if (failed != 0) {
        unlink(name.c_str());
        return system_error(failed, path, "created");
    }
    return std::unique_ptr<Store>(std::make_unique<FileStore>(path, std::move(file), head.size(), std::move(write)));
}

Result<FileHandle> lock_recording(const std::string& path) {
    FileHandle file;
    if (Status locked = lock_existing(path, O_RDWR, file); !locked) {
        return locked.error();
    }
    if (file.get() < 0) {
        return system_error(ENOENT, path, "opened");
    }
    return file;
}

Result<std::unique_ptr<Store>> continue_file_store(const std::string& path, FileHandle file, std::uint64_t size,
                                                   WriteFunction write) {
    if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
        return system_error(errno, path, "shortened");
    }
    if (!write) {
        write = plain_write;
    }
    return std::unique_ptr<Store>(std::make_unique<FileStore>(path, std::move(file), size, std::move(write)));
}

} // namespace plumb::recording
