// SPDX-License-Identifier: Apache-2.0
#include "export/window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <unistd.h>

#include "export/export.hpp"
#include "recording/writer.hpp"

namespace plumb::exporting {
namespace {

using Json = nlohmann::json;

/// A file of a thread with steps, another that works for them, and a queue, in chunks of a few records.
class SteppedRun {
  public:
    static constexpr std::uint64_t first_tick = 1'000'000;

    /// `served`: a request of every 10 steps, and one of every 25 of which the last has no end.
    explicit SteppedRun(std::uint32_t seed, std::uint64_t every = 1, std::uint64_t steps = 200, bool served = false)
        : random_(seed) {
        recording::WriterOptions options;
        options.path = path_;
        recording::Metadata metadata;
        metadata.recording_id[0] = 7;
        metadata.warmup_steps = 8;
        metadata.clocks = {{0, "caller"}, {1, "cuda:0"}};
        auto made = recording::Writer::create(options, metadata);
        EXPECT_TRUE(made.ok()) << made.error().message;
        writer_ = std::move(*made);
        for (const std::uint32_t clock : {0u, 1u}) {
            EXPECT_TRUE(writer_->add_clock_pair({clock, first_tick, 0, 0, 0}).ok());
            EXPECT_TRUE(writer_->add_clock_pair({clock, first_tick + 1'000'000'000, 1'000'000'000, 0, 0}).ok());
        }
        EXPECT_TRUE(writer_->add_track({1, recording::TrackKind::host_thread, 0, 11, "main", "cpu_tsc"}).ok());
        EXPECT_TRUE(writer_->add_track({2, recording::TrackKind::host_thread, 0, 12, "helper", "cpu_tsc"}).ok());
        EXPECT_TRUE(writer_
                        ->add_track({3, recording::TrackKind::device_queue, 1, 0, "stream 7", "cuda_event",
                                     static_cast<std::uint32_t>(every)})
                        .ok());
        for (std::uint64_t step = 0; step < steps; ++step) {
            if (served) {
                serve(1000 + step / 10, step % 10, 10, true);
                serve(2000 + step / 25, step % 25, 25, step + 25 < steps);
                now_ += 1;
            }
            add_step(step, every, served);
        }
        flush(true);
    }
    SteppedRun(const SteppedRun&) = delete;
    ~SteppedRun() { ::unlink(path_.c_str()); }

    /// As a process that was killed leaves it, where not.
    void close() { EXPECT_TRUE(writer_->close().ok()); }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    static std::string fresh_path() {
        static int number = 0;
        return testing::TempDir() + "plumb-window-" + std::to_string(::getpid()) + "-" + std::to_string(number++) +
               ".plumb";
    }

    void put(std::uint32_t track, Record record) { pending_[track].push_back(record); }

    void scope(std::uint32_t track, Name name, std::uint64_t begin, std::uint64_t end, std::uint64_t bits = 0) {
        put(track, {begin, pack(RecordKind::scope, name.id, end - begin) | bits});
    }

    void mark(std::uint64_t request, RequestMark mark) {
        put(1, {now_++, pack(RecordKind::request_part, static_cast<std::uint16_t>(RequestPart::ticks))});
        put(1, {request, pack(RecordKind::request, static_cast<std::uint16_t>(mark))});
    }

    /// Before the step of that number among its `steps`.
    void serve(std::uint64_t request, std::uint64_t number, std::uint64_t steps, bool ends) {
        if (number == 0) {
            mark(request, RequestMark::queue);
            mark(request, RequestMark::prefill);
        } else if (number == 1) {
            mark(request, RequestMark::decode);
        } else if (number + 1 == steps && ends) { // and the last step has it no more
            mark(request, RequestMark::end);
        }
    }

