// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "recording/files_testing.hpp"
#include "recording/format.hpp"
#include "recording/metadata_codec.hpp"
#include "recording/record_codec.hpp"
#include "recording/redact.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

std::size_t occurrences(const Bytes& bytes, const std::string& text) {
    const std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::size_t count = 0;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) {
        ++count;
    }
    return count;
}

void expect_codec_is_exact(const std::vector<Record>& records, bool compress) {
    RecordEncoder encoder(compress);
    RecordDecoder decoder;
    Bytes payload;
    encoder.encode(records.data(), records.size(), payload);
    ASSERT_LE(payload.size(), max_chunk_payload);
    std::vector<Record> back;
    back.resize(records.size());
    ASSERT_TRUE(decoder.decode(payload.data(), payload.size(), records.size(), back.data()));
    ASSERT_EQ(back.size(), records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        ASSERT_TRUE(same(back[i], records[i])) << "record " << i << " of " << records.size();
    }
}

TEST(RecordCodec, any_bits_come_back_exactly) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 400; ++round) {
        const auto records = wild_records(1 + random() % 300, random);
        expect_codec_is_exact(records, round % 2 == 0);
    }
}

TEST(RecordCodec, a_decode_loop_comes_back_exactly) { expect_codec_is_exact(decode_stream(100), true); }

TEST(RecordCodec, the_largest_chunk_of_the_wildest_records_keeps_its_bounds) {
    std::mt19937_64 random(9);
    expect_codec_is_exact(wild_records(max_chunk_records, random), true);
    expect_codec_is_exact(wild_records(max_chunk_records, random), false);
    expect_codec_is_exact(std::vector<Record>(max_chunk_records), true);
}

TEST(RecordCodec, a_scope_of_a_decode_loop_takes_at_most_six_bytes) {
    const auto records = decode_stream(200);
    const auto scopes =
        std::count_if(records.begin(), records.end(), [](const Record& r) { return kind_of(r) == RecordKind::scope; });
    RecordEncoder encoder(true);
    Bytes payload;
    encoder.encode(records.data(), records.size(), payload);
    EXPECT_LE(payload.size(), static_cast<std::size_t>(scopes) * 6);
}

// One encoder, as a writer has it: what it learned from noise must not spoil what comes after.
TEST(RecordCodec, busy_chunks_of_noise_and_of_order_in_turn_come_back_exactly) {
    std::mt19937_64 random(3);
    const std::vector<Record> order = decode_stream(200);
    ASSERT_GT(order.size(), 8192u);
    RecordEncoder encoder(true);
    RecordDecoder decoder;
    for (int chunk = 0; chunk < 24; ++chunk) {
        const std::vector<Record> records = chunk % 3 == 0 ? wild_records(9000, random) : order;
        const std::size_t count = std::min<std::size_t>(records.size(), chunk % 5 == 0 ? 500 : 9000);
        Bytes payload;
        encoder.encode(records.data(), count, payload);
        std::vector<Record> back;
        back.resize(count);
        ASSERT_TRUE(decoder.decode(payload.data(), payload.size(), count, back.data())) << chunk;
        ASSERT_TRUE(std::equal(back.begin(), back.end(), records.begin(), same)) << chunk;
    }
}

TEST(RecordCodec, a_payload_cut_anywhere_is_refused) {
    const auto records = decode_stream(1);
    RecordEncoder encoder(true);
    RecordDecoder decoder;
    Bytes payload;
    encoder.encode(records.data(), records.size(), payload);
    std::vector<Record> back;
    for (std::size_t size = 0; size < payload.size(); ++size) {
        const Bytes cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
        back.resize(records.size());
        EXPECT_FALSE(decoder.decode(cut.data(), cut.size(), records.size(), back.data())) << size;
    }
}

TEST(RecordCodec, a_plane_of_another_length_than_its_column_is_refused) {
    std::mt19937_64 random(11);
    const auto records = wild_records(20, random);
    RecordEncoder encoder(false);
    RecordDecoder decoder;
    Bytes payload;
    encoder.encode(records.data(), records.size(), payload);
    std::vector<Record> back;
    // base, planes, then the first plane: mode, length, content
    ASSERT_EQ(load_le<std::uint32_t>(payload.data() + 10), 20u);
    Bytes shorter = payload;
    store_le(shorter.data() + 10, std::uint32_t{19});
    shorter.erase(shorter.begin() + 14);
    back.resize(records.size());
    EXPECT_FALSE(decoder.decode(shorter.data(), shorter.size(), records.size(), back.data()));
    Bytes longer = payload;
    store_le(longer.data() + 10, std::uint32_t{21});
    longer.insert(longer.begin() + 14, longer[14]);
    back.resize(records.size());
    EXPECT_FALSE(decoder.decode(longer.data(), longer.size(), records.size(), back.data()));
}

