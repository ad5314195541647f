// SPDX-License-Identifier: Apache-2.0
// "writing trace.json  123 MB  4 s" on the last line of a terminal, while long work runs; nothing where standard error is
// no terminal or the work is short. Owned by the command; a thread of its own draws.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace plumb::cli {

class Ticker {
  public:
    /// `bytes` (may be empty) is called on the drawing thread.
    explicit Ticker(std::string what, std::function<std::uint64_t()> bytes = {});
    Ticker(const Ticker&) = delete;
    Ticker& operator=(const Ticker&) = delete;
    ~Ticker();

  private:
    void draw();

    std::string what_;
    std::function<std::uint64_t()> bytes_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false; // guarded by mutex_
    std::thread thread_;
};

} // namespace plumb::cli
