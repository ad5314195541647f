// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/os.hpp"
#include "recording/file_access.hpp"
#include "recording/files_testing.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

Metadata own_metadata() {
    Metadata m = full_metadata();
    m.pid = base::process_id();
    m.process_start = *base::process_start_time(m.pid);
    m.boot_id = base::boot_id();
    m.time_namespace = base::time_namespace();
    return m;
}

/// A child process with a way to tell us that it got somewhere; killed and reaped at the end.
class Child {
  public:
    /// `body` gets a function that wakes the parent.
    template <class Body>
    explicit Child(Body body) {
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        pid_ = fork();
        if (pid_ == 0) {
            close(ends[0]);
            body([&](char word) { (void)!write(ends[1], &word, 1); });
            _exit(0);
        }
        close(ends[1]);
        from_ = ends[0];
    }
    ~Child() {
        if (pid_ > 0) {
            kill_and_reap();
        }
        close(from_);
    }
    /// The next word of the child; 0 when it has ended.
    char wait_for_word() {
        char word = 0;
        return read(from_, &word, 1) == 1 ? word : '\0';
    }
    void kill_and_reap() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    pid_t pid_ = 0;
    int from_ = -1;
};

TEST(FileStore, a_recording_is_for_its_owner_only) {
    const TemporaryFolder folder;
    const mode_t before = umask(0);
    auto writer = Writer::create({folder.file("run.plumb")}, full_metadata());
    umask(before);
    ASSERT_TRUE(writer.ok());
    struct stat facts = {};
    ASSERT_EQ(stat(folder.file("run.plumb").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0600u);
}

TEST(FileStore, an_existing_file_is_kept_aside_under_the_next_free_number) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    for (std::uint64_t run = 1; run <= 3; ++run) {
        auto writer = Writer::create({path}, full_metadata());
        ASSERT_TRUE(writer.ok()) << writer.error().message;
        ASSERT_TRUE((*writer)->append({static_cast<std::uint32_t>(run), 0, decode_stream(1).data(), 1}).ok());
        ASSERT_TRUE((*writer)->close().ok());
    }
    EXPECT_EQ(content_of(path + ".1").records.begin()->first, 1u);
    EXPECT_EQ(content_of(path + ".2").records.begin()->first, 2u);
    EXPECT_EQ(content_of(path).records.begin()->first, 3u);
    EXPECT_FALSE(exists(path + ".3"));
}

TEST(FileStore, the_records_of_replays_are_kept_aside_with_their_recording) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb"), replays = path + replays_beside;
    const auto run = [&](std::size_t size) {
        ASSERT_TRUE(Writer::create({path}, full_metadata()).ok());
        EXPECT_FALSE(exists(replays)) << "those of another run";
        write_bytes(replays, Bytes(size, std::byte{65}));
    };
    run(1);
    run(2);
    EXPECT_TRUE(exists(path + ".1"));
    EXPECT_EQ(read_bytes(path + ".1" + replays_beside).size(), 1u);
    ASSERT_EQ(std::remove(path.c_str()), 0); // the recording alone
    run(3);
    EXPECT_EQ(read_bytes(path + ".2" + replays_beside).size(), 2u);
    EXPECT_FALSE(exists(path + ".2"));
    run(4);
    EXPECT_TRUE(exists(path + ".3")) << "records of one run never lie beside the recording of another";
    EXPECT_EQ(read_bytes(path + ".3" + replays_beside).size(), 3u);
}

TEST(FileStore, a_file_that_is_no_recording_is_kept_aside_too) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    write_bytes(path, Bytes(3, std::byte{65}));
    auto writer = Writer::create({path}, full_metadata());
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ(read_bytes(path + ".1"), Bytes(3, std::byte{65}));
}

TEST(FileStore, a_link_that_leads_nowhere_is_kept_aside_too) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    ASSERT_EQ(symlink("gone.plumb", path.c_str()), 0);
    auto writer = Writer::create({path}, full_metadata());
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    char target[32] = {};
    EXPECT_EQ(readlink((path + ".1").c_str(), target, sizeof target), 10);
    EXPECT_FALSE(exists(folder.file("gone.plumb")));
}

TEST(FileStore, a_file_that_another_process_still_writes_is_left_alone_and_its_pid_named) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    Child child([&](auto tell) {
        auto writer = Writer::create({path}, own_metadata());
        tell(writer.ok() ? 'y' : 'n');
        for (;;) {
            pause();
        }
    });
    ASSERT_EQ(child.wait_for_word(), 'y');
    auto writer = Writer::create({path}, own_metadata());
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.error().code, ErrorCode::already_exists);
    EXPECT_NE(writer.error().message.find(std::to_string(child.pid())), std::string::npos) << writer.error().message;
    EXPECT_FALSE(exists(path + ".1"));

    child.kill_and_reap();
    EXPECT_TRUE(Writer::create({path}, own_metadata()).ok()) << "its writer is dead now";
    EXPECT_TRUE(exists(path + ".1"));
}

