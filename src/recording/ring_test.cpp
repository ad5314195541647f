// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/os.hpp"
#include "base/ring_names.hpp"
#include "recording/drop_reasons.hpp"
#include "recording/files_testing.hpp"
#include "recording/format.hpp"
#include "recording/recovery.hpp"
#include "recording/ring_file.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

constexpr std::uint64_t capacity = 1024;

/// A run whose process is dead: a recording of the first `written` records, and a ring.
struct DeadRun {
    TemporaryFolder folder;
    std::string path = folder.file("run.plumb");
    std::string ring_path = folder.file("plumb-1-0.ring");
    std::vector<Record> records = decode_stream(10);
    Metadata metadata = full_metadata();
    std::unique_ptr<Writer> writer;

    explicit DeadRun(std::size_t written) {
        metadata.ring_path = ring_path;
        metadata.pid = 0x3fffffff; // beyond every pid there can be
        auto made = Writer::create({path}, metadata);
        EXPECT_TRUE(made.ok());
        writer = std::move(*made);
        EXPECT_TRUE(writer->add_track({1, TrackKind::host_thread, 0, 1, "main", "cpu_tsc"}).ok());
        EXPECT_TRUE(
            append_all(*writer, 1, {records.begin(), records.begin() + static_cast<std::ptrdiff_t>(written)}, 100)
                .ok());
        writer->forget();
    }

    [[nodiscard]] TestRing ring(std::uint64_t tail, std::uint64_t head) const {
        TestRing made;
        made.tail = tail;
        made.records.assign(records.begin() + static_cast<std::ptrdiff_t>(tail),
                            records.begin() + static_cast<std::ptrdiff_t>(head));
        return made;
    }
    void leave(const std::vector<TestRing>& rings) const {
        write_bytes(ring_path, ring_bytes(metadata, capacity, rings));
    }
    void expect_first(std::size_t count, const Content& content) const {
        ASSERT_EQ(content.count(), count);
        const auto& have = content.records.at(1);
        EXPECT_TRUE(std::equal(have.begin(), have.end(), records.begin(), same));
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(content.sequences.at(1)[i], i);
        }
    }
};

TEST(Ring, what_a_killed_process_left_in_its_ring_is_read_behind_what_it_wrote) {
    DeadRun run(200);
    run.leave({run.ring(200, 350)});
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    run.expect_first(350, content_of(*reader));
    EXPECT_NE(joined_notes(*reader).find("150 records come from the ring"), std::string::npos) << joined_notes(*reader);
    EXPECT_EQ(content_of(run.path, {false}).count(), 200u) << "merging was not asked for";
    EXPECT_TRUE(exists(run.ring_path)) << "reading changes nothing";
}

TEST(Ring, records_both_written_and_still_in_the_ring_are_used_once) {
    DeadRun run(200);
    run.leave({run.ring(120, 350)}); // killed between the write and the store of the tail
    run.expect_first(350, content_of(run.path));
    run.leave({run.ring(120, 180)}); // all of it written
    run.expect_first(200, content_of(run.path));
}

TEST(Ring, a_ring_that_wrapped_is_read_across_its_end) {
    DeadRun run(0);
    std::vector<Record> many = decode_stream(40);
    TestRing ring;
    ring.tail = 3 * capacity - 100;
    ring.records.assign(many.begin(), many.begin() + capacity); // full
    run.leave({ring});
    const Content content = content_of(run.path);
    ASSERT_EQ(content.count(), capacity);
    EXPECT_TRUE(std::equal(many.begin(), many.begin() + capacity, content.records.at(1).begin(), same));
    EXPECT_EQ(content.sequences.at(1).front(), 3 * capacity - 100);
}

TEST(Ring, a_gap_between_recording_and_ring_is_stated) {
    DeadRun run(200);
    run.leave({run.ring(250, 300)});
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    EXPECT_NE(joined_notes(*reader).find("track 1 (main) misses 50 records before those of its ring"),
              std::string::npos)
        << joined_notes(*reader);
    EXPECT_EQ(content_of(*reader).count(), 250u);
}

TEST(Ring, a_thread_known_only_to_the_ring_gets_a_track) {
    DeadRun run(100);
    TestRing other = run.ring(0, 5);
    other.track = 9;
    other.state = detail::RingState::retired;
    other.thread_name = "late-worker";
    run.leave({run.ring(100, 100), other});
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(reader->tracks().size(), 2u);
    EXPECT_EQ(reader->tracks()[1].id, 9u);
    EXPECT_EQ(reader->tracks()[1].name, "late-worker");
    EXPECT_EQ(reader->tracks()[1].os_thread, 4242u);
    EXPECT_EQ(reader->tracks()[1].source, "cpu_tsc");
    EXPECT_EQ(content_of(*reader).records.at(9).size(), 5u);
}

