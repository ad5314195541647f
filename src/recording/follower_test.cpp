// SPDX-License-Identifier: Apache-2.0
#include "recording/follower.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "recording/files_testing.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

/// Two threads that take turns, and what a run says of itself in between.
void write_run(Writer& writer, std::size_t steps) {
    ASSERT_TRUE(writer.add_track({1, TrackKind::host_thread, 0, 1, "main", "cpu_tsc"}).ok());
    ASSERT_TRUE(writer.add_track({2, TrackKind::host_thread, 0, 2, "worker", "cpu_tsc"}).ok());
    ASSERT_TRUE(writer.add_name({300, Category::other, "own_brick"}).ok());
    const std::vector<Record> one = decode_stream(steps, 1);
    const std::vector<Record> two = decode_stream(steps, 2);
    for (std::size_t at = 0; at < one.size(); at += 700) {
        const std::size_t count = std::min<std::size_t>(700, one.size() - at);
        ASSERT_TRUE(writer.append({1, at, one.data() + at, count}).ok());
        ASSERT_TRUE(writer.append({2, at, two.data() + at, std::min(count, two.size() - at)}).ok());
        ASSERT_TRUE(writer.add_clock_pair({0, 1000 + at, static_cast<std::int64_t>(at), 0, 1}).ok());
        Counters counters;
        counters.drops = {{"ring full", at}};
        ASSERT_TRUE(writer.set_counters(counters).ok());
    }
}

void take(Follower& follower, Content& into) {
    std::vector<Record> records;
    for (const Follower::Chunk& chunk : follower.take_chunks()) {
        ASSERT_TRUE(follower.decode(chunk, records));
        for (std::size_t i = chunk.place.skip; i < records.size(); ++i) {
            into.records[chunk.place.track].push_back(records[i]);
            into.sequences[chunk.place.track].push_back(chunk.place.first_sequence + i);
        }
    }
}

void expect_same(const Content& a, const Content& b) {
    EXPECT_EQ(a.sequences, b.sequences);
    ASSERT_EQ(a.records.size(), b.records.size());
    for (const auto& [track, records] : a.records) {
        const std::vector<Record>& others = b.records.at(track);
        ASSERT_EQ(records.size(), others.size());
        for (std::size_t i = 0; i < records.size(); ++i) {
            ASSERT_TRUE(same(records[i], others[i])) << "track " << track << " record " << i;
        }
    }
}

Bytes prefix(const Bytes& bytes, std::size_t size) {
    return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

class Following : public ::testing::Test {
  protected:
    TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");

    Bytes written(std::size_t steps, WriterOptions options = {}) {
        options.path = folder.file("whole.plumb");
        auto writer = Writer::create(options, full_metadata());
        EXPECT_TRUE(writer.ok());
        write_run(**writer, steps);
        EXPECT_TRUE((*writer)->close().ok());
        return read_bytes(options.path);
    }
};

TEST_F(Following, a_file_that_grows_in_random_cuts_gives_what_a_whole_read_gives) {
    const Bytes bytes = written(60);
    const Content whole = content_of(folder.file("whole.plumb"));
    std::mt19937 random(11);
    for (int round = 0; round < 20; ++round) {
        std::size_t at = 64 + random() % 64;
        write_bytes(path, prefix(bytes, at));
        // Of 64 bytes alone nobody can say what they are the begin of; the preamble is.
        Result<Follower> follower = Follower::open(path);
        ASSERT_TRUE(follower.ok());
        Content content;
        while (true) {
            ASSERT_TRUE(follower->look().ok());
            ASSERT_NO_FATAL_FAILURE(take(*follower, content));
            if (at == bytes.size()) {
                break;
            }
            at = std::min<std::size_t>(bytes.size(), at + 1 + random() % (1 + bytes.size() / (1 + random() % 40)));
            write_bytes(path, prefix(bytes, at));
        }
        ASSERT_NO_FATAL_FAILURE(expect_same(content, whole));
        EXPECT_EQ(follower->writer(), Follower::Writer::closed);
        Result<Reader> reader = Reader::open(path);
        ASSERT_TRUE(reader.ok());
        const RunFacts& facts = *follower->facts();
        EXPECT_EQ(facts.tracks.size(), reader->tracks().size());
        EXPECT_EQ(facts.names.size(), reader->names().size());
        EXPECT_EQ(facts.clock_pairs.size(), reader->clock_pairs().size());
        EXPECT_EQ(facts.counters.drops, reader->counters().drops);
        EXPECT_EQ(facts.notes, reader->notes());
    }
}

TEST_F(Following, every_byte_is_read_once) {
    const Bytes bytes = written(60);
    write_bytes(path, prefix(bytes, 64));
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    for (std::size_t at = 64; at < bytes.size(); at += bytes.size() / 10) {
        write_bytes(path, prefix(bytes, at));
        ASSERT_TRUE(follower->look().ok());
    }
    write_bytes(path, bytes);
    ASSERT_TRUE(follower->look().ok());
    ASSERT_TRUE(follower->look().ok());
    EXPECT_EQ(follower->bytes_read(), bytes.size());
}

TEST_F(Following, a_limit_that_replaces_the_file_loses_nothing_that_a_look_has_seen) {
    WriterOptions options;
    options.path = path;
    options.max_bytes = 60'000;
    auto writer = Writer::create(options, full_metadata());
    ASSERT_TRUE(writer.ok());
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    Content content;
    const std::vector<Record> records = decode_stream(400);
    for (std::size_t at = 0; at < records.size(); at += 500) {
        const std::size_t count = std::min<std::size_t>(500, records.size() - at);
        ASSERT_TRUE((*writer)->append({1, at, records.data() + at, count}).ok());
        ASSERT_TRUE(follower->look().ok());
        ASSERT_NO_FATAL_FAILURE(take(*follower, content));
    }
    EXPECT_GT((*writer)->records_removed(), 0u);
    Content all;
    all.records[1] = records;
    for (std::size_t i = 0; i < records.size(); ++i) {
        all.sequences[1].push_back(i);
    }
    expect_same(content, all);
}

TEST_F(Following, F8_a_file_that_replaces_another_gives_no_record_twice) {
    const Bytes bytes = written(60);
    const Content whole = content_of(folder.file("whole.plumb"));
    write_bytes(path, prefix(bytes, bytes.size() / 2));
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    ASSERT_TRUE(follower->look().ok());
    Content content;
    ASSERT_NO_FATAL_FAILURE(take(*follower, content));
    ASSERT_EQ(std::rename(folder.file("whole.plumb").c_str(), path.c_str()), 0);
    ASSERT_TRUE(follower->look().ok());
    ASSERT_NO_FATAL_FAILURE(take(*follower, content));
    expect_same(content, whole);
}

TEST_F(Following, a_chunk_that_never_ends_is_waited_for_and_one_that_ends_late_is_taken) {
    const Bytes bytes = written(60);
    const Content whole = content_of(folder.file("whole.plumb"));
    write_bytes(path, prefix(bytes, bytes.size() / 2));
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    Content content;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(follower->look().ok());
        ASSERT_NO_FATAL_FAILURE(take(*follower, content));
    }
    EXPECT_LE(follower->bytes_read(), bytes.size() / 2);
    write_bytes(path, bytes);
    ASSERT_TRUE(follower->look().ok());
    ASSERT_NO_FATAL_FAILURE(take(*follower, content));
    expect_same(content, whole);
}

