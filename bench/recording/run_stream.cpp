// SPDX-License-Identifier: Apache-2.0
#include "recording/run_stream.hpp"

#include <algorithm>

#include "record/subject.hpp"
#include "recording/child.hpp"
#include "recording/outcome.hpp"
#include "recording/reader.hpp"

namespace bench {

using plumb::detail::Record;
using plumb::detail::RecordKind;
using plumb::recording::Reader;
using plumb::recording::RecordBatch;
using plumb::recording::Writer;

namespace {

constexpr unsigned steps = 200;
constexpr unsigned layers = 24;

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

} // namespace

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
        if (holds_ticks(plumb::detail::kind_of(record))) {
            first = std::min(first, record.first);
            last = std::max(last, record.first + (record.second & (plumb::payload_mask >> 8)));
        }
    }
    run.span = last - first;
    run.steps = steps;
    return run;
}

double count_scopes(const std::vector<Record>& records) {
    return static_cast<double>(std::count_if(records.begin(), records.end(), [](const Record& record) {
        return plumb::detail::kind_of(record) == RecordKind::scope;
    }));
}

void Repeater::next(std::vector<Record>& to, std::size_t count) {
    for (; count != 0; --count) {
        Record record = run_.records[at_];
        if (holds_ticks(plumb::detail::kind_of(record))) {
            record.first += turn_ * run_.span;
        }
        if (plumb::detail::kind_of(record) == RecordKind::step_begin) {
            record.second += turn_ * run_.steps;
        }
        to.push_back(record);
        if (++at_ == run_.records.size()) {
            at_ = 0;
            ++turn_;
        }
    }
}

std::unique_ptr<Writer> begin_recording(const Run& run, const std::string& path, bool compress) {
    plumb::recording::WriterOptions options;
    options.path = path;
    options.compress = compress;
    auto writer = need(Writer::create(options, run.metadata));
    for (const auto& track : run.tracks) {
        need(writer->add_track(track));
    }
    for (const auto& name : run.names) {
        need(writer->add_name(name));
    }
    for (const auto& pair : run.pairs) {
        need(writer->add_clock_pair(pair));
    }
    return writer;
}

double write_long_recording(const Run& run, const std::string& path, std::uint64_t turns) {
    const auto writer = begin_recording(run, path, true);
    Repeater repeater(run);
    std::vector<Record> records;
    const std::uint64_t all = turns * run.records.size();
    for (std::uint64_t at = 0; at < all; at += batch_records) {
        records.clear();
        repeater.next(records, static_cast<std::size_t>(std::min<std::uint64_t>(batch_records, all - at)));
        need(writer->append({run.track, at, records.data(), records.size()}));
    }
    need(writer->close());
    return count_scopes(run.records) * static_cast<double>(turns);
}

} // namespace bench
