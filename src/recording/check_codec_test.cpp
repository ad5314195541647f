// SPDX-License-Identifier: Apache-2.0
#include "recording/check_codec.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <tuple>

#include "recording/files_testing.hpp"
#include "recording/metadata_codec.hpp"
#include "recording/recovery.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

bool same_check(const TensorCheck& a, const TensorCheck& b) {
    const auto bits = [](double value) {
        return std::bit_cast<std::uint64_t>(std::isnan(value) ? not_a_number : value);
    };
    const auto facts = [&bits](const TensorCheck& c) {
        const Fingerprint& f = c.fingerprint;
        return std::tuple_cat(std::tuple(c.order, c.step_plus_one, c.layer_plus_one, c.name, c.phase, c.role, c.level,
                                         c.occurrence, c.sequence, c.position, c.track, c.graph_key, c.replay,
                                         c.in_graph, c.dtype, c.shape, c.first_index, c.argmax, bits(c.margin)),
                              std::tuple(f.count, f.nans, f.positive_infs, f.negative_infs, f.first_nonfinite,
                                         bits(f.min), bits(f.max), f.largest, f.hash, bits(f.sum),
                                         bits(f.sum_of_squares), f.sketch));
    };
    return facts(a) == facts(b);
}

std::vector<TensorCheck> read_all(Reader& reader) {
    std::vector<TensorCheck> all;
    EXPECT_TRUE(reader
                    .for_each_check([&all](TensorCheck&& check) {
                        all.push_back(std::move(check));
                        return true;
                    })
                    .ok());
    return all;
}

void expect_same(const std::vector<TensorCheck>& have, const std::vector<TensorCheck>& expected) {
    ASSERT_EQ(have.size(), expected.size());
    for (std::size_t i = 0; i < have.size(); ++i) {
        ASSERT_TRUE(same_check(have[i], expected[i])) << "check " << i;
    }
}

std::unique_ptr<Writer> writer_of_checks(const std::vector<TensorCheck>& checks, WriterOptions options = {}) {
    auto writer = Writer::create(std::move(options), full_metadata());
    EXPECT_TRUE(writer.ok());
    EXPECT_TRUE((*writer)->add_checks(checks.data(), checks.size()).ok());
    return std::move(*writer);
}

Bytes encoded(const TensorCheck& check) {
    Bytes bytes;
    encode(check, bytes);
    return bytes;
}

bool decoded(const Bytes& bytes, TensorCheck& to) { return decode(bytes.data(), bytes.size(), to); }

TEST(CheckCodec, F9_every_field_of_every_element_type_comes_back_bit_for_bit) {
    for (const bool compress : {false, true}) {
        WriterOptions options;
        options.compress = compress;
        const auto checks = many_checks(200);
        const auto writer = writer_of_checks(checks, options);
        auto reader = Reader::from_bytes(writer->snapshot());
        ASSERT_TRUE(reader.ok());
        EXPECT_EQ(reader->checks_count(), checks.size());
        expect_same(read_all(*reader), checks);
        expect_same(read_all(*reader), checks);
        EXPECT_TRUE(reader->notes().empty()) << joined_notes(*reader);
    }
}

