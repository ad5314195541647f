// SPDX-License-Identifier: Apache-2.0
#include "recording/records_testing.hpp"
#include "base/ring_names.hpp"

#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>

namespace plumb::recording::testing {

std::vector<Record> decode_stream(std::size_t steps, std::uint32_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Record> records;
    std::uint64_t now = 1'000'000'000'000;
    const auto noise = [&](std::uint64_t most) {
        return random() % most;
    };
    for (std::size_t step = 0; step < steps; ++step) {
        const std::uint64_t step_begin = now;
        records.push_back({now, pack(RecordKind::step_begin, 2, step)});
        records.push_back({1, pack(RecordKind::step_value, 2)});
        records.push_back({100 + step, pack(RecordKind::step_value, 4)});
        for (std::uint16_t layer = 0; layer < 4; ++layer) {
            now += 40 + noise(20);
            const std::uint64_t layer_begin = now;
            records.push_back({now, pack(RecordKind::layer_begin, layer)});
            for (std::uint16_t brick = 1; brick <= 12; ++brick) {
                now += 60 + noise(30);
                if (step == 0 && layer == 0) {
                    records.push_back({0x40f0000000000000u + brick, pack(RecordKind::work, brick, 0)});
                }
                const std::uint64_t duration = 2000u * brick + noise(200u * brick);
                records.push_back({now, pack(RecordKind::scope, brick, duration) | flag_work});
                now += duration;
            }
            now += 30 + noise(10);
            records.push_back({layer_begin, pack(RecordKind::layer_end, layer, now - layer_begin)});
        }
        records.push_back({step_begin, pack(RecordKind::step_end, 2, now - step_begin)});
        records.push_back({now, (static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift) | (now / 2)});
    }
    return records;
}

std::vector<Record> wild_records(std::size_t count, std::mt19937_64& random) {
    const std::uint64_t odd[] = {0,        1, payload_mask, payload_mask - 1, ~std::uint64_t{0}, std::uint64_t{1} << 63,
                                 flag_work};
    std::vector<Record> records(count);
    for (Record& record : records) {
        const auto word = [&] {
            switch (random() % 4) {
            case 0:
                return odd[random() % std::size(odd)];
            case 1:
                return random() >> (random() % 64);
            default:
                return random();
            }
        };
        record.first = word();
        record.second = word();
        if (random() % 2 == 0) {
            record.second = (record.second & ~(std::uint64_t{63} << kind_shift)) | ((random() % 18) << kind_shift);
        }
    }
    return records;
}

bool same(const Record& a, const Record& b) { return a.first == b.first && a.second == b.second; }

std::vector<TensorCheck> many_checks(std::size_t count) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    constexpr std::size_t buckets[] = {0, 32, 64, 128, 256};
    std::mt19937_64 random(17);
    const auto real = [&random] {
        return static_cast<double>(random() >> 11) / 9007199254740992.0 - 0.5; // the standard's distributions vary
    };
    std::vector<TensorCheck> checks;
    for (std::size_t i = 0; i < count; ++i) {
        TensorCheck c;
        c.order = i;
        c.step_plus_one = i / 60;
        c.layer_plus_one = static_cast<std::uint32_t>(i / 10 % 6);
        c.name = static_cast<std::uint16_t>(1 + i % 10);
        c.phase = static_cast<Phase>(i / 60 % 4);
        c.role = static_cast<TensorRole>(i % 2);
        c.level = static_cast<CheckLevel>(i / 3 % 2);
        c.occurrence = static_cast<std::uint32_t>(i % 3);
        c.sequence = static_cast<std::uint32_t>(i % 4);
        c.position = static_cast<std::int64_t>(i) - 1;
        c.track = i % 7 == 0 ? 0x80000001 : 1;
        c.in_graph = i % 7 == 0;
        c.graph_key = c.in_graph ? random() : 0;
        c.replay = c.in_graph ? 1 + i : 0;
        c.dtype = static_cast<DType>(i % dtype_count);
        c.shape.assign(i % (max_rank + 1), 1 + i % 5);
        c.first_index = i % 11 == 0 ? 32 * i : 0;
        c.fingerprint.count = 4096 + i % 3;
        c.fingerprint.hash = random();
        c.fingerprint.largest = random() % 4096;
        c.fingerprint.min = -real();
        c.fingerprint.max = real();
        c.fingerprint.sum = 64 * real();
        c.fingerprint.sum_of_squares = 4096 * real();
        if (i % 5 == 4) {
            c.fingerprint.nans = 1;
            c.fingerprint.positive_infs = random() % 3;
            c.fingerprint.negative_infs = random() % 3;
            c.fingerprint.first_nonfinite = random() % 4096;
            c.fingerprint.max = infinite;
        }
        for (std::size_t b = buckets[i % 5]; b > 0; --b) {
            c.fingerprint.sketch.push_back(8 * real());
        }
        if (i % 10 == 9) {
            c.argmax = random() % 32000;
            c.margin = real();
        }
        checks.push_back(std::move(c));
    }
    return checks;
}

