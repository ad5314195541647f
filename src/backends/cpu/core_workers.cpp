// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/core_workers.hpp"

#include <algorithm>

#include "base/os.hpp"

namespace plumb::backends::cpu {
namespace {

std::vector<int> usable_cores() {
    std::vector<int> cores = base::usable_cpu_numbers();
    // Where threads cannot be bound: as many as there are cores, placed by the system.
    return cores.empty() ? std::vector<int>(base::usable_cpus(), -1) : cores;
}

} // namespace

Workers::Workers(unsigned count) {
    const std::vector<int> cores = usable_cores();
    const auto size = std::min<std::size_t>(count, std::max<std::size_t>(cores.size(), 1));
    for (unsigned i = 0; i < size; ++i) {
        threads_.emplace_back([this, i, cores] {
            if (i < cores.size()) {
                base::bind_to_cpu(cores[i]);
            }
            serve(i);
        });
    }
}

Workers::~Workers() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void Workers::run(unsigned count, const std::function<void(unsigned)>& task) {
    std::unique_lock<std::mutex> lock(mutex_);
    task_ = &task;
    count_ = running_ = count;
    ready_.store(0, std::memory_order_relaxed);
    ++turn_;
    wake_.notify_all();
    done_.wait(lock, [&] { return running_ == 0; });
}

void Workers::serve(unsigned index) {
    std::uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        wake_.wait(lock, [&] { return stop_ || (turn_ != seen && index < count_); });
        if (stop_) {
            return;
        }
        seen = turn_;
        const auto* task = task_;
        const unsigned count = count_;
        lock.unlock();
        ready_.fetch_add(1, std::memory_order_acq_rel);
        while (ready_.load(std::memory_order_acquire) < count) { // all begin within a cache miss of each other
        }
        (*task)(index);
        lock.lock();
        if (--running_ == 0) {
            done_.notify_all();
        }
    }
}

} // namespace plumb::backends::cpu
