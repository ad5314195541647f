// SPDX-License-Identifier: Apache-2.0
// What a record costs on disk and on the way there and back. The stream is a decode loop that really runs here: each brick
// walks over its share of memory between two stamps, so the timing noise is this machine's own, and kept exact.
// Usage: plumb_recording_perftest [bytes per brick in KiB | RECORDING] [steps] [records per append]
// With a recording its own records are taken, all tracks in one row.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "recording/reader.hpp"
#include "recording/writer.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

using plumb::detail::pack;
using plumb::detail::Record;
using plumb::detail::RecordKind;

double now_ns(clockid_t clock) {
    timespec t = {};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

std::uint64_t ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<std::uint64_t>(now_ns(CLOCK_MONOTONIC));
#endif
}

constexpr int layers = 24;
// Shares of a layer's bytes, in the order of a llama block: norm, qkv, rope, kv, attention, out, add, norm, gate, up, act, down, add.
constexpr std::uint16_t bricks[] = {1, 3, 5, 20, 9, 10, 16, 1, 11, 12, 14, 15, 16};
constexpr int weights[] = {1, 12, 2, 1, 8, 9, 1, 1, 48, 48, 3, 48, 1};

class Stream {
  public:
    explicit Stream(std::size_t kib) : memory_(kib * 1024 * 64), unit_(kib * 1024 / 8) {}

    std::vector<Record> run(int steps) {
        for (int step = 0; step < steps; ++step) {
            const std::uint64_t step_start = ticks();
            put(step_start, pack(RecordKind::step_begin, 2, static_cast<std::uint64_t>(step)));
            put(1, pack(RecordKind::step_value, 2));
            put(static_cast<std::uint64_t>(100 + step), pack(RecordKind::step_value, 4));
            for (std::uint16_t layer = 0; layer < layers; ++layer) {
                const std::uint64_t layer_start = ticks();
                put(layer_start, pack(RecordKind::layer_begin, layer));
                for (std::size_t i = 0; i < std::size(bricks); ++i) {
                    scope(bricks[i], weights[i], step == 0 && layer == 0);
                }
                put(layer_start, pack(RecordKind::layer_end, layer, ticks() - layer_start));
            }
            scope(18, 64, step == 0);
            put(step_start, pack(RecordKind::step_end, 2, ticks() - step_start));
            sample_cpu();
        }
        return std::move(records_);
    }
    std::size_t scopes = 0;
    std::uint64_t sink = 0;

  private:
    void put(std::uint64_t first, std::uint64_t second) { records_.push_back({first, second}); }
    void sample_cpu() {
        put(ticks(), (static_cast<std::uint64_t>(RecordKind::cpu_time) << plumb::kind_shift) |
                         static_cast<std::uint64_t>(now_ns(CLOCK_THREAD_CPUTIME_ID)));
    }
    void scope(std::uint16_t id, int weight, bool with_work) {
        if (with_work) {
            put(0x40f0000000000000u + id, pack(RecordKind::work, id, 0));
        }
        const std::uint64_t begin = ticks();
        const std::size_t bytes = unit_ * static_cast<std::size_t>(weight) / 14;
        for (std::size_t i = 0; i < bytes; i += 64) {
            sink += memory_[at_];
            at_ = at_ + 64 < memory_.size() ? at_ + 64 : 0;
        }
        const std::uint64_t duration = ticks() - begin;
        put(begin, pack(RecordKind::scope, id, duration) | plumb::flag_work);
        ++scopes;
        if (duration > 1 << 18) {
            sample_cpu();
        }
    }

    std::vector<unsigned char> memory_;
    std::size_t unit_;
    std::size_t at_ = 0;
    std::vector<Record> records_;
};

/// The records of a recording, and how many of them are scopes.
std::vector<Record> records_of(const char* path, std::size_t& scopes) {
    std::vector<Record> records;
    auto reader = plumb::recording::Reader::open(path);
    if (reader.ok()) {
        (void)reader
            ->for_each_batch([&](const plumb::recording::RecordBatch& batch) {
                records.insert(records.end(), batch.records, batch.records + batch.count);
                return true;
            })
            .ok();
    }
    for (const Record& record : records) {
        scopes += plumb::detail::kind_of(record) == RecordKind::scope ? 1 : 0;
    }
    return records;
}

} // namespace

int main(int argc, char** argv) {
    using namespace plumb::recording;
    const std::size_t kib = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 64;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 1000;
    const std::size_t batch = argc > 3 ? static_cast<std::size_t>(std::atoi(argv[3])) : 16384;
    Stream stream(std::max<std::size_t>(kib, 1));
    const std::vector<Record> records = kib == 0 ? records_of(argv[1], stream.scopes) : stream.run(steps);
    double encode = 1e300;
    double decode = 1e300;
    std::size_t bytes = 0;
    for (int round = 0; round < 7; ++round) {
        auto writer = Writer::create({}, {});
        if (!writer.ok()) {
            return 1;
        }
        const std::uint64_t head = (*writer)->size();
        double start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (std::size_t i = 0; i < records.size(); i += batch) {
            (void)(*writer)->append({1, i, records.data() + i, std::min(batch, records.size() - i)}).ok();
        }
        encode = std::min(encode, now_ns(CLOCK_THREAD_CPUTIME_ID) - start);
        bytes = (*writer)->size() - head;
        auto reader = Reader::from_bytes((*writer)->snapshot());
        start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        std::uint64_t sum = 0;
        (void)reader
            ->for_each_batch([&](const RecordBatch& b) {
                sum += b.records[b.count - 1].first;
                return true;
            })
            .ok();
        decode = std::min(decode, now_ns(CLOCK_THREAD_CPUTIME_ID) - start);
        stream.sink += sum;
    }
    const auto n = static_cast<double>(records.size());
    std::printf("%zu records, %zu scopes, %zu a append: %.2f bytes/scope, %.2f bytes/record, encode %.1f ns/record, "
                "decode %.1f million records/s (%llu)\n",
                records.size(), stream.scopes, batch, static_cast<double>(bytes) / static_cast<double>(stream.scopes),
                static_cast<double>(bytes) / n, encode / n, n / decode * 1e3,
                static_cast<unsigned long long>(stream.sink % 10));
    return 0;
}
