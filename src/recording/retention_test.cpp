// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <unistd.h>

#include "recording/files_testing.hpp"
#include "recording/recorded_run.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

/// Bytes of everything in a folder.
std::uint64_t folder_size(const std::string& path) {
    std::uint64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
        sum += entry.file_size();
    }
    return sum;
}

/// The kept part is an unbroken end of the stream; before it at most work records are repeated.
void expect_unbroken_end(Reader& reader, const std::vector<Record>& records) {
    const Content content = content_of(reader);
    ASSERT_TRUE(content.records.count(1));
    const auto& kept = content.records.at(1);
    const auto& sequences = content.sequences.at(1);
    ASSERT_EQ(sequences.back(), records.size() - 1);
    std::size_t carried = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        ASSERT_EQ(sequences[i], sequences[0] + i);
        if (!same(kept[i], records[sequences[i]])) {
            ASSERT_EQ(i, carried) << "a record differs in the middle";
            ASSERT_EQ(kept[i].second >> kind_shift, static_cast<std::uint64_t>(RecordKind::work));
            ++carried;
        }
    }
}

struct Bounded {
    std::vector<Record> records = decode_stream(3000);
    std::unique_ptr<Writer> writer;

    void start(WriterOptions options) {
        Metadata metadata = full_metadata();
        metadata.pid = static_cast<std::uint32_t>(getpid());
        metadata.process_start = 0; // not known, so not compared
        metadata.boot_id.clear();
        auto made = Writer::create(std::move(options), metadata);
        ASSERT_TRUE(made.ok());
        writer = std::move(*made);
        ASSERT_TRUE(writer->add_track({1, TrackKind::host_thread, 0, 1, "main", "cpu_tsc"}).ok());
        ASSERT_TRUE(writer->add_name({300, Category::moe, "router"}).ok());
        ASSERT_TRUE(writer->add_clock_pair({0, 1, 2, 3, 4}).ok());
        ASSERT_TRUE(writer->describe("peak", "28").ok());
    }
    void expect_description(Reader& reader) {
        EXPECT_EQ(reader.metadata().host, full_metadata().host);
        ASSERT_EQ(reader.tracks().size(), 1u);
        EXPECT_EQ(reader.tracks()[0].name, "main");
        ASSERT_EQ(reader.names().size(), 1u);
        EXPECT_EQ(reader.names()[0].name, "router");
        EXPECT_EQ(reader.clock_pairs().size(), 1u);
        ASSERT_EQ(reader.descriptions().size(), 1u);
        EXPECT_EQ(reader.descriptions()[0].second, "28");
    }
};

TEST(Retention, max_bytes_bounds_the_disk_and_keeps_the_end_of_the_run) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    constexpr std::uint64_t limit = 100'000;
    std::uint64_t most = 0;
    Bounded run;
    // Seen at each write, so also while the old and the new file lie side by side.
    run.start({path, limit, 0, true, [&](int file, const void* data, std::size_t size, std::uint64_t offset) {
                   const std::int64_t done = pwrite(file, data, size, static_cast<off_t>(offset));
                   most = std::max(most, folder_size(folder.path()));
                   return done;
               }});
    for (std::size_t i = 0; i < run.records.size(); i += 1000) {
        const std::size_t count = std::min<std::size_t>(1000, run.records.size() - i);
        ASSERT_TRUE(run.writer->append({1, i, run.records.data() + i, count}).ok());
        ASSERT_LE(file_size(path), limit);
    }
    ASSERT_TRUE(run.writer->set_counters({}).ok());
    EXPECT_LE(most, limit + limit / 2 + 8192);
    const std::uint64_t removed = run.writer->records_removed();
    EXPECT_GT(removed, 0u);
    ASSERT_TRUE(run.writer->close().ok());
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    run.expect_description(*reader);
    expect_unbroken_end(*reader, run.records);
    EXPECT_EQ(reader->counters().records, run.records.size());
    EXPECT_EQ(reader->counters().records_removed, removed);
    ASSERT_EQ(reader->notes().size(), 1u) << joined_notes(*reader);
    EXPECT_EQ(reader->notes()[0].find(std::to_string(removed) + " older records were removed"), 0u);
}

