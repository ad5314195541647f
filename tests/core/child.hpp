// SPDX-License-Identifier: Apache-2.0
// For tests about whole processes: a child, a folder, and what a recording left by a child holds. One thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "plumb/plumb.hpp"
#include "recording/reader.hpp"

namespace plumb::core_test {

struct ChildEnd {
    int code = -1;  // of exit; -1: killed
    int signal = 0; // that killed it
};

inline ChildEnd wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

/// Keeps the CPU busy for some loops.
inline void spin(int loops) {
    for (int i = 0; i < loops; ++i) {
        asm volatile("");
    }
}

inline constexpr Name norm = Brick::rms_norm;

inline void scopes(Profiler& prof, int count, Name name = norm) {
    for (int i = 0; i < count; ++i) {
        PLUMB_BRICK(prof, host, name);
    }
}

/// Runs `body` in a forked child, which ends with its result by _exit unless it ends otherwise. A hang ends after a minute.
template <class Body>
pid_t start_child(Body body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(body());
    }
    return child;
}

template <class Body>
ChildEnd in_child(Body body) {
    return wait_for(start_child(body));
}

class CoreTest : public testing::Test {
  protected:
    CoreTest() {
        char name[] = "/tmp/plumb-core-XXXXXX";
        folder_ = mkdtemp(name);
        said_path_ = folder_ + "/said";
        // Killed processes leave their rings: in a folder of the test's own, in memory where there is such a folder.
        char rings[] = "/dev/shm/plumb-core-XXXXXX";
        rings_folder_ = mkdtemp(rings) != nullptr ? rings : folder_;
        setenv("XDG_RUNTIME_DIR", rings_folder_.c_str(), 1);
    }
    ~CoreTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        std::filesystem::remove_all(rings_folder_, ignored);
        unsetenv("XDG_RUNTIME_DIR");
    }
    /// A config whose diagnostics end up in the file `said`, one line each.
    [[nodiscard]] Config config(const std::string& keys = "") {
        Config c = *Config::parse("on,out=" + path() + (keys.empty() ? "" : "," + keys));
        c.diagnostic = [](const char* sentence, void* user) {
            std::ofstream(*static_cast<std::string*>(user), std::ios::app) << sentence << std::endl;
        };
        c.diagnostic_user = &said_path_;
        return c;
    }
    [[nodiscard]] std::string path() const { return folder_ + "/run.plumb"; }
    [[nodiscard]] std::vector<std::string> said() const {
        std::ifstream file(said_path_);
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);) {
            lines.push_back(line);
        }
        return lines;
    }

    std::string folder_;
    std::string rings_folder_;
    std::string said_path_;
};

struct Held {
    std::map<std::uint16_t, std::uint64_t> scopes; // by name
    std::uint64_t drops = 0;
    std::string problem; // empty: every track is in sequence and in order
    std::vector<std::string> notes;
};

/// Reads a recording, a dead writer's ring merged in, and checks that no record is there twice.
inline Held read_back(const std::string& path) {
    Held held;
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        held.problem = reader.error().message;
        return held;
    }
    std::map<std::uint32_t, std::uint64_t> next;
    std::map<std::uint32_t, std::uint64_t> last_end;
    const Status status = reader->for_each_batch([&](const recording::RecordBatch& batch) {
        if (batch.first_sequence != next[batch.track]) {
            held.problem = "track " + std::to_string(batch.track) + " goes on at " +
                           std::to_string(batch.first_sequence) + " after " + std::to_string(next[batch.track]);
        }
        next[batch.track] = batch.first_sequence + batch.count;
        for (std::size_t i = 0; i < batch.count; ++i) {
            const Record& record = batch.records[i];
            if (kind_of(record) != RecordKind::scope) {
                continue;
            }
            ++held.scopes[id_of(record)];
            if (record.first < last_end[batch.track]) {
                held.problem = "a scope begins before the one before it ended";
            }
            last_end[batch.track] = record.first + payload_of(record);
        }
        return true;
    });
    if (!status.ok()) {
        held.problem = status.error().message;
    }
    for (const auto& [reason, count] : reader->counters().drops) {
        held.drops += count;
    }
    held.notes = reader->notes();
    return held;
}

} // namespace plumb::core_test
