// SPDX-License-Identifier: Apache-2.0
// A machine on which the fingerprint kernel runs without a GPU: each thread of a block is a fibre, blocks run one after
// the other. Test-only; one thread.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "fingerprint/cuda/kernel_body.hpp"

namespace plumb::fingerprint {

class HostMachine {
  public:
    /// Where a device address lies on the host.
    using Place = std::function<void*(std::uint64_t address, std::size_t bytes)>;

    explicit HostMachine(Place place = {})
        : place_(std::move(place)), fibres_(kernel_threads), scratch_words_(scratch_words) {
        for (Fibre& fibre : fibres_) {
            fibre.stack.resize(stack_bytes);
        }
    }

    void launch(const KernelParameters& parameters, unsigned blocks) {
        blocks_ = blocks;
        parameters_ = &parameters;
        for (block_ = 0; block_ < blocks; ++block_) {
            run_block();
        }
    }
    void set_tag(std::uint32_t group, std::uint64_t tag) { tags_[group] = tag; }

    // What the kernel asks of a machine.
    [[nodiscard]] unsigned thread() const { return running_; }
    [[nodiscard]] unsigned block() const { return block_; }
    [[nodiscard]] unsigned blocks() const { return blocks_; }
    template <class T>
    T exchange(T value, unsigned mask) {
        Fibre& own = fibres_[running_];
        const unsigned turn = own.exchanges++ % 2;
        own.sent[turn] = same_bits<std::uint64_t>(value);
        const unsigned me = running_;
        std::uint64_t& arrived = warps_[me / 32];
        ++arrived;
        while (arrived < own.exchanges * 32) {
            yield();
        }
        return same_bits<T>(fibres_[me ^ mask].sent[turn]);
    }
    void sync_block() {
        const std::uint64_t round = ++fibres_[running_].syncs;
        ++synced_;
        while (synced_ < round * kernel_threads) {
            yield();
        }
    }
    double* shared() { return shared_; }
    template <class T>
    T load(std::uint64_t address, std::int64_t index) {
        const std::uint64_t at = address + static_cast<std::uint64_t>(index) * sizeof(T);
        T value;
        std::memcpy(&value, host(at, sizeof value), sizeof value);
        return value;
    }
    [[nodiscard]] std::uint64_t scratch(std::uint32_t word) const { return scratch_words_[word]; }
    void put_scratch(std::uint32_t word, std::uint64_t value) { scratch_words_[word] = value; }
    void put(std::uint64_t address, std::uint64_t value) {
        __atomic_store_n(static_cast<std::uint64_t*>(host(address, sizeof value)), value, __ATOMIC_RELEASE);
    }
    void release() {}
    void release_to_host() {}
    SiteState& state(std::uint32_t site) { return sites_[site]; }
    std::uint64_t tag(std::uint32_t group) { return tags_[group]; }
    bool arrive_last(std::uint32_t site) {
        if (running_ == 0) {
            std::uint32_t& ticket = sites_[site].ticket;
            came_last_ = ticket == blocks_ - 1;
            ticket = came_last_ ? 0 : ticket + 1;
        }
        sync_block();
        return came_last_;
    }

  private:
    static constexpr std::size_t stack_bytes = 64 * 1024;
    struct Fibre {
        ucontext_t context{};
        std::vector<char> stack;
        std::uint64_t sent[2] = {};
        std::uint64_t exchanges = 0;
        std::uint64_t syncs = 0;
        bool ended = false;
    };

    void* host(std::uint64_t address, std::size_t bytes) const {
        return place_ ? place_(address, bytes) : reinterpret_cast<void*>(address);
    }
    void yield() { swapcontext(&fibres_[running_].context, &scheduler_); }
    static void enter(unsigned high, unsigned low) {
        auto& self = *reinterpret_cast<HostMachine*>(std::uintptr_t{high} << 32 | low);
        FingerprintKernel<HostMachine>{self, *self.parameters_}.run();
        self.fibres_[self.running_].ended = true;
        self.yield();
    }
    void run_block() {
        synced_ = 0;
        std::memset(warps_, 0, sizeof warps_);
        std::memset(shared_, 0xa5, sizeof shared_); // a device's is not zeroed either
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        for (Fibre& fibre : fibres_) {
            fibre.exchanges = fibre.syncs = 0;
            fibre.ended = false;
            getcontext(&fibre.context);
            fibre.context.uc_stack.ss_sp = fibre.stack.data();
            fibre.context.uc_stack.ss_size = fibre.stack.size();
            fibre.context.uc_link = nullptr;
            makecontext(&fibre.context, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(self >> 32),
                        static_cast<unsigned>(self));
        }
        for (bool left = true; left;) {
            left = false;
            for (running_ = 0; running_ < kernel_threads; ++running_) {
                if (!fibres_[running_].ended) {
                    swapcontext(&scheduler_, &fibres_[running_].context);
                    left |= !fibres_[running_].ended;
                }
            }
        }
    }

    Place place_;
    std::vector<Fibre> fibres_;
    ucontext_t scheduler_{};
    const KernelParameters* parameters_ = nullptr;
    unsigned running_ = 0;
    unsigned block_ = 0;
    unsigned blocks_ = 1;
    std::uint64_t synced_ = 0;
    std::uint64_t warps_[kernel_warps] = {};
    double shared_[kernel_warps * shared_of_warp] = {};
    bool came_last_ = false;
    std::vector<std::uint64_t> scratch_words_;
    std::map<std::uint32_t, SiteState> sites_;
    std::map<std::uint32_t, std::uint64_t> tags_;
};

} // namespace plumb::fingerprint