TEST(RoundTrip, F9_what_the_writer_writes_the_reader_reads_field_for_field) {
    const Metadata facts = full_metadata();
    auto writer = Writer::create({}, facts);
    ASSERT_TRUE(writer.ok());
    const TrackInfo track{5, TrackKind::device_queue, 7, 99, "stream \"0\"\n", "cuda_event"};
    const NameInfo name{300, Category::moe, "router, second"};
    const ClockPair pair{7, 123456789012345, -5, 1'700'000'000'000'000'001, 42};
    Counters counters;
    counters.drops = {{"ring full", 3}, {"bad, token", 1}};
    counters.ended_drops[0] = 2;
    counters.ended_drops[7] = 1;
    counters.drain_cpu_ns = 777;
    counters.unresolved = 9;
    ASSERT_TRUE((*writer)->add_track(track).ok());
    ASSERT_TRUE((*writer)->add_name(name).ok());
    ASSERT_TRUE((*writer)->add_clock_pair(pair).ok());
    ASSERT_TRUE((*writer)->describe("peak.bandwidth", "28.5").ok());
    ASSERT_TRUE((*writer)->describe("model", "first").ok());
    ASSERT_TRUE((*writer)->describe("model", "last").ok());
    const auto records = decode_stream(3);
    ASSERT_TRUE(append_all(**writer, 5, records, 50, 1000).ok());
    ASSERT_TRUE((*writer)->set_counters(counters).ok());
    ASSERT_TRUE((*writer)->close().ok());

    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    const Metadata& m = reader->metadata();
    EXPECT_EQ(m.recording_id[0], facts.recording_id[0]);
    EXPECT_EQ(m.recording_id[1], facts.recording_id[1]);
    EXPECT_EQ(m.start_realtime_ns, facts.start_realtime_ns);
    EXPECT_EQ(m.host, facts.host);
    EXPECT_EQ(m.pid, facts.pid);
    EXPECT_EQ(m.process_start, facts.process_start);
    EXPECT_EQ(m.boot_id, facts.boot_id);
    EXPECT_EQ(m.rank, facts.rank);
    EXPECT_EQ(m.world, facts.world);
    EXPECT_EQ(m.time_namespace, facts.time_namespace);
    EXPECT_EQ(m.groups, facts.groups);
    EXPECT_EQ(m.ring_path, facts.ring_path);
    EXPECT_EQ(m.ring_reason, facts.ring_reason);
    EXPECT_EQ(m.config, facts.config);
    EXPECT_EQ(m.sync_mode, facts.sync_mode);
    EXPECT_EQ(m.warmup_steps, facts.warmup_steps);
    EXPECT_EQ(m.identity, facts.identity);
    EXPECT_EQ(m.comparability, facts.comparability);
    EXPECT_EQ(m.costs, facts.costs);
    ASSERT_EQ(m.clocks.size(), 2u);
    EXPECT_EQ(m.clocks[1].id, 7u);
    EXPECT_EQ(m.clocks[1].name, "cuda:0");
    ASSERT_EQ(reader->tracks().size(), 1u);
    const TrackInfo& t = reader->tracks()[0];
    EXPECT_EQ(std::tie(t.id, t.kind, t.clock, t.os_thread, t.name, t.source),
              std::tie(track.id, track.kind, track.clock, track.os_thread, track.name, track.source));
    ASSERT_EQ(reader->names().size(), 1u);
    const NameInfo& n = reader->names()[0];
    EXPECT_EQ(std::tie(n.id, n.category, n.name), std::tie(name.id, name.category, name.name));
    ASSERT_EQ(reader->clock_pairs().size(), 1u);
    const ClockPair& p = reader->clock_pairs()[0];
    EXPECT_EQ(std::tie(p.clock, p.ticks, p.monotonic_ns, p.realtime_ns, p.uncertainty_ticks),
              std::tie(pair.clock, pair.ticks, pair.monotonic_ns, pair.realtime_ns, pair.uncertainty_ticks));
    const Counters& c = reader->counters();
    EXPECT_EQ(c.drops, counters.drops);
    EXPECT_EQ(c.ended_drops[0], 2u);
    EXPECT_EQ(c.ended_drops[7], 1u);
    EXPECT_EQ(c.drain_cpu_ns, 777u);
    EXPECT_EQ(c.unresolved, 9u);
    EXPECT_EQ(c.records, records.size());
    const std::vector<std::pair<std::string, std::string>> described = {{"peak.bandwidth", "28.5"}, {"model", "last"}};
    EXPECT_EQ(reader->descriptions(), described);
    EXPECT_TRUE(reader->closed());
    EXPECT_TRUE(reader->notes().empty()) << joined_notes(*reader);
    const Content content = content_of(*reader);
    ASSERT_EQ(content.count(), records.size());
    EXPECT_EQ(content.sequences.at(5).front(), 1000u);
    EXPECT_TRUE(std::equal(records.begin(), records.end(), content.records.at(5).begin(), same));
}

