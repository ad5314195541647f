// SPDX-License-Identifier: Apache-2.0
#include "top/picture.hpp"

#include <gtest/gtest.h>

#include "answers/report/sample_report_testing.hpp"
#include "page/text_table.hpp"

namespace plumb::top {
namespace {

View sample_view(const Report& report) {
    View view;
    view.recording = "/tmp/run.plumb";
    view.pid = 4711;
    view.account.report = report;
    view.account.seconds = 5;
    view.running_seconds = 151;
    view.drops = {{"ring full", 0}};
    WallPhase& wall = view.account.wall.phases.emplace_back();
    wall.phase = Phase::decode;
    WallLane& host = wall.lanes.emplace_back();
    host.name = "host";
    host.period_ns = 5e9;
    host.idle.total = host.idle.unknown = host.idle.off_cpu = Figure{1e8, {}};
    host.idle.scopes = {{"attention", 6e7, 6e7}, {"lm_head", 1e7, 1e7}};
    for (int i = 0; i < 20; ++i) {
        Moment moment = moment_of(view.account, static_cast<std::uint64_t>(i == 10 ? 8 : 0));
        moment.tokens_per_second = 10.0 + i;
        view.history.push_back(i == 5 ? Moment{} : moment);
    }
    return view;
}

std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        text += line + "\n";
    }
    return text;
}

std::string drawn(const View& view, std::size_t columns, std::size_t rows) {
    return "\n" + joined(picture_of(view, {columns, rows}, false, rows != 0));
}

TEST(Picture, eighty_columns) {
    EXPECT_EQ(drawn(sample_view(answers::healthy_report()), 80, 24), R"(
run.plumb · pid 4711 · running 2 m 31 s · last 5.0 s
decode 20.8 tok/s  p50 48.1 ms/tok  p90 50.3  coverage 99.6 % of busy
120 steps (8 warm-up apart)
prefill 205 tok/s  mean 312.0 ms/step (n = 1)  coverage 99.4 % of busy  1 step
tok/s                                          ▃▄▄▄▄ ▅▅▅▆▆▆▆▇▇▇▇███  20.8
idle %                                         ▁▁▁▁▁ ▁▁▁▁▁▁▁▁▁▁▁▁▁▁  0.2
drops                                          ▁▁▁▁▁ ▁▁▁▁█▁▁▁▁▁▁▁▁▁  0/s
idle of the host 2.0 %: unknown 2.0, in attention 1.2, in lm_head 0.2
nothing was dropped

brick                       % wall calls/step     p50 us     p90 us
up_projection                 20.6         24      412.0      432.6 ██▍
lm_head                       19.0          1     9120.0     9576.0 ██▎
sampling                      <0.1          1        4.5        4.7
unattributed                   0.4          -          -          -
idle                           0.2          -          -          -
q quits
)");
}

TEST(Picture, twenty_columns) {
    EXPECT_EQ(drawn(sample_view(answers::healthy_report()), 20, 24), R"(
run.plumb · pid 4711
running 2 m 31 s
last 5.0 s
decode 20.8 tok/s
p50 48.1 ms/tok
p90 50.3
prefill 205 tok/s
mean 312.0 ms/step …
tok/s 20.8
▃▄▄▄▄ ▅▅▅▆▆▆▆▇▇▇▇███
idle % 0.2
▁▁▁▁▁ ▁▁▁▁▁▁▁▁▁▁▁▁▁▁
drops 0/s
▁▁▁▁▁ ▁▁▁▁█▁▁▁▁▁▁▁▁▁
nothing was dropped

brick         % wall
up_projecti…    20.6
lm_head         19.0
sampling        <0.1
unattributed     0.4
idle             0.2
q quits
)");
}

TEST(Picture, a_hundred_and_sixty_columns) {
    EXPECT_EQ(drawn(sample_view(answers::crowded_report()), 160, 40), R"(
run.plumb · pid 4711 · running 2 m 31 s · last 5.0 s
decode 20.8 tok/s  p50 48.1 ms/tok  p90 50.3  coverage 99.6 % of busy  120 steps (8 warm-up apart)
prefill 205 tok/s  mean 312.0 ms/step (n = 1)  coverage 99.4 % of busy  1 step
tok/s                                          ▃▄▄▄▄ ▅▅▅▆▆▆▆▇▇▇▇███  20.8
idle %                                         ▁▁▁▁▁ ▁▁▁▁▁▁▁▁▁▁▁▁▁▁  0.2
drops                                          ▁▁▁▁▁ ▁▁▁▁█▁▁▁▁▁▁▁▁▁  0/s
idle of the host 2.0 %: unknown 2.0, in attention 1.2, in lm_head 0.2
nothing was dropped

brick                       % wall calls/step     p50 us     p90 us  sum/step ms
block +                       90.0         24     1800.0     1890.0        43.20 █████████████████                                          █████ ██████████████
up_projection                 20.6         24      412.0      432.6         9.89 ███▉                                                       █████ ██████████████
lm_head                       19.0          1     9120.0     9576.0         9.12 ███▌                                                       █████ ██████████████
rope_embedding ~               0.3         24        6.2        6.6         0.15                                                            █████ ██████████████
sampling                      <0.1          1        4.5        4.7        <0.01                                                            █████ ██████████████
overlap                        1.0          -          -          -         0.50 ▏
unattributed                   0.4          -          -          -         0.21
  of it in laps                0.3          -          -          -         0.15
idle                           0.2          -          -          -         0.08
q quits
)");
}

