// SPDX-License-Identifier: Apache-2.0
// The life of a profiler: open, record, look, reset, close; each key of its config does what it says.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "plumb/backend.hpp"
#include "plumb/plumb.hpp"
#include "record/recorder_access.hpp"
#include "record/recorder_testing.hpp"
#include "recording/reader.hpp"
#include "support/text_of_file.hpp"

namespace plumb {
namespace {

constexpr Name norm = Brick::rms_norm;

class ProfilerTest : public testing::Test {
  protected:
    ProfilerTest() {
        char name[] = "/tmp/plumb-session-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~ProfilerTest() override { std::filesystem::remove_all(folder_); }

    Config config(const std::string& keys = "", const std::string& file = "run.plumb") {
        Config c = *Config::parse("on,out=" + folder_ + "/" + file + (keys.empty() ? "" : "," + keys));
        c.clock = &clock_;
        c.diagnostic = [](const char* sentence, void* user) {
            static_cast<std::vector<std::string>*>(user)->emplace_back(sentence);
        };
        c.diagnostic_user = &said_;
        return c;
    }
    Config machine_config(const std::string& keys = "") {
        Config c = config(keys);
        c.clock = nullptr;
        return c;
    }
    void one_scope(Profiler& prof) {
        PLUMB_BRICK(prof, host, norm);
        clock_.advance(1000); // a clock that stands still cannot be fitted
    }
    void decode_steps(Profiler& prof, int steps, std::uint64_t ticks = 1000) {
        for (int step = 0; step < steps; ++step) {
            PLUMB_STEP(prof, host, Phase::decode, tokens(1));
            for (int layer = 0; layer < 2; ++layer) {
                PLUMB_LAYER(prof, layer);
                PLUMB_BRICK(prof, host, norm, bytes(4096));
                clock_.advance(ticks);
            }
            clock_.advance(10);
        }
    }
    recording::Reader reader(const std::string& path) {
        Result<recording::Reader> opened = recording::Reader::open(path);
        EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
        return *std::move(opened);
    }

    record::HandClock clock_;
    std::string folder_;
    std::vector<std::string> said_;
};

const Row* row_of(const Report& report, const std::string& name) {
    for (const Row& row : report.bricks) {
        if (row.key.name == name) {
            return &row;
        }
    }
    return nullptr;
}

TEST_F(ProfilerTest, off_by_default_does_nothing_at_all) {
    Profiler prof;
    EXPECT_FALSE(prof.enabled());
    { PLUMB_BRICK(prof, host, norm); }
    EXPECT_EQ(prof.path(), "");
    EXPECT_TRUE(prof.status().ok());
    EXPECT_TRUE(prof.flush().ok());
    EXPECT_FALSE(prof.snapshot().ok());
    EXPECT_TRUE(prof.close().ok());
}

TEST_F(ProfilerTest, one_that_could_not_open_its_recording_has_no_path) {
    Config config = *Config::parse("on,out=" + folder_ + "/no/such/folder/run.plumb");
    config.diagnostic = [](const char*, void*) {
    };
    const Profiler prof(config);
    EXPECT_FALSE(prof.status().ok());
    EXPECT_EQ(prof.path(), "");
}

TEST_F(ProfilerTest, made_by_a_program_with_headers_of_another_layout_is_off_for_good_and_says_so) {
    const std::string path = folder_ + "/other.plumb";
    Config config = *Config::parse("on,out=" + path);
    std::vector<std::string> said;
    config.diagnostic_user = &said;
    config.diagnostic = [](const char* sentence, void* user) {
        static_cast<std::vector<std::string>*>(user)->emplace_back(sentence);
    };
    Profiler prof(config, layout_version + 1);
    EXPECT_FALSE(prof.enabled());
    EXPECT_EQ(said.size(), 1u);
    ASSERT_FALSE(prof.status().ok());
    EXPECT_EQ(prof.status().error().code, ErrorCode::unsupported);
    EXPECT_NE(prof.status().error().message.find("compile it again"), std::string::npos);
    EXPECT_FALSE(prof.enable().ok());
    { PLUMB_BRICK(prof, host, norm); }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ProfilerTest, made_from_an_error_is_off_and_keeps_its_status) {
    Profiler prof(Config::parse("on,colour=red"));
    EXPECT_FALSE(prof.enabled());
    ASSERT_FALSE(prof.status().ok());
    EXPECT_NE(prof.status().error().message.find("colour"), std::string::npos);
    EXPECT_FALSE(prof.enable().ok());
    { PLUMB_BRICK(prof, host, norm); }
}

TEST_F(ProfilerTest, records_into_its_file_and_finishes_it) {
    std::string ring;
    {
        Profiler prof(config());
        ASSERT_TRUE(prof.enabled());
        EXPECT_EQ(prof.path(), folder_ + "/run.plumb");
        decode_steps(prof, 3);
        ring = reader(prof.path()).metadata().ring_path;
    }
    recording::Reader opened = reader(folder_ + "/run.plumb");
    EXPECT_TRUE(opened.closed());
    EXPECT_TRUE(opened.notes().empty());
    EXPECT_NE(ring, "");
    EXPECT_FALSE(std::filesystem::exists(ring)) << "a finished run leaves no ring behind";
    struct stat info {};
    ASSERT_EQ(stat((folder_ + "/run.plumb").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0600u);
    EXPECT_TRUE(said_.empty());
}

TEST_F(ProfilerTest, snapshot_gives_the_numbers_of_the_finished_file) {
    Profiler prof(config("warmup=2"));
    prof.describe("model", "tiny");
    decode_steps(prof, 12);
    std::thread([&] {
        PLUMB_BRICK(prof, host, Brick::sampling);
        clock_.advance(5);
    }).join();
    prof.record(prof.intern("tokenize"), 55);
    const Result<Report> live = prof.snapshot();
    ASSERT_TRUE(live.ok()) << live.error().message;
    ASSERT_TRUE(prof.close().ok());
    const Result<Report> done = report_recording(prof.path());
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(live->scopes, 25u);
    // Notes differ by what is said of a file that is still being written; the cost of the drain grows.
    Report a = *live;
    Report b = *done;
    a.notes.clear();
    b.notes.clear();
    a.own_cost = b.own_cost = OwnCost{};
    a.clock = b.clock = ClockQuality{};
    EXPECT_EQ(render_json(a), render_json(b));
    const Result<Report> after_close = prof.snapshot();
    ASSERT_TRUE(after_close.ok());
    EXPECT_EQ(after_close->scopes, live->scopes);
}

TEST_F(ProfilerTest, snapshot_in_memory_gives_the_same_numbers_as_a_file) {
    Profiler in_memory(config("out=none"));
    decode_steps(in_memory, 4);
    const Result<Report> first = in_memory.snapshot();
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(in_memory.path(), "");
    EXPECT_EQ(first->scopes, 8u);
    ASSERT_TRUE(in_memory.close().ok());
    EXPECT_EQ(in_memory.snapshot()->scopes, 8u);
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
    EXPECT_TRUE(said_.empty()) << "in memory was asked for: nothing to warn of";
}

// A snapshot reads while the drain writes: under ThreadSanitizer this is the test that they do not meet.
TEST_F(ProfilerTest, an_answer_of_the_run_so_far_is_the_same_in_memory_and_of_a_file_and_begins_at_the_reset) {
    const std::vector<std::pair<std::string, OptionValues>> questions = {
        {"wall", {{"phase", "decode"}}}, {"report", {{"with", "wall,layers"}}}, {"layers", {}}, {"path", {}}};
    std::vector<std::string> live, in_memory;
    const auto without_notes = [](const std::string& text) { // which speak of the file
        std::istringstream lines(text);
        std::string kept;
        for (std::string line; std::getline(lines, line);) {
            kept += line.rfind("note ", 0) == 0 ? "" : line + "\n";
        }
        return kept;
    };
    const auto run = [&](Profiler& prof, std::vector<std::string>& answers) {
        decode_steps(prof, 3);
        prof.reset();
        decode_steps(prof, 40);
        ASSERT_TRUE(prof.flush().ok());
        for (const auto& [name, options] : questions) {
            const Result<Answer> answer = prof.ask(name, options);
            ASSERT_TRUE(answer.ok()) << name << ": " << answer.error().message;
            answers.push_back(without_notes(answer->text()));
        }
    };
    Config none = config("warmup=0");
    none.out = "none";
    {
        Profiler in_file(config("warmup=0")), nowhere(none);
        run(in_file, live);
        run(nowhere, in_memory);
    }
    ASSERT_EQ(live.size(), questions.size());
    EXPECT_NE(live[0].find("40 steps"), std::string::npos) << live[0];
    EXPECT_NE(live[1].find("plumb layers"), std::string::npos) << "with others from one reading";
    EXPECT_EQ(live, in_memory);
}

TEST_F(ProfilerTest, an_answer_that_cannot_be_given_says_what_to_do) {
    Profiler prof(config());
    EXPECT_EQ(prof.ask("wall").error().code, ErrorCode::not_found) << "nothing is recorded yet";
    one_scope(prof);
    const Result<Answer> health = prof.ask("health");
    EXPECT_EQ(health.error().code, ErrorCode::unsupported);
    EXPECT_NE(health.error().message.find("path()"), std::string::npos) << health.error().message;
    EXPECT_EQ(prof.ask("walls").error().code, ErrorCode::not_found);
    EXPECT_EQ(prof.ask("wall", {{"phases", "decode"}}).error().code, ErrorCode::invalid_argument);
}

TEST_F(ProfilerTest, a_snapshot_lets_other_calls_through_while_it_reads) {
    constexpr std::uint64_t scopes = 2'000'000; // a tenth of a second to read
    Profiler prof(machine_config("ring=64MiB"));
    for (std::uint64_t i = 0; i < scopes; ++i) {
        PLUMB_BRICK(prof, host, norm);
    }
    ASSERT_TRUE(prof.flush().ok());
    std::atomic<bool> ended{false};
    std::thread reading([&] {
        EXPECT_EQ(prof.snapshot()->scopes, scopes);
        ended = true;
    });
    int toggles = 0;
    for (; !ended; ++toggles) {
        prof.disable();
        (void)prof.enable();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    reading.join();
    EXPECT_GT(toggles, 5);
}

TEST_F(ProfilerTest, snapshots_may_be_taken_while_threads_record) {
    Profiler prof(machine_config("out=none,ring=4096"));
    std::atomic<bool> stop{false};
    std::thread recording([&] {
        while (!stop) {
            PLUMB_BRICK(prof, host, norm);
        }
    });
    std::uint64_t last = 0;
    for (int i = 0; i < 10; ++i) {
        const Result<Report> report = prof.snapshot();
        ASSERT_TRUE(report.ok());
        EXPECT_GE(report->scopes, last);
        last = report->scopes;
    }
    stop = true;
    recording.join();
}

TEST_F(ProfilerTest, T8_reset_starts_everything_anew_and_the_file_keeps_it_all) {
    Profiler prof(config("warmup=0"));
    const Name label = prof.intern("reset label");
    decode_steps(prof, 12);
    prof.record(label, 1000);
    PLUMB_LAP(prof, host, norm); // refused and counted
    {
        PLUMB_STEP(prof, host, Phase::prefill, tokens(64));
        clock_.advance(100);
    }
    Token token = prof.begin(norm);
    prof.end(token);
    prof.end(token);
    ASSERT_FALSE(prof.snapshot()->losses.empty());
    prof.reset();
    const Result<Report> cleared = prof.snapshot();
    ASSERT_TRUE(cleared.ok());
    EXPECT_EQ(cleared->scopes, 0u);
    EXPECT_TRUE(cleared->bricks.empty());
    EXPECT_TRUE(cleared->layers.empty());
    EXPECT_TRUE(cleared->categories.empty());
    EXPECT_TRUE(cleared->phases.empty());
    EXPECT_TRUE(cleared->labels.empty());
    EXPECT_TRUE(prof.labels().empty());
    EXPECT_TRUE(cleared->losses.empty()) << cleared->losses[0].reason;
    decode_steps(prof, 10, 500);
    prof.record(label, 3);
    const Result<Report> anew = prof.snapshot();
    ASSERT_TRUE(anew.ok());
    ASSERT_NE(row_of(*anew, "rms_norm"), nullptr);
    EXPECT_EQ(row_of(*anew, "rms_norm")->time.count, 20u);
    EXPECT_DOUBLE_EQ(row_of(*anew, "rms_norm")->time.max_ns, 500);
    ASSERT_EQ(anew->phases.size(), 1u);
    EXPECT_EQ(anew->phases[0].steps, 10u);
    ASSERT_EQ(anew->labels.size(), 1u);
    EXPECT_EQ(anew->labels[0].count, 1u);
    EXPECT_DOUBLE_EQ(anew->labels[0].max_ns, 3);
    ASSERT_TRUE(prof.close().ok());
    const Result<Report> whole = report_recording(prof.path());
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ(row_of(*whole, "rms_norm")->time.count, 44u) << "24 + 20: laps and tokens aside";
    EXPECT_EQ(whole->labels.at(0).count, 2u);
    int marks = 0;
    recording::Reader opened = reader(prof.path());
    ASSERT_TRUE(opened
                    .for_each_batch([&](const recording::RecordBatch& batch) {
                        for (std::size_t i = 0; i < batch.count; ++i) {
                            const Record& r = batch.records[i];
                            marks += kind_of(r) == RecordKind::mark && id_of(r) == std::uint16_t(Mark::reset) ? 1 : 0;
                        }
                        return true;
                    })
                    .ok());
    EXPECT_EQ(marks, 1);
}

TEST_F(ProfilerTest, T8_reset_also_clears_threads_that_have_ended_and_left_their_ring_to_others) {
    Profiler prof(config());
    for (int i = 0; i < 3; ++i) {
        std::thread([&] { one_scope(prof); }).join();
        ASSERT_TRUE(prof.flush(60).ok()); // drained: the next thread takes the ring
    }
    prof.reset();
    EXPECT_EQ(prof.snapshot()->scopes, 0u);
    std::thread([&] { one_scope(prof); }).join();
    EXPECT_EQ(prof.snapshot()->scopes, 1u);
}

TEST_F(ProfilerTest, labels_have_count_total_min_and_max_and_the_largest_total_first) {
    Profiler prof(config());
    const Name small = prof.intern("small");
    const Name large = prof.intern("large");
    for (const std::uint64_t ns : {5u, 1u, 9u}) {
        prof.record(small, ns);
    }
    prof.record(large, 100);
    const auto labels = prof.labels();
    ASSERT_EQ(labels.size(), 2u);
    EXPECT_EQ(labels[0].label, "large");
    EXPECT_EQ(labels[1].label, "small");
    EXPECT_EQ(labels[1].count, 3u);
    EXPECT_DOUBLE_EQ(labels[1].total_ns, 15);
    EXPECT_DOUBLE_EQ(labels[1].min_ns, 1);
    EXPECT_DOUBLE_EQ(labels[1].max_ns, 9);
    EXPECT_EQ(prof.snapshot()->scopes, 0u) << "labels are untimed";
    EXPECT_TRUE(prof.enabled());
    prof.disable();
    EXPECT_FALSE(prof.enabled());
    prof.record(small, 7);
    EXPECT_EQ(prof.labels()[1].count, 3u);
}

TEST_F(ProfilerTest, enable_and_disable_at_run_time) {
    Config c = config();
    c.on = false;
    Profiler prof(c);
    one_scope(prof);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/run.plumb")) << "no file before something is recorded";
    ASSERT_TRUE(prof.enable().ok());
    one_scope(prof);
    prof.disable();
    one_scope(prof);
    ASSERT_TRUE(prof.enable().ok());
    one_scope(prof);
    EXPECT_EQ(prof.snapshot()->scopes, 2u);
    ASSERT_TRUE(prof.close().ok());
    EXPECT_FALSE(prof.enable().ok()) << "closed is closed";
    EXPECT_FALSE(prof.enabled());
}

TEST_F(ProfilerTest, time_while_recording_was_off_belongs_to_no_step) {
    Profiler prof(config("warmup=0"));
    decode_steps(prof, 2);
    prof.disable();
    clock_.advance(1'000'000'000);
    ASSERT_TRUE(prof.enable().ok());
    decode_steps(prof, 2);
    const Result<Report> report = prof.snapshot();
    ASSERT_TRUE(report.ok());
    ASSERT_EQ(report->phases.size(), 1U);
    EXPECT_EQ(report->phases[0].steps, 4U);
    EXPECT_LT(report->phases[0].period.total_ns, 100'000);
}

TEST_F(ProfilerTest, may_be_closed_while_threads_still_record) {
    Profiler prof(machine_config());
    std::atomic<bool> stop{false};
    std::atomic<int> started{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
            { PLUMB_BRICK(prof, host, norm); }
            ++started;
            while (!stop) {
                PLUMB_STEP(prof, host, Phase::decode);
                PLUMB_BRICK(prof, host, norm);
                PLUMB_LAP(prof, host, norm);
                Token token = prof.begin(norm);
                prof.end(token);
            }
        });
    }
    record::yield_until([&] { return started == 3; });
    EXPECT_TRUE(prof.close().ok());
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_GE(report_recording(prof.path())->scopes, 3u);
}

TEST_F(ProfilerTest, two_profilers_have_two_files_and_do_not_mix) {
    Profiler a(config("", "a.plumb"));
    Profiler b(config("", "b.plumb"));
    one_scope(a);
    one_scope(b);
    one_scope(b);
    EXPECT_EQ(a.snapshot()->scopes, 1u);
    EXPECT_EQ(b.snapshot()->scopes, 2u);
}

TEST_F(ProfilerTest, two_profilers_with_one_path_are_one_profiler_and_one_clear_sentence) {
    Profiler first(config());
    one_scope(first);
    Profiler second(config());
    EXPECT_FALSE(second.enabled());
    ASSERT_FALSE(second.status().ok());
    EXPECT_EQ(second.status().error().code, ErrorCode::already_exists);
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_NE(said_[0].find(folder_ + "/run.plumb"), std::string::npos) << said_[0];
    EXPECT_EQ(first.snapshot()->scopes, 1u) << "the one that writes is not disturbed";
}

TEST_F(ProfilerTest, an_existing_file_is_kept_aside) {
    {
        Profiler prof(config());
        decode_steps(prof, 1);
    }
    {
        Profiler prof(config());
        decode_steps(prof, 2);
    }
    EXPECT_EQ(report_recording(folder_ + "/run.plumb")->scopes, 4u);
    EXPECT_EQ(report_recording(folder_ + "/run.plumb.1")->scopes, 2u);
    EXPECT_TRUE(said_.empty());
}

TEST_F(ProfilerTest, a_folder_that_is_not_there_is_one_clear_sentence) {
    Profiler prof(config("", "none/run.plumb"));
    EXPECT_FALSE(prof.enabled());
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_NE(said_[0].find(folder_ + "/none/run.plumb"), std::string::npos) << said_[0];
    EXPECT_EQ(prof.status().error().message, said_[0]);
}

TEST_F(ProfilerTest, key_ring_sets_the_size_of_rings) {
    for (const auto& [spec, size] : {std::pair{"ring=4096", 4096u}, {"ring=5000", 4096u}, {"ring=4MiB", 4u << 20}}) {
        Profiler prof(config(std::string("out=none,") + spec));
        ASSERT_TRUE(prof.enabled());
        EXPECT_EQ((prof.thread()->mask + 1) * sizeof(Record), size);
    }
}

TEST_F(ProfilerTest, key_max_size_bounds_the_file) {
    Profiler prof(machine_config("max_size=1MiB,ring=1MiB"));
    std::uint64_t seed = 1;
    for (int round = 0; round < 60; ++round) {
        for (int i = 0; i < 10000; ++i) {
            seed = seed * 6364136223846793005u + 1442695040888963407u; // work that cannot be compressed
            PLUMB_BRICK(prof, host, norm, bytes(seed >> 11));
        }
        ASSERT_TRUE(prof.flush(60).ok());
        EXPECT_LE(std::filesystem::file_size(prof.path()), std::uintmax_t{3} << 19);
    }
    ASSERT_TRUE(prof.close().ok());
    EXPECT_GT(reader(prof.path()).counters().records_removed, 0u);
}

TEST_F(ProfilerTest, key_keep_lets_old_records_go) {
    Profiler prof(machine_config("keep=1ms,ring=1MiB"));
    std::uint64_t removed = 0;
    for (int round = 0; round < 5000 && removed == 0; ++round) {
        for (int i = 0; i < 2000; ++i) {
            PLUMB_BRICK(prof, host, norm);
        }
        ASSERT_TRUE(prof.flush(60).ok());
        removed = reader(prof.path()).counters().records_removed;
    }
    EXPECT_GT(removed, 0u);
    EXPECT_LT(prof.snapshot()->scopes, reader(prof.path()).counters().records);
}

TEST_F(ProfilerTest, key_warmup_keeps_steps_apart) {
    Profiler prof(config("warmup=3"));
    decode_steps(prof, 5);
    const Result<Report> report = prof.snapshot();
    ASSERT_EQ(report->phases.size(), 1u);
    EXPECT_EQ(report->phases[0].warmup_steps, 3u);
    EXPECT_EQ(report->phases[0].steps, 2u);
}

TEST_F(ProfilerTest, key_redact_leaves_host_paths_and_command_out) {
    char host_text[256] = {};
    gethostname(host_text, sizeof host_text - 1);
    {
        Profiler prof(machine_config("redact=on"));
        decode_steps(prof, 1);
    }
    const std::string content = support::text_of_file(folder_ + "/run.plumb");
    EXPECT_EQ(content.find(folder_), std::string::npos);
    EXPECT_EQ(content.find("plumb_session_test"), std::string::npos);
    EXPECT_EQ(reader(folder_ + "/run.plumb").metadata().host.find(host_text), std::string::npos);
}

TEST_F(ProfilerTest, key_redact_leaves_whole_paths_out_of_the_settings_and_nothing_else) {
    Config hidden = config("redact=on,tensors=all+bricks=attention/lm_head");
    hidden.out = folder_ + "/one,two.plumb";
    hidden.tensors.dump = folder_ + "/three,four";
    std::filesystem::create_directory(hidden.tensors.dump);
    { Profiler prof(hidden); }
    const std::string kept = reader(hidden.out).metadata().config;
    EXPECT_EQ(kept.find("two"), std::string::npos) << kept;
    EXPECT_EQ(kept.find("four"), std::string::npos) << kept;
    EXPECT_NE(kept.find("out=redacted,"), std::string::npos) << kept;
    EXPECT_NE(kept.find("tensors=all+bricks=attention/lm_head,dump=redacted"), std::string::npos) << kept;
}

TEST_F(ProfilerTest, key_redact_leaves_trace_ids_of_requests_out) {
    for (const bool redact : {false, true}) {
        Profiler prof(machine_config(redact ? "redact=on" : "redact=off"));
        PLUMB_REQUEST(prof, 17, RequestPhase::queue,
                      trace_parent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        const std::string path = prof.path();
        ASSERT_TRUE(prof.close().ok());
        const Result<Answer> requests = ask("requests", {path});
        ASSERT_TRUE(requests.ok()) << requests.error().message;
        EXPECT_NE(requests->json().find(redact ? "\"traced\": 0" : "\"traced\": 1"), std::string::npos)
            << requests->json();
    }
}

TEST_F(ProfilerTest, T1_key_sync_decides_how_stamps_are_taken) {
    struct Expected {
        const char* mode;
        bool serialise, serialise_layers, host_only;
    };
    for (const Expected& e : {Expected{"deferred", false, false, false}, Expected{"immediate", true, false, false},
                              Expected{"per_layer", false, true, false}, Expected{"none", false, false, true}}) {
        Profiler prof(config(std::string("sync=") + e.mode));
        const StampOptions stamps = RecorderAccess::stamps(prof);
        EXPECT_EQ(stamps.serialise, e.serialise) << e.mode;
        EXPECT_EQ(stamps.serialise_layers, e.serialise_layers) << e.mode;
        EXPECT_EQ(stamps.host_only, e.host_only) << e.mode;
    }
}

TEST_F(ProfilerTest, key_sync_is_in_the_recording_with_what_it_costs) {
    for (const char* mode : {"deferred", "immediate", "per_layer", "none"}) {
        {
            Profiler prof(machine_config(std::string("sync=") + mode));
        }
        const recording::Metadata metadata = reader(folder_ + "/run.plumb").metadata();
        EXPECT_EQ(metadata.sync_mode, mode);
        const std::map<std::string, double> costs(metadata.costs.begin(), metadata.costs.end());
        for (const char* name : {"scope", "lap", "layer", "cpu_time", "clock_reads", "floor"}) {
            ASSERT_EQ(costs.count(name), 1u) << name;
            EXPECT_GT(costs.at(name), 0) << name;
        }
        EXPECT_EQ(report_recording(folder_ + "/run.plumb")->sync_mode, mode);
    }
}

TEST_F(ProfilerTest, T1_key_sync_none_keeps_device_queues_unstamped) {
    struct Untouchable final : QueueTimer {
        int calls = 0;
        Result<DeviceToken> begin() noexcept override { return ++calls, DeviceToken{1}; }
        Status end(DeviceToken) noexcept override { return ++calls, Status(); }
        Result<DeviceSpan> collect(DeviceToken) noexcept override { return ++calls, DeviceSpan{}; }
        void cancel(DeviceToken) noexcept override { ++calls; }
        Status wait(DeviceToken) noexcept override { return ++calls, Status(); }
        bool immediate() const noexcept override { return false; }
        const char* source() const noexcept override { return "untouchable"; }
        std::string clock_name() const override { return "untouchable"; }
        bool clock_is_host() const noexcept override { return true; }
        Result<DeviceClockPair> clock_pair() noexcept override { return ++calls, DeviceClockPair{}; }
        Result<Elapsed> duration(const DeviceSpan&) override { return Elapsed{}; }
        Result<double> floor_ns() override { return 0.0; }
        std::vector<Capability> capabilities() const override { return {}; }
        std::size_t in_flight() const noexcept override { return 0; }
    } timer;
    Profiler prof(config("sync=none"));
    const Queue queue = prof.add_queue(timer, "stream 0");
    {
        PLUMB_STEP(prof, queue, Phase::decode);
        PLUMB_BRICK(prof, queue, norm);
        clock_.advance(7);
    }
    const Result<Report> report = prof.snapshot();
    EXPECT_EQ(timer.calls, 0);
    EXPECT_EQ(report->scopes, 1u) << "the host's side of it";
    EXPECT_EQ(report->unresolved, 0u);
    EXPECT_EQ(report->sync_mode, "none");
}

TEST_F(ProfilerTest, a_recording_that_was_removed_is_said_once_and_leaves_no_ring) {
    Profiler prof(config());
    decode_steps(prof, 3);
    ASSERT_TRUE(prof.flush().ok());
    const std::string ring = reader(prof.path()).metadata().ring_path;
    std::filesystem::remove(prof.path());
    decode_steps(prof, 3);
    EXPECT_EQ(prof.flush().error().code, ErrorCode::not_found);
    EXPECT_EQ(prof.close().error().code, ErrorCode::not_found);
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_NE(said_[0].find("was removed"), std::string::npos) << said_[0];
    EXPECT_FALSE(std::filesystem::exists(ring));
}

TEST_F(ProfilerTest, descriptions_given_before_and_after_opening_are_kept) {
    Config c = config();
    c.on = false;
    Profiler prof(c);
    prof.describe("model", "tiny");
    ASSERT_TRUE(prof.enable().ok());
    prof.describe("threads", "2");
    ASSERT_TRUE(prof.close().ok());
    EXPECT_EQ(reader(prof.path()).descriptions(),
              (std::vector<std::pair<std::string, std::string>>{{"model", "tiny"}, {"threads", "2"}}));
}

TEST_F(ProfilerTest, key_redact_leaves_the_folders_of_what_is_described_out) {
    Config c = machine_config("redact=on");
    c.on = false;
    Profiler prof(c);
    prof.describe("model", "/data/alice/secret/llama.gguf");
    ASSERT_TRUE(prof.enable().ok());
    prof.describe("key.adapter", "~/secret/lora/");
    prof.describe("hub", "Qwen/Qwen2.5");
    ASSERT_TRUE(prof.close().ok());
    EXPECT_EQ(reader(prof.path()).descriptions(),
              (std::vector<std::pair<std::string, std::string>>{
                  {"model", "llama.gguf"}, {"key.adapter", "lora"}, {"hub", "Qwen/Qwen2.5"}}));
    const std::string content = support::text_of_file(prof.path());
    EXPECT_EQ(content.find("alice"), std::string::npos);
    EXPECT_EQ(content.find("secret"), std::string::npos);
}

TEST_F(ProfilerTest, flush_of_one_thread_does_not_wait_for_the_timeout_of_another) {
    Profiler prof(config());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) {
                one_scope(prof);
                EXPECT_TRUE(prof.flush(60).ok());
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(prof.snapshot()->scopes, 200u);
}

TEST_F(ProfilerTest, a_runtime_folder_without_room_or_rights_is_said_and_recording_goes_on) {
    // Neither a relative nor a missing folder is used; /dev/shm then holds the rings.
    setenv("XDG_RUNTIME_DIR", (folder_ + "/missing").c_str(), 1);
    {
        Profiler prof(config());
        EXPECT_EQ(reader(prof.path()).metadata().ring_path.rfind("/dev/shm/", 0), 0u);
    }
    const std::string own = folder_ + "/runtime";
    std::filesystem::create_directory(own);
    setenv("XDG_RUNTIME_DIR", own.c_str(), 1);
    {
        Profiler prof(config());
        EXPECT_EQ(reader(prof.path()).metadata().ring_path.rfind(own, 0), 0u);
    }
    unsetenv("XDG_RUNTIME_DIR");
    EXPECT_TRUE(said_.empty());
}

} // namespace
} // namespace plumb
