// SPDX-License-Identifier: Apache-2.0
// How fast tensors in host memory are fingerprinted, against the bandwidth at which as many threads read memory in the same
// run (docs/internals/benchmarks.md).
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <thread>

#include "backends/cpu/read_bandwidth.hpp"
#include "plumb/fingerprint.hpp"
#include "support/board.hpp"

namespace {

using namespace bench;
using plumb::DType;

constexpr std::size_t bytes_of_tensor = std::size_t{256} << 20;
constexpr std::size_t bytes_of_bandwidth = std::size_t{1} << 30;
constexpr double goal = 0.70; // of the read bandwidth, f32 on two threads

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of all threads: what a busy machine takes away from them does not count.
double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Finite values of a type everywhere: sign and fraction vary, the exponent little.
class Memory {
  public:
    Memory() {
        void* memory = mmap(nullptr, bytes_of_tensor, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) {
            madvise(memory, bytes_of_tensor, MADV_HUGEPAGE); // refused where there are none: small pages then
            data_ = static_cast<unsigned char*>(memory);
        }
    }
    ~Memory() {
        if (data_ != nullptr) {
            munmap(data_, bytes_of_tensor);
        }
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    [[nodiscard]] unsigned char* data() const { return data_; }
    void fill(DType type) const {
        const std::size_t size = plumb::size_of(type);
        std::uint64_t state = 1;
        for (std::size_t at = 0; at < bytes_of_tensor; at += size) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            std::uint64_t bits = state >> 16;
            if (type == DType::f64) {
                bits = (state & 0x800fffffffffffffU) | 0x3fe0000000000000U;
            } else if (type == DType::f32) {
                bits = (bits & 0x807fffffU) | 0x3f000000U;
            } else if (type == DType::f16) {
                bits = (bits & 0x83ffU) | 0x3800U;
            } else if (type == DType::bf16) {
                bits = (bits & 0x807fU) | 0x3f00U;
            }
            std::memcpy(data_ + at, &bits, size);
        }
    }

  private:
    unsigned char* data_ = nullptr;
};

/// What one round times: bytes per ns.
struct Subject {
    std::string key;
    unsigned threads;
    std::size_t bytes;
    std::function<bool()> run; // false: no fingerprint came
};

std::vector<Subject> subjects_of(DType type, const Memory& memory) {
    const std::size_t n = bytes_of_tensor / plumb::size_of(type), rows = 4096, columns = n / rows;
    const plumb::Tensor whole = plumb::tensor(memory.data(), type, {n});
    const plumb::Tensor lines = plumb::tensor(memory.data(), type, {rows, columns / 2}, // half of each line
                                              {static_cast<std::ptrdiff_t>(columns), 1});
    const auto turned_rows = static_cast<std::ptrdiff_t>(columns / 64);
    const plumb::Tensor turned = plumb::tensor(memory.data(), type, {columns / 64, rows}, {1, turned_rows});
    const auto print = [](const plumb::Tensor& tensor, unsigned threads) {
        plumb::FingerprintOptions options;
        options.threads = threads;
        return plumb::fingerprint_of(tensor, options).ok();
    };
    const std::string name = plumb::dtype_word(type);
    std::vector<Subject> subjects;
    for (const unsigned threads : {1U, 2U}) {
        const std::string key = fmt::format("{}.t{}.", name, threads);
        subjects.push_back({key + "whole", threads, bytes_of_tensor, [=] {
                                return print(whole, threads);
                            }});
        subjects.push_back({key + "lines", threads, bytes_of_tensor / 2, [=] {
                                return print(lines, threads);
                            }});
        subjects.push_back({key + "turned", threads, bytes_of_tensor / 64, [=] {
                                return print(turned, threads);
                            }});
    }
    subjects.push_back({name + ".t1.largest", 1, bytes_of_tensor, [=] {
                            return plumb::largest_magnitude(whole) > 0;
                        }});
    return subjects;
}

/// A tensor of one token, which stays in the first cache: ns for each.
void run_small(Board& board, int rounds) {
    std::vector<float> values(4096);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i % 97) - 48;
    }
    board.table("one activation in the first cache, f32, ns", {"fingerprint", "largest_magnitude"});
    for (const std::size_t n : {896U, 4096U}) {
        const plumb::Tensor tensor = plumb::tensor(values.data(), DType::f32, {n});
        std::vector<double> print, largest;
        constexpr int calls = 2000;
        for (int round = 0; round < rounds; ++round) {
            double begin = now_ns();
            for (int i = 0; i < calls; ++i) {
                const double sum = plumb::fingerprint_of(tensor)->sum;
                asm volatile("" ::"m"(sum));
            }
            print.push_back((now_ns() - begin) / calls);
            begin = now_ns();
            for (int i = 0; i < calls; ++i) {
                const double found = plumb::largest_magnitude(tensor);
                asm volatile("" ::"m"(found));
            }
            largest.push_back((now_ns() - begin) / calls);
        }
        const std::string key = fmt::format("small.{}.", n);
        board.put(key + "fingerprint_ns", spread_of(print));
        board.put(key + "largest_ns", spread_of(largest));
        board.row(fmt::format("{} elements", n), {text(median_of(print), 0), text(median_of(largest), 0)});
    }
    board.end_table();
}

