// SPDX-License-Identifier: Apache-2.0
#include "cli/ticker.hpp"

#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace plumb::cli {

namespace {

constexpr std::chrono::milliseconds until_first{500}; // short work shows nothing
constexpr std::chrono::milliseconds between{200};

} // namespace

Ticker::Ticker(std::string what, std::function<std::uint64_t()> bytes)
    : what_(std::move(what)), bytes_(std::move(bytes)) {
    if (::isatty(STDERR_FILENO) == 1) {
        thread_ = std::thread([this] { draw(); });
    }
}

Ticker::~Ticker() {
    if (!thread_.joinable()) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void Ticker::draw() {
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    bool shown = false;
    while (!changed_.wait_for(lock, shown ? between : until_first, [this] { return done_; })) {
        const auto seconds =
            std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin).count();
        const std::string size = bytes_ ? "  " + std::to_string(bytes_() / 1'000'000) + " MB" : std::string();
        std::fprintf(stderr, "\r\x1b[K%s%s  %lld s", what_.c_str(), size.c_str(), static_cast<long long>(seconds));
        std::fflush(stderr);
        shown = true;
    }
    if (shown) {
        std::fputs("\r\x1b[K", stderr);
    }
}

} // namespace plumb::cli
