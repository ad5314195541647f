// SPDX-License-Identifier: Apache-2.0
// Products with packed rows, by CPU time of one thread and in the cache: what the kernels can do before memory is asked. A
// type whose row with one input is faster than memory streams at the speed of memory.
#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <vector>

#include "decoder/kernels/cpu/packed.hpp"
#include "support/board.hpp"

namespace {

using namespace bench;
using plumb::decoder::layout_of;
using plumb::decoder::Type;

constexpr std::size_t inputs = 1024, outputs = 256;

struct alignas(64) Line { // as activations lie in memory
    float values[16];
};

double cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Values a nanosecond, of the fastest of many short rounds: the one that nobody interrupted.
template <class F>
double rate_of(double values, F&& f) {
    double best = 0;
    for (int round = 0; round < 200; ++round) {
        const double begin = cpu_ns();
        for (int i = 0; i < 4; ++i) {
            f();
        }
        best = std::max(best, 4 * values / (cpu_ns() - begin));
    }
    return best;
}

void run_type(Type type, Board& board) {
    const std::vector<unsigned char> matrix(outputs * plumb::decoder::row_bytes(type, inputs), 0x11);
    const std::string key = std::string(layout_of(type).word) + ".";
    const double values = static_cast<double>(inputs * outputs);
    for (const std::size_t rows : {1U, 4U, 8U}) {
        std::vector<Line> in(rows * inputs / 16);
        std::fill_n(in.front().values, rows * inputs, 1.0F);
        std::vector<float> out(rows * outputs);
        const double rate = rate_of(values, [&] {
            plumb::decoder::cpu::multiply({type, matrix.data(), outputs, inputs, nullptr}, in.front().values, rows,
                                          out.data(), outputs);
        });
        board.put(key + fmt::format("rows_{}", rows), rate * static_cast<double>(rows));
        if (rows == 1) {
            board.put(key + "gb_s", rate * static_cast<double>(matrix.size()) / values);
        }
    }
    std::vector<float> wide(inputs * 16);
    board.put(key + "unpack", rate_of(static_cast<double>(wide.size()), [&] {
                  plumb::decoder::cpu::unpack(type, matrix.data(), wide.size(), wide.data());
              }));
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "Products with packed rows in the cache, by CPU time.", {});
    Board board(options);
    board.table("one thread, 256 rows of 1024 values",
                {"1 input, GB/s packed", "Gmul/s: 1 input", "4", "8", "unpack, Gvalues/s"});
    for (const Type type : plumb::decoder::all_types) {
        run_type(type, board);
        const std::string key = std::string(layout_of(type).word) + ".";
        const auto at = [&](const char* name) {
            return text(get(board.figures(), key + name).median, 1);
        };
        board.row(layout_of(type).word.data(), {at("gb_s"), at("rows_1"), at("rows_4"), at("rows_8"), at("unpack")},
                  key + "gb_s");
    }
    board.end_table();
    return board.finish();
}
