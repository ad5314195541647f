// SPDX-License-Identifier: Apache-2.0
// Threads, each bound to a core of its own, that run the same function at the same moment. They sleep in between, so that
// other threads (the drain) find the cores free. Owned and used by one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace plumb::backends::cpu {

class Workers {
  public:
    /// At most as many as there are cores; size() says how many.
    explicit Workers(unsigned count);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    [[nodiscard]] unsigned size() const { return static_cast<unsigned>(threads_.size()); }
    /// Runs task(0) … task(count - 1), each on its own thread and core, and waits for all.
    void run(unsigned count, const std::function<void(unsigned)>& task);

  private:
    void serve(unsigned index);

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    const std::function<void(unsigned)>* task_ = nullptr;
    unsigned count_ = 0, running_ = 0;
    std::uint64_t turn_ = 0;
    bool stop_ = false;
    std::atomic<unsigned> ready_{0};
    std::vector<std::thread> threads_;
};

} // namespace plumb::backends::cpu