/// Those of a reader or of a recording, in order.
std::vector<std::string> words(const std::vector<NameInfo>& names) {
    std::vector<std::string> list;
    for (const NameInfo& name : names) {
        list.push_back(std::to_string(name.id) + ' ' + name.name);
    }
    return list;
}

TEST(Ring, names_known_only_to_the_ring_are_read_and_recovered_once) {
    DeadRun run(100);
    auto reopened = Writer::create({run.path}, run.metadata);
    ASSERT_TRUE((*reopened)->add_name({256, Category::other, "written"}).ok());
    (*reopened)->forget();
    const std::vector<NameInfo> names = {{256, Category::other, "written"}, {257, Category::moe, "late"}};
    write_bytes(run.ring_path, ring_bytes(run.metadata, capacity, {run.ring(0, 5)}, names));
    const std::vector<std::string> all = {"256 written", "257 late"};
    EXPECT_EQ(words(Reader::open(run.path)->names()), all);
    ASSERT_TRUE(recover(run.path).ok());
    EXPECT_FALSE(exists(run.ring_path));
    EXPECT_EQ(words(Reader::open(run.path)->names()), all);
    EXPECT_EQ(Reader::open(run.path)->names().at(1).category, Category::moe);
}

TEST(Ring, a_ring_of_version_1_is_read) {
    DeadRun run(200);
    write_bytes(run.ring_path, ring_bytes_of_version_1(run.metadata, capacity, {run.ring(200, 350)}));
    run.expect_first(350, content_of(run.path));
}

TEST(Ring, a_free_ring_is_nobodys) {
    DeadRun run(100);
    TestRing stale = run.ring(100, 200);
    stale.state = detail::RingState::free;
    run.leave({stale});
    run.expect_first(100, content_of(run.path));
}

TEST(Ring, drops_counted_after_the_last_note_of_them_are_not_forgotten) {
    DeadRun run(100);
    auto reopened = Writer::create({run.path}, run.metadata);
    ASSERT_TRUE(reopened.ok());
    Counters counters;
    counters.drops = {{drop_reason_text(Drop::ring_full), 10}, {drop_reason_text(Drop::too_deep), 4}};
    counters.ended_drops[static_cast<int>(Drop::ring_full)] = 7; // 3 of the 10 were of rings still in use
    ASSERT_TRUE((*reopened)->set_counters(counters).ok());
    (*reopened)->forget();
    TestRing ring = run.ring(0, 1);
    ring.drops[static_cast<int>(Drop::ring_full)] = 5;
    ring.drops[static_cast<int>(Drop::bad_token)] = 2;
    ring.drops[static_cast<int>(Drop::unrecorded_node)] = 6;
    run.leave({ring});
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    const std::vector<std::pair<std::string, std::uint64_t>> expected = {{drop_reason_text(Drop::ring_full), 12},
                                                                         {drop_reason_text(Drop::too_deep), 4},
                                                                         {drop_reason_text(Drop::bad_token), 2},
                                                                         {drop_reason_text(Drop::unrecorded_node), 6}};
    EXPECT_EQ(reader->counters().drops, expected);
}

TEST(Ring, the_ring_of_another_recording_is_left_alone) {
    DeadRun run(100);
    Metadata other = run.metadata;
    other.recording_id[0] ^= 1;
    write_bytes(run.ring_path, ring_bytes(other, capacity, {run.ring(100, 200)}));
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    run.expect_first(100, content_of(*reader));
    EXPECT_NE(joined_notes(*reader).find("belongs to another recording"), std::string::npos);
    auto recovered = recover(run.path);
    ASSERT_TRUE(recovered.ok());
    EXPECT_TRUE(exists(run.ring_path));
}

TEST(Ring, a_file_that_is_not_named_like_a_ring_is_never_opened) {
    for (const char* name : {"/dev/zero", "ring", "plumb-.ring.txt", "/etc/passwd", "plumb-.ring"}) {
        EXPECT_FALSE(is_ring_name(name)) << name;
    }
    EXPECT_TRUE(is_ring_name("/dev/shm/plumb-12-0.ring"));
}

