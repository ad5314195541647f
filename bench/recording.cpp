// SPDX-License-Identifier: Apache-2.0
// What a record costs after it was made: into the file, out of it, into a report, into a trace (docs/benchmarks.md).
// The stream is real: decode-like steps recorded here and now, repeated with their times moved on.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <ostream>
#include <streambuf>

#include "plumb/plumb.hpp"
#include "record/subject.hpp"
#include "recording/reader.hpp"
#include "recording/writer.hpp"
#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;
using plumb::Record;
using plumb::RecordKind;
using plumb::Result;
using plumb::Status;
using plumb::recording::Reader;
using plumb::recording::RecordBatch;
using plumb::recording::Writer;

constexpr std::size_t batch_records = 16384; // what the drain hands over: a quarter of a ring
constexpr unsigned steps = 200;
constexpr unsigned layers = 24;

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void stop(const std::string& sentence) {
    fmt::print(stderr, "{}\n", sentence);
    std::exit(2);
}

template <class T>
T need(Result<T> result) {
    if (!result.ok()) {
        stop(result.error().message);
    }
    return std::move(result).value();
}

void need(const Status& status) {
    if (!status.ok()) {
        stop(status.error().message);
    }
}

/// A run of this program under the profiler; what close() took, in seconds.
double record_run(const std::string& path) {
    const Subject& subject = *plumb_bench_subject();
    if (const char* why = subject.open(path.c_str()); why != nullptr) {
        stop(why);
    }
    subject.decode_like(steps, layers);
    const double begin = now_ns();
    if (!subject.close()) {
        stop("the run could not be finished; make room in the temporary folder");
    }
    return (now_ns() - begin) * 1e-9;
}

/// What a recording holds, ready to be written again.
struct Run {
    plumb::recording::Metadata metadata;
    std::vector<plumb::recording::TrackInfo> tracks;
    std::vector<plumb::recording::NameInfo> names;
    std::vector<plumb::recording::ClockPair> pairs;
    std::vector<Record> records; // of the busiest track
    std::uint32_t track = 0;
    std::uint64_t span = 0;  // ticks from the first to the last
    std::uint64_t steps = 0; // ids used
};

bool holds_ticks(RecordKind kind) {
    switch (kind) {
    case RecordKind::scope:
    case RecordKind::step_begin:
    case RecordKind::step_end:
    case RecordKind::layer_begin:
    case RecordKind::layer_end:
    case RecordKind::cpu_time:
        return true;
    default:
        return false;
    }
}

Run read_run(const std::string& path) {
    Reader reader = need(Reader::open(path));
    Run run{reader.metadata(), reader.tracks(), reader.names(), reader.clock_pairs(), {}, 0, 0, 0};
    need(reader.for_each_batch([&](const RecordBatch& batch) {
        run.track = batch.track;
        run.records.insert(run.records.end(), batch.records, batch.records + batch.count);
        return true;
    }));
    std::uint64_t first = ~std::uint64_t{0};
    std::uint64_t last = 0;
    for (const Record& record : run.records) {
        if (holds_ticks(plumb::kind_of(record))) {
            first = std::min(first, record.first);
            last = std::max(last, record.first + (record.second & (plumb::payload_mask >> 8)));
        }
    }
    run.span = last - first;
    run.steps = steps;
    return run;
}

/// `count` records: the run again and again, later and later.
std::vector<Record> repeat(const Run& run, std::size_t count) {
    std::vector<Record> records;
    records.reserve(count);
    for (std::uint64_t turn = 0; records.size() < count; ++turn) {
        for (Record record : run.records) {
            if (records.size() == count) {
                break;
            }
            if (holds_ticks(plumb::kind_of(record))) {
                record.first += turn * run.span;
            }
            if (plumb::kind_of(record) == RecordKind::step_begin) {
                record.second += turn * run.steps;
            }
            records.push_back(record);
        }
    }
    return records;
}

struct Written {
    double ns = 0;
    double bytes = 0;
};