    void add_step(std::uint64_t step, std::uint64_t every, bool served) {
        const auto phase = static_cast<std::uint16_t>(step % 5 == 0 ? Phase::prefill : Phase::decode);
        const std::uint64_t begin = now_;
        put(1, {begin, pack(RecordKind::step_begin, phase, step)});
        put(1, {step * 3 + 1, pack(RecordKind::step_value, static_cast<std::uint16_t>(StepValue::kv_length))});
        for (const auto& [first, length] : {std::pair{1000u, 10u}, {2000u, 25u}}) {
            if (served && (step % length + 1 != length || (length == 25 && step == 199))) {
                put(1, {first + step / length,
                        pack(RecordKind::request, static_cast<std::uint16_t>(RequestMark::in_step))});
            }
        }
        put(2, {step + 1, pack(RecordKind::context, 0)});
        for (std::uint16_t layer = 0; layer < 3; ++layer) {
            const std::uint64_t layer_begin = now_;
            put(1, {layer_begin, pack(RecordKind::layer_begin, layer)});
            if (random_() % 4 == 0) {
                put(1, {std::bit_cast<std::uint64_t>(static_cast<double>(random_() % 1000)),
                        pack(RecordKind::work, Name(Brick::attention).id, random_() % 4)});
            }
            const std::uint64_t inner = now_;
            now_ += random_() % 50 + 1;
            scope(1, Brick::rope_embedding, inner, now_);
            now_ += random_() % 20;
            scope(1, Brick::attention, inner, now_, flag_work);
            put(2, {std::bit_cast<std::uint64_t>(640.0), pack(RecordKind::work, Name(Brick::copy_h2d).id, 0)});
            scope(2, Brick::copy_h2d, now_, now_ + 5, flag_work);
            if ((step + 1) % every == 0) {
                submit(step, layer);
            }
            put(1, {layer_begin, pack(RecordKind::layer_end, layer, now_ - layer_begin)});
        }
        put(2, {0, pack(RecordKind::context_end)});
        put(1, {begin, pack(RecordKind::step_end, phase, now_ - begin)});
        now_ += 10;
        scope(1, Brick::sampling, now_, now_ + 3); // between steps
        now_ += 5;
        flush(false);
    }

    void submit(std::uint64_t step, std::uint16_t layer) {
        put(1, {now_, pack(RecordKind::device_submit, 0, 2)});
        put(1, {step * 3 + layer, pack(RecordKind::device_scope, Name(Brick::attention).id, 3)});
        const std::uint64_t sequence = written_[1] + pending_[1].size() - 1;
        flush(true); // a submission stands before its scope
        put(3, {step + 1, pack(RecordKind::context, static_cast<std::uint16_t>(layer + 1))});
        put(3, {sequence, pack(RecordKind::cause, 0, 1)});
        scope(3, Brick::attention, now_ + 4, now_ + 9);
        put(3, {0, pack(RecordKind::context_end)});
        now_ += 12;
    }

    void flush(bool all) {
        for (auto& [track, records] : pending_) {
            if (records.empty() || (!all && random_() % 3 == 0)) {
                continue;
            }
            EXPECT_TRUE(writer_->append({track, written_[track], records.data(), records.size()}).ok());
            written_[track] += records.size();
            records.clear();
        }
    }

