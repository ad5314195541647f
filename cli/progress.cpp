// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace plumb::cli {

Progress::Progress(std::string what, std::string unit)
    : what_(std::move(what)), unit_(std::move(unit)), terminal_(::isatty(STDERR_FILENO) == 1), begin_(Clock::now()),
      next_(begin_) {}

void Progress::show(std::uint64_t done, std::uint64_t total) {
    if (!terminal_) {
        return;
    }
    const auto now = Clock::now();
    if (now < next_) {
        return;
    }
    next_ = now + std::chrono::milliseconds(200);
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    fmt::print(stderr, "\r\x1b[K{} {}/{} {}  {:.1f} {}/s", what_, done, total, unit_, rate, unit_);
    std::fflush(stderr);
    shown_ = true;
}

void Progress::clear() {
    if (!std::exchange(shown_, false)) {
        return;
    }
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
}

} // namespace plumb::cli
