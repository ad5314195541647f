// SPDX-License-Identifier: Apache-2.0
// One line on a terminal's stderr that shows how far long work is; nothing where stderr is no terminal.
// Rewritten five times a second at most, so that it costs the work nothing. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace plumb::cli {

class Progress {
  public:
    Progress(std::string what, std::string unit);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { clear(); }

    void show(std::uint64_t done, std::uint64_t total);
    void clear();

  private:
    using Clock = std::chrono::steady_clock;

    std::string what_, unit_;
    bool terminal_;
    bool shown_ = false;
    Clock::time_point begin_, next_;
};

} // namespace plumb::cli
