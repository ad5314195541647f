// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <new>
#include <poll.h>
#include <span>
#include <string_view>
#include <unistd.h>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/launch.hpp"
#include "cli/output.hpp"
#include "plumb/answer.hpp"

namespace plumb::cli {

namespace {

/// A closed standard stream would hand its number to the next file opened, and its words would land there.
void occupy_standard_streams() {
    int descriptor = 0;
    do {
        descriptor = ::open("/dev/null", O_RDONLY);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor > STDERR_FILENO) {
        ::close(descriptor);
    }
}

struct Command {
    std::string_view name;
    void (*add)(CLI::App&, int&);
    const char* group; // its heading in help
};

constexpr char record[] = "Record", ask[] = "Ask a recording", show[] = "Show and hand on", other[] = "Other";

/// In the order in which help lists them; the answers stand between the two.
constexpr Command before_answers[] = {
    {"run", add_run, record},
    {"import", add_import, record},
#if defined(PLUMB_CLI_DECODER)
    {"decode", add_decode, record},
#endif
    {"recover", add_recover, record},
};
constexpr Command after_answers[] = {
    {"page", add_page, show},
    {"top", add_top, show},
    {"trace", add_trace, show},
    {"export", add_export, show},
    {"sql", add_sql, show},
#if defined(PLUMB_CLI_DECODER)
    {"model", add_model, other},
#endif
    {"selftest", add_selftest, other},
    {"completion", add_completion, other},
    {"help", add_help, other},
};

/// Those of that name, or all where it is empty. Whether there was one.
bool add_from(std::span<const Command> commands, CLI::App& root, int& exit_code, std::string_view name) {
    bool any = false;
    for (const Command& command : commands) {
        if (name.empty() || command.name == name) {
            command.add(root, exit_code);
            root.get_subcommand(std::string(command.name))->group(command.group);
            any = true;
        }
    }
    return any;
}

bool add_answers(CLI::App& root, int& exit_code, std::string_view name) {
    bool any = false;
    for (const AnswerInfo& info : known_answers()) {
        if (name.empty() || info.name == name) {
            add_answer(root, info, exit_code);
            root.get_subcommand(info.name)->group(ask);
            any = true;
        }
    }
    return any;
}

/// The one that is asked for, where it needs no other: all of them, and the list of answers, take a millisecond, which `plumb run`
/// adds to a command.
void add_commands(CLI::App& root, int& exit_code, std::string_view asked) {
    const bool needs_all = asked.empty() || asked == "help" || asked == "completion";
    if (!needs_all && (add_from(before_answers, root, exit_code, asked) ||
                       add_from(after_answers, root, exit_code, asked) || add_answers(root, exit_code, asked))) {
        return;
    }
    add_from(before_answers, root, exit_code, {});
    add_answers(root, exit_code, {});
    add_from(after_answers, root, exit_code, {});
}

int run_guarded(int argc, const char* const* argv) {
    try {
        int exit_code = exit_ok;
        CLI::App root("Where every microsecond of a token goes: profiles LLM inference, brick by brick", "plumb");
        root.set_version_flag("--version", "plumb " PLUMB_BUILD_VERSION, "Print the version");
        root.set_help_flag("-h,--help", "Print help");
        root.require_subcommand(1);
        root.footer(
            "Exit codes: 0 well, 1 a gate failed or runs diverge, 2 bad input or interrupted, 3 not comparable or undecided.");
        add_commands(root, exit_code, argc > 1 ? argv[1] : "");
        return run(root, argc, argv, exit_code);
    } catch (const std::bad_alloc&) {
        return say_error("out of memory; give the process more, or a smaller input", false);
    } catch (const std::exception& error) {
        return say_error(std::string("internal error: ") + error.what() + "; please report it", false);
    }
}

/// Whether whoever reads standard output has gone (`plumb report run.plumb | head`).
bool reader_left() {
    struct pollfd out {
        STDOUT_FILENO, POLLOUT, 0
    };
    return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// Output that did not arrive is a failure, unless its reader had seen enough.
int finish(FdBuffer& output, int exit_code) {
    std::cout.flush();
    // Commands may print through either; errno of stdio's failure is only known if it happens here.
    errno = 0;
    const bool stdio_failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
    const int reason = output.error() != 0 ? output.error() : stdio_failed ? (errno != 0 ? errno : EIO) : 0;
    if (reason == 0 || reason == EPIPE || reader_left()) {
        return exit_code;
    }
    std::cerr << "error: " << write_error("standard output", reason) << '\n';
    return exit_bad_input;
}

} // namespace

} // namespace plumb::cli

int main(int argc, char** argv) {
    plumb::cli::occupy_standard_streams();
    plumb::cli::ignore_signal(SIGPIPE);
    plumb::cli::ignore_signal(SIGXFSZ); // a file that may not grow is an error of the write
    plumb::cli::FdBuffer output(STDOUT_FILENO);
    std::streambuf* const before = std::cout.rdbuf(&output);
    const int exit_code = plumb::cli::finish(output, plumb::cli::run_guarded(argc, argv));
    std::cout.rdbuf(before);
    return exit_code;
}