TEST(CheckCodec, F9_each_field_alone_comes_back) {
    std::vector<TensorCheck> checks(1);
    const auto with = [&checks](auto&& change) {
        change(checks.emplace_back());
    };
    with([](TensorCheck& c) { c.order = ~std::uint64_t{0}; });
    with([](TensorCheck& c) { c.step_plus_one = ~std::uint64_t{0}; });
    with([](TensorCheck& c) { c.layer_plus_one = 0xffffffff; });
    with([](TensorCheck& c) { c.name = 0xffff; });
    with([](TensorCheck& c) { c.phase = Phase::mixed; });
    with([](TensorCheck& c) { c.role = TensorRole::input; });
    with([](TensorCheck& c) { c.level = CheckLevel::nonfinite; });
    with([](TensorCheck& c) { c.occurrence = 0xffffffff; });
    with([](TensorCheck& c) { c.sequence = 0xffffffff; });
    with([](TensorCheck& c) { c.position = std::numeric_limits<std::int64_t>::min(); });
    with([](TensorCheck& c) { c.position = 0; });
    with([](TensorCheck& c) { c.track = 0xffffffff; });
    with([](TensorCheck& c) { c.in_graph = true; }); // of key 0
    with([](TensorCheck& c) { c.replay = 1; });
    with([](TensorCheck& c) { c.shape = {0}; });
    with([](TensorCheck& c) { c.shape = {1, 2, 3, 4, 5, 6, 7, ~std::uint64_t{0}}; });
    with([](TensorCheck& c) { c.first_index = 1; });
    with([](TensorCheck& c) { c.argmax = 0; });
    with([](TensorCheck& c) { c.margin = 0; });
    with([](TensorCheck& c) { c.margin = -0.0; });
    with([](TensorCheck& c) { c.margin = infinite; });
    with([](TensorCheck& c) { c.fingerprint.count = 1; });
    with([](TensorCheck& c) { c.fingerprint.nans = 1; });
    with([](TensorCheck& c) { c.fingerprint.positive_infs = 1; });
    with([](TensorCheck& c) { c.fingerprint.negative_infs = 1; });
    with([](TensorCheck& c) { c.fingerprint.first_nonfinite = 0; });
    with([](TensorCheck& c) { c.fingerprint.min = -infinite; });
    with([](TensorCheck& c) { c.fingerprint.max = 5e-324; });
    with([](TensorCheck& c) { c.fingerprint.largest = 0; });
    with([](TensorCheck& c) { c.fingerprint.hash = 1; });
    with([](TensorCheck& c) { c.fingerprint.sum = -0.0; });
    with([](TensorCheck& c) { c.fingerprint.sum_of_squares = 1e300; });
    for (const std::size_t buckets : {32u, 64u, 128u, 256u}) {
        with([buckets](TensorCheck& c) { c.fingerprint.sketch.assign(buckets, 0.1); });
    }
    const auto writer = writer_of_checks(checks);
    auto reader = Reader::from_bytes(writer->snapshot());
    expect_same(read_all(*reader), checks);
}

TEST(CheckCodec, a_reader_may_stop_and_start_anew) {
    const auto checks = many_checks(5);
    const auto writer = writer_of_checks(checks);
    auto reader = Reader::from_bytes(writer->snapshot());
    std::size_t taken = 0;
    ASSERT_TRUE(reader->for_each_check([&taken](TensorCheck&&) { return ++taken < 3; }).ok());
    EXPECT_EQ(taken, 3u);
    expect_same(read_all(*reader), checks);
    EXPECT_TRUE(reader->notes().empty()) << "what was not asked for is not lost: " << joined_notes(*reader);
}

