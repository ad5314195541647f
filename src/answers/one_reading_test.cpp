// SPDX-License-Identifier: Apache-2.0
// Every answer reads a run in two passes at most, and any number of them share these and say what each says alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <unistd.h>

#include "analysis/compare_run.hpp"
#include "analysis/path_builder.hpp"
#include "analysis/planted_wall_testing.hpp"
#include "analysis/replay_builder.hpp"
#include "analysis/report_builder.hpp"
#include "analysis/wall_builder.hpp"
#include "answers/check/call_counts.hpp"
#include "plumb/answer.hpp"
#include "support/json_schema.hpp"

namespace {

using namespace plumb;
using namespace plumb::analysis;
using nlohmann::json;
using planted::us;
using plumb::support::parsed;

/// Six steps: host work, layers, commands of a queue that is timed in some steps only, and replays of a captured graph.
WallEngine engine() {
    WallEngine made;
    made.add_queue(WallEngine::queue, 2);
    recording::TrackInfo graph;
    graph.id = 0x80000009;
    graph.kind = recording::TrackKind::captured_graph;
    graph.name = "graph 7";
    graph.source = "cuda_graph_event";
    graph.graph_key = 7;
    made.source.device_track(graph);
    recording::GraphInfo info;
    info.key = 7;
    info.track = graph.id;
    info.captures = 1;
    info.sites = {{Name(Brick::attention).id, 0, 0, 1, true, false}};
    made.source.graphs_ = {info};
    int number = 0;
    made.steps(6, [&](std::int64_t t) {
        made.scope(WallEngine::tokenize, t + 10 * us, t + 60 * us);
        for (std::uint16_t layer = 0; layer < 2; ++layer) {
            const std::int64_t begin = t + (100 + 100 * layer) * us;
            made.source.layer_begin(WallEngine::host, layer, begin);
            made.source.scope(WallEngine::host, Brick::rms_norm, begin + us, begin + (30 + 5 * number) * us);
            made.source.layer_end(WallEngine::host, layer, begin, begin + 90 * us);
        }
        if (number % 2 == 1) {
            made.command(Brick::lm_head, t + 300 * us, t + 310 * us, t + 320 * us, t + 500 * us);
        }
        made.source.launch(WallEngine::host, 7, number == 4 ? launch_instrumented : 0, WallEngine::queue, t + 600 * us,
                           t + 610 * us);
        if (number == 4) {
            made.source.device_scope(graph.id, Brick::attention, static_cast<std::uint64_t>(number), -1, t + 620 * us,
                                     t + 700 * us);
        }
        ++number;
    });
    return made;
}

void put(std::ostringstream& out, const Figure& figure) {
    if (figure.value) {
        out << *figure.value << ' ';
    } else {
        out << figure.reason << ' ';
    }
}

std::string words(const std::vector<std::string>& notes) {
    std::string all;
    for (const std::string& note : notes) {
        all += note + '\n';
    }
    return all;
}

std::string words(const Report& report) {
    std::ostringstream out;
    for (const PhaseSummary& phase : report.phases) {
        out << phase_word(phase.phase) << ' ' << phase.steps << ' ' << phase.period.mean_ns << ' ' << phase.wall.busy_ns
            << '\n';
    }
    for (const auto* rows : {&report.bricks, &report.layers, &report.categories, &report.brick_layers}) {
        for (const Row& row : *rows) {
            out << row.key.name << ' ' << row.key.layer.value_or(99) << ' ' << row.time.count << ' '
                << row.sum_per_step_ns << ' ';
            put(out, row.time.p50_ns);
        }
        out << '\n';
    }
    out << report.scopes << ' ' << report.graphs.size() << ' ' << words(report.notes);
    return out.str();
}

std::string words(const WallReport& wall) {
    std::ostringstream out;
    for (const WallPhase& phase : wall.phases) {
        out << phase.steps << ' ' << phase.period_ns << ' ' << phase.reason << ' ';
        put(out, phase.own_cost_ns);
        for (const WallLane& lane : phase.lanes) {
            out << lane.name << ' ' << lane.steps << ' ';
            put(out, lane.busy_ns);
            put(out, lane.idle.exposed_launch);
            put(out, lane.idle.host_work);
            put(out, lane.host_waits_ns);
        }
        out << '\n';
    }
    out << wall.slowest.size() << ' ' << words(wall.notes);
    return out.str();
}

std::string words(const PathReport& path) {
    std::ostringstream out;
    out << path.step << ' ' << path.candidates << ' ' << path.span_ns << ' ' << path.launches << ' '
        << path.graph.size() << '\n';
    for (const PathRow& row : path.rows) {
        out << row.name << ' ' << row.count << ' ' << row.path_ns << ' ' << row.slack_ns << '\n';
    }
    return out.str() + words(path.notes);
}

std::string words(const ReplayReport& replays) {
    std::ostringstream out;
    for (const ReplayRow& row : replays.graphs) {
        out << row.key << ' ' << row.replays << ' ' << row.instrumented << ' ';
        put(out, row.device_ns);
    }
    return out.str() + words(replays.notes);
}

std::string words(const RunFigures& run) {
    std::ostringstream out;
    for (const RunRow& row : run.rows) {
        out << row.id.name << ' ' << row.id.layer << ' ' << row.mean << ' ' << row.central << ' ' << row.per_replay
            << '\n';
    }
    return out.str() + words(run.notes);
}

std::string words(const std::vector<CallCount>& calls) {
    std::ostringstream out;
    for (const CallCount& count : calls) {
        out << count.steps << ' ' << count.judged << ' ' << count.total << ' ' << count.differing << '\n';
    }
    return out.str();
}

const std::vector<ExpectedCalls> expected = {{"rms_norm", 2, false}, {"attention", 1, false}};

ReportOptions with_layers() {
    ReportOptions options;
    options.phase = Phase::decode;
    options.brick_layers = true;
    return options;
}

struct Answers {
    std::string report, layers, wall, path, replays, calls, compared;
};

Answers each_alone(planted::Tape& source, std::vector<int>& passes) {
    const auto counted = [&](auto&& built) {
        EXPECT_TRUE(built.ok());
        passes.push_back(source.passes_);
        source.passes_ = 0;
        return words(*built);
    };
    Answers alone;
    alone.report = counted(build_report(source, {}));
    alone.layers = counted(build_report(source, with_layers()));
    alone.wall = counted(build_wall(source, {}));
    alone.path = counted(build_path(source, {}));
    alone.replays = counted(build_replays(source));
    alone.calls = counted(count_calls(source, Phase::decode, expected));
    alone.compared = counted(gather_run(source));
    return alone;
}

TEST(OneReading, each_answer_takes_two_passes_and_all_of_them_together_take_two_and_say_the_same) {
    WallEngine planted = engine();
    std::vector<int> passes;
    const Answers alone = each_alone(planted.source, passes);
    EXPECT_EQ(passes, std::vector<int>(7, 2));

    const recording::RecordedRun run = planted.source;
    ReportReader report(*run.facts);
    const std::size_t plain = report.ask({}), layered = report.ask(with_layers());
    WallReader wall(*run.facts, {}, report);
    PathReader path(*run.facts, {});
    ReplayReader replays(*run.facts);
    CallReader calls(*run.facts, Phase::decode, expected);
    CompareReader compared(*run.facts, report);
    ASSERT_TRUE(read::read(run, {&report, &wall, &path, &replays, &calls, &compared}).ok());
    EXPECT_EQ(planted.source.passes_, 2);

    EXPECT_EQ(words(report.take(plain)), alone.report);
    EXPECT_EQ(words(report.take(layered)), alone.layers);
    EXPECT_EQ(words(*wall.take()), alone.wall);
    EXPECT_EQ(words(*path.take()), alone.path);
    EXPECT_EQ(words(replays.take()), alone.replays);
    EXPECT_EQ(words(calls.take()), alone.calls);
    EXPECT_EQ(words(compared.take()), alone.compared);
}

TEST(OneReading, the_answers_of_the_test_above_are_not_empty) {
    WallEngine planted = engine();
    std::vector<int> passes;
    const Answers alone = each_alone(planted.source, passes);
    EXPECT_NE(alone.report.find("tokenize"), std::string::npos);
    EXPECT_NE(alone.layers, alone.report);
    EXPECT_NE(alone.wall.find("cuda:0"), std::string::npos);
    EXPECT_NE(alone.wall.find("captured graphs ran in steps of this phase"), std::string::npos);
    EXPECT_NE(alone.path.find("lm_head"), std::string::npos) << "only steps whose device was timed are candidates";
    EXPECT_NE(alone.path.find("timed in some steps only"), std::string::npos);
    EXPECT_EQ(alone.replays.rfind("7 6 1 ", 0), 0u) << alone.replays;
    EXPECT_NE(alone.compared.find("attention"), std::string::npos) << "from the report: only replays have it";
}

TEST(OneReading, accounts_of_the_wall_clock_with_other_options_do_not_disturb_each_other) {
    WallEngine planted = engine();
    const std::string path = ::testing::TempDir() + "plumb_walls_" + std::to_string(getpid()) + ".plumb";
    ASSERT_TRUE(planted.source.save(path).ok());
    const Result<Answer> together = ask("report", {path}, {{"with", "wall:slowest=2,wall:phase=decode,wall,findings"}});
    ASSERT_TRUE(together.ok()) << together.error().message;
    const json found = parsed(together->json())["answers"];
    EXPECT_EQ(found[1], parsed(ask("wall", {path}, {{"slowest", "2"}})->json()));
    EXPECT_EQ(found[2], parsed(ask("wall", {path}, {{"phase", "decode"}})->json()));
    EXPECT_EQ(found[3], parsed(ask("wall", {path})->json()));
    EXPECT_EQ(found[4], parsed(ask("findings", {path})->json()));
    std::filesystem::remove(path);
}

/// The device always has work, and the host sleeps.
TEST(OneReading, asked_for_alone_the_wall_knows_who_waited) {
    WallEngine planted;
    planted.add_queue();
    planted.steps(6, [&](std::int64_t t) {
        planted.command(Brick::attention, t, t + 5 * us, t + 10 * us, t + 1'010 * us);
        planted.off_cpu(t + 10 * us, t + 1'000 * us);
    });
    const std::string path = ::testing::TempDir() + "plumb_wall_" + std::to_string(getpid()) + ".plumb";
    ASSERT_TRUE(planted.source.save(path).ok());
    EXPECT_EQ(ask("wall", {path})->text().rfind("decode: DEVICE-BOUND.", 0), 0u);
    std::filesystem::remove(path);
}

TEST(OneReading, a_phase_without_steps_is_said_in_one_spelling_by_every_answer_that_takes_one) {
    WallEngine planted = engine();
    const std::string path = ::testing::TempDir() + "plumb_phase_" + std::to_string(getpid()) + ".plumb";
    ASSERT_TRUE(planted.source.save(path).ok());
    std::set<std::string> asked;
    for (const AnswerInfo& info : known_answers()) {
        OptionValues options = {{"phase", "mixed"}};
        if (info.name == "budget") {
            options.emplace_back("ms/token", "8");
        } else if (info.name == "check") {
            options.emplace_back("coverage", "0.9");
        }
        for (const AnswerOption& option : info.options) {
            if (option.name == "phase" && asked.insert(info.name).second) {
                const Result<Answer> said = ask(info.name, {path}, options);
                const std::string text = said.ok() ? said->text() : said.error().message;
                EXPECT_NE(text.find("the recording has no complete mixed step"), std::string::npos)
                    << info.name << ": " << text;
                EXPECT_EQ(text.find("PLUMB_"), std::string::npos) << info.name << ": " << text;
            }
        }
    }
    EXPECT_GE(asked.size(), 5U);
    std::filesystem::remove(path);
}

TEST(OneReading, report_with_others_says_what_each_says_alone_and_why_one_cannot) {
    WallEngine planted = engine();
    const std::string path = ::testing::TempDir() + "plumb_with_" + std::to_string(getpid()) + ".plumb";
    ASSERT_TRUE(planted.source.save(path).ok());
    const Result<Answer> together = ask("report", {path}, {{"with", "wall,path,report"}, {"phase", "decode"}});
    ASSERT_TRUE(together.ok()) << together.error().message;
    std::string text = ask("report", {path}, {{"phase", "decode"}})->text();
    text += "\nplumb wall\n" + ask("wall", {path}, {{"phase", "decode"}})->text();
    text += "\nplumb path\n" + ask("path", {path})->text();
    EXPECT_EQ(together->text(), text);
    const json document = parsed(together->json());
    EXPECT_EQ(document["answers"][2], parsed(ask("path", {path})->json()));
    EXPECT_EQ(support::schema_problems(PLUMB_TEST_SOURCE_DIR, "plumb.answers.1.json", {document}), "");

    const Result<Answer> without = ask("report", {path}, {{"with", "wall"}, {"phase", "prefill"}});
    ASSERT_TRUE(without.ok());
    const json absent = parsed(without->json())["answers"][1];
    EXPECT_EQ(absent["answer"], "wall");
    EXPECT_EQ(absent["absent"], ask("wall", {path}, {{"phase", "prefill"}}).error().message);
    EXPECT_EQ(without->outcome(), Outcome::unknown);
    const Result<Answer> wrong = ask("report", {path}, {{"with", "wall,compare"}});
    EXPECT_NE(wrong.error().message.find("not \"compare\""), std::string::npos) << wrong.error().message;
    const Result<Answer> misspelt = ask("report", {path}, {{"with", "wall,layers:metrc=mean"}});
    EXPECT_EQ(misspelt.error().message, ask("layers", {path}, {{"metrc", "mean"}}).error().message);
    EXPECT_EQ(misspelt.error().message.rfind("layers has no option \"metrc\"; it has metric, phase", 0), 0u);
    std::filesystem::remove(path);
}

} // namespace
