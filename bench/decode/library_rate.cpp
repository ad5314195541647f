// SPDX-License-Identifier: Apache-2.0
#include "decode/library_rate.hpp"

#include <algorithm>
#include <chrono>
#include <dnnl.hpp>
#include <unistd.h>
#include <vector>

extern "C" void omp_set_num_threads(int threads); // libgomp, which oneDNN has loaded

namespace bench {

std::optional<double> library_gflops(bool bf16) {
    using dnnl::memory;
    constexpr memory::dim rows = 512, inputs = 2048, outputs = 2048;
    const auto type = bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    omp_set_num_threads(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
    std::optional<double> best;
    try {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        dnnl::stream stream(engine);
        const memory::desc in({rows, inputs}, type, memory::format_tag::ab);
        const memory::desc weights({inputs, outputs}, type, memory::format_tag::ba);
        const memory::desc out({rows, outputs}, memory::data_type::f32, memory::format_tag::ab);
        const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(in, weights, out), engine);
        memory a(in, engine), b(weights, engine), c(out, engine);
        dnnl::matmul product(chosen);
        for (int i = 0; i < 4; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
            stream.wait();
            const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - begin;
            const double rate = 2.0 * static_cast<double>(rows * inputs * outputs) / ns.count();
            best = std::max(best.value_or(0), rate);
        }
    } catch (const dnnl::error&) {
        best.reset();
    }
    omp_set_num_threads(1);
    return best;
}

} // namespace bench
