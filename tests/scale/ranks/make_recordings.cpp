// SPDX-License-Identifier: Apache-2.0
// Writes recordings of many ranks, each with a clock of its own, a collective in each of eight layers of a step: make_recordings FOLDER
// RANKS SCOPES COLLECTIVES [LATE]. The rank LATE is 100 us late in the upper four.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "recording/writer.hpp"

namespace {

using namespace plumb;
using namespace plumb::recording;

constexpr std::uint64_t layers = 8;
constexpr std::uint64_t late_ns = 100'000;

Metadata metadata_of(std::uint32_t rank, std::uint32_t ranks) {
    Metadata made;
    made.recording_id[0] = rank + 1;
    made.rank = std::to_string(rank);
    made.world = ranks;
    made.host = "host" + std::to_string(rank / 8);
    made.warmup_steps = 0;
    made.clocks = {{0, "caller"}};
    return made;
}

/// A tick is a nanosecond of the true time; the rank's own nanoseconds are ahead and drift.
bool write(const std::string& path, std::uint32_t rank, std::uint32_t ranks, std::uint64_t scopes,
           std::uint64_t collectives, std::uint32_t late) {
    WriterOptions options;
    options.path = path;
    auto writer = Writer::create(options, metadata_of(rank, ranks));
    if (!writer.ok()) {
        std::fprintf(stderr, "%s\n", writer.error().message.c_str());
        return false;
    }
    const std::uint64_t scopes_each = scopes / collectives;
    const std::uint64_t period = 1000 * (scopes_each + 260);
    const auto shown = [&](std::uint64_t tick) {
        return static_cast<std::int64_t>(tick) + 1'000'000'000LL * rank +
               static_cast<std::int64_t>((rank % 101) * 1e-6 * static_cast<double>(tick));
    };
    Status status = (*writer)->add_track({1, TrackKind::host_thread, 0, 1, "main", "cpu_tsc", 1, 0});
    for (const std::uint64_t tick : {std::uint64_t{0}, collectives * period}) {
        status = status.ok() ? (*writer)->add_clock_pair({0, tick, shown(tick), 0, 0}) : status;
    }
    std::mt19937_64 random(rank);
    std::vector<Record> records;
    std::uint64_t sequence = 0;
    for (std::uint64_t k = 0; k < collectives; ++k) {
        std::uint64_t now = k * period;
        records.push_back({k / layers + 1, pack(RecordKind::context, static_cast<std::uint16_t>(k % layers + 1), 0)});
        for (std::uint64_t i = 0; i < scopes_each; ++i, now += 1000) {
            records.push_back({now, pack(RecordKind::scope, static_cast<std::uint16_t>(1 + i % 20), 900)});
        }
        const bool upper = 2 * (k % layers) >= layers;
        const std::uint64_t begin = now + random() % 50'000 + (late == rank && upper ? late_ns : 0);
        const std::uint64_t last_begin = now + 50'000 + (late < ranks && upper ? late_ns : 0);
        records.push_back({begin, pack(RecordKind::scope, static_cast<std::uint16_t>(Brick::all_reduce),
                                       last_begin + 2'000 + random() % 2'000 - begin)});
        records.push_back({0, pack(RecordKind::context_end, 0, 0)});
        if (records.size() >= 16'384 || k + 1 == collectives) {
            status = status.ok() ? (*writer)->append({1, sequence, records.data(), records.size()}) : status;
            sequence += records.size();
            records.clear();
        }
    }
    status = status.ok() ? (*writer)->close() : status;
    return status.ok();
}

} // namespace

int main(int count, char** arguments) {
    if (count != 5 && count != 6) {
        std::fprintf(stderr, "make_recordings FOLDER RANKS SCOPES COLLECTIVES [LATE]\n");
        return 2;
    }
    const auto ranks = static_cast<std::uint32_t>(std::strtoul(arguments[2], nullptr, 10));
    const auto late = count == 6 ? static_cast<std::uint32_t>(std::strtoul(arguments[5], nullptr, 10)) : ranks;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::string path = std::string(arguments[1]) + "/r" + std::to_string(rank) + ".plumb";
        if (!write(path, rank, ranks, std::strtoull(arguments[3], nullptr, 10),
                   std::strtoull(arguments[4], nullptr, 10), late)) {
            return 1;
        }
    }
    return 0;
}