Written write_recording(const Run& run, const std::vector<Record>& records, const std::string& path, bool compress) {
    plumb::recording::WriterOptions options;
    options.path = path;
    options.compress = compress;
    const auto writer = need(Writer::create(options, run.metadata));
    for (const auto& track : run.tracks) {
        need(writer->add_track(track));
    }
    for (const auto& name : run.names) {
        need(writer->add_name(name));
    }
    for (const auto& pair : run.pairs) {
        need(writer->add_clock_pair(pair));
    }
    const auto head = static_cast<double>(writer->size());
    const double begin = now_ns();
    for (std::size_t at = 0; at < records.size(); at += batch_records) {
        need(writer->append({run.track, at, records.data() + at, std::min(batch_records, records.size() - at)}));
    }
    const Written written{now_ns() - begin, static_cast<double>(writer->size()) - head};
    need(writer->close());
    return written;
}

/// The peer: the same records as they are, by plain write().
double write_plainly(const std::vector<Record>& records, const std::string& path) {
    const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    const double begin = now_ns();
    for (std::size_t at = 0; at < records.size(); at += batch_records) {
        const std::size_t bytes = std::min(batch_records, records.size() - at) * sizeof(Record);
        if (write(file, records.data() + at, bytes) != static_cast<ssize_t>(bytes)) {
            stop("the temporary folder is full; set TMPDIR to a folder with more room");
        }
    }
    const double ns = now_ns() - begin;
    close(file);
    return ns;
}

double read_recording(const std::string& path, std::size_t expected) {
    const double begin = now_ns();
    Reader reader = need(Reader::open(path));
    std::size_t count = 0;
    std::uint64_t sum = 0;
    need(reader.for_each_batch([&](const RecordBatch& batch) {
        count += batch.count;
        sum ^= batch.records[0].first;
        return true;
    }));
    asm volatile("" ::"r"(sum));
    if (count != expected) {
        stop(fmt::format("{} records went in, {} came out; run the tests of the recording room", expected, count));
    }
    return now_ns() - begin;
}

/// A stream that counts what it is given.
class Counting : public std::streambuf {
  public:
    double bytes = 0;
    double lines = 0;

  private:
    std::streamsize xsputn(const char* text, std::streamsize size) override {
        bytes += static_cast<double>(size);
        lines += static_cast<double>(std::count(text, text + size, '\n'));
        return size;
    }
    int overflow(int c) override {
        bytes += 1;
        lines += c == '\n' ? 1 : 0;
        return c;
    }
};

struct Child {
    double seconds = 0;
    double cpu_seconds = 0;
    double peak_mib = 0; // of memory, the program itself included
};

/// Runs `work` in a process of its own, so that its memory is its own.
template <class Work>
Child in_child(Work work) {
    std::fflush(nullptr);
    const double begin = now_ns();
    const pid_t child = fork();
    if (child == 0) {
        _exit(work() ? 0 : 1);
    }
    int status = 0;
    rusage usage{};
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) {
        stop("reading the recording back failed; run plumb report on one to see why");
    }
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {(now_ns() - begin) * 1e-9, seconds(usage.ru_utime) + seconds(usage.ru_stime),
            static_cast<double>(usage.ru_maxrss) / 1024};
}

double count_scopes(const std::vector<Record>& records) {
    return static_cast<double>(std::count_if(records.begin(), records.end(), [](const Record& record) {
        return plumb::kind_of(record) == RecordKind::scope;
    }));
}

void measure_file(Board& board, const Run& run, const std::vector<Record>& records, const std::string& path,
                  const std::string& plain, int rounds) {
    std::vector<double> encode, bare, plainly, ratio, decode;
    const auto count = static_cast<double>(records.size());
    double bytes = 0;
    for (int round = 0; round < rounds; ++round) {
        std::filesystem::remove(path);
        bare.push_back(write_recording(run, records, path, false).ns / count);
        std::filesystem::remove(path);
        const Written written = write_recording(run, records, path, true);
        encode.push_back(written.ns / count);
        bytes = written.bytes;
        plainly.push_back(write_plainly(records, plain) / count);
        ratio.push_back(encode.back() / plainly.back());
        decode.push_back(count / read_recording(path, records.size()) * 1e3);
    }
    board.put("encode.ns_per_record", spread_of(encode));
    board.put("encode.uncompressed_ns_per_record", spread_of(bare));
    board.put("encode.plain_write_ns_per_record", spread_of(plainly));
    board.put("encode.over_plain_write", spread_of(ratio));
    board.put("encode.bytes_per_record", bytes / count);
    board.put("encode.bytes_per_scope", bytes / count_scopes(records));
    board.put("decode.million_records_per_s", spread_of(decode));
}