Metadata full_metadata() {
    Metadata m;
    m.recording_id[0] = 0x0123456789abcdef;
    m.recording_id[1] = 0xfedcba9876543210;
    m.start_realtime_ns = 1'700'000'000'000'000'000;
    m.host = "a-host-of-its-own";
    m.pid = 4242;
    m.process_start = 987654;
    m.world = 8;
    m.time_namespace = 77;
    m.groups = {{"tp", 1, 4, {}}, {"pp", 0, 2, {3, 7}}};
    m.boot_id = "11111111-2222-3333-4444-555555555555";
    m.rank = "3";
    m.ring_path = "";
    m.ring_reason = "no tmpfs";
    m.config = "on,out=run.plumb";
    m.sync_mode = "deferred";
    m.warmup_steps = 5;
    m.identity = {{"commit", "abc"}, {"command_line", "decode \"x\" \xc3\xa9"}};
    m.comparability = {{"cpu", "some cpu"}, {"model", ""}};
    m.costs = {{"scope", 17.25}, {"floor.cpu_tsc", 8.5}};
    m.clocks = {{0, "tsc"}, {7, "cuda:0"}};
    return m;
}

namespace {

template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

} // namespace

Bytes ring_bytes(const Metadata& metadata, std::uint64_t capacity, const std::vector<TestRing>& rings,
                 const std::vector<NameInfo>& names) {
    Bytes bytes = ring_bytes_of_version_1(metadata, capacity, rings);
    bytes.insert(bytes.begin() + detail::ring_page, rings_at - detail::ring_page, std::byte{0});
    put(bytes, offsetof(detail::RingFileHeader, version), base::ring_file_version);
    std::size_t at = detail::ring_page;
    for (const NameInfo& name : names) {
        put(bytes, at,
            base::RingName{name.id, static_cast<std::uint16_t>(name.category),
                           static_cast<std::uint16_t>(name.name.size())});
        std::memcpy(bytes.data() + at + sizeof(base::RingName), name.name.data(), name.name.size());
        at += sizeof(base::RingName) + name.name.size();
    }
    put(bytes, base::ring_names_at + offsetof(base::RingNames, bytes),
        static_cast<std::uint32_t>(rings_at - detail::ring_page));
    put(bytes, base::ring_names_at + offsetof(base::RingNames, used),
        static_cast<std::uint32_t>(at - detail::ring_page));
    return bytes;
}

Bytes ring_bytes_of_version_1(const Metadata& metadata, std::uint64_t capacity, const std::vector<TestRing>& rings) {
    const std::size_t stride = detail::ring_page + capacity * sizeof(Record);
    Bytes bytes(detail::ring_page + rings.size() * stride);
    std::memcpy(bytes.data(), detail::ring_magic, sizeof detail::ring_magic);
    put(bytes, offsetof(detail::RingFileHeader, version), std::uint32_t{1});
    put(bytes, offsetof(detail::RingFileHeader, capacity), capacity);
    put(bytes, offsetof(detail::RingFileHeader, ring_count), static_cast<std::uint32_t>(rings.size()));
    put(bytes, offsetof(detail::RingFileHeader, pid), metadata.pid);
    put(bytes, offsetof(detail::RingFileHeader, process_start), metadata.process_start);
    put(bytes, offsetof(detail::RingFileHeader, recording_id), metadata.recording_id[0]);
    put(bytes, offsetof(detail::RingFileHeader, recording_id) + 8, metadata.recording_id[1]);
    for (std::size_t i = 0; i < rings.size(); ++i) {
        const TestRing& ring = rings[i];
        const std::size_t at = detail::ring_page + i * stride;
        put(bytes, at + offsetof(detail::RingHeader, tail), ring.tail);
        put(bytes, at + offsetof(detail::RingHeader, head), ring.tail + ring.records.size());
        put(bytes, at + offsetof(detail::RingHeader, state), static_cast<std::uint32_t>(ring.state));
        put(bytes, at + offsetof(detail::RingHeader, track), ring.track);
        put(bytes, at + offsetof(detail::RingHeader, os_thread), ring.os_thread);
        std::memcpy(bytes.data() + at + offsetof(detail::RingHeader, thread_name), ring.thread_name.data(),
                    ring.thread_name.size());
        for (std::size_t d = 0; d < drop_reasons; ++d) {
            const std::size_t slot = d < detail::drop_slots
                                         ? offsetof(detail::RingHeader, drops) + 8 * d
                                         : offsetof(detail::RingHeader, later_drops) + 8 * (d - detail::drop_slots);
            put(bytes, at + slot, ring.drops[d]);
        }
        for (std::size_t r = 0; r < ring.records.size(); ++r) {
            const std::size_t index = (ring.tail + r) & (capacity - 1);
            put(bytes, at + detail::ring_page + index * sizeof(Record), ring.records[r]);
        }
    }
    return bytes;
}

} // namespace plumb::recording::testing