TEST_F(Following, a_link_to_what_is_no_file_is_one_sentence) {
    write_bytes(path, prefix(written(20), 2000));
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    ASSERT_TRUE(follower->look().ok());
    ASSERT_EQ(symlink("/dev/null", folder.file("link").c_str()), 0);
    ASSERT_EQ(std::rename(folder.file("link").c_str(), path.c_str()), 0);
    const Status look = follower->look();
    ASSERT_FALSE(look.ok());
    EXPECT_NE(look.error().message.find("is no ordinary file"), std::string::npos);
}

TEST_F(Following, damage_in_the_middle_is_skipped_and_noted) {
    Bytes bytes = written(60);
    bytes[bytes.size() / 2] ^= std::byte{0x40};
    write_bytes(path, prefix(bytes, bytes.size() / 3));
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    ASSERT_TRUE(follower->look().ok());
    write_bytes(path, bytes);
    ASSERT_TRUE(follower->look().ok());
    Content content;
    ASSERT_NO_FATAL_FAILURE(take(*follower, content));
    expect_same(content, content_of(path));
    EXPECT_EQ(follower->facts()->notes, Reader::open(path)->notes());
}

TEST_F(Following, what_became_shorter_or_another_run_or_nothing_is_one_sentence) {
    const Bytes bytes = written(20);
    write_bytes(path, bytes);
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    ASSERT_TRUE(follower->look().ok());

    write_bytes(path, prefix(bytes, bytes.size() / 2));
    Status look = follower->look();
    ASSERT_FALSE(look.ok());
    EXPECT_EQ(look.error().code, ErrorCode::corrupt);
    EXPECT_NE(look.error().message.find("became shorter"), std::string::npos);

    Metadata another = full_metadata();
    another.recording_id[0] ^= 1;
    WriterOptions options;
    options.path = folder.file("another.plumb");
    ASSERT_TRUE((*Writer::create(options, another))->close().ok());
    ASSERT_EQ(std::rename(options.path.c_str(), path.c_str()), 0);
    look = follower->look();
    ASSERT_FALSE(look.ok());
    EXPECT_EQ(look.error().code, ErrorCode::corrupt);
    EXPECT_NE(look.error().message.find("another run"), std::string::npos);

    ASSERT_EQ(std::remove(path.c_str()), 0);
    look = follower->look();
    ASSERT_FALSE(look.ok());
    EXPECT_EQ(look.error().code, ErrorCode::not_found);
}

TEST_F(Following, a_file_that_is_no_recording_is_refused_by_the_first_look) {
    write_bytes(path, Bytes(1000, std::byte{'x'}));
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    const Status look = follower->look();
    ASSERT_FALSE(look.ok());
    EXPECT_EQ(look.error().code, ErrorCode::corrupt);
}

TEST_F(Following, a_writer_is_alive_until_it_closes_or_dies) {
    WriterOptions options;
    options.path = path;
    Metadata metadata = full_metadata();
    metadata.pid = 0; // whoever holds the lock
    auto writer = Writer::create(options, metadata);
    ASSERT_TRUE(writer.ok());
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    ASSERT_TRUE(follower->look().ok());
    EXPECT_EQ(follower->writer(), Follower::Writer::alive);
    EXPECT_TRUE(follower->facts()->being_written);
    const Bytes growing = read_bytes(path);
    ASSERT_TRUE((*writer)->close().ok());
    ASSERT_TRUE(follower->look().ok());
    EXPECT_EQ(follower->writer(), Follower::Writer::closed);

    const std::string left = folder.file("left.plumb");
    write_bytes(left, growing);
    Result<Follower> late = Follower::open(left);
    ASSERT_TRUE(late.ok());
    ASSERT_TRUE(late->look().ok());
    EXPECT_EQ(late->writer(), Follower::Writer::gone);
}

} // namespace
} // namespace plumb::recording