void measure_answers(Board& board, double scopes, const std::string& path, int rounds) {
    std::vector<double> reports, traces, report_cpu, trace_cpu;
    double report_mib = 0, trace_mib = 0;
    for (int round = 0; round < rounds; ++round) {
        const Child report = in_child([&] { return plumb::report_recording(path).ok(); });
        const Child trace = in_child([&] {
            Counting counting;
            std::ostream out(&counting);
            return plumb::write_chrome_trace(path, out).ok();
        });
        reports.push_back(scopes / report.seconds / 1e6);
        traces.push_back(scopes / trace.seconds / 1e6);
        report_cpu.push_back(report.cpu_seconds * 1e9 / scopes);
        trace_cpu.push_back(trace.cpu_seconds * 1e9 / scopes);
        report_mib = std::max(report_mib, report.peak_mib);
        trace_mib = std::max(trace_mib, trace.peak_mib);
    }
    board.put("report.million_scopes_per_s", spread_of(reports));
    board.put("report.cpu_ns_per_scope", spread_of(report_cpu));
    board.put("trace.cpu_ns_per_scope", spread_of(trace_cpu));
    board.put("report.peak_mib", report_mib);
    board.put("trace.million_scopes_per_s", spread_of(traces));
    board.put("trace.peak_mib", trace_mib);
}

void show(Board& board) {
    const auto line = [&](const char* label, const char* key, int digits, std::optional<Target> target = {}) {
        const Spread value = get(board.figures(), key);
        const bool spread = has(board.figures(), std::string(key) + ".low");
        board.row(label, {text(value.median, digits), spread ? range(value, digits) : ""}, key, target);
    };
    board.table("A recording on its way", {"value", "quartiles"});
    line("into the file, ns per record", "encode.ns_per_record", 2);
    line("  without zstd", "encode.uncompressed_ns_per_record", 2);
    line("the peer: 16 plain bytes by write(), ns", "encode.plain_write_ns_per_record", 2);
    line("÷ peer", "encode.over_plain_write", 2);
    line("bytes per record", "encode.bytes_per_record", 2);
    line("bytes per scope", "encode.bytes_per_scope", 2, Target{Bound::at_most, 6});
    line("out of the file, million records/s", "decode.million_records_per_s", 1);
    line("into a report, million scopes/s", "report.million_scopes_per_s", 1, Target{Bound::at_least, 15});
    line("  CPU time, ns per scope", "report.cpu_ns_per_scope", 1);
    line("  its memory at most, MiB", "report.peak_mib", 0, Target{Bound::at_most, 512});
    line("into a Chrome trace, million scopes/s", "trace.million_scopes_per_s", 1, Target{Bound::at_least, 10});
    line("  CPU time, ns per scope", "trace.cpu_ns_per_scope", 1);
    line("  its memory at most, MiB", "trace.peak_mib", 0, Target{Bound::at_most, 64});
    line("stopping the run, s", "close_s", 3, Target{Bound::at_most, 0.2});
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options =
        parse_options(argc, argv, "What a record costs after it was made.",
                      {{"--records", "N   in the recording (default 4000000)"}, {"--rounds", "N    (default 9)"}});
    const auto count =
        static_cast<std::size_t>(std::max(100000LL, std::atoll(options.value("--records", "4000000").c_str())));
    const int rounds = std::max(3, std::atoi(options.value("--rounds", "9").c_str()));
    Board board(options);
    const TemporaryFolder folder;
    board.put("close_s", record_run(folder.file("run.plumb")));
    const Run run = read_run(folder.file("run.plumb"));
    double scopes = 0;
    { // The answers are computed in children: these records must be gone by then, or they count as theirs.
        const std::vector<Record> records = repeat(run, count);
        scopes = count_scopes(records);
        board.say(fmt::format("{} records, from {} of a real run, in batches of {}; {} rounds, by turns",
                              records.size(), run.records.size(), batch_records, rounds));
        measure_file(board, run, records, folder.file("many.plumb"), folder.file("plain"), rounds);
    }
    measure_answers(board, scopes, folder.file("many.plumb"), rounds);
    show(board);
    return board.finish();
}
