// SPDX-License-Identifier: Apache-2.0
// A stranger's program: asks in a forked child, then in four threads at once; records a scope in each of four steps and asks for
// the results meanwhile. Fails if nothing was recorded, or the analysis is not there where it should be, or the other way round.
#include <plumb/plumb.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

bool failed(const std::string& sentence) {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    return true;
}

/// No analysis: each question gets one sentence, which says what to do.
bool says_why(const plumb::Error& error) {
    const std::string& text = error.message;
    std::fprintf(stderr, "%s\n", text.c_str());
    return error.code == plumb::ErrorCode::unavailable && text.find("analysis") != std::string::npos &&
           text.find("; ") != std::string::npos && text.find('\n') == std::string::npos;
}

bool ask_wrong(bool present) {
    const plumb::Result<std::string> schema = plumb::json_schema("plumb.report/2");
    return present ? !schema.ok() || plumb::known_answers().empty() : schema.ok() || !says_why(schema.error());
}

bool ask_wrong_in_child(bool present) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(ask_wrong(present) ? 1 : 0);
    }
    int status = 0;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

bool snapshot_wrong(plumb::Profiler& prof, std::uint64_t steps, bool present) {
    const plumb::Result<plumb::Report> report = prof.snapshot();
    if (!present) {
        return report.ok() || !says_why(report.error());
    }
    return !report.ok()
               ? failed(report.error().message)
               : report->scopes != steps && failed("of the scopes " + std::to_string(report->scopes) + " are there");
}

} // namespace

int main(int argc, char** argv) {
    const std::string analysis = argc == 3 ? argv[2] : "";
    if (analysis != "present" && analysis != "absent") {
        std::fputs("usage: consumer FILE present|absent\n", stderr);
        return 2;
    }
    const bool present = analysis == "present";
    const std::string path = argv[1];
    {
        std::remove((path + ".prom").c_str());
        plumb::Profiler prof(plumb::Config::parse("on,warmup=0,out=" + path + ",metrics=" + path + ".prom"));
        const bool child_wrong = ask_wrong_in_child(present);
        std::vector<std::thread> askers;
        std::vector<char> wrong(4, 1);
        for (char& answer : wrong) {
            askers.emplace_back([&] { answer = ask_wrong(present) ? 1 : 0; });
        }
        for (std::thread& asker : askers) {
            asker.join();
        }
        if (child_wrong || wrong != std::vector<char>(4, 0)) {
            return failed("the analysis is not " + analysis);
        }
        for (std::uint64_t token = 0; token < 4; ++token) {
            {
                PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1), plumb::kv_length(token));
                PLUMB_BRICK(prof, plumb::host, "rms_norm", plumb::bytes(64)); // by name: it calls the library
            }
            if (token == 1 && snapshot_wrong(prof, 2, present)) {
                return failed("snapshot() while it records");
            }
        }
        if (!prof.status()) {
            return failed("the profiler is off");
        }
    }
    std::ifstream recording(path, std::ios::binary | std::ios::ate);
    if (!recording || recording.tellg() <= 0) {
        return failed("no recording was written");
    }
    if (std::ifstream(path + ".prom").good() != (std::getenv("METRICS") == nullptr)) {
        return failed("live metrics are not as they should be");
    }
    const plumb::Result<plumb::Answer> answer = plumb::ask("report", {path});
    if (present ? !answer.ok() || answer->text().find("rms_norm") == std::string::npos
                : answer.ok() || !says_why(answer.error())) {
        return failed("ask() of what was recorded");
    }
    return 0;
}