int run_type(DType type, const Memory& memory, plumb::backends::cpu::ReadBandwidth& bandwidth, int rounds,
             Board& board) {
    memory.fill(type);
    const std::vector<Subject> subjects = subjects_of(type, memory);
    std::map<std::string, std::vector<double>> speeds, shares, cpu_shares;
    for (int round = 0; round < rounds; ++round) {
        for (const Subject& subject : subjects) {
            const double read_cpu_begin = cpu_ns();
            const plumb::Result<double> read = bandwidth.measure(subject.threads);
            if (!read) {
                fmt::print(stderr, "error: {}\n", read.error().message);
                return 2;
            }
            const double read_cpu = static_cast<double>(bytes_of_bandwidth) / (cpu_ns() - read_cpu_begin);
            const double begin = now_ns(), cpu_begin = cpu_ns();
            if (!subject.run()) {
                return 2;
            }
            const double speed = static_cast<double>(subject.bytes) / (now_ns() - begin);
            cpu_shares[subject.key].push_back(static_cast<double>(subject.bytes) / (cpu_ns() - cpu_begin) / read_cpu);
            speeds[subject.key].push_back(speed);
            shares[subject.key].push_back(speed / *read);
        }
    }
    board.table(fmt::format("{}, share of what as many threads read", plumb::dtype_word(type)),
                {"GB/s", "share", "quartiles", "by CPU time"});
    for (const Subject& subject : subjects) {
        board.put(subject.key + ".gb_s", spread_of(speeds[subject.key]));
        board.put(subject.key + ".share", spread_of(shares[subject.key]));
        board.put(subject.key + ".cpu_share", spread_of(cpu_shares[subject.key]));
        const bool judged = subject.key == "f32.t2.whole";
        const Spread share = spread_of(shares[subject.key]);
        board.row(subject.key,
                  {text(median_of(speeds[subject.key]), 1), text(share.median, 3), range(share, 3),
                   text(median_of(cpu_shares[subject.key]), 3)},
                  subject.key + ".share", judged ? std::optional<Target>(Target{Bound::at_least, goal}) : std::nullopt);
    }
    board.end_table();
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const Options options =
        parse_options(argc, argv, "How fast tensors in host memory are fingerprinted.",
                      {{"--rounds", "N       of each kind and a bandwidth measurement, by turns (default 9)"},
                       {"--types", "WORDS    of f32 f64 f16 bf16 i8 i32, separated by commas (default all)"}});
    const int rounds = std::max(1, std::atoi(options.value("--rounds", "9").c_str()));
    const std::string words = "," + options.value("--types", "f32,f64,f16,bf16,i8,i32") + ",";
    Board board(options);
    board.say(
        "whole: one contiguous tensor of 256 MiB; lines: half of each line of a matrix; turned: a transposed matrix of "
        "4 MiB; largest: largest_magnitude()");
    const Memory memory;
    if (memory.data() == nullptr) {
        fmt::print(stderr, "256 MiB of memory are not there: free some and run again.\n");
        return 2;
    }
    plumb::backends::cpu::ReadBandwidth bandwidth(bytes_of_bandwidth);
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32}) {
        if (words.find(fmt::format(",{},", plumb::dtype_word(type))) == std::string::npos) {
            continue;
        }
        if (const int status = run_type(type, memory, bandwidth, rounds, board); status != 0) {
            fmt::print(stderr, "A fingerprint failed: the tensor could not be read.\n");
            return status;
        }
    }
    run_small(board, rounds);
    return board.finish();
}
