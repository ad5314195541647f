// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/host_block_testing.hpp"

namespace plumb::decoder::cuda {

/// Leaves the thread for good: the launch is over.
void HostBlock::fail(const std::string& what) {
    if (failure_.empty()) {
        failure_ = "block " + std::to_string(at_[0]) + "," + std::to_string(at_[1]) + "," + std::to_string(at_[2]) +
                   " thread " + std::to_string(running_) + ": " + what;
    }
    for (;;) {
        leave(running_);
    }
}

std::string HostBlock::run(const HostLaunch& shape) {
    if (shape.threads == 0 || shape.threads > 1024 || shape.threads % 32 != 0) {
        return "a block of " + std::to_string(shape.threads) + " threads cannot be launched";
    }
    if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0 || shape.grid[0] > 0x7fffffffU ||
        shape.grid[1] > 65535 || shape.grid[2] > 65535) {
        return "a grid of " + std::to_string(shape.grid[0]) + "," + std::to_string(shape.grid[1]) + "," +
               std::to_string(shape.grid[2]) + " blocks cannot be launched";
    }
    if (shape.shared_bytes > 48 * 1024) {
        return std::to_string(shape.shared_bytes) + " bytes of shared memory cannot be had unasked";
    }
    shape_ = shape;
    failure_.clear();
    fibres_.resize(std::max<std::size_t>(fibres_.size(), shape.threads));
    lanes_.resize(shape.threads);
    states_.resize(shape.threads);
    warps_.resize(shape.threads / 32);
    std::fill(lines_.begin(), lines_.end(), Line{}); // memory may have been freed since
    for (unsigned i = 0; i < shape.threads; ++i) {
        lanes_[i].block_ = this;
        lanes_[i].thread_ = i;
    }
    for (at_[2] = 0; at_[2] < shape.grid[2]; ++at_[2]) {
        for (at_[1] = 0; at_[1] < shape.grid[1]; ++at_[1]) {
            for (at_[0] = 0; at_[0] < shape.grid[0]; ++at_[0]) {
                run_block();
                if (!failure_.empty()) {
                    return failure_;
                }
            }
        }
    }
    return {};
}

void HostBlock::thread_main(void* lane) {
    auto& own = *static_cast<Lane*>(lane);
    HostBlock& block = *own.block_;
    block.body_(own);
    block.states_[own.thread_] = Thread::ended;
    ++block.ended_;
    for (;;) {
        block.leave(own.thread_);
    }
}

void HostBlock::run_block() {
    at_barrier_ = ended_ = 0;
    round_ = 1;
    std::fill(warps_.begin(), warps_.end(), Warp{});
    words_.assign(shape_.shared_bytes / sizeof(float), SharedWord{});
    std::fill(states_.begin(), states_.end(), Thread::runs);
    for (unsigned i = 0; i < shape_.threads; ++i) {
        fibres_[i].start(&thread_main, &lanes_[i]);
    }
    while (ended_ < shape_.threads) {
        bool moved = false;
        for (running_ = 0; running_ < shape_.threads; ++running_) {
            while (states_[running_] == Thread::runs && failure_.empty()) {
                moved = true;
                fibres_[running_].enter();
            }
            if (!failure_.empty()) {
                return;
            }
        }
        if (!moved) {
            running_ = static_cast<unsigned>(
                std::find_if(states_.begin(), states_.end(), [](Thread state) { return state != Thread::ended; }) -
                states_.begin());
            failure_ = "block " + std::to_string(at_[0]) + "," + std::to_string(at_[1]) + "," + std::to_string(at_[2]) +
                       ": divergent barrier: thread " + std::to_string(running_) + " waits for threads that never come";
            return;
        }
    }
}

void HostBlock::sync(unsigned thread) {
    states_[thread] = Thread::at_barrier;
    if (++at_barrier_ < shape_.threads) {
        leave(thread);
        return;
    }
    at_barrier_ = 0;
    ++round_;
    std::fill(states_.begin(), states_.end(), Thread::runs);
}

std::uint32_t HostBlock::meet(unsigned thread, Meeting meeting, unsigned mask, std::uint32_t value) {
    Warp& warp = warps_[thread / 32];
    const unsigned lane = thread % 32;
    if (warp.arrived == 0) {
        warp.meeting = meeting;
        warp.mask = mask;
    } else if (warp.meeting != meeting || warp.mask != mask) {
        fail("the lanes of a warp meet at different calls");
    }
    warp.values[lane] = value;
    if (++warp.arrived < 32) {
        states_[thread] = Thread::waits;
        leave(thread);
        return warp.values[lane]; // no lane can meet again before all have left
    }
    warp.arrived = 0;
    std::array<std::uint32_t, 32> given = warp.values;
    if (meeting == Meeting::sum) { // in the order in which the device exchanges
        std::array<float, 32> sums{};
        for (unsigned i = 0; i < 32; ++i) {
            sums[i] = std::bit_cast<float>(given[i]);
        }
        for (unsigned half = 16; half > 0; half /= 2) {
            const std::array<float, 32> before = sums;
            for (unsigned i = 0; i < 32; ++i) {
                sums[i] = before[i] + before[i ^ half];
            }
        }
        for (unsigned i = 0; i < 32; ++i) {
            warp.values[i] = std::bit_cast<std::uint32_t>(sums[i]);
        }
    } else {
        for (unsigned i = 0; i < 32; ++i) {
            warp.values[i] = given[i ^ (mask % 32)];
        }
    }
    const auto first = states_.begin() + static_cast<std::ptrdiff_t>(thread / 32 * 32);
    std::fill(first, first + 32, Thread::runs);
    return warp.values[lane];
}

void HostBlock::fail_shared(unsigned i, const char* what) {
    const std::string word = "word " + std::to_string(i);
    if (i >= words_.size()) {
        fail("shared memory overrun: " + word + " of " + std::to_string(words_.size()));
    }
    if (!words_[i].written) {
        fail("shared " + word + " is read before anybody wrote it");
    }
    fail("shared memory race: " + word + " is " + what + ", and another thread used it since the last barrier");
}

void* HostBlock::find_place(std::uint64_t address, std::size_t bytes, const char* what) {
    if (address % bytes != 0) {
        fail("misaligned " + std::string(what) + " of " + std::to_string(bytes) + " bytes");
    }
    const std::uint64_t begin = address / line_bytes * line_bytes;
    if (void* whole = memory_(begin, line_bytes)) {
        lines_[begin / line_bytes % line_count] = {begin, static_cast<char*>(whole)};
        return static_cast<char*>(whole) + (address - begin);
    }
    if (void* part = memory_(address, bytes)) { // the last of a buffer
        return part;
    }
    fail("out-of-bounds " + std::string(what) + " of " + std::to_string(bytes) + " bytes");
}

} // namespace plumb::decoder::cuda
