// SPDX-License-Identifier: Apache-2.0
// What live metrics cost: the drain, for each scope that it writes, and whoever scrapes. Nothing here runs on a recording thread.
#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <thread>

#include "metrics/metrics.hpp"
#include "metrics/scrape_testing.hpp"
#include "metrics/server.hpp"
#include "recording/child.hpp"
#include "recording/outcome.hpp"
#include "recording/run_stream.hpp"
#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;
using plumb::detail::Record;
using plumb::metrics::Exporter;
using plumb::metrics::scrape;

double thread_cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double process_cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Followed {
    std::unique_ptr<Exporter> exporter;
    std::uint16_t port = 0;
};

Followed follow(const Run& run) {
    Followed followed;
    plumb::metrics::MetricsOptions options;
    options.target = "127.0.0.1:0";
    options.metadata = &run.metadata;
    options.diagnose = [&](const std::string& sentence) {
        followed.port = static_cast<std::uint16_t>(std::atoi(sentence.c_str() + sentence.find("127.0.0.1:") + 10));
    };
    followed.exporter = need(plumb::metrics::start(options));
    return followed;
}

/// CPU time of writing the stream into memory, in ns a scope.
double write_ns(const Run& run, const std::vector<Record>& records, double scopes, Exporter* exporter) {
    plumb::recording::WriterOptions options;
    options.observer = exporter;
    const auto writer = need(plumb::recording::Writer::create(options, run.metadata));
    for (const auto& track : run.tracks) {
        need(writer->add_track(track));
    }
    for (const auto& name : run.names) {
        need(writer->add_name(name));
    }
    for (const auto& pair : run.pairs) {
        need(writer->add_clock_pair(pair));
    }
    const double begin = thread_cpu_ns();
    for (std::size_t at = 0; at < records.size(); at += batch_records) {
        need(writer->append({run.track, at, records.data() + at, std::min(batch_records, records.size() - at)}));
    }
    return (thread_cpu_ns() - begin) / scopes;
}

void measure_drain(Board& board, const Run& run, const std::vector<Record>& records) {
    constexpr int rounds = 15;
    const double scopes = count_scopes(records);
    std::vector<double> plain, extra, ratio;
    for (int round = 0; round < rounds; ++round) {
        const Followed followed = follow(run);
        const double without = write_ns(run, records, scopes, nullptr);
        const double with = write_ns(run, records, scopes, followed.exporter.get());
        plain.push_back(without);
        extra.push_back(with - without);
        ratio.push_back(with / without);
    }
    board.put("drain.plain_ns", spread_of(plain));
    board.put("drain.extra_ns", spread_of(extra));
    board.put("drain.ratio", spread_of(ratio));
    board.table("drain, CPU time a scope", {"ns", "quartiles"});
    const auto row = [&](const std::string& label, const std::string& key, std::optional<Target> target = {}) {
        const Spread spread = get(board.figures(), key);
        board.row(label, {text(spread.median, 2), range(spread, 2)}, key, target);
    };
    row("writing, without metrics", "drain.plain_ns");
    row("more with metrics", "drain.extra_ns");
    row("with / without", "drain.ratio");
    board.end_table();
}

/// As many series as there can be.
void fill(Exporter& exporter, const Run& run) {
    std::vector<Record> records;
    const std::uint64_t tick = run.pairs.front().ticks;
    for (std::uint16_t i = 0; i < 400; ++i) {
        const auto id = static_cast<std::uint16_t>(plumb::first_interned_id + i);
        exporter.saw(plumb::recording::NameInfo{id, plumb::Category::other,
                                                "a brick with a name of its own " + std::to_string(i)});
        const auto phase = static_cast<std::uint16_t>(i % 4);
        records.push_back({tick, pack(plumb::detail::RecordKind::step_begin, phase, i)});
        records.push_back({tick, pack(plumb::detail::RecordKind::scope, id, 100)});
        records.push_back({tick, pack(plumb::detail::RecordKind::step_end, phase, 200)});
    }
    exporter.saw(plumb::recording::RecordBatch{run.track, 0, records.data(), records.size()});
}

struct Scrapes {
    double median_ns = 0, worst_ns = 0, cpu_ns = 0;
    std::size_t bytes = 0, series = 0;
};

