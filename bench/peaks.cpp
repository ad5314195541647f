// SPDX-License-Identifier: Apache-2.0
// The peaks that rooflines stand on, against a program that shares no code with the library. Before each pass of the
// library's the other makes one of its own: what the machine gives changes within seconds, for both then
// (docs/internals/benchmarks.md).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "plumb/selftest.hpp"
#include "support/board.hpp"

namespace {

using namespace bench;

/// The other program: one line asks for a pass, one line answers.
class Independent {
  public:
    Independent() {
        int questions[2], answers[2];
        if (pipe(questions) != 0 || pipe(answers) != 0) {
            return;
        }
        process_ = fork();
        if (process_ == 0) {
            dup2(questions[0], STDIN_FILENO);
            dup2(answers[1], STDOUT_FILENO);
            for (const int end : {questions[0], questions[1], answers[0], answers[1]}) {
                close(end);
            }
            execl(PLUMB_BENCH_STREAM_LIKE, PLUMB_BENCH_STREAM_LIKE, nullptr);
            _exit(127);
        }
        close(questions[0]);
        close(answers[1]);
        to_ = fdopen(questions[1], "w");
        from_ = fdopen(answers[0], "r");
    }
    Independent(const Independent&) = delete;
    Independent& operator=(const Independent&) = delete;
    ~Independent() { (void)end(); }

    /// What one pass gave.
    double ask(const char* what) {
        double answer = 0;
        good_ = good_ && to_ != nullptr && from_ != nullptr && std::fprintf(to_, "%s\n", what) > 0 &&
                std::fflush(to_) == 0 && std::fscanf(from_, "%lf", &answer) == 1;
        return answer;
    }
    /// Ends it. Whether every pass was answered, and the program had nothing to complain of.
    bool end() {
        for (std::FILE** pipe_end : {&to_, &from_}) {
            if (*pipe_end != nullptr) {
                std::fclose(*pipe_end);
                *pipe_end = nullptr;
            }
        }
        if (process_ > 0) {
            int status = -1;
            waitpid(process_, &status, 0);
            process_ = -1;
            good_ = good_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        return good_;
    }

  private:
    bool good_ = true;
    pid_t process_ = -1;
    std::FILE* to_ = nullptr;
    std::FILE* from_ = nullptr;
};

struct Best {
    double plumb = 0, independent = 0;
};

void compare(Board& board, const char* label, const std::string& key, const Best& best) {
    const double apart = 100 * std::abs(best.plumb / best.independent - 1);
    board.put(key + ".plumb", best.plumb);
    board.put(key + ".independent", best.independent);
    board.put(key + ".apart_percent", apart);
    board.row(label, {text(best.plumb, 2), text(best.independent, 2), text(apart, 1)}, key + ".apart_percent",
              Target{Bound::at_most, 10});
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "Measured peaks against an independent program.",
                                          {{"--rounds", "N       of each, by turns (default 3)"}});
    Board board(options);
    const int rounds = std::max(1, std::atoi(options.value("--rounds", "3").c_str()));
    std::signal(SIGPIPE, SIG_IGN);
    Independent other;
    Best read, multiply;
    bool measured = true;
    for (int round = 0; round < rounds; ++round) {
        const plumb::PeakTest test = plumb::measure_peaks([&](std::string_view what, int, int) {
            if (what == "read bandwidth, all cores") {
                read.independent = std::max(read.independent, other.ask("read"));
            } else if (what == "f32 multiply-adds, all cores") {
                multiply.independent = std::max(multiply.independent, other.ask("multiply"));
            }
        });
        for (const plumb::Peaks& peaks : test.peaks) {
            if (peaks.place == "host") {
                measured = measured && peaks.read_gigabytes_per_second.value && peaks.f32_teraflops.value;
                read.plumb = std::max(read.plumb, peaks.read_gigabytes_per_second.value.value_or(0));
                multiply.plumb = std::max(multiply.plumb, 1000 * peaks.f32_teraflops.value.value_or(0));
            }
        }
    }
    for (const double value : {read.plumb, read.independent, multiply.plumb, multiply.independent}) {
        measured = measured && value > 0;
    }
    if (!other.end() || !measured) {
        std::fputs("the peaks could not be measured; is there 3 GiB of free memory?\n", stderr);
        return 2;
    }
    board.table(fmt::format("peaks of all cores, best of {} rounds", rounds), {"plumb", "independent", "apart, %"});
    compare(board, "read bandwidth, GB/s", "read", read);
    compare(board, "f32 multiply-adds, GFLOP/s", "f32", multiply);
    board.end_table();
    return board.finish();
}
