// SPDX-License-Identifier: Apache-2.0
// The host form of the kernels' machine: the threads of a block are fibres, blocks run one after the other. What a GPU would
// do wrong in silence ends the launch with a sentence: a barrier not all come to, two threads at one word of shared memory
// with no barrier between them, an address outside every buffer or not aligned, a launch beyond the limits, shared memory
// read before it was written. Races of blocks are not seen. Test-only; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "decoder/kernels/cuda/fibre_testing.hpp"
#include "decoder/model_maker/quantise.hpp"

namespace plumb::decoder::cuda {

struct HostLaunch {
    unsigned grid[3] = {1, 1, 1};
    unsigned threads = 32;
    unsigned shared_bytes = 0;
};

class HostBlock {
  public:
    /// Where `bytes` at a device address lie on the host; null where they are not all in one buffer.
    using Memory = std::function<void*(std::uint64_t address, std::size_t bytes)>;

    explicit HostBlock(Memory memory) : memory_(std::move(memory)), lines_(line_count) {}

    /// Runs kernel(lane, arguments) in every thread of the grid. Returns what went wrong; empty: nothing.
    template <class Kernel, class Arguments>
    std::string launch(const HostLaunch& shape, const Kernel& kernel, const Arguments& arguments) {
        body_ = [&](Lane& lane) {
            kernel(lane, arguments);
        };
        return run(shape);
    }

    class Lane {
      public:
        [[nodiscard]] unsigned thread() const { return thread_; }
        [[nodiscard]] unsigned threads() const { return block_->shape_.threads; }
        [[nodiscard]] unsigned block_x() const { return block_->at_[0]; }
        [[nodiscard]] unsigned block_y() const { return block_->at_[1]; }
        [[nodiscard]] unsigned block_z() const { return block_->at_[2]; }
        template <class T>
        T load(std::uint64_t address) {
            T value;
            std::memcpy(&value, block_->place(address, sizeof(T), "load"), sizeof(T));
            return value;
        }
        template <class T>
        T stream(std::uint64_t address) {
            return load<T>(address);
        }
        template <class T>
        void store(std::uint64_t address, T value) {
            std::memcpy(block_->place(address, sizeof(T), "store"), &value, sizeof(T));
        }
        [[nodiscard]] static float from_half(std::uint16_t bits) {
            const int exponent = bits >> 10 & 31, fraction = bits & 1023;
            const float size = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                               : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                                : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
            return bits >> 15 != 0 ? -size : size;
        }
        [[nodiscard]] static std::uint16_t to_half(float value) { return half_of(value); }
        [[nodiscard]] static std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
        float shared(unsigned i) { return block_->shared(thread_, i); }
        void set_shared(unsigned i, float value) { block_->set_shared(thread_, i, value); }
        void sync() { block_->sync(thread_); }
        float sum(float value) { return float_at(block_->meet(thread_, Meeting::sum, 0, bits_of(value))); }
        float exchange(float value, unsigned mask) {
            return float_at(block_->meet(thread_, Meeting::exchange, mask, bits_of(value)));
        }
        std::uint32_t exchange(std::uint32_t value, unsigned mask) {
            return block_->meet(thread_, Meeting::exchange, mask, value);
        }

      private:
        friend HostBlock;
        static float float_at(std::uint32_t bits) { return std::bit_cast<float>(bits); }
        HostBlock* block_ = nullptr;
        unsigned thread_ = 0;
    };

  private:
    enum class Meeting : std::uint8_t { none, sum, exchange };
    enum class Thread : std::uint8_t { runs, waits, at_barrier, ended };
    static constexpr std::size_t line_bytes = 64, line_count = 4096;

    struct Warp {
        Meeting meeting = Meeting::none;
        unsigned mask = 0;
        unsigned arrived = 0;
        std::array<std::uint32_t, 32> values{};
    };
    /// Who touched a word of shared memory since the last barrier; -1: nobody, -2: several.
    struct SharedWord {
        float value = 0;
        bool written = false;
        std::uint32_t write_round = 0, read_round = 0;
        int writer = -1, reader = -1;
    };
    struct Line {
        std::uint64_t address = 1; // no line begins there
        char* place = nullptr;
    };

    std::string run(const HostLaunch& shape);
    void run_block();
    static void thread_main(void* lane);
    void leave(unsigned thread) { fibres_[thread].leave(); }
    void sync(unsigned thread);
    std::uint32_t meet(unsigned thread, Meeting meeting, unsigned mask, std::uint32_t value);
    float shared(unsigned thread, unsigned i) {
        const int own = static_cast<int>(thread);
        if (i >= words_.size() || !words_[i].written || (words_[i].write_round == round_ && words_[i].writer != own)) {
            fail_shared(i, "read");
        }
        SharedWord& at = words_[i];
        at.reader = at.read_round == round_ && at.reader != own ? -2 : own;
        at.read_round = round_;
        return at.value;
    }
    void set_shared(unsigned thread, unsigned i, float value) {
        const int own = static_cast<int>(thread);
        if (i >= words_.size() || (words_[i].write_round == round_ && words_[i].writer != own) ||
            (words_[i].read_round == round_ && words_[i].reader != own)) {
            fail_shared(i, "written");
        }
        words_[i] = {value, true, round_, words_[i].read_round, own, words_[i].reader};
    }
    void* place(std::uint64_t address, std::size_t bytes, const char* what) {
        const Line& line = lines_[address / line_bytes % line_count];
        const std::uint64_t within = address % line_bytes;
        if (line.address != address - within || (address & (bytes - 1)) != 0) {
            return find_place(address, bytes, what);
        }
        return line.place + within; // aligned, it lies in one line
    }
    void* find_place(std::uint64_t address, std::size_t bytes, const char* what);
    [[noreturn]] void fail_shared(unsigned i, const char* what);
    [[noreturn]] void fail(const std::string& what);

    Memory memory_;
    std::function<void(Lane&)> body_;
    HostLaunch shape_;
    std::array<unsigned, 3> at_{};
    std::vector<Fibre> fibres_;
    std::vector<Lane> lanes_;
    std::vector<Thread> states_;
    std::vector<Warp> warps_;
    std::vector<SharedWord> words_;
    std::vector<Line> lines_;
    unsigned running_ = 0;
    unsigned at_barrier_ = 0, ended_ = 0;
    std::uint32_t round_ = 1; // of the block's barriers
    std::string failure_;
};

} // namespace plumb::decoder::cuda