/// `before` is called before each: there is something new to say.
template <class Before>
Scrapes scrape_often(std::uint16_t port, Before before) {
    constexpr int times = 500;
    std::vector<double> walls;
    Scrapes found;
    double cpu = 0;
    for (int i = 0; i < times; ++i) {
        before();
        const double cpu_before = process_cpu_ns(), begin = now_ns();
        const std::string said = scrape(port);
        walls.push_back(now_ns() - begin);
        cpu += process_cpu_ns() - cpu_before;
        found.bytes = said.size();
        found.series = plumb::metrics::series_of(said).size();
    }
    found.median_ns = median_of(walls);
    found.worst_ns = quantile_of(walls, 0.99);
    found.cpu_ns = cpu / times;
    return found;
}

void show(Board& board, const std::string& label, const std::string& key, const Scrapes& found, bool judged) {
    board.put(key + ".median_ms", found.median_ns / 1e6);
    board.put(key + ".p99_ms", found.worst_ns / 1e6);
    board.put(key + ".cpu_ms", found.cpu_ns / 1e6);
    board.put(key + ".series", static_cast<double>(found.series));
    const auto target = [&](double limit) {
        return judged ? std::optional<Target>({Bound::at_most, limit}) : std::nullopt;
    };
    board.row(label + ", median", {fmt::format("{:.3f} ms", found.median_ns / 1e6)}, key + ".median_ms", target(2));
    board.row(label + ", p99", {fmt::format("{:.3f} ms", found.worst_ns / 1e6)}, key + ".p99_ms");
    board.row(label + ", CPU of both sides", {fmt::format("{:.3f} ms", found.cpu_ns / 1e6)}, key + ".cpu_ms",
              target(1));
    board.row(label + ", series", {fmt::format("{} in {} bytes", found.series, found.bytes)}, key + ".series",
              target(200));
}

void measure_scrapes(Board& board, const Run& run, std::vector<Record> records) {
    const Followed followed = follow(run);
    Exporter& exporter = *followed.exporter;
    for (const auto& track : run.tracks) {
        exporter.saw(track);
    }
    for (const auto& name : run.names) {
        exporter.saw(name);
    }
    for (const auto& pair : run.pairs) {
        exporter.saw(pair);
    }
    fill(exporter, run);
    double scopes = 0;
    const auto feed = [&] {
        exporter.saw(plumb::recording::RecordBatch{run.track, 0, records.data(), records.size()});
        scopes += count_scopes(records);
    };
    feed();
    const auto few = std::vector<Record>(records.begin(), records.begin() + 16);
    const auto something_new = [&] {
        exporter.saw(plumb::recording::RecordBatch{run.track, 0, few.data(), few.size()});
    };
    board.table("one scrape after another", {"here"});
    const double first = scopes;
    const Scrapes early = scrape_often(followed.port, something_new);
    show(board, fmt::format("after {:.1e} scopes", first), "scrape.early", early, true);
    const double each = scopes;
    while (scopes + each < 1e8) {
        exporter.saw(plumb::recording::RecordBatch{run.track, 0, records.data(), records.size()});
        scopes += each;
    }
    const Scrapes late = scrape_often(followed.port, something_new);
    show(board, fmt::format("after {:.1e} scopes", scopes), "scrape.late", late, true);

    plumb::base::Endpoint endpoint;
    plumb::metrics::Server floor(need(plumb::base::listen_on(endpoint)),
                                 [text = std::string(late.bytes, 'x')] { return text; });
    std::thread serving([&] { floor.serve(); });
    const Scrapes same_bytes = scrape_often(endpoint.port, [] {});
    floor.stop();
    serving.join();
    show(board, "the same bytes, made before", "scrape.floor", same_bytes, false);
    board.put("scrape.growth", late.median_ns / early.median_ns);
    board.row("after 10^8 / before", {text(late.median_ns / early.median_ns, 2)}, "scrape.growth",
              Target{Bound::at_most, 1.5});
    board.put("scrape.over_floor", late.median_ns / same_bytes.median_ns);
    board.row("scrape / the same bytes", {text(late.median_ns / same_bytes.median_ns, 2)}, "scrape.over_floor");
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "Live metrics: the drain's cost a scope, and a scrape");
    Board board(options);
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    (void)record_run(path);
    const Run run = read_run(path);
    std::vector<Record> records;
    Repeater(run).next(records, std::size_t{1} << 20);
    measure_drain(board, run, records);
    measure_scrapes(board, run, std::move(records));
    return board.finish();
}
