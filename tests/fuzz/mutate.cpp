// SPDX-License-Identifier: Apache-2.0
#include "mutate.hpp"

#include <algorithm>
#include <iterator>

#include "golden/golden_content.hpp"
#include "planted/tape.hpp"
#include "recording/format.hpp"
#include "recording/reader.hpp"
#include "recording/records_testing.hpp"
#include "recording/ring_merge.hpp"

namespace plumb::fuzz {
namespace {

using namespace recording;

Bytes made_recording(bool compress, std::uint64_t max_bytes, const std::vector<Record>& records) {
    planted::Tape tape;
    tape.metadata_ = golden::metadata();
    tape.tracks_ = golden::tracks();
    tape.tracks_.push_back(golden::graph_tracks().back());
    tape.names_ = golden::names();
    tape.clock_pairs_ = golden::clock_pairs();
    tape.descriptions_ = {{"key", "value"}};
    tape.kernels_ = golden::kernels();
    tape.counters_ = golden::counters();
    for (std::size_t i = 0; i < records.size(); i += 100) {
        const auto first = records.begin() + static_cast<std::ptrdiff_t>(i);
        const auto id = static_cast<std::uint32_t>(1 + i / 100 % 2);
        tape.lose(id, i - tape.written(id));
        tape.raw(id, {first, first + static_cast<std::ptrdiff_t>(std::min<std::size_t>(100, records.size() - i))});
        tape.deliver(id);
    }
    tape.lose(1, records.size() + 1000 - tape.written(1));
    tape.raw(1, golden::node_records(1));
    for (const auto& row : golden::graphs()) {
        tape.graphs_.insert(tape.graphs_.end(), {row, row}); // the second one leaves its lists to the one before
    }
    for (const auto& row : golden::graphs_with_nodes()) {
        tape.graphs_.push_back(row);
    }
    tape.checks_ = {golden::checks(), golden::checks()};
    const std::vector<TileTotals> tiles = {{tile_key(TileLevel::macro, 9, 1, 2), 3, 30, 30, 10, 10, 64, 128},
                                           {tile_overflow_key(TileLevel::micro), 1, 5, 5, 5, 5, 0, 0}};
    tape.tiles_ = {{1, tiles}, {1, tiles}, {2, tiles}};
    WriterOptions options;
    options.compress = compress;
    options.max_bytes = max_bytes;
    const Result<Bytes> made = tape.bytes(std::move(options));
    return made ? *made : Bytes{};
}

std::size_t pick(std::mt19937_64& random, std::size_t size) { return size == 0 ? 0 : random() % size; }

void overwrite_number(Bytes& bytes, std::mt19937_64& random) {
    const std::uint64_t odd[] = {0,
                                 1,
                                 0xff,
                                 0xffff,
                                 65536,
                                 65537,
                                 0x7fffffff,
                                 0xffffffff,
                                 std::uint64_t{2} << 20,
                                 std::uint64_t{1} << 63,
                                 ~std::uint64_t{0},
                                 random()};
    const std::uint64_t value = odd[pick(random, std::size(odd))];
    const std::size_t size = std::size_t{1} << (random() % 4);
    const std::size_t at = pick(random, bytes.size());
    for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i) {
        bytes[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
    }
}

void move_piece(Bytes& bytes, std::mt19937_64& random) {
    const std::size_t from = pick(random, bytes.size());
    const std::size_t size = std::min<std::size_t>(1 + random() % 300, bytes.size() - from);
    const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                      bytes.begin() + static_cast<std::ptrdiff_t>(from + size));
    if (random() % 2 == 0) {
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                    bytes.begin() + static_cast<std::ptrdiff_t>(from + size));
    }
    if (random() % 2 == 0) {
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(pick(random, bytes.size() + 1)), piece.begin(),
                     piece.end());
    }
}

} // namespace

std::vector<Bytes> recording_seeds() {
    const auto records = golden::records(1);
    Bytes damaged = made_recording(true, 0, records);
    damaged[damaged.size() / 2] ^= std::byte{1};
    return {made_recording(false, 0, records),    made_recording(true, 0, records),
            made_recording(false, 4000, records), made_recording(true, 0, testing::decode_stream(20)),
            made_recording(false, 0, {}),         std::move(damaged)};
}