TEST(FileStore, two_writers_of_one_process_do_not_share_a_file) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    auto first = Writer::create({path}, own_metadata());
    ASSERT_TRUE(first.ok());
    auto second = Writer::create({path}, own_metadata());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::already_exists);
    ASSERT_TRUE((*first)->close().ok());
    EXPECT_TRUE(Writer::create({path}, own_metadata()).ok());
}

TEST(FileStore, a_forked_child_that_forgets_the_file_does_not_keep_it_busy) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    auto writer = Writer::create({path}, own_metadata());
    ASSERT_TRUE(writer.ok());
    Child child([&](auto tell) {
        (*writer)->forget();
        tell('y');
        for (;;) {
            pause();
        }
    });
    ASSERT_EQ(child.wait_for_word(), 'y');
    ASSERT_TRUE((*writer)->append({1, 0, decode_stream(1).data(), 10}).ok());
    ASSERT_TRUE((*writer)->close().ok());
    EXPECT_EQ(content_of(path).count(), 10u);
    EXPECT_TRUE(Writer::create({path}, own_metadata()).ok());
}

TEST(FileStore, whether_a_writer_of_another_time_namespace_lives_is_asked_by_its_lock) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    Metadata elsewhere = own_metadata();
    elsewhere.time_namespace = base::time_namespace() + 1;
    elsewhere.process_start += 4242; // as its own clock since boot says
    auto writer = Writer::create({path}, elsewhere);
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(Reader::open(path)->being_written());
    ASSERT_TRUE((*writer)->close().ok());
    EXPECT_FALSE(Reader::open(path)->being_written());
}

TEST(FileStore, a_live_recording_is_readable_and_said_to_be_growing) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    auto writer = Writer::create({path}, own_metadata());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(append_all(**writer, 1, decode_stream(5)).ok());
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    EXPECT_TRUE(reader->being_written());
    EXPECT_NE(joined_notes(*reader).find("still being written"), std::string::npos);
    EXPECT_EQ(content_of(*reader).count(), decode_stream(5).size());
    // The reader's look at the lock must not have taken it from the writer.
    EXPECT_FALSE(Writer::create({path}, own_metadata()).ok());
}

TEST(FileStore, a_folder_that_does_not_exist_is_named_with_its_fix) {
    const TemporaryFolder folder;
    auto writer = Writer::create({folder.file("nowhere/run.plumb")}, full_metadata());
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.error().code, ErrorCode::not_found);
    EXPECT_NE(writer.error().message.find("create the folder first"), std::string::npos);
}

TEST(FileStore, an_unwritable_folder_is_a_permission_error) {
    const TemporaryFolder folder;
    ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
    Child child([&](auto tell) {
        // root may write anywhere: become nobody first
        if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) {
            tell('?');
        }
        auto writer = Writer::create({folder.file("run.plumb")}, full_metadata());
        tell(!writer.ok() && writer.error().code == ErrorCode::permission ? 'y' : 'n');
    });
    EXPECT_EQ(child.wait_for_word(), 'y');
}

TEST(FileStore, a_read_only_file_system_is_no_question_of_modes) {
    const Error error = system_error(EROFS, "/rom/run.plumb", "created");
    EXPECT_EQ(error.code, ErrorCode::permission);
    EXPECT_EQ(error.message,
              "/rom/run.plumb could not be created: its file system is read-only: choose a place you may write to");
}

TEST(FileStore, devices_pipes_and_folders_are_no_recordings) {
    const TemporaryFolder folder;
    ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
    for (const std::string& path : {folder.file("pipe"), folder.path(), std::string("/dev/null")}) {
        auto reader = Reader::open(path);
        ASSERT_FALSE(reader.ok()) << path;
        EXPECT_EQ(reader.error().code, ErrorCode::invalid_argument) << reader.error().message;
    }
    auto writer = Writer::create({folder.file("pipe")}, full_metadata());
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(exists(folder.file("pipe.1")));
    EXPECT_EQ(Reader::open(folder.file("nothing")).error().code, ErrorCode::not_found);
}