TEST(Ring, a_ring_named_without_folder_is_looked_for_where_rings_lie) {
    const TemporaryFolder folder;
    const char* before = std::getenv("XDG_RUNTIME_DIR");
    const std::string saved = before == nullptr ? "" : before;
    setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
    write_bytes(folder.file("plumb-7-0.ring"), Bytes(1));
    EXPECT_EQ(locate_ring("plumb-7-0.ring"), folder.file("plumb-7-0.ring"));
    EXPECT_EQ(locate_ring("plumb-8-0.ring"), "/dev/shm/plumb-8-0.ring");
    EXPECT_EQ(locate_ring("/a/plumb-8-0.ring"), "/a/plumb-8-0.ring");
    if (before == nullptr) {
        unsetenv("XDG_RUNTIME_DIR");
    } else {
        setenv("XDG_RUNTIME_DIR", saved.c_str(), 1);
    }
}

TEST(Ring, a_missing_ring_is_said_only_where_records_may_be_missing) {
    DeadRun run(100);
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    EXPECT_NE(joined_notes(*reader).find("its ring is gone"), std::string::npos) << joined_notes(*reader);
    auto closed = Writer::create({run.path}, run.metadata);
    ASSERT_TRUE((*closed)->close().ok());
    EXPECT_TRUE(Reader::open(run.path)->notes().empty());
}

TEST(Ring, fields_that_cannot_be_true_are_refused_with_their_reason) {
    const DeadRun run(0);
    const Bytes good = ring_bytes(run.metadata, capacity, {run.ring(0, 10)});
    const auto read = [](const Bytes& bytes) {
        return read_ring_bytes(bytes.data(), bytes.size(), "r");
    };
    const auto with = [&](std::size_t at, std::uint64_t value, std::size_t size) {
        Bytes bytes = good;
        std::memcpy(bytes.data() + at, &value, size);
        return bytes;
    };
    ASSERT_EQ(read(good)->rings.at(0).records.size(), 10u);
    EXPECT_EQ(read(with(0, 0, 8)).error().code, ErrorCode::corrupt);
    EXPECT_EQ(read(with(offsetof(detail::RingFileHeader, version), 3, 4)).error().code, ErrorCode::unsupported);
    for (const std::uint64_t wrong :
         {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
        EXPECT_EQ(read(with(offsetof(detail::RingFileHeader, capacity), wrong, 8)).error().code, ErrorCode::corrupt)
            << wrong;
    }
    EXPECT_EQ(read(with(offsetof(detail::RingFileHeader, ring_count), ~0u, 4))->notes.size(), 1u);
    for (const std::size_t field : {offsetof(detail::RingHeader, head), offsetof(detail::RingHeader, tail)}) {
        const auto lying = read(with(rings_at + field, ~std::uint64_t{0}, 8));
        EXPECT_TRUE(lying->rings.empty());
        EXPECT_EQ(lying->notes.size(), 1u);
    }
    EXPECT_TRUE(read(with(rings_at + offsetof(detail::RingHeader, state), 77, 4))->rings.empty());
    constexpr std::size_t used_at = base::ring_names_at + offsetof(base::RingNames, used);
    for (const std::uint64_t wrong : {std::uint64_t{4097}, std::uint64_t{0xffffffff}}) {
        EXPECT_EQ(read(with(used_at, wrong, 4)).error().code, ErrorCode::corrupt) << wrong;
        EXPECT_EQ(read(with(used_at - 4, wrong, 4)).error().code, ErrorCode::corrupt) << wrong;
    }
    EXPECT_EQ(read(with(used_at, 40, 4))->notes.size(), 1u) << "no name is 0";
    for (std::size_t size = 0; size < good.size(); size += 111) {
        const auto cut = read(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
        EXPECT_TRUE(!cut.ok() || cut->rings.empty()) << size;
    }
}

TEST(Recovery, folds_the_ring_in_removes_it_and_finds_nothing_to_do_again) {
    DeadRun run(200);
    TestRing other = run.ring(0, 30);
    other.track = 9;
    run.leave({run.ring(150, 350), other});
    auto first = recover(run.path);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_EQ(first->records, 180u);
    EXPECT_TRUE(first->ring_removed);
    EXPECT_FALSE(exists(run.ring_path));
    const Bytes after = read_bytes(run.path);
    auto second = recover(run.path);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(second->records, 0u);
    EXPECT_EQ(read_bytes(run.path), after);
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    Content content = content_of(*reader);
    EXPECT_EQ(content.records.at(9).size(), 30u);
    content.records.erase(9);
    run.expect_first(350, content);
    ASSERT_EQ(reader->notes().size(), 1u) << joined_notes(*reader);
    EXPECT_EQ(reader->notes()[0].find("180 records were recovered"), 0u);
    EXPECT_EQ(reader->counters().records, 380u);
}

TEST(Recovery, without_a_ring_it_does_not_pretend_that_all_is_there) {
    DeadRun run(100);
    auto recovered = recover(run.path);
    ASSERT_TRUE(recovered.ok());
    EXPECT_FALSE(recovered->ring_removed);
    EXPECT_NE(joined_notes(*Reader::open(run.path)).find("its ring is gone"), std::string::npos);
}

TEST(Recovery, says_what_is_lost_all_the_same) {
    DeadRun run(100);
    run.leave({run.ring(150, 200)});
    auto recovered = recover(run.path);
    ASSERT_TRUE(recovered.ok());
    ASSERT_EQ(recovered->notes.size(), 1u);
    EXPECT_NE(recovered->notes[0].find("misses 50 records"), std::string::npos);
}

TEST(Recovery, leaves_damage_that_is_no_unfinished_chunk_where_it_is) {
    DeadRun run(200);
    Bytes bytes = read_bytes(run.path);
    bytes.back() ^= std::byte{1};
    write_bytes(run.path, bytes);
    run.leave({run.ring(200, 300)});
    auto recovered = recover(run.path);
    ASSERT_TRUE(recovered.ok());
    EXPECT_EQ(recovered->cut_bytes, 0u);
    const Bytes after = read_bytes(run.path);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), after.begin()));
    EXPECT_EQ(content_of(run.path).count(), 200u); // 100 before the damage, 100 from the ring
}

