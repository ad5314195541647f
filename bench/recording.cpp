// SPDX-License-Identifier: Apache-2.0
// What a record costs after it was made: into the file, out of it, into a report, into a trace (docs/internals/benchmarks.md).
// The stream is real: decode-like steps recorded here and now, repeated with their times moved on.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <ostream>

#include "plumb/plumb.hpp"
#include "recording/child.hpp"
#include "recording/counting.hpp"
#include "recording/large.hpp"
#include "recording/outcome.hpp"
#include "recording/reader.hpp"
#include "recording/run_stream.hpp"
#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;
using plumb::detail::Record;
using plumb::recording::Reader;
using plumb::recording::RecordBatch;

struct Written {
    double ns = 0;
    double bytes = 0;
};

Written write_recording(const Run& run, const std::vector<Record>& records, const std::string& path, bool compress) {
    const auto writer = begin_recording(run, path, compress);
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
        const Child report = in_child("report", [&] { return plumb::report_recording(path).ok(); });
        const Child trace = in_child("trace", [&] {
            Counting counting;
            std::ostream out(&counting);
            return plumb::export_recording(path, "chrome_trace", out).ok();
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
                      {{"--records", "N   in the recording (default 4000000)"},
                       {"--rounds", "N    (default 9)"},
                       {"--large", "N     scopes of a long run, read by every command (default 100000000; 0: none)"}});
    const auto count =
        static_cast<std::size_t>(std::max(100000LL, std::atoll(options.value("--records", "4000000").c_str())));
    const int rounds = std::max(3, std::atoi(options.value("--rounds", "9").c_str()));
    const double large = std::atof(options.value("--large", "100000000").c_str());
    Board board(options);
    const TemporaryFolder folder;
    board.put("close_s", record_run(folder.file("run.plumb")));
    const Run run = read_run(folder.file("run.plumb"));
    double scopes = 0;
    { // The answers are computed in children: these records must be gone by then, or they count as theirs.
        std::vector<Record> records;
        records.reserve(count);
        Repeater(run).next(records, count);
        scopes = count_scopes(records);
        board.say(fmt::format("{} records, from {} of a real run, in batches of {}; {} rounds, by turns",
                              records.size(), run.records.size(), batch_records, rounds));
        measure_file(board, run, records, folder.file("many.plumb"), folder.file("plain"), rounds);
    }
    measure_answers(board, scopes, folder.file("many.plumb"), rounds);
    show(board);
    if (large > 0) {
        std::filesystem::remove(folder.file("many.plumb"));
        std::filesystem::remove(folder.file("plain"));
        measure_large(board, run, folder, large);
        measure_stopping(board, folder, large);
    }
    return board.finish();
}