TEST(CheckCodec, a_large_batch_is_split_into_chunks_that_a_reader_can_hold) {
    const auto checks = many_checks(20'000);
    const auto writer = writer_of_checks(checks);
    const auto bytes = writer->snapshot();
    auto reader = Reader::from_bytes(bytes);
    EXPECT_EQ(reader->checks_count(), checks.size());
    expect_same(read_all(*reader), checks);
    std::size_t largest = 0;
    for (std::size_t at = preamble_size; at < bytes->size();) {
        ChunkHeader header;
        ASSERT_TRUE(read_chunk_header(bytes->data() + at, header));
        if (header.type == ChunkType::checks) {
            const std::byte* payload = bytes->data() + at + chunk_header_size;
            largest = std::max(largest, unfolded_size(header.codec, payload, header.payload_size));
        }
        at += chunk_header_size + header.payload_size;
    }
    EXPECT_GE(largest, most_check_bytes);
    EXPECT_LE(largest, most_check_bytes + 4096);
}

TEST(CheckCodec, what_no_fingerprint_has_is_left_out) {
    TensorCheck check;
    check.shape.assign(20, 2);
    check.fingerprint.sketch.assign(33, 1.0);
    const auto writer = writer_of_checks({check});
    auto reader = Reader::from_bytes(writer->snapshot());
    const auto have = read_all(*reader);
    ASSERT_EQ(have.size(), 1u);
    EXPECT_EQ(have[0].shape.size(), max_rank);
    EXPECT_TRUE(have[0].fingerprint.sketch.empty());
}

TEST(CheckCodec, F7_no_room_leaves_nothing_of_a_batch_and_the_same_batch_can_come_again) {
    TemporaryFolder folder;
    bool full = false;
    WriterOptions options;
    options.path = folder.file("run.plumb");
    options.write = [&full](int file, const void* data, std::size_t size, std::uint64_t offset) -> std::int64_t {
        if (full) {
            errno = ENOSPC;
            return -1;
        }
        return pwrite(file, data, size, static_cast<off_t>(offset));
    };
    auto writer = Writer::create(options, full_metadata());
    ASSERT_TRUE(writer.ok());
    const auto checks = many_checks(2000);
    ASSERT_TRUE((*writer)->add_checks(checks.data(), 10).ok());
    full = true;
    EXPECT_EQ((*writer)->add_checks(checks.data() + 10, checks.size() - 10).error().code, ErrorCode::no_space);
    EXPECT_EQ(Reader::open(options.path)->checks_count(), 10u);
    full = false;
    ASSERT_TRUE((*writer)->add_checks(checks.data() + 10, checks.size() - 10).ok());
    ASSERT_TRUE((*writer)->add_checks(nullptr, 0).ok());
    ASSERT_TRUE((*writer)->close().ok());
    EXPECT_FALSE((*writer)->add_checks(checks.data(), 1).ok()) << "closed";
    auto reader = Reader::open(options.path);
    expect_same(read_all(*reader), checks);
    EXPECT_TRUE(reader->notes().empty()) << joined_notes(*reader);
}

TEST(CheckCodec, hostile_entries_are_refused) {
    TensorCheck check = many_checks(12)[11];
    const Bytes whole = encoded(check);
    TensorCheck to;
    ASSERT_TRUE(decoded(whole, to));
    EXPECT_FALSE(decoded({}, to)) << "no place";
    std::size_t cuts = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        TensorCheck part;
        // Cut between two fields it reads as if the rest had been left out.
        cuts += decode(whole.data(), size, part) ? 1 : 0;
    }
    EXPECT_LE(cuts, 14u);
    const auto with = [&whole](std::uint16_t field, std::size_t size) {
        Bytes bytes = whole;
        FieldWriter(bytes).text(field, std::string(size, '\x7f'));
        TensorCheck read;
        return decoded(bytes, read);
    };
    for (const std::uint16_t number : std::initializer_list<std::uint16_t>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}) {
        EXPECT_FALSE(with(number, 7)) << number;
        EXPECT_TRUE(with(number, 8)) << number;
    }
    EXPECT_FALSE(with(1, 37));
    EXPECT_FALSE(with(1, 38)) << "element type 127";
    EXPECT_FALSE(with(2, 55));
    EXPECT_TRUE(with(2, 80)) << "a later version may add values";
    EXPECT_FALSE(with(3, 33 * 8)) << "33 buckets";
    EXPECT_FALSE(with(3, 512 * 8)) << "more buckets than any sketch";
    EXPECT_FALSE(with(3, 32 * 8 + 1));
    EXPECT_FALSE(with(3, std::size_t{1} << 20));
    EXPECT_FALSE(with(4, 9 * 8)) << "nine dimensions";
    EXPECT_FALSE(with(4, 7));
    EXPECT_TRUE(with(999, 7)) << "of a later version";
}

TEST(CheckCodec, words_of_a_later_version_are_refused_and_counted_not_guessed) {
    for (const std::size_t at : {23u, 24u, 25u}) { // role, level, element type
        auto writer = Writer::create({}, full_metadata());
        Bytes bytes = *(*writer)->snapshot();
        Bytes entries;
        for (int i = 0; i < 2; ++i) {
            append_entry(many_checks(1)[0], entries);
        }
        entries[sizeof(std::uint32_t) + 6 + at] = std::byte{200};
        ChunkHeader header;
        header.type = ChunkType::checks;
        header.count = 2;
        append_chunk(bytes, header, entries);
        auto reader = Reader::from_bytes(std::make_shared<const Bytes>(bytes));
        EXPECT_EQ(read_all(*reader).size(), 1u);
        EXPECT_NE(joined_notes(*reader).find("1 checks of tensors could not be decoded"), std::string::npos);
        (void)read_all(*reader);
        EXPECT_EQ(reader->notes().size(), 1u) << "said once";
    }
}

/// A recording with one chunk of checks that says what it likes.
Result<Reader> with_chunk(Codec codec, std::uint32_t count, std::uint64_t first, const Bytes& payload) {
    auto writer = Writer::create({}, full_metadata());
    Bytes bytes = *(*writer)->snapshot();
    ChunkHeader header;
    header.type = ChunkType::checks;
    header.codec = codec;
    header.count = count;
    header.first_sequence = first;
    append_chunk(bytes, header, payload);
    return Reader::from_bytes(std::make_shared<const Bytes>(bytes));
}