/// A disk of `room` bytes.
struct SmallDisk {
    std::uint64_t room = 0;
    [[nodiscard]] WriteFunction function() {
        return [this](int file, const void* data, std::size_t size, std::uint64_t offset) -> std::int64_t {
            const std::uint64_t fits = offset >= room ? 0 : std::min<std::uint64_t>(size, room - offset);
            if (fits == 0) {
                errno = ENOSPC;
                return -1;
            }
            return pwrite(file, data, fits, static_cast<off_t>(offset));
        };
    }
};

TEST(FileStore, a_full_disk_costs_nothing_that_was_there_and_a_later_append_succeeds) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    const auto records = decode_stream(20);
    SmallDisk disk{1 << 20};
    auto writer = Writer::create({path, 0, 0, true, disk.function()}, own_metadata());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->append({1, 0, records.data(), 300}).ok());
    const std::uint64_t size = (*writer)->size();
    for (std::uint64_t room = size; room < size + 200; room += 13) { // wherever the write is cut
        disk.room = room;
        const Status full = (*writer)->append({1, 300, records.data() + 300, 300});
        ASSERT_FALSE(full.ok());
        EXPECT_EQ(full.error().code, ErrorCode::no_space);
        EXPECT_NE(full.error().message.find("free some space"), std::string::npos) << full.error().message;
        EXPECT_EQ(file_size(path), size) << "the torn tail stays";
        disk.room = size + 20;
        EXPECT_EQ((*writer)->add_name({300, Category::other, "late"}).error().code, ErrorCode::no_space);
        EXPECT_EQ(file_size(path), size);
        EXPECT_EQ(content_of(path).count(), 300u);
    }
    disk.room = 1 << 20;
    ASSERT_TRUE((*writer)->append({1, 300, records.data() + 300, 300}).ok());
    ASSERT_TRUE((*writer)->close().ok());
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    EXPECT_TRUE(reader->notes().empty()) << joined_notes(*reader);
    const Content content = content_of(*reader);
    EXPECT_TRUE(std::equal(records.begin(), records.begin() + 600, content.records.at(1).begin(), same));
}

TEST(FileStore, a_disk_full_at_creation_leaves_no_file_behind) {
    const TemporaryFolder folder;
    write_bytes(folder.file("run.plumb"), Bytes(5));
    SmallDisk disk{100};
    auto writer = Writer::create({folder.file("run.plumb"), 0, 0, true, disk.function()}, full_metadata());
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.error().code, ErrorCode::no_space);
    EXPECT_EQ(file_size(folder.file("run.plumb")), 5u) << "what was there is still there";
    EXPECT_FALSE(exists(folder.file("run.plumb.1")));
}

TEST(FileStore, a_size_limit_of_the_process_is_a_full_disk) {
    const TemporaryFolder folder;
    Child child([&](auto tell) {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{8192, 8192};
        setrlimit(RLIMIT_FSIZE, &limit);
        auto writer = Writer::create({folder.file("run.plumb")}, own_metadata());
        const Status status = append_all(**writer, 1, decode_stream(100), 500);
        tell(!status.ok() && status.error().code == ErrorCode::no_space ? 'y' : 'n');
    });
    EXPECT_EQ(child.wait_for_word(), 'y');
    EXPECT_GT(content_of(folder.file("run.plumb")).count(), 0u);
}

TEST(FileStore, a_size_limit_never_ends_the_process) {
    const TemporaryFolder folder;
    Child child([&](auto tell) {
        const auto limit_to = [](rlim_t bytes) {
            const rlimit limit{bytes, RLIM_INFINITY};
            setrlimit(RLIMIT_FSIZE, &limit);
        };
        limit_to(10);
        tell(Writer::create({folder.file("none.plumb")}, own_metadata()).error().code == ErrorCode::no_space ? 'y'
                                                                                                             : 'n');
        limit_to(8192);
        auto writer = Writer::create({folder.file("run.plumb")}, own_metadata());
        tell(append_all(**writer, 1, decode_stream(100), 500).error().code == ErrorCode::no_space ? 'y' : 'n');
        limit_to((*writer)->size());
        tell((*writer)->close().error().code == ErrorCode::no_space ? 'y' : 'n');
    });
    EXPECT_EQ(child.wait_for_word(), 'y');
    EXPECT_EQ(child.wait_for_word(), 'y');
    EXPECT_EQ(child.wait_for_word(), 'y');
    EXPECT_FALSE(exists(folder.file("none.plumb.new-" + std::to_string(child.pid()))));
    EXPECT_GT(content_of(folder.file("run.plumb")).count(), 0u);
}