TEST(RoundTrip, F15_the_description_of_the_run_is_written_once_and_records_in_chunks) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    const auto records = decode_stream(500);
    ASSERT_TRUE(append_all(**writer, 1, records, 1000).ok());
    const Bytes bytes = *(*writer)->snapshot();
    EXPECT_EQ(occurrences(bytes, "a-host-of-its-own"), 1u);
    EXPECT_EQ(occurrences(bytes, "decode \"x\""), 1u);
    const std::string magic(reinterpret_cast<const char*>(chunk_magic), sizeof chunk_magic);
    EXPECT_LE(occurrences(bytes, magic), records.size() / 1000 + 2); // a chunk per append, and the description
    EXPECT_LT(bytes.size(), records.size() * 6);
}

TEST(RoundTrip, F7_a_second_append_leaves_every_earlier_byte_and_needs_no_flush_at_the_end) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    auto writer = Writer::create({path}, full_metadata());
    ASSERT_TRUE(writer.ok());
    const auto records = decode_stream(20);
    Bytes before = read_bytes(path);
    for (std::size_t i = 0; i < records.size(); i += 100) {
        const std::size_t count = std::min<std::size_t>(100, records.size() - i);
        ASSERT_TRUE((*writer)->append({1, i, records.data() + i, count}).ok());
        // No flush, no close: the file as it is now holds all of it.
        const Bytes after = read_bytes(path);
        ASSERT_GT(after.size(), before.size());
        ASSERT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
        ASSERT_EQ(content_of(path).count(), i + count);
        before = after;
    }
}

TEST(RoundTrip, a_clock_that_a_track_names_is_among_those_of_the_run) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    TrackInfo track;
    track.id = 5;
    track.kind = TrackKind::device_queue;
    for (const auto& [clock, name] : {std::pair(9u, "opencl:1"), {9u, "another"}, {7u, "another"}, {11u, ""}}) {
        track.clock = clock;
        track.clock_name = name;
        track.device_name = track.clock_name == "opencl:1" ? "a device" : "";
        ASSERT_TRUE((*writer)->add_track(track).ok());
        ++track.id;
    }
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->tracks()[0].clock_name, "opencl:1");
    EXPECT_EQ(reader->tracks()[0].device_name, "a device");
    EXPECT_EQ(reader->tracks()[3].clock_name, "");
    const std::vector<ClockInfo>& clocks = reader->metadata().clocks;
    ASSERT_EQ(clocks.size(), 3u) << "the first name of a clock counts, and nobody named 11";
    EXPECT_EQ(clocks[1].name, "cuda:0");
    EXPECT_EQ(clocks[2].id, 9u);
    EXPECT_EQ(clocks[2].name, "opencl:1");
}

TEST(RoundTrip, tracks_keep_their_own_order_and_sequences) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    const auto one = decode_stream(10, 1);
    const auto two = decode_stream(10, 2);
    for (std::size_t i = 0; i < one.size(); i += 10) {
        const std::size_t count = std::min<std::size_t>(10, one.size() - i);
        ASSERT_TRUE((*writer)->append({1, i, one.data() + i, count}).ok());
        ASSERT_TRUE((*writer)->append({2, 5000 + i, two.data() + i, count}).ok());
    }
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    for (int pass = 0; pass < 2; ++pass) { // reading again gives the same
        const Content content = content_of(*reader);
        EXPECT_TRUE(
            std::equal(one.begin(), one.end(), content.records.at(1).begin(), content.records.at(1).end(), same));
        EXPECT_TRUE(
            std::equal(two.begin(), two.end(), content.records.at(2).begin(), content.records.at(2).end(), same));
        EXPECT_EQ(content.sequences.at(2).back(), 5000 + two.size() - 1);
    }
}

TEST(RoundTrip, threads_of_one_name_are_told_apart) {
    auto writer = Writer::create({}, {});
    ASSERT_TRUE(writer.ok());
    for (const auto& [id, name] : {std::pair{1U, "engine"}, {2U, "engine"}, {3U, "sampler"}}) {
        ASSERT_TRUE((*writer)->add_track({id, TrackKind::host_thread, 0, 0, name, "cpu_tsc"}).ok());
    }
    ASSERT_TRUE((*writer)->add_track({9, TrackKind::device_queue, 0, 0, "sampler", "cuda_event"}).ok());
    const auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    std::vector<std::string> names;
    for (const TrackInfo& track : reader->tracks()) {
        names.push_back(track.name);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"engine (1)", "engine (2)", "sampler", "sampler"}));
}

