// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/bf16_peak.hpp"

#include "decoder/kernels/cpu/onednn.hpp"
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "decoder/kernels/cpu/openmp.hpp"
#include "decoder/kernels/cpu/team.hpp"

namespace plumb::decoder::cpu {
namespace {

// Each product fits the second-level cache of a core and takes a few hundred microseconds there: arithmetic is its limit.
constexpr dnnl::memory::dim edge = 384;
constexpr int passes = 10;
constexpr std::size_t products_per_pass = 64; // of each thread

/// One thread's operands.
class PeakProduct {
  public:
    explicit PeakProduct(const dnnl::engine& engine) : engine_(engine), stream_(engine) {
        using Type = dnnl::memory::data_type;
        const dnnl::memory::dims dims{edge, edge};
        const auto plain = dnnl::memory::format_tag::ab;
        const dnnl::memory::desc source(dims, Type::bf16, plain), result(dims, Type::f32, plain);
        const dnnl::memory::desc any(dims, Type::bf16, dnnl::memory::format_tag::any); // as the library likes it best
        const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(source, any, result), engine);
        primitive_ = dnnl::matmul(chosen);
        arguments_ = {{DNNL_ARG_SRC, zeros(source)},
                      {DNNL_ARG_WEIGHTS, zeros(chosen.weights_desc())},
                      {DNNL_ARG_DST, zeros(result)}};
    }
    void run() {
        primitive_.execute(stream_, arguments_);
        stream_.wait();
    }

  private:
    dnnl::memory zeros(const dnnl::memory::desc& desc) {
        dnnl::memory memory(desc, engine_);
        auto* bytes = static_cast<std::uint8_t*>(memory.get_data_handle());
        std::fill(bytes, bytes + desc.get_size(), std::uint8_t{0});
        return memory;
    }

    dnnl::engine engine_;
    dnnl::stream stream_;
    dnnl::matmul primitive_;
    std::unordered_map<int, dnnl::memory> arguments_;
};

} // namespace

Result<double> bf16_teraflops() {
    if (!has_onednn()) {
        return Error{ErrorCode::unavailable, no_onednn};
    }
    const int before = matrix_library_alone();
    Result<double> best = 0.0;
    try {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        Team team(available_cores());
        std::vector<std::unique_ptr<PeakProduct>> products;
        for (int i = 0; i < team.size(); ++i) {
            products.push_back(std::make_unique<PeakProduct>(engine));
        }
        const std::size_t pieces = products_per_pass * products.size();
        const double operations = 2.0 * edge * edge * edge * static_cast<double>(pieces);
        for (int pass = 0; pass < passes; ++pass) {
            const auto begin = std::chrono::steady_clock::now();
            team.run(pieces, [&](std::size_t, int thread) {
                (void)matrix_library_alone();
                products[static_cast<std::size_t>(thread)]->run();
            });
            const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            best = std::max(*best, operations / s / 1e12);
        }
    } catch (const dnnl::error& error) {
        best = Error{ErrorCode::unsupported,
                     std::string("oneDNN has no bf16 product for this processor (") + error.message + ")"};
    }
    set_matrix_library_threads(before);
    return best;
}

} // namespace plumb::decoder::cpu