TEST(CheckCodec, a_chunk_cannot_claim_more_than_its_payload_holds) {
    Bytes entries;
    append_entry(TensorCheck{}, entries);
    Bytes folded;
    CheckEncoder encoder(true);
    ASSERT_EQ(encoder.pack(entries, folded), Codec::zstd);
    EXPECT_EQ(with_chunk(Codec::plain, 1, 0, entries)->checks_count(), 1u);
    EXPECT_EQ(with_chunk(Codec::zstd, 1, 0, folded)->checks_count(), 1u);
    EXPECT_EQ(with_chunk(Codec::plain, 0xffffffff, 0, entries)->checks_count(), 0u) << "corrupt count";
    EXPECT_EQ(with_chunk(Codec::plain, 1, ~std::uint64_t{0}, entries)->checks_count(), 0u) << "numbers wrap";
    EXPECT_EQ(with_chunk(Codec::columns, 1, 0, entries)->checks_count(), 0u) << "no such packing of checks";
    EXPECT_EQ(with_chunk(Codec::plain, 1, 0, {})->checks_count(), 0u);
    auto reader = with_chunk(Codec::plain, 2, 0, entries); // fits the size, but one is there
    EXPECT_EQ(read_all(*reader).size(), 1u);
    EXPECT_NE(joined_notes(*reader).find("1 checks of tensors could not be decoded"), std::string::npos);
    for (const std::uint32_t lie : {0u, 1u, 109u, 111u, 4000u, 0x200001u, 0xffffffffu}) {
        Bytes bad = folded;
        store_le(bad.data(), lie);
        reader = with_chunk(Codec::zstd, 1, 0, bad);
        EXPECT_TRUE(read_all(*reader).empty()) << lie;
    }
}

TEST(CheckCodec, constant_entries_are_not_folded_beyond_what_a_reader_unfolds) {
    const Bytes entries(std::size_t{1} << 18);
    Bytes folded;
    CheckEncoder encoder(true);
    EXPECT_EQ(encoder.pack(entries, folded), Codec::plain);
    EXPECT_EQ(folded.size(), entries.size());
}

TEST(CheckCodec, a_recording_cut_at_any_byte_keeps_the_chunks_before_it) {
    WriterOptions options;
    auto writer = Writer::create(options, full_metadata());
    const auto checks = many_checks(9);
    std::vector<std::uint64_t> ends{(*writer)->size()};
    for (std::size_t i = 0; i < checks.size(); i += 3) {
        ASSERT_TRUE((*writer)->add_checks(checks.data() + i, 3).ok());
        ends.push_back((*writer)->size());
    }
    const auto bytes = (*writer)->snapshot();
    for (std::size_t size = ends[0]; size <= bytes->size(); ++size) {
        auto reader = Reader::from_bytes(
            std::make_shared<const Bytes>(bytes->begin(), bytes->begin() + static_cast<std::ptrdiff_t>(size)));
        ASSERT_TRUE(reader.ok());
        std::size_t whole = 0;
        while (whole + 1 < ends.size() && ends[whole + 1] <= size) {
            ++whole;
        }
        const auto have = read_all(*reader);
        ASSERT_EQ(have.size(), 3 * whole);
        expect_same(have, {checks.begin(), checks.begin() + static_cast<std::ptrdiff_t>(3 * whole)});
    }
}

TEST(CheckCodec, a_damaged_chunk_costs_its_own_checks_and_is_counted) {
    auto writer = Writer::create({}, full_metadata());
    const auto checks = many_checks(9);
    std::vector<std::uint64_t> starts;
    for (std::size_t i = 0; i < checks.size(); i += 3) {
        starts.push_back((*writer)->size());
        ASSERT_TRUE((*writer)->add_checks(checks.data() + i, 3).ok());
    }
    ASSERT_TRUE((*writer)->set_counters({}).ok());
    ASSERT_TRUE((*writer)->close().ok());
    for (std::size_t hit = 0; hit < starts.size(); ++hit) {
        Bytes bytes = *(*writer)->snapshot();
        bytes[starts[hit] + chunk_header_size + 20] ^= std::byte{1};
        auto reader = Reader::from_bytes(std::make_shared<const Bytes>(bytes));
        auto expected = checks;
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(3 * hit),
                       expected.begin() + static_cast<std::ptrdiff_t>(3 * hit + 3));
        expect_same(read_all(*reader), expected);
        EXPECT_NE(joined_notes(*reader).find("3 checks of tensors are lost"), std::string::npos)
            << "chunk " << hit << ": " << joined_notes(*reader);
    }
}