TEST(RoundTrip, texts_beyond_a_chunk_are_cut_and_say_so) {
    std::string text = "x";
    while (text.size() < 3'000'000) {
        text += "é";
    }
    Metadata metadata = full_metadata();
    metadata.identity = {{"command", text}};
    auto writer = Writer::create({}, metadata);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    ASSERT_TRUE((*writer)->describe(text, text).ok());
    ASSERT_TRUE((*writer)->describe(text, text).ok());
    ASSERT_TRUE((*writer)->add_track({9, TrackKind::device_queue, 0, 0, text, "cuda_event"}).ok());
    const auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(reader->descriptions().size(), 1u);
    for (const std::string& kept : {reader->metadata().identity[0].second, reader->descriptions()[0].first,
                                    reader->descriptions()[0].second, reader->tracks()[0].name}) {
        EXPECT_LE(kept.size(), most_text);
        EXPECT_GT(kept.size(), most_text - 100);
        EXPECT_TRUE(kept.ends_with("é ... (cut: it has 3000001 bytes)")) << kept.substr(kept.size() - 100);
    }
}

TEST(RoundTrip, a_batch_larger_than_a_chunk_is_cut_into_several) {
    auto writer = Writer::create({}, {});
    ASSERT_TRUE(writer.ok());
    const auto records = decode_stream(3000);
    ASSERT_GT(records.size(), 2 * max_chunk_records);
    ASSERT_TRUE((*writer)->append({1, 77, records.data(), records.size()}).ok());
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    const Content content = content_of(*reader);
    EXPECT_TRUE(
        std::equal(records.begin(), records.end(), content.records.at(1).begin(), content.records.at(1).end(), same));
}

TEST(RoundTrip, a_reader_may_stop_early) {
    auto writer = Writer::create({}, {});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(append_all(**writer, 1, decode_stream(10), 50).ok());
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    int batches = 0;
    ASSERT_TRUE(reader->for_each_batch([&](const RecordBatch&) { return ++batches < 3; }).ok());
    EXPECT_EQ(batches, 3);
}

TEST(RoundTrip, a_closed_writer_refuses_more) {
    auto writer = Writer::create({}, {});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->close().ok());
    const Record record{1, 2};
    EXPECT_FALSE((*writer)->append({1, 0, &record, 1}).ok());
    EXPECT_FALSE((*writer)->describe("a", "b").ok());
    EXPECT_TRUE((*writer)->close().ok());
}

TEST(Metadata, the_setting_that_version_0_1_called_check_is_compared_as_tensors) {
    Metadata m = full_metadata();
    m.comparability.emplace_back("check", "all");
    auto writer = Writer::create({}, m);
    ASSERT_TRUE(writer.ok());
    const auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->metadata().comparability.back(), (std::pair<std::string, std::string>("tensors", "all")));
}

TEST(Redact, of_a_described_path_the_last_part_stays_and_what_is_no_path_stays_whole) {
    const std::vector<std::pair<const char*, const char*>> expected = {
        {"/data/a/x.gguf", "x.gguf"},     {"/data/a/x/", "x"}, {"~/x//", "x"}, {"../x", "x"}, {"x.gguf", "x.gguf"},
        {"Qwen/Qwen2.5", "Qwen/Qwen2.5"}, {"/", "/"},          {"//", "/"},    {"", ""}};
    for (const auto& [value, left] : expected) {
        EXPECT_EQ(redacted_description(value), left) << value;
    }
}

TEST(Redact, host_paths_and_command_line_go_and_the_ring_is_still_found) {
    Metadata m = full_metadata();
    m.ring_path = "/run/user/1000/plumb-1-0.ring";
    m.identity.emplace_back("model_file", "/secret/model.gguf");
    m.comparability.emplace_back("file", "/secret/qwen.gguf");
    m.comparability.emplace_back("hub", "Qwen/Qwen2.5");
    redact(m);
    auto writer = Writer::create({}, m);
    ASSERT_TRUE(writer.ok());
    const Bytes bytes = *(*writer)->snapshot();
    for (const char* secret : {"secret", "a-host-of-its-own", "decode \"x\"", "/run/user"}) {
        EXPECT_EQ(occurrences(bytes, secret), 0u) << secret;
    }
    EXPECT_EQ(m.ring_path, "plumb-1-0.ring");
    EXPECT_EQ(m.comparability[2].second, "qwen.gguf");
    EXPECT_EQ(m.comparability[3].second, "Qwen/Qwen2.5");
    EXPECT_EQ(m.identity[0].second, "abc");
}

} // namespace
} // namespace plumb::recording
