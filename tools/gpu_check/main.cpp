// SPDX-License-Identifier: Apache-2.0
// The GPU check: asserts on hardware what the library and its virtual GPU believe, and measures what docs/internals/gpu.md shows.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gnu/libc-version.h>
#include <map>
#include <sys/utsname.h>
#include <unistd.h>

#include "child.hpp"
#include "sections.hpp"
#include "truths/gpu.hpp"
#include "truths/kernels.hpp"

namespace gpu_check {
namespace {

constexpr int no_gpu = 2;
constexpr int failed_section = 3;
constexpr const char* usage =
    "usage: gpu_check --run [--out FILE] [--tiny] [--only NAME,…] [--limit NAME=SECONDS] [--cupti LIBRARY] [--break]\n"
    "\n"
    "  --out FILE            JSON lines, appended as they come (default: gpu_check.jsonl)\n"
    "  --tiny                seconds instead of minutes, with sizes that say nothing about the device\n"
    "  --only NAME,NAME      these sections only; a file that is there keeps its other sections\n"
    "  --limit NAME=SECONDS  another time limit for a section\n"
    "  --cupti LIBRARY       where libcupti lies, if it is not found\n"
    "  --break               also what makes the driver log an Xid, last: the system may take the machine away\n"
    "  gpu_check --ptx       prints the kernels\n"
    "\n"
    "Sections:\n";

struct Command {
    std::string word;   // "--run", or of a child: "section", "decode-side", "truths", "probe"
    std::string name;   // of the child's section, or side
    unsigned first = 0; // truth, or shape
    std::string out = "gpu_check.jsonl";
    std::vector<std::string> only;
    std::map<std::string, double> limits;
    bool breaks = false;
    Options options;
};

[[noreturn]] void refuse(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    std::exit(no_gpu);
}

bool known(const std::string& name) {
    for (const Section& section : sections) {
        if (name == section.name) {
            return true;
        }
    }
    return false;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        parts.push_back(text.substr(from, comma - from));
        from = comma + 1;
    }
    return parts;
}

void read_limit(Command& command, const std::string& text) {
    const std::size_t equals = text.find('=');
    char* end = nullptr;
    const double seconds = equals == std::string::npos ? -1 : std::strtod(text.c_str() + equals + 1, &end);
    if (seconds < 0 || end == nullptr || *end != 0 || !known(text.substr(0, equals))) {
        refuse("--limit wants NAME=SECONDS with the name of a section, not \"" + text + "\"; --help lists them");
    }
    command.limits[text.substr(0, equals)] = seconds;
}

Command read_command(int argc, char** argv) {
    Command command;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto value = [&]() -> std::string {
            return i + 1 < argc ? argv[++i] : (refuse(word + " wants a value; --help shows which"), std::string());
        };
        if (word == "--help" || word == "-h") {
            std::printf("%s", usage);
            for (const Section& section : sections) {
                std::printf("  %-10s %3.0f s  %s\n", section.name, section.limit_s, section.asks);
            }
            std::exit(0);
        } else if (word == "--ptx") { // for who wants to see or compile the kernels
            std::printf("%s", kernels_ptx().c_str());
            std::exit(0);
        } else if (word == "--run" || word == "probe") {
            command.word = word;
        } else if (word == "section") {
            command.word = word, command.name = value();
        } else if (word == "decode-side") {
            command.word = word, command.name = value();
            command.first = static_cast<unsigned>(std::strtoul(value().c_str(), nullptr, 10));
        } else if (word == "truths") {
            command.word = word, command.first = static_cast<unsigned>(std::strtoul(value().c_str(), nullptr, 10));
        } else if (word == "--out") {
            command.out = value();
        } else if (word == "--tiny") {
            command.options.tiny = true;
        } else if (word == "--break") {
            command.breaks = true;
        } else if (word == "--only") {
            command.only = split(value());
        } else if (word == "--limit") {
            read_limit(command, value());
        } else if (word == "--cupti") {
            command.options.cupti = value();
        } else if (word == "--scratch") {
            command.options.scratch = value();
        } else {
            refuse("\"" + word + "\" is no option; --help lists them");
        }
    }
    for (const std::string& name : command.only) {
        if (!known(name)) {
            refuse("--only: there is no section \"" + name + "\"; --help lists them");
        }
        if (name == break_section && !command.breaks) {
            refuse(
                "--only break wants --break too: the driver will log an Xid, and the system may take the machine away");
        }
    }
    return command;
}

/// Exit status of a section, or of a part of one.
int run_recorded(const ResultFile& results, const std::function<void()>& body) {
    try {
        body();
        return 0;
    } catch (const Failure& failure) {
        results.append({{"record", "problem"}, {"sentence", failure.sentence}});
        return failed_section;
    } catch (const NotApplicable& reason) {
        results.append({{"record", "not_applicable"}, {"reason", reason.reason}});
        return 0;
    }
}

/// Runs one section in this process.
int run_section(const Command& command) {
    const ResultFile results(command.out, command.name);
    for (const Section& section : sections) {
        if (command.name == section.name) {
            return run_recorded(results, [&] { section.run(results, command.options); });
        }
    }
    return failed_section;
}

