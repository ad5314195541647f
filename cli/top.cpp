// SPDX-License-Identifier: Apache-2.0
// plumb top: what a running process does now, on a terminal once a second, on a pipe once.
// Whatever way it ends, by a key, a signal, an error or its run, the terminal is left as it was found.
#include <cerrno>
#include <chrono>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "top/top.hpp"

namespace {

using namespace plumb::cli;
using Clock = std::chrono::steady_clock;

/// What came since it was last asked: a signal that ends the view, one that pauses it, and one after which it goes on.
volatile std::sig_atomic_t top_end = 0, top_pause = 0, top_resume = 0;

void on_top_signal(int number) { (number == SIGTSTP ? top_pause : number == SIGCONT ? top_resume : top_end) = number; }
void on_resize(int) {} // wakes the wait for a key

/// The terminal while it is ours: another screen, no cursor, keys at once. One at a time.
/// Signals are let in only while a key is waited for: none is missed between a look at what came and the wait.
class TopScreen {
  public:
    TopScreen() : keys_(::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
        sigset_t ours;
        ::sigemptyset(&ours);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH}) {
            ::sigaddset(&ours, number);
        }
        ::sigprocmask(SIG_BLOCK, &ours, &while_waiting_);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT}) {
            std::signal(number, on_top_signal);
        }
        std::signal(SIGWINCH, on_resize);
        enter();
    }
    TopScreen(const TopScreen&) = delete;
    TopScreen& operator=(const TopScreen&) = delete;
    ~TopScreen() {
        leave();
        ::sigprocmask(SIG_SETMASK, &while_waiting_, nullptr);
    }

    void draw(const plumb::top::Top& top) {
        struct winsize size {};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
            size.ws_col = 80;
            size.ws_row = 24;
        }
        const std::vector<std::string> lines = top.lines(size.ws_col, size.ws_row, stdout_has_color());
        std::string text = "\x1b[H";
        for (std::size_t i = 0; i < lines.size(); ++i) {
            text += (i == 0 ? "\x1b[K" : "\r\n\x1b[K") + lines[i]; // behind a line that is full it would erase its end
        }
        std::cout << text << (lines.size() < size.ws_row ? "\r\n\x1b[J" : "") << std::flush;
    }

    enum class Event { time, redraw, leave };
    /// Until `until`, or until there is something to do.
    Event wait(Clock::time_point until) {
        while (true) {
            const auto left = std::max(Clock::duration::zero(), until - Clock::now());
            const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
            const struct timespec timeout {
                seconds.count(), std::chrono::nanoseconds(left - seconds).count()
            };
            struct pollfd in {
                keys_ ? STDIN_FILENO : -1, POLLIN, 0
            };
            const int ready = ::ppoll(&in, 1, &timeout, &while_waiting_);
            if (top_end != 0 || (ready == 1 && asked_to_leave())) {
                return Event::leave;
            }
            if (top_pause != 0 || top_resume != 0) {
                top_pause != 0 ? pause() : enter();
                top_resume = 0;
                return Event::redraw;
            }
            if (left == Clock::duration::
                            zero()) { // asked before the wait, so that neither keys nor signals hold up the next look
                return Event::time;
            }
            if (ready < 0) {
                return Event::redraw;
            }
        }
    }

  private:
    static bool asked_to_leave() {
        char keys[64];
        const ssize_t count = ::read(STDIN_FILENO, keys, sizeof keys);
        const std::string_view typed(keys, count > 0 ? static_cast<std::size_t>(count) : 0);
        return count <= 0 || typed.find_first_of("qQ") != typed.npos;
    }
    void enter() {
        if (keys_) {
            struct termios raw = before_;
            raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
            raw.c_cc[VMIN] = 1;
            raw.c_cc[VTIME] = 0;
            ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        }
        std::cout << "\x1b[?1049h\x1b[?25l" << std::flush;
    }
    /// Who sees the screen that was there before may type.
    void leave() {
        if (keys_) {
            ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
        }
        std::cout << "\x1b[?25h\x1b[?1049l" << std::flush;
    }
    /// The stop is the system's own: without a shell that could let us go on, it does not stop us.
    void pause() {
        leave();
        top_pause = 0;
        std::signal(SIGTSTP, SIG_DFL);
        ::raise(SIGTSTP);
        sigset_t ours;
        ::sigprocmask(SIG_SETMASK, &while_waiting_, &ours); // here it stops
        ::sigprocmask(SIG_SETMASK, &ours, nullptr);
        std::signal(SIGTSTP, on_top_signal);
        enter();
    }

    struct termios before_ {};
    bool keys_;
    sigset_t while_waiting_{};
};

/// A terminal that cannot be drawn on is written to as a pipe is.
bool top_is_live() {
    const char* name = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && (name == nullptr || std::string_view(name) != "dumb");
}

void print_top(const plumb::top::Top& top, std::size_t columns) {
    for (const std::string& line : top.lines(columns, 0, stdout_has_color())) {
        std::cout << line << '\n';
    }
}

/// Until the run ends, a key, or a signal, which is what the process then dies of.
plumb::Status follow_on_terminal(plumb::top::Top& top) {
    TopScreen screen;
    plumb::Status status;
    Clock::time_point next = Clock::now() + std::chrono::seconds(1);
    screen.draw(top);
    while (!top.ended() && std::cout.good()) {
        const TopScreen::Event event = screen.wait(next);
        if (event == TopScreen::Event::leave) {
            break;
        }
        if (event == TopScreen::Event::time) {
            next = std::max(next + std::chrono::seconds(1), Clock::now());
            status = top.look();
            if (!status.ok()) {
                break;
            }
        }
        screen.draw(top);
    }
    return status;
}

int show_top(const std::string& argument) {
    const plumb::Result<std::string> recording = plumb::top::recording_named(argument);
    if (!recording) {
        return say_error(recording.error().message, false);
    }
    const bool live = top_is_live();
    plumb::Result<plumb::top::Top> top = plumb::top::Top::open(*recording, live);
    if (!top) {
        return say_error(top.error().message, false);
    }
    if (const plumb::Status look = top->look(); !look.ok()) {
        return say_error(look.error().message, false);
    }
    if (live && !top->ended()) {
        if (const plumb::Status followed = follow_on_terminal(*top); !followed.ok()) {
            return say_error(followed.error().message, false);
        }
        if (top_end != 0 && top_end != SIGINT) {
            const int number = top_end;
            std::cout.flush();
            std::signal(number, SIG_DFL);
            ::raise(number);
        }
        if (!top->ended()) {
            return exit_ok; // somebody left
        }
    }
    print_top(*top, stdout_columns());
    if (top->ended()) {
        std::cout << terminal_text(top->farewell()) << '\n';
    }
    return exit_ok;
}

} // namespace

void add_top(CLI::App& root, int& exit_code) {
    auto argument = std::make_shared<std::string>();
    CLI::App& app = *root.add_subcommand("top", "Watch a running process: bricks by share, tok/s, drops and idle time");
    app.add_option("recording", *argument,
                   "Recording (.plumb) that grows, or the pid of a process that records; "
                   "without: the one that does")
        ->type_name("FILE|PID");
    app.footer("On a terminal the view is renewed once a second, and q leaves it; on a pipe it is printed once.");
    app.callback([argument, &exit_code] { exit_code = show_top(*argument); });
}