TEST(CheckCodec, checks_that_are_there_twice_count_once) {
    auto writer = Writer::create({}, full_metadata());
    const std::uint64_t start = (*writer)->size();
    const auto checks = many_checks(4);
    ASSERT_TRUE((*writer)->add_checks(checks.data(), checks.size()).ok());
    Bytes bytes = *(*writer)->snapshot();
    const Bytes chunk(bytes.begin() + static_cast<std::ptrdiff_t>(start), bytes.end());
    append_bytes(bytes, chunk.data(), chunk.size());
    auto reader = Reader::from_bytes(std::make_shared<const Bytes>(bytes));
    EXPECT_EQ(reader->checks_count(), checks.size());
    expect_same(read_all(*reader), checks);
}

TEST(CheckCodec, a_limit_takes_the_oldest_checks_and_says_how_many) {
    WriterOptions options;
    options.max_bytes = 100'000;
    auto writer = Writer::create(options, full_metadata());
    ASSERT_TRUE(writer.ok());
    const auto records = decode_stream(100);
    const auto checks = many_checks(4000);
    for (std::size_t i = 0; i < checks.size(); i += 20) {
        const std::size_t at = i % records.size();
        const std::size_t count = std::min<std::size_t>(20, records.size() - at);
        ASSERT_TRUE((*writer)->append({1, i, records.data() + at, count}).ok());
        ASSERT_TRUE((*writer)->add_checks(checks.data() + i, 20).ok());
        ASSERT_LE((*writer)->size(), options.max_bytes);
    }
    ASSERT_TRUE((*writer)->set_counters({}).ok());
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    const auto have = read_all(*reader);
    ASSERT_GT(have.size(), 50u);
    ASSERT_LT(have.size(), checks.size());
    EXPECT_EQ(reader->checks_count(), have.size());
    expect_same(have, {checks.end() - static_cast<std::ptrdiff_t>(have.size()), checks.end()});
    EXPECT_NE(joined_notes(*reader).find(std::to_string(checks.size() - have.size()) + " older checks of tensors were"),
              std::string::npos)
        << joined_notes(*reader);
    EXPECT_EQ(joined_notes(*reader).find("lost"), std::string::npos) << joined_notes(*reader);
}

TEST(CheckCodec, a_time_to_keep_holds_for_checks_alone) {
    std::int64_t now = 0;
    WriterOptions options;
    options.keep_ns = 1000;
    options.now_ns = [&now] {
        return now;
    };
    auto writer = Writer::create(options, full_metadata());
    const auto checks = many_checks(100);
    for (std::size_t i = 0; i < checks.size(); ++i) {
        now += 100;
        ASSERT_TRUE((*writer)->add_checks(checks.data() + i, 1).ok());
    }
    auto reader = Reader::from_bytes((*writer)->snapshot());
    const auto have = read_all(*reader);
    ASSERT_GE(have.size(), 10u);
    ASSERT_LE(have.size(), 16u);
    expect_same(have, {checks.end() - static_cast<std::ptrdiff_t>(have.size()), checks.end()});
}

TEST(CheckCodec, recovery_keeps_them_and_cuts_off_what_was_not_finished) {
    TemporaryFolder folder;
    WriterOptions options;
    options.path = folder.file("run.plumb");
    const auto checks = many_checks(9);
    const auto writer = writer_of_checks(checks, options);
    const std::uint64_t whole = writer->size();
    ASSERT_TRUE(writer->add_checks(checks.data(), 3).ok());
    writer->forget();
    ASSERT_EQ(truncate(options.path.c_str(), static_cast<off_t>(whole + 100)), 0);
    const auto recovered = recover(options.path);
    ASSERT_TRUE(recovered.ok()) << recovered.error().message;
    EXPECT_EQ(recovered->cut_bytes, 100u);
    auto reader = Reader::open(options.path);
    expect_same(read_all(*reader), checks);
}

TEST(CheckCodec, checks_of_one_step_take_less_room_than_their_plain_bytes) {
    const auto checks = many_checks(500);
    WriterOptions plain;
    plain.compress = false;
    EXPECT_LT(writer_of_checks(checks)->size(), writer_of_checks(checks, plain)->size() * 9 / 10);
}

} // namespace
} // namespace plumb::recording
