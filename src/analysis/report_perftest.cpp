// SPDX-License-Identifier: Apache-2.0
// How fast records become a report and a wall account: from records in memory, and from a recording's bytes. Prints wall and CPU time, since
// on a shared machine only the second says what one core can do.
// Usage: plumb_analysis_perftest [millions of scopes] [tracks]
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "analysis/report_builder.hpp"
#include "analysis/wall_builder.hpp"
#include "recording/recorded_run.hpp"
#include "recording/writer.hpp"

namespace {

using namespace plumb;

constexpr std::uint16_t layers = 24;
constexpr std::size_t batch_records = 16384;

// Decode steps of 24 layers with 12 bricks each, as a recorder writes them: work now and then, CPU time at step borders.
class Generator {
  public:
    explicit Generator(std::uint32_t track) : track_(track) {}

    void step(std::uint64_t id, bool owner, std::vector<Record>& out) {
        const std::uint64_t begin = now_;
        if (owner) {
            out.push_back({now_, pack(RecordKind::step_begin, static_cast<std::uint16_t>(Phase::decode), id)});
            out.push_back({1, pack(RecordKind::step_value, static_cast<std::uint16_t>(StepValue::decode_tokens))});
        } else {
            out.push_back({id + 1, pack(RecordKind::context)});
        }
        for (std::uint16_t layer = 0; layer < layers; ++layer) {
            const std::uint64_t layer_at = now_;
            out.push_back({now_, pack(RecordKind::layer_begin, layer)});
            for (std::uint16_t brick = 1; brick <= 12; ++brick) {
                scope(brick, out);
            }
            out.push_back({layer_at, pack(RecordKind::layer_end, layer, now_ - layer_at)});
        }
        if (owner) {
            out.push_back({begin, pack(RecordKind::step_end, static_cast<std::uint16_t>(Phase::decode), now_ - begin)});
        } else {
            out.push_back({0, pack(RecordKind::context_end)});
        }
        cpu_ += (now_ - begin) / 2;
        out.push_back({now_, (static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift) | cpu_});
        now_ += 100;
    }

  private:
    void scope(std::uint16_t brick, std::vector<Record>& out) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t duration = 1000 * brick + (random_ >> 54);
        if (!given_[brick]) {
            given_[brick] = true;
            out.push_back({std::bit_cast<std::uint64_t>(1e6), pack(RecordKind::work, brick, 0)});
        }
        out.push_back({now_, pack(RecordKind::scope, brick, duration) | flag_work});
        now_ += duration + 60;
    }

    std::uint32_t track_;
    std::uint64_t now_ = 1'000'000'000;
    std::uint64_t cpu_ = 0;
    std::uint64_t random_ = 1;
    bool given_[16] = {};
};

class GeneratedSource final {
  public:
    GeneratedSource(std::size_t scopes, std::uint32_t tracks) {
        metadata_.clocks = {{0, "tsc"}};
        pairs_ = {{0, 1'000'000'000, 0, 0, 10}, {0, 3'000'000'000, 1'000'000'000, 0, 10}};
        const std::size_t steps = scopes / (layers * 12 * tracks);
        std::vector<Generator> generators;
        records_.resize(tracks);
        for (std::uint32_t i = 0; i < tracks; ++i) {
            tracks_.push_back({i + 1, recording::TrackKind::host_thread, 0, i, "thread", "cpu_tsc"});
            generators.emplace_back(i + 1);
        }
        for (std::size_t step = 0; step < steps; ++step) {
            for (std::uint32_t i = 0; i < tracks; ++i) {
                generators[i].step(step, i == 0, records_[i]);
            }
        }
        scopes_ = steps * layers * 12 * tracks;
    }
    [[nodiscard]] std::size_t scopes() const { return scopes_; }
    [[nodiscard]] recording::RecordedRun run() const {
        recording::RecordedRun run;
        run.facts->metadata = metadata_;
        run.facts->tracks = tracks_;
        run.facts->clock_pairs = pairs_;
        run.for_each_batch = [this](const auto& visit) {
            return for_each_batch(visit);
        };
        return run;
    }
    Status for_each_batch(const std::function<bool(const recording::RecordBatch&)>& visit) const {
        for (std::size_t at = 0; at < records_[0].size() + batch_records; at += batch_records) {
            for (std::size_t i = 0; i < records_.size(); ++i) {
                if (at >= records_[i].size()) {
                    continue;
                }
                const std::size_t count = std::min(batch_records, records_[i].size() - at);
                if (!visit({tracks_[i].id, at, records_[i].data() + at, count})) {
                    return {};
                }
            }
        }
        return {};
    }

  private:
    recording::Metadata metadata_;
    std::vector<recording::TrackInfo> tracks_;
    std::vector<recording::ClockPair> pairs_;
    std::vector<std::vector<Record>> records_;
    std::size_t scopes_ = 0;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void time_report(const char* what, const recording::RecordedRun& run, std::size_t scopes) {
    for (int round = 0; round < 3; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        const double cpu_begin = cpu_seconds();
        const Result<Report> report = analysis::build_report(run, {});
        const double cpu = cpu_seconds() - cpu_begin;
        const double seconds = seconds_since(begin);
        std::printf("%-18s %6.2f million scopes/s, %5.1f ns CPU per scope  (coverage %.4f, %zu rows)\n", what,
                    static_cast<double>(scopes) / seconds / 1e6, cpu * 1e9 / static_cast<double>(scopes),
                    report.ok() && !report->phases.empty() ? report->phases[0].wall.coverage.value.value_or(-1) : -1,
                    report.ok() ? report->bricks.size() : 0);
    }
}

void time_wall(const recording::RecordedRun& run, std::size_t scopes) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = cpu_seconds();
    const Result<WallReport> report = analysis::build_wall(run, {});
    const double cpu = cpu_seconds() - cpu_begin;
    std::printf("%-18s %6.2f million scopes/s, %5.1f ns CPU per scope  (%zu phases)\n", "wall, in memory",
                static_cast<double>(scopes) / seconds_since(begin) / 1e6, cpu * 1e9 / static_cast<double>(scopes),
                report.ok() ? report->phases.size() : 0);
}

} // namespace

int main(int argc, char** argv) {
    const std::size_t scopes = 1'000'000 * static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 10);
    const auto tracks = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 1);
    GeneratedSource source(scopes, tracks);
    const recording::RecordedRun run = source.run();
    time_report("records in memory", run, source.scopes());
    time_wall(run, source.scopes());

    auto writer = recording::Writer::create({}, run.facts->metadata);
    if (!writer.ok()) {
        return 1;
    }
    for (const auto& track : run.facts->tracks) {
        (void)(*writer)->add_track(track);
    }
    for (const auto& pair : run.facts->clock_pairs) {
        (void)(*writer)->add_clock_pair(pair);
    }
    (void)run.for_each_batch([&](const recording::RecordBatch& batch) { return (*writer)->append(batch).ok(); });
    (void)(*writer)->close();
    std::printf("recording: %.2f bytes per scope\n",
                static_cast<double>((*writer)->size()) / static_cast<double>(source.scopes()));
    auto reader = recording::Reader::from_bytes((*writer)->snapshot());
    if (!reader.ok()) {
        return 1;
    }
    time_report("recording", recording::run_of(std::move(*reader)), source.scopes());
    return 0;
}