TEST(Recovery, cuts_off_an_unfinished_chunk) {
    DeadRun run(200);
    Bytes bytes = read_bytes(run.path);
    const std::size_t whole = bytes.size();
    const auto* magic = reinterpret_cast<const std::byte*>(chunk_magic);
    const auto last = std::find_end(bytes.begin(), bytes.end(), magic, magic + sizeof chunk_magic);
    const Bytes begun(last, last + 80); // a header that holds, and a little of its payload
    append_bytes(bytes, begun.data(), begun.size());
    write_bytes(run.path, bytes);
    run.leave({run.ring(200, 300)});
    auto recovered = recover(run.path);
    ASSERT_TRUE(recovered.ok());
    EXPECT_EQ(recovered->cut_bytes, 80u);
    EXPECT_GT(file_size(run.path), whole);
    run.expect_first(300, content_of(run.path));
}

TEST(Recovery, killed_at_any_byte_it_writes_nothing_is_lost_or_there_twice) {
    for (std::size_t cut = 0; cut < 900; cut += 11) {
        DeadRun run(100);
        TestRing other = run.ring(0, 40);
        other.track = 9;
        run.leave({run.ring(80, 300), other});
        std::size_t left = cut;
        const pid_t child = fork();
        if (child == 0) {
            (void)recover(run.path, [&](int file, const void* data, std::size_t size, std::uint64_t offset) {
                const std::size_t part = std::min(size, left);
                const std::int64_t done = pwrite(file, data, part, static_cast<off_t>(offset));
                left -= part;
                if (part < size) {
                    kill(getpid(), SIGKILL);
                }
                return done;
            }).ok();
            _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        Content between = content_of(run.path);
        EXPECT_EQ(between.records.at(9).size(), 40u);
        between.records.erase(9);
        run.expect_first(300, between);
        ASSERT_TRUE(recover(run.path).ok());
        EXPECT_FALSE(exists(run.ring_path));
        Content content = content_of(run.path);
        EXPECT_EQ(content.records.at(9).size(), 40u);
        content.records.erase(9);
        run.expect_first(300, content);
    }
}

TEST(Recovery, refuses_a_recording_that_is_still_being_written) {
    DeadRun run(100);
    run.leave({run.ring(100, 200)});
    Metadata own = run.metadata;
    own.pid = base::process_id();
    own.process_start = *base::process_start_time(own.pid);
    own.boot_id = base::boot_id();
    auto writer = Writer::create({run.path}, own);
    ASSERT_TRUE(writer.ok());
    auto refused = recover(run.path);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::already_exists);
    EXPECT_NE(refused.error().message.find("process " + std::to_string(own.pid)), std::string::npos);
    EXPECT_TRUE(exists(run.ring_path));
    auto reader = Reader::open(run.path);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(content_of(*reader).count(), 0u) << "a live writer's ring is its own";
}

TEST(Recovery, a_full_disk_keeps_the_ring) {
    DeadRun run(100);
    run.leave({run.ring(100, 300)});
    auto full = recover(run.path, [](int, const void*, std::size_t, std::uint64_t) -> std::int64_t {
        errno = ENOSPC;
        return -1;
    });
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.error().code, ErrorCode::no_space);
    EXPECT_TRUE(exists(run.ring_path));
    run.expect_first(300, content_of(run.path));
}

} // namespace
} // namespace plumb::recording
