// SPDX-License-Identifier: Apache-2.0
#include "lookalike/truth.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace {

const char* truth_path() { return std::getenv("LOOKALIKE_TRUTH"); }

void append(std::string line) {
    // Opened for each line: what this process forks or executes goes on in the same file.
    const int file = open(truth_path(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    line += '\n';
    if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        std::perror("lookalike: the truth cannot be written");
        std::abort();
    }
    close(file);
}

template <class... Values>
std::string text(const char* format, Values... values) {
    char buffer[512];
    std::snprintf(buffer, sizeof buffer, format, values...);
    return buffer;
}

} // namespace

std::int64_t lookalike_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void lookalike_busy(std::int64_t ns) {
    const std::int64_t until = lookalike_now() + ns;
    while (lookalike_now() < until) {
    }
}

void lookalike_write_step(const lookalike::Step& step) {
    if (truth_path() == nullptr) {
        return;
    }
    std::string line =
        text(R"({"step":%d,"context":%d,"pid":%d,"tid":%d,"phase":"%s","tokens":%d,"sequences":%d,"kv_length":%d,)"
             R"("status":%d,"begin":%ld,"end":%ld,"compute":[%ld,%ld],"graph_nodes":%d,"nodes":[)",
             step.number, step.context, getpid(), gettid(), step.phase, step.tokens, step.sequences, step.kv_length,
             step.status, step.begin, step.end, step.compute_begin, step.compute_end, step.graph_nodes);
    for (const lookalike::Node& node : step.nodes) {
        line += text(R"(%s{"name":"%s","op":"%s","brick":"%s","layer":%d,"bytes":%.0f,"flops":%.0f,"planted":%ld,)"
                     R"("called":%ld,"entered":%ld,"left":%ld,"passed":%ld})",
                     &node == step.nodes.data() ? "" : ",", node.name.c_str(), node.op, node.planted.brick,
                     node.planted.layer, node.planted.bytes, node.planted.flops, node.planted.ns, node.called,
                     node.entered, node.left, node.passed);
    }
    append(line + "]}");
}

void lookalike_write_sampled(const lookalike::Sampled& sampled) {
    if (truth_path() == nullptr) {
        return;
    }
    append(text(R"({"sampled":%d,"pid":%d,"tid":%d,"begin":%ld,"end":%ld})", sampled.context, getpid(), gettid(),
                sampled.begin, sampled.end));
}