std::vector<Bytes> ring_seeds() {
    const auto records = testing::decode_stream(2);
    testing::TestRing live;
    live.tail = 50;
    live.records.assign(records.begin(), records.begin() + 60);
    live.drops[0] = 3;
    testing::TestRing retired = live;
    retired.track = 9;
    retired.state = detail::RingState::retired;
    testing::TestRing free_ring = live;
    free_ring.state = detail::RingState::free;
    return {
        testing::ring_bytes(golden::metadata(), 64, {live}, {{256, Category::other, "a"}, {300, Category::moe, "bc"}}),
        testing::ring_bytes_of_version_1(golden::metadata(), 64, {live}),
        testing::ring_bytes(golden::metadata(), 64, {}),
        testing::ring_bytes(golden::metadata(), 128, {live, retired, free_ring})};
}

void mutate(Bytes& bytes, std::mt19937_64& random) {
    for (std::uint64_t changes = 1 + random() % 8; changes > 0 && !bytes.empty(); --changes) {
        const std::size_t at = pick(random, bytes.size());
        switch (random() % 6) {
        case 0:
            bytes[at] ^= static_cast<std::byte>(1u << (random() % 8));
            break;
        case 1:
            bytes[at] = static_cast<std::byte>(random() & 0xff);
            break;
        case 2:
        case 3:
            overwrite_number(bytes, random);
            break;
        case 4:
            move_piece(bytes, random);
            break;
        default:
            if (random() % 4 == 0) {
                bytes.resize(at);
            }
            break;
        }
    }
}

void repair_checksums(std::byte* data, std::size_t size) {
    if (size >= preamble_size) {
        store_le(data + preamble_size - 8, checksum(data, preamble_size - 8));
    }
    for (std::size_t at = 0; at + chunk_header_size <= size; ++at) {
        if (std::memcmp(data + at, chunk_magic, sizeof chunk_magic) != 0) {
            continue;
        }
        const std::size_t payload = load_le<std::uint32_t>(data + at + 24);
        if (payload <= size - at - chunk_header_size) {
            store_le(data + at + 48, checksum(data + at + chunk_header_size, payload));
        }
        store_le(data + at + 56, checksum(data + at, 56));
    }
}

std::uint64_t read_recording(Bytes bytes) {
    auto reader = Reader::from_bytes(std::make_shared<const Bytes>(std::move(bytes)));
    if (!reader) {
        return 0;
    }
    std::uint64_t sum = reader->tracks().size() + reader->names().size() + reader->descriptions().size();
    for (const GraphInfo& row : reader->graphs()) {
        sum += row.key + row.sites.size() + row.unattributed.size() + row.node_changes.size();
        if (row.content != nullptr) {
            for (const auto& [from, to] : row.content->edges) {
                sum += row.content->kinds[row.content->nodes[from].kind].name.size() + row.content->nodes[to].kind;
            }
        }
    }
    (void)reader
        ->for_each_batch([&sum](const RecordBatch& batch) {
            for (std::size_t i = 0; i < batch.count; ++i) {
                sum += batch.records[i].first ^ batch.records[i].second;
            }
            return true;
        })
        .ok();
    (void)reader
        ->for_each_check([&sum](TensorCheck&& check) {
            sum += check.order + check.shape.size() + check.fingerprint.sketch.size() + size_of(check.dtype);
            return true;
        })
        .ok();
    for (const recording::TileTotals& tile : reader->tiles()) {
        sum += tile.count + tile.max;
    }
    return sum + reader->checks_count() + reader->notes().size();
}

std::uint64_t read_ring(const std::byte* data, std::size_t size) {
    Result<RingFile> file = read_ring_bytes(data, size, "a ring");
    if (!file) {
        return 0;
    }
    Index index;
    index.metadata = golden::metadata();
    index.tracks = golden::tracks();
    index.next_sequence[1] = 70;
    return merge_ring(index, std::move(*file)).records + index.notes.size() + index.counters.drops.size();
}

} // namespace plumb::fuzz