TEST(Picture, a_snapshot_has_all_bricks_and_no_keys) {
    View view = sample_view(answers::crowded_report());
    view.history.clear();
    view.ended = true;
    view.account.seconds.reset();
    EXPECT_EQ(drawn(view, 100, 0), R"(
run.plumb · pid 4711 · ended · whole run
decode 20.8 tok/s  p50 48.1 ms/tok  p90 50.3  coverage 99.6 % of busy  120 steps (8 warm-up apart)
prefill 205 tok/s  mean 312.0 ms/step (n = 1)  coverage 99.4 % of busy  1 step
idle of the host 2.0 %: unknown 2.0, in attention 1.2, in lm_head 0.2
nothing was dropped

brick                       % wall calls/step     p50 us     p90 us
block +                       90.0         24     1800.0     1890.0 ███████████████████████████
up_projection                 20.6         24      412.0      432.6 ██████▏
lm_head                       19.0          1     9120.0     9576.0 █████▋
rope_embedding ~               0.3         24        6.2        6.6
sampling                      <0.1          1        4.5        4.7
overlap                        1.0          -          -          - ▎
unattributed                   0.4          -          -          - ▏
  of it in laps                0.3          -          -          -
idle                           0.2          -          -          -
)");
}

TEST(Picture, a_device_has_idle_time_of_its_own_by_cause) {
    View view = sample_view(answers::device_report());
    WallLane& device = view.account.wall.phases[0].lanes.emplace_back();
    device.name = "cuda:0";
    device.device = true;
    device.period_ns = 5e9;
    device.idle.total = Figure{1e9, {}};
    device.idle.exposed_launch = Figure{6e8, {}};
    device.idle.host_work = Figure{3e8, {}};
    device.idle.unknown = Figure{1e8, {}};
    const std::string text = drawn(view, 100, 30);
    EXPECT_NE(text.find("\nidle of cuda:0 20.0 %: exposed launch 12.0, host work 6.0, unknown 2.0\n"), text.npos)
        << text;
    device.idle.total = Figure{std::nullopt, "captured graphs ran"};
    EXPECT_NE(drawn(view, 100, 30).find("\nidle of cuda:0 n/a: captured graphs ran\n"), text.npos);
}

// Whatever the terminal, nothing wraps and nothing scrolls.
TEST(Picture, no_line_is_wider_and_no_picture_higher_than_the_terminal) {
    std::vector<View> views = {sample_view(answers::healthy_report()), sample_view(answers::crowded_report()),
                               sample_view(answers::device_report()), sample_view({}), View{}};
    views[1].silent_seconds = 12;
    views[1].drops = {{"ring full", 12345}, {"lap outside any scope", 3}};
    views[2].recording = "/tmp/\x1b[2Jhostile\nname\xff.plumb";
    for (const View& view : views) {
        for (std::size_t columns = 1; columns <= 200; columns += columns < 30 ? 1 : 7) {
            for (const std::size_t rows : std::initializer_list<std::size_t>{1, 2, 3, 5, 8, 12, 24, 60}) {
                const std::vector<std::string> lines = picture_of(view, {columns, rows}, false, true);
                EXPECT_LE(lines.size(), rows) << columns;
                for (const std::string& line : lines) {
                    EXPECT_LE(page::columns_of(line), columns) << line;
                    EXPECT_EQ(line.find_first_of("\x1b\n\r"), line.npos) << line;
                }
            }
        }
    }
}

TEST(Picture, colour_changes_no_text) {
    const View view = sample_view(answers::healthy_report());
    std::string text = joined(picture_of(view, {80, 24}, true, true));
    EXPECT_NE(text.find("\x1b[1m"), text.npos);
    for (std::size_t at = text.find('\x1b'); at != text.npos; at = text.find('\x1b')) {
        text.erase(at, text.find('m', at) - at + 1);
    }
    EXPECT_EQ("\n" + text, drawn(view, 80, 24));
}

TEST(Picture, M3_a_run_that_is_silent_or_drops_says_so) {
    View view = sample_view(answers::healthy_report());
    view.silent_seconds = 12.4;
    view.drops = {{"ring full", 12345}, {"lap outside any scope", 0}};
    const std::string text = drawn(view, 80, 24);
    EXPECT_NE(text.find("\nnothing was recorded for 12 s: the process is alive\n"), text.npos) << text;
    EXPECT_NE(text.find("\n12,345 records dropped: ring full\n"), text.npos) << text;
}

TEST(Picture, of_a_run_whose_beginning_was_removed_it_is_not_said_that_it_is_whole) {
    View view = sample_view(answers::healthy_report());
    view.ended = true;
    view.account.seconds.reset();
    EXPECT_NE(drawn(view, 80, 24).find(" · ended · whole run\n"), std::string::npos);
    view.account.removed = true;
    EXPECT_NE(drawn(view, 80, 24).find(" · ended · all that is kept\n"), std::string::npos);
    view.ended = false;
    view.account.seconds = 0;
    view.account.report = {};
    const std::string text = drawn(view, 80, 24);
    EXPECT_NE(text.find(" · last 0.0 s\nno complete step in this time\n"
                        "of what max_size= or keep= leaves, the last 1.2 s are not looked at\n"),
              std::string::npos)
        << text;
}

TEST(Sparkline, goes_from_nothing_to_the_largest_with_gaps_where_nothing_is_known) {
    EXPECT_EQ(sparkline({0.0, 7.0, std::nullopt, 3.5, 1.0}, 5), "▁█ ▅▂");
    EXPECT_EQ(sparkline({1.0, 2.0, 3.0}, 2), "▆█");
    EXPECT_EQ(sparkline({2.0}, 3), "  █");
    EXPECT_EQ(sparkline({0.0, 0.0}, 2), "▁▁");
    EXPECT_EQ(sparkline({}, 2), "  ");
    EXPECT_EQ(sparkline({0.5, 0.1}, 2, 1), "▅▂");
}

} // namespace
} // namespace plumb::top