    std::string path_ = fresh_path();
    std::mt19937 random_;
    std::unique_ptr<recording::Writer> writer_;
    std::map<std::uint32_t, std::vector<Record>> pending_;
    std::map<std::uint32_t, std::uint64_t> written_;
    std::uint64_t now_ = first_tick;
};

struct Written {
    std::vector<std::string> lines; // without the header
    std::vector<std::string> notes;
};

Written lines_of(const std::string& path, const ExportWindow& window) {
    std::ostringstream out;
    const auto said = export_recording(path, "jsonl", out, window);
    EXPECT_TRUE(said.ok()) << said.error().message;
    Written written;
    if (said.ok()) {
        written.notes = *said;
    }
    std::istringstream in(out.str());
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        written.lines.push_back(line);
    }
    return written;
}

using Parsed = std::vector<std::pair<std::string, Json>>;

/// Every line of the recording, and what it says.
Parsed all_of(const std::string& path) {
    Parsed parsed;
    for (const std::string& line : lines_of(path, {}).lines) {
        parsed.emplace_back(line, Json::parse(line));
    }
    return parsed;
}

std::vector<std::string> kept(const Parsed& lines, const std::function<bool(const Json&)>& keep) {
    std::vector<std::string> left;
    for (const auto& [line, said] : lines) {
        if (keep(said)) {
            left.push_back(line);
        }
    }
    std::sort(left.begin(), left.end());
    return left;
}

std::vector<std::string> sorted(std::vector<std::string> lines) {
    std::sort(lines.begin(), lines.end());
    return lines;
}

bool in_steps(const Json& line, std::uint64_t first, std::uint64_t last) {
    return line.contains("step") && line["step"].get<std::uint64_t>() >= first &&
           line["step"].get<std::uint64_t>() <= last;
}

/// Records that a reading of the file takes, in both passes.
std::uint64_t records_read(const std::string& path, std::uint64_t first, std::uint64_t last) {
    const auto run = recording::open_run(path);
    EXPECT_TRUE(run.ok());
    recording::StepRanges steps;
    steps.add(first, last);
    const auto part = run->batches_of(steps, 8);
    std::uint64_t records = 0;
    EXPECT_TRUE((part ? *part : run->for_each_batch)([&](const recording::RecordBatch& batch) {
                    records += batch.count;
                    return true;
                }).ok());
    return records;
}

TEST(Window, F10_steps_are_written_as_the_whole_recording_has_them) {
    for (std::uint32_t seed = 1; seed <= 6; ++seed) {
        SteppedRun run(seed, seed % 3 + 1);
        run.close();
        const Parsed all = all_of(run.path());
        for (const auto& [first, last] : {std::pair{0, 0}, {0, 9}, {57, 57}, {100, 119}, {190, 199}, {0, 199}}) {
            ExportWindow window;
            window.steps = {first, last};
            const Written part = lines_of(run.path(), window);
            ASSERT_EQ(
                sorted(part.lines),
                kept(all, [&](const Json& line) { return in_steps(line, window.steps->first, window.steps->second); }))
                << "seed " << seed << ", steps " << first << " to " << last;
            EXPECT_TRUE(part.notes.empty());
        }
    }
}

TEST(Window, one_that_holds_nothing_is_empty_and_says_so) {
    SteppedRun run(4);
    run.close();
    const auto error_of = [&](const ExportWindow& window) {
        std::ostringstream out;
        for (const char* format : {"csv", "chrome_trace", "perfetto", "otlp"}) {
            EXPECT_FALSE(export_recording(run.path(), format, out, window).ok());
        }
        const auto said = export_recording(run.path(), "jsonl", out, window);
        EXPECT_FALSE(said.ok());
        EXPECT_EQ(out.str(), "");
        return said.ok() ? Error{} : said.error();
    };
    ExportWindow window;
    window.steps = {5000, 5001};
    EXPECT_EQ(error_of(window).code, ErrorCode::not_found);
    EXPECT_EQ(error_of(window).message, "nothing lies in steps 5000 to 5001; the steps of this recording are 0 to 199");
    window.steps = {};
    window.layers = {9, 9};
    EXPECT_EQ(error_of(window).message, "nothing lies in layer 9; the layers there are 0 to 2");
}

TEST(Window, slowest_of_no_step_is_an_error) {
    SteppedRun run(4);
    run.close();
    ExportWindow window;
    window.steps = {5000, 5001};
    window.slowest = 2;
    std::ostringstream out;
    const auto said = export_recording(run.path(), "jsonl", out, window);
    ASSERT_FALSE(said.ok());
    EXPECT_NE(said.error().message.find("no step of this recording is left"), std::string::npos);
    EXPECT_EQ(out.str(), "");
}

TEST(Window, a_few_steps_take_a_small_part_of_the_file) {
    SteppedRun run(3, 1, 2000);
    run.close();
    const std::uint64_t all = records_read(run.path(), 0, 1999);
    EXPECT_GT(all, 60'000U);
    EXPECT_LT(records_read(run.path(), 1000, 1009), all / 20);
}

TEST(Window, of_a_killed_run_its_chunks_are_used_as_well) {
    SteppedRun run(5, 2);
    const Parsed all = all_of(run.path());
    ExportWindow window;
    window.steps = {100, 103};
    EXPECT_EQ(sorted(lines_of(run.path(), window).lines),
              kept(all, [](const Json& line) { return in_steps(line, 100, 103); }));
    EXPECT_LT(records_read(run.path(), 100, 103), records_read(run.path(), 0, 199) / 2);
}

TEST(Window, of_a_recording_of_an_older_version_all_is_read_and_that_is_said) {
    for (const char* name : {"v1_causes.plumb", "v1_launches.plumb"}) {
        const std::string path = std::string(PLUMB_TEST_SOURCE_DIR) + "/tests/golden/" + name;
        const Parsed all = all_of(path);
        ExportWindow window;
        window.steps = {1, 2};
        const Written part = lines_of(path, window);
        EXPECT_EQ(sorted(part.lines), kept(all, [](const Json& line) { return in_steps(line, 1, 2); })) << name;
        EXPECT_FALSE(part.lines.empty()) << name;
        ASSERT_EQ(part.notes.size(), 1U) << name;
        EXPECT_NE(part.notes[0].find("records do not say which steps they belong to"), std::string::npos);
    }
}

TEST(Window, layers_leave_the_steps_they_lie_in) {
    SteppedRun run(6);
    run.close();
    const Parsed all = all_of(run.path());
    ExportWindow window;
    window.layers = {1, 2};
    EXPECT_EQ(sorted(lines_of(run.path(), window).lines), kept(all, [](const Json& line) {
                  return line["kind"] == "step" || (line.contains("layer") && line["layer"] >= 1);
              }));
}

TEST(Window, tracks_are_named_by_number_or_by_a_part_of_their_name) {
    SteppedRun run(7);
    run.close();
    const Parsed all = all_of(run.path());
    ExportWindow window;
    window.tracks = {"stream", "2"};
    EXPECT_EQ(sorted(lines_of(run.path(), window).lines),
              kept(all, [](const Json& line) { return line["track"] == 2 || line["track"] == 3; }));
    window.tracks = {"strom"};
    std::ostringstream out;
    const auto said = export_recording(run.path(), "jsonl", out, window);
    ASSERT_FALSE(said.ok());
    EXPECT_EQ(said.error().message, "there is no track \"strom\"; take one of 1 (main), 2 (helper), 3 (stream 7)");
}

TEST(Window, the_slowest_steps_are_decode_steps_behind_the_warm_up) {
    SteppedRun run(8);
    run.close();
    std::vector<std::pair<std::int64_t, std::uint64_t>>
        steps; // of those that count, by the end of their last device scope
    std::map<std::uint64_t, std::int64_t> ends, begins;
    for (const auto& [text, line] : all_of(run.path())) {
        if (line["phase"] != "decode" || line["warmup"] == true || !line.contains("step") ||
            !line.contains("begin_ns")) {
            continue;
        }
        const std::uint64_t step = line["step"];
        const std::int64_t begin = line["begin_ns"], end = begin + line["duration_ns"].get<std::int64_t>();
        ends[step] = line["kind"] == "step" || line["track"] == 3 ? std::max(ends[step], end) : ends[step];
        begins[step] = line["kind"] == "step" ? begin : begins[step];
    }
    for (const auto& [step, end] : ends) {
        steps.emplace_back(begins[step] - end, step);
    }
    std::stable_sort(steps.begin(), steps.end());
    ExportWindow window;
    window.slowest = 3;
    const Written part = lines_of(run.path(), window);
    std::set<std::uint64_t> found;
    for (const std::string& text : part.lines) {
        found.insert(Json::parse(text)["step"].get<std::uint64_t>());
    }
    std::set<std::int64_t> lengths;
    for (const std::uint64_t step : found) {
        lengths.insert(begins[step] - ends[step]);
    }
    EXPECT_EQ(found.size(), 3U);
    EXPECT_LE(*lengths.rbegin(), steps[2].first);
    ASSERT_EQ(part.notes.size(), 1U);
    EXPECT_EQ(part.notes[0].substr(0, 22), "the slowest steps are ");
}

TEST(Window, one_that_holds_parts_of_steps_says_nothing_of_their_bandwidth) {
    SteppedRun run(11);
    run.close();
    const auto holds = [&](const ExportWindow& window, const char* counter) {
        std::ostringstream out;
        EXPECT_TRUE(export_recording(run.path(), "perfetto", out, window).ok());
        return out.str().find(counter) != std::string::npos;
    };
    ExportWindow steps, layers, tracks;
    steps.steps = {10, 20};
    layers.layers = {0, 1};
    tracks.tracks = {"helper"};
    EXPECT_TRUE(holds({}, "bandwidth") && holds(steps, "bandwidth"));
    EXPECT_FALSE(holds(layers, "bandwidth") || holds(tracks, "bandwidth"));
    EXPECT_TRUE(holds(layers, "kv length") && holds(tracks, "kv length"));
}

/// Spans by their id, and the spans that each links to.
struct LinkedSpans {
    std::map<std::string, Json> all;
    std::map<std::string, std::set<std::string>> links;
};

LinkedSpans spans_of(const std::string& path, const ExportWindow& window) {
    std::ostringstream out;
    EXPECT_TRUE(export_recording(path, "otlp", out, window).ok());
    LinkedSpans found;
    std::istringstream in(out.str());
    for (std::string line; std::getline(in, line);) {
        const Json said = Json::parse(line);
        for (const Json& span : said["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
            Json kept = span;
            if (kept.erase("links") != 0) {
                for (const Json& link : span["links"]) {
                    found.links[span["spanId"]].insert(link["spanId"]);
                }
            }
            if (span["name"] != "run") { // which is as long as the steps that are there
                found.all[span["spanId"]] = kept;
            }
        }
    }
    return found;
}

TEST(Window, requests_are_those_that_its_steps_had_and_are_whole) {
    SteppedRun run(10, 1, 200, true);
    run.close();
    const LinkedSpans all = spans_of(run.path(), {});
    std::vector<ExportWindow> windows(6);
    windows[0].steps = {0, 4};
    windows[1].steps = {57, 57};
    windows[2].steps = {100, 119};
    windows[3].steps = {199, 199};
    windows[4].layers = {1, 1};
    windows[5].tracks = {"stream"};
    std::vector<std::size_t> requests;
    for (const ExportWindow& window : windows) {
        const LinkedSpans part = spans_of(run.path(), window);
        std::map<std::string, std::set<std::string>> expected;
        for (const auto& [id, steps] : all.links) {
            for (const std::string& step : steps) {
                if (part.all.count(step) != 0) {
                    expected[id].insert(step);
                }
            }
        }
        EXPECT_EQ(part.links, expected);
        std::size_t found = 0;
        for (const auto& [id, span] : part.all) {
            ASSERT_EQ(all.all.count(id), 1U) << span;
            EXPECT_EQ(span, all.all.at(id));
            found += span["name"] == "request" ? 1 : 0;
        }
        EXPECT_EQ(found, expected.size());
        requests.push_back(found);
    }
    EXPECT_EQ(requests, (std::vector<std::size_t>{2, 2, 3, 1, 28, 0}));
}

/// Of a format of so many slices: how many of each step are there, and what is said.
std::vector<std::string> slices_of(const std::string& path, std::uint64_t most,
                                   std::map<std::uint64_t, std::uint64_t>& by_step) {
    const auto opened = recording::open_run(path);
    EXPECT_TRUE(opened.ok());
    const auto part = window_of(*opened, {}, most);
    EXPECT_TRUE(part.ok());
    EXPECT_TRUE(part->feed
                    .for_each_batch([&](const resolve::ResolvedBatch& batch) {
                        for (const auto& sample : batch.samples) {
                            ++by_step[sample.step];
                        }
                        for (const auto& submission : batch.submissions) {
                            ++by_step[submission.step];
                        }
                        return true;
                    })
                    .ok());
    return part->notes;
}

TEST(Window, without_one_a_format_of_few_slices_has_whole_steps_evenly_spaced) {
    SteppedRun run(9);
    run.close();
    std::map<std::uint64_t, std::uint64_t> all, some;
    EXPECT_TRUE(slices_of(run.path(), 1'000'000, all).empty());
    const auto notes = slices_of(run.path(), 500, some);
    std::uint64_t kept = 0;
    const std::uint64_t every = std::next(some.begin())->first;
    for (const auto& [step, slices] : some) {
        EXPECT_EQ(step % every, 0U);
        EXPECT_EQ(slices, all[step]); // the whole of it
        kept += slices;
    }
    EXPECT_LE(kept, 500U);
    EXPECT_GT(kept, 300U);
    EXPECT_EQ(some.size(), 200 / every + (200 % every != 0 ? 1 : 0));
    ASSERT_EQ(notes.size(), 2U);
    EXPECT_EQ(notes[1].substr(0, 12), "one step in ");
}

TEST(Window, slices_in_no_step_cost_no_step_and_it_is_said_that_they_are_left_out) {
    SteppedRun run(9);
    run.close();
    std::map<std::uint64_t, std::uint64_t> all, some;
    EXPECT_TRUE(slices_of(run.path(), 1'000'000, all).empty());
    EXPECT_EQ(all.at(resolve::no_step), 200U);
    all.erase(resolve::no_step);
    std::uint64_t inside = 0;
    for (const auto& [step, slices] : all) {
        inside += slices;
    }
    const auto notes = slices_of(run.path(), inside, some);
    EXPECT_EQ(some, all);
    EXPECT_EQ(notes,
              std::vector<std::string>{"200 slices that lie in no step are left out, since viewers are slow beyond " +
                                       std::to_string(inside) + ": --tracks keeps all of a thread"});
}

} // namespace
} // namespace plumb::exporting