TEST(FileStore, a_file_that_was_removed_takes_nothing_more_and_one_that_was_moved_does) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    auto writer = Writer::create({path}, own_metadata());
    ASSERT_TRUE(writer.ok());
    ASSERT_EQ(rename(path.c_str(), folder.file("moved.plumb").c_str()), 0);
    ASSERT_TRUE(append_all(**writer, 1, decode_stream(5)).ok());
    EXPECT_EQ(content_of(folder.file("moved.plumb")).count(), decode_stream(5).size());
    ASSERT_EQ(unlink(folder.file("moved.plumb").c_str()), 0);
    const Record record{1, 2};
    EXPECT_EQ((*writer)->append({2, 0, &record, 1}).error().code, ErrorCode::not_found);
    const Status closed = (*writer)->close();
    ASSERT_FALSE(closed.ok());
    EXPECT_NE(closed.error().message.find("was removed"), std::string::npos) << closed.error().message;
}

/// A file system of its own in a folder, gone again whatever the test does.
struct SmallFileSystem {
    std::string folder;
    bool mounted;
    explicit SmallFileSystem(std::string path)
        : folder(std::move(path)), mounted(mount("plumb-test", folder.c_str(), "tmpfs", 0, "size=64k") == 0) {}
    SmallFileSystem(const SmallFileSystem&) = delete;
    SmallFileSystem& operator=(const SmallFileSystem&) = delete;
    ~SmallFileSystem() {
        if (mounted) {
            umount2(folder.c_str(), MNT_DETACH);
        }
    }
};

TEST(FileStore, a_real_file_system_that_fills_up_behaves_the_same) {
    const TemporaryFolder folder;
    const SmallFileSystem disk(folder.path());
    if (!disk.mounted) {
        GTEST_SKIP() << "mounting a small tmpfs needs root";
    }
    const std::string path = folder.file("run.plumb");
    auto writer = Writer::create({path}, own_metadata());
    ASSERT_TRUE(writer.ok());
    const auto records = decode_stream(2000);
    const Status full = append_all(**writer, 1, records, 2000);
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.error().code, ErrorCode::no_space);
    const std::size_t kept = content_of(path).count();
    EXPECT_EQ(kept % 2000, 0u);
    EXPECT_GT(kept, 0u);
    ASSERT_EQ(mount("plumb-test", folder.path().c_str(), "tmpfs", MS_REMOUNT, "size=8m"), 0);
    ASSERT_TRUE((*writer)->append({1, kept, records.data() + kept, 2000}).ok());
    EXPECT_EQ(content_of(path).count(), kept + 2000);
}

TEST(FileStore, a_kill_at_any_moment_of_a_write_leaves_at_most_one_torn_chunk) {
    const TemporaryFolder folder;
    const auto records = decode_stream(4);
    for (std::uint64_t cut = 0; cut < 400; cut += 7) {
        const std::string path = folder.file("run" + std::to_string(cut) + ".plumb");
        Child child([&](auto) {
            bool armed = false;
            const WriteFunction dying = [&](int file, const void* data, std::size_t size, std::uint64_t offset) {
                const std::size_t part = armed ? std::min<std::size_t>(size, cut) : size;
                const std::int64_t done = pwrite(file, data, part, static_cast<off_t>(offset));
                if (armed) {
                    kill(getpid(), SIGKILL);
                }
                return done;
            };
            auto writer = Writer::create({path, 0, 0, true, dying}, own_metadata());
            (void)(*writer)->append({1, 0, records.data(), 100}).ok();
            armed = true;
            (void)(*writer)->append({1, 100, records.data() + 100, 100}).ok();
        });
        EXPECT_EQ(child.wait_for_word(), '\0');
        child.kill_and_reap();
        auto reader = Reader::open(path);
        ASSERT_TRUE(reader.ok());
        EXPECT_FALSE(reader->being_written());
        const std::size_t count = content_of(*reader).count();
        EXPECT_TRUE(count == 100 || count == 200) << count;
    }
}

TEST(FileStore, a_file_cut_short_while_it_is_read_ends_there) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    auto writer = Writer::create({path}, own_metadata());
    ASSERT_TRUE(writer.ok());
    std::mt19937_64 random(5);
    for (std::uint64_t i = 0; i < 20; ++i) { // more than one window
        const auto records = wild_records(4000, random);
        ASSERT_TRUE((*writer)->append({1, i * 4000, records.data(), records.size()}).ok());
    }
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(truncate(path.c_str(), 200'000), 0);
    EXPECT_LT(content_of(*reader).count(), 80'000u);
    EXPECT_NE(joined_notes(*reader).find("could not be decoded"), std::string::npos) << joined_notes(*reader);
}

} // namespace
} // namespace plumb::recording