TEST(Retention, work_given_once_at_the_start_still_belongs_to_the_scopes_that_stay) {
    Bounded run;
    run.start({"", 60'000});
    ASSERT_TRUE(append_all(*run.writer, 1, run.records).ok());
    ASSERT_GT(run.writer->records_removed(), 0u);
    auto reader = Reader::from_bytes(run.writer->snapshot());
    ASSERT_TRUE(reader.ok());
    const Content content = content_of(*reader);
    std::size_t work = 0;
    for (const Record& record : content.records.at(1)) {
        if (kind_of(record) != RecordKind::work) {
            break;
        }
        EXPECT_EQ(record.first, 0x40f0000000000000u + id_of(record));
        ++work;
    }
    EXPECT_EQ(work, 12u);
}

TEST(Retention, keep_removes_what_is_older_and_never_more) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    std::int64_t now = 0;
    Bounded run;
    run.start({path, 0, 1000, true, {}, [&] {
                   return now;
               }});
    for (std::size_t i = 0; i < run.records.size(); i += 1000, now += 100) {
        const std::size_t count = std::min<std::size_t>(1000, run.records.size() - i);
        ASSERT_TRUE(run.writer->append({1, i, run.records.data() + i, count}).ok());
        auto reader = Reader::open(path);
        ASSERT_TRUE(reader.ok());
        const std::size_t have = content_of(*reader).count();
        ASSERT_GE(have, std::min<std::size_t>(i + count, 10 * 1000)) << "records younger than keep are gone";
        ASSERT_LE(have, 17'000u);
    }
    EXPECT_GT(run.writer->records_removed(), 0u);
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    run.expect_description(*reader);
    expect_unbroken_end(*reader, run.records);
}

TEST(Retention, a_limit_counts_in_memory_too) {
    Bounded run;
    run.start({"", 100'000});
    for (std::size_t i = 0; i + 500 <= run.records.size(); i += 500) {
        ASSERT_TRUE(run.writer->append({1, i, run.records.data() + i, 500}).ok());
        ASSERT_LE(run.writer->size(), 100'000u);
    }
}

/// Of 64 threads, ten a second.
OffCpuSample sample_of_many_threads(std::int64_t i) {
    OffCpuSample sample;
    sample.monotonic_ns = i * 100'000'000;
    for (std::uint32_t track = 1; track <= 64; ++track) {
        sample.threads.push_back({track, {}});
    }
    return sample;
}

TEST(Retention, samples_and_counters_stay_within_max_bytes_and_cost_few_rewrites) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    constexpr std::uint64_t limit = std::uint64_t{1} << 20;
    std::uint64_t rewrites = 0, written = 0;
    Bounded run;
    run.start({path, limit, 0, true, [&](int file, const void* data, std::size_t size, std::uint64_t offset) {
                   rewrites += offset == 0 ? 1 : 0;
                   written += size;
                   return pwrite(file, data, size, static_cast<off_t>(offset));
               }});
    ASSERT_TRUE(append_all(*run.writer, 1, run.records).ok());
    std::uint64_t given = run.writer->size();
    for (std::int64_t i = 0; i < 20'000; ++i) {
        const std::uint64_t before = run.writer->size(), rewritten = rewrites;
        ASSERT_TRUE(run.writer->add_off_cpu(sample_of_many_threads(i)).ok());
        ASSERT_TRUE(run.writer->set_counters({}).ok());
        ASSERT_TRUE(run.writer->add_clock_pair({0, 1, 2, 3, 4}).ok());
        given += rewrites == rewritten ? run.writer->size() - before : 0;
        ASSERT_LE(run.writer->size(), limit);
    }
    EXPECT_GT(rewrites, 0u);
    EXPECT_LE(rewrites, given >> 16);
    EXPECT_LE(written, given * 6);
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    expect_unbroken_end(*reader, run.records);
    const RecordedRun all = run_of(std::move(*reader));
    const auto& samples = all.facts->off_cpu;
    ASSERT_GT(samples.size(), 32u);
    EXPECT_EQ(samples.back().monotonic_ns, sample_of_many_threads(19'999).monotonic_ns);
}

TEST(Retention, keep_bounds_what_an_idle_program_adds_and_leaves_it_its_last_records) {
    std::int64_t now = 0;
    Bounded run;
    run.start({"", 0, 5'000'000'000, true, {}, [&] {
                   return now;
               }});
    ASSERT_TRUE(append_all(*run.writer, 1, run.records).ok());
    for (std::int64_t i = 0; i < 20'000; ++i) {
        now = sample_of_many_threads(i).monotonic_ns;
        ASSERT_TRUE(run.writer->add_off_cpu(sample_of_many_threads(i)).ok());
        ASSERT_LE(run.writer->size(), std::uint64_t{8} << 20);
    }
    auto reader = Reader::from_bytes(run.writer->snapshot());
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(content_of(*reader).count(), run.records.size());
    ASSERT_TRUE(append_all(*run.writer, 1, run.records, 1000, run.records.size()).ok());
    EXPECT_EQ(run.writer->records_removed(), run.records.size()) << "they were old when others came";
    ASSERT_TRUE(run.writer->add_off_cpu(sample_of_many_threads(20'000)).ok());
}

TEST(Retention, threads_that_ended_leave_nothing_but_how_many_records_they_had) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 20;
    constexpr std::uint32_t threads = 20'000;
    Bounded run;
    run.start({"", limit});
    ASSERT_TRUE(run.writer->set_counters({}).ok());
    for (std::uint32_t track = 2; track < threads + 2; ++track) {
        ASSERT_TRUE(run.writer->add_track({track, TrackKind::host_thread, 0, track, "worker", "cpu_tsc"}).ok());
        ASSERT_TRUE(run.writer->append({track, 0, run.records.data(), 50}).ok());
        run.writer->end_track(track);
        ASSERT_LE(run.writer->size(), limit);
    }
    auto reader = Reader::from_bytes(run.writer->snapshot());
    ASSERT_TRUE(reader.ok());
    EXPECT_LT(reader->tracks().size(), threads / 2);
    const Content content = content_of(*reader);
    std::set<std::uint32_t> known;
    for (const TrackInfo& track : reader->tracks()) {
        known.insert(track.id);
    }
    for (const auto& [track, records] : content.records) {
        EXPECT_EQ(known.count(track), 1u) << track;
    }
    const std::uint64_t removed = run.writer->records_removed();
    EXPECT_EQ(reader->counters().records_removed, removed) << "whoever is killed now has said it already";
    ASSERT_EQ(reader->notes().size(), 1u) << joined_notes(*reader);
    EXPECT_EQ(reader->notes()[0].find(std::to_string(removed) + " older records were removed"), 0u);
}

TEST(Retention, a_reader_of_the_old_file_finishes_undisturbed) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    Bounded run;
    run.start({path, 100'000});
    ASSERT_TRUE(append_all(*run.writer, 1, {run.records.begin(), run.records.begin() + 10'000}).ok());
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader.ok());
    const std::size_t before = content_of(*reader).count();
    ASSERT_TRUE(append_all(*run.writer, 1, {run.records.begin() + 10'000, run.records.end()}, 1000, 10'000).ok());
    ASSERT_GT(run.writer->records_removed(), 0u);
    EXPECT_EQ(content_of(*reader).count(), before);
    EXPECT_TRUE(Reader::open(path)->being_written()) << "the new file is locked like the old one";
}

TEST(Retention, without_room_for_the_shorter_file_the_old_one_stays_whole) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    bool full = false; // these outlive the writer, which closes at the end
    int first_file = -1;
    Bounded run;
    run.start({path, 100'000, 0, true,
               [&](int file, const void* data, std::size_t size, std::uint64_t offset) -> std::int64_t {
                   first_file = first_file < 0 ? file : first_file;
                   if (full && file != first_file) {
                       errno = ENOSPC;
                       return -1;
                   }
                   return pwrite(file, data, size, static_cast<off_t>(offset));
               }});
    full = true;
    const Status status = append_all(*run.writer, 1, run.records);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::no_space);
    const std::size_t kept = content_of(path).count();
    EXPECT_GT(kept, 0u);
    EXPECT_EQ(folder_size(folder.path()), file_size(path)) << "a temporary file was left behind";
    full = false;
    ASSERT_TRUE((*run.writer).append({1, kept, run.records.data() + kept, 1000}).ok());
    EXPECT_GT(run.writer->records_removed(), 0u);
}

} // namespace
} // namespace plumb::recording