int run_side(const Command& command) {
    const ResultFile results(command.out, "decode");
    return run_recorded(results,
                        [&] { run_decode_side(results, command.options, command.name == "on", command.first); });
}

/// 0 where a device answers; else prints the one sentence that says what is missing.
int probe() {
    try {
        const Gpu gpu;
        return 0;
    } catch (const Failure& failure) {
        std::fprintf(stderr, "gpu_check: %s\n", failure.sentence.c_str());
        return no_gpu;
    }
}

std::string time_utc() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

void write_head(const Command& command) {
    utsname system{};
    uname(&system);
    const ResultFile results(command.out, "run");
    const bool written = results.append({{"record", "run"},
                                         {"schema", schema},
                                         {"version", PLUMB_BUILD_VERSION},
                                         {"time", time_utc()},
                                         {"tiny", command.options.tiny},
                                         {"kernel", std::string(system.sysname) + " " + system.release},
                                         {"machine", system.machine},
                                         {"glibc", gnu_get_libc_version()},
                                         {"cpus", sysconf(_SC_NPROCESSORS_ONLN)}});
    if (!written) {
        refuse("cannot write " + command.out + ": name a file in a folder that may be written with --out");
    }
}

const char* word_of(const Ended& ended) {
    switch (ended.how) {
    case Ended::How::exited:
        return ended.code == 0 ? "done" : "failed";
    case Ended::How::crashed:
        return "crashed";
    case Ended::How::timed_out:
        return "timed out";
    case Ended::How::not_started:
        return "not started";
    }
    return "failed";
}

bool run_and_watch(const Command& command, const Section& section) {
    const auto own = command.limits.find(section.name);
    const double usual = command.options.tiny ? section.tiny_limit_s : section.limit_s;
    const double limit = own != command.limits.end() ? own->second : usual;
    const ResultFile results(command.out, section.name);
    results.append({{"record", "begin"}, {"limit_s", limit}});
    std::printf("%-10s ", section.name);
    std::fflush(stdout);
    std::vector<std::string> words = {"section",   section.name, "--out",
                                      command.out, "--scratch",  command.options.scratch};
    if (command.options.tiny) {
        words.emplace_back("--tiny");
    }
    if (!command.options.cupti.empty()) {
        words.insert(words.end(), {"--cupti", command.options.cupti});
    }
    const Ended ended = run_child(words, limit);
    Json line = {{"record", "end"}, {"status", word_of(ended)}, {"seconds", ended.seconds}};
    if (ended.how == Ended::How::crashed) {
        line["signal"] = ended.code;
    }
    results.append(line);
    std::printf("%s, %.1f s\n", word_of(ended), ended.seconds);
    std::fflush(stdout);
    return ended.how == Ended::How::exited && ended.code == 0;
}

/// Only the result file of an earlier run of the same kind is gone on with, and only section by section.
bool may_append(const Command& command) {
    std::ifstream file(command.out);
    std::string first;
    std::getline(file, first);
    const Json head = Json::parse(first, nullptr, false);
    return !command.only.empty() && head.is_object() && head.value("schema", "") == schema &&
           head.value("tiny", false) == command.options.tiny;
}

bool is_wanted(const Command& command, const std::string& name) {
    if (command.only.empty()) {
        return command.breaks || name != break_section;
    }
    return std::find(command.only.begin(), command.only.end(), name) != command.only.end();
}

int run_all(Command command) {
    if (std::filesystem::exists(command.out) && !may_append(command)) {
        refuse(command.out + " exists already: move it away, or name another file with --out");
    }
    // The driver's own messages stay in the child; a missing GPU is said in one sentence and leaves no file.
    const Ended asked = run_child({"probe"}, 60);
    if (asked.how != Ended::How::exited || asked.code != 0) {
        if (asked.how != Ended::How::exited) {
            std::fprintf(stderr,
                         "gpu_check: the NVIDIA driver is there but does not answer; see that the device works\n");
        }
        return no_gpu;
    }
    char scratch[] = "/tmp/plumb-gpu-check-XXXXXX";
    command.options.scratch = mkdtemp(scratch) != nullptr ? scratch : ".";
    write_head(command);
    bool all = true;
    for (const Section& section : sections) {
        if (is_wanted(command, section.name)) {
            all = run_and_watch(command, section) && all;
        }
    }
    const ResultFile results(command.out, "run");
    results.append({{"record", "finished"}, {"all_sections_done", all}});
    std::error_code ignored;
    std::filesystem::remove_all(scratch, ignored);
    std::printf("results: %s\n", command.out.c_str());
    return all ? 0 : 1;
}

int main_of(int argc, char** argv) {
    const Command command = read_command(argc, argv);
    if (command.word == "--run") {
        return run_all(command);
    }
    if (command.word == "section") {
        return run_section(command);
    }
    if (command.word == "decode-side") {
        return run_side(command);
    }
    if (command.word == "truths") {
        return run_truths_from(ResultFile(command.out, "truth"), command.first);
    }
    if (command.word == "probe") {
        return probe();
    }
    refuse("say --run to run the check, or --help");
}

} // namespace
} // namespace gpu_check

int main(int argc, char** argv) { return gpu_check::main_of(argc, argv); }
