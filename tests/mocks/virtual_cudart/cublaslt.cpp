// SPDX-License-Identifier: Apache-2.0
// A stand-in libcublasLt over the virtual GPU: a product is one kernel on its stream, computed on the host from the virtual
// GPU's memory. Narrower than the real one: what the decoder asks for, refused where the real one may refuse it.
#include "virtual_cudart/cublaslt_control.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "decoder/kernels/cuda/cublaslt.hpp"
#include "virtual_gpu/control.hpp"

#define CUBLASLT extern "C" __attribute__((visibility("default")))

extern "C" {
int cuModuleLoadData(void** module, const void* image);
int cuModuleUnload(void* module);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream,
                   void** parameters, void** extra);
}

namespace lt = plumb::decoder::cuda;
namespace vgpu = plumb::vgpu;

namespace plumb::decoder::cuda {

struct LtHandle {
    void* module = nullptr;
    void* function = nullptr;
};
struct LtDesc {
    int compute = 0;
    int transpose_a = 0;
};
struct LtLayout {
    int type = 0;
    std::uint64_t rows = 0, cols = 0;
    std::int64_t leading = 0;
};
struct LtPreference {
    std::uint64_t workspace = 0;
    std::uint32_t alignment[4] = {256, 256, 256, 256};
};

} // namespace plumb::decoder::cuda

namespace {

constexpr int not_initialized = 1, execution_failed = 13;
constexpr std::size_t workspace_bytes = 4096;

struct Problem {
    std::uint64_t a, b, c, d, workspace;
    std::uint64_t m, n, k;
    std::uint32_t type; // of a and b
    std::uint32_t shortened;
    float alpha, beta;
};

struct World {
    std::map<std::string, int> answers;
    std::uint64_t products = 0;
    std::string failure;
};
World& world() {
    static World& only = *new World;
    return only;
}

int answer(const char* symbol) {
    const auto found = world().answers.find(symbol);
    return found == world().answers.end() ? 0 : found->second;
}

void fail(const char* what) {
    if (world().failure.empty()) {
        world().failure = what;
    }
}

float half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                       : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                       : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    return bits >> 15 != 0 ? -size : size;
}

std::vector<float> widened(std::uint64_t address, std::size_t count, std::uint32_t type, bool shortened) {
    std::vector<float> out(count);
    const std::size_t size = type == lt::lt_type_f32 ? 4 : 2;
    const auto* from = static_cast<const std::byte*>(vgpu::memory(address, count * size));
    if (from == nullptr || address % 16 != 0) {
        fail("a matrix that does not lie in memory, or is not aligned");
        return out;
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, from + i * size, size);
        out[i] = type == lt::lt_type_f16 ? half(static_cast<std::uint16_t>(bits))
                                         : std::bit_cast<float>(type == lt::lt_type_bf16 ? bits << 16 : bits);
        if (shortened) { // as tensor cores do where the environment allows it
            out[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(out[i]) & 0xffffe000U);
        }
    }
    return out;
}

void compute(const vgpu::KernelRun& run) {
    const Problem& p = run.param<Problem>(0);
    const std::vector<float> a = widened(p.a, p.m * p.k, p.type, p.shortened != 0);
    const std::vector<float> b = widened(p.b, p.n * p.k, p.type, p.shortened != 0);
    auto* const d = vgpu::at<float>(p.d, p.m * p.n);
    const auto* const c = vgpu::at<float>(p.c, p.m * p.n);
    if (d == nullptr || c == nullptr || p.d % 16 != 0 || vgpu::memory(p.workspace, workspace_bytes) == nullptr) {
        fail("an output or a workspace that does not lie in memory, or is not aligned");
        return;
    }
    for (std::uint64_t col = 0; col < p.n; ++col) {
        for (std::uint64_t row = 0; row < p.m; ++row) {
            float sum = 0;
            for (std::uint64_t i = 0; i < p.k; ++i) {
                sum += a[row * p.k + i] * b[col * p.k + i];
            }
            const float before = p.beta == 0 ? 0.0F : p.beta * c[col * p.m + row]; // 0: what is there may be anything
            d[col * p.m + row] = p.alpha * sum + before;
        }
    }
    ++world().products;
}

bool dense(const lt::LtLayout& layout) { return layout.leading == static_cast<std::int64_t>(layout.rows); }

/// Zero, or the status of what is not supported.
int check_problem(const lt::LtDesc& desc, const lt::LtLayout& a, const lt::LtLayout& b, const lt::LtLayout& c,
                  const lt::LtLayout& d) {
    const bool same = a.type == b.type && c.type == d.type && c.rows == d.rows && c.cols == d.cols;
    if (!same || a.rows != b.rows || a.cols != d.rows || b.cols != d.cols || !dense(a) || !dense(b) || !dense(d)) {
        return lt::lt_invalid_value;
    }
    const bool narrow = a.type == lt::lt_type_f16 || a.type == lt::lt_type_bf16;
    const bool known = a.type == lt::lt_type_f32 || (narrow && desc.compute == lt::lt_compute_f32);
    return known && d.type == lt::lt_type_f32 && desc.transpose_a == lt::lt_transposed ? 0 : lt::lt_not_supported;
}

/// An algorithm is that of one problem.
std::uint64_t mark_of(const lt::LtLayout& a, const lt::LtLayout& d) {
    return (static_cast<std::uint64_t>(a.type) << 56) ^ (a.rows << 36) ^ (d.rows << 16) ^ d.cols;
}

} // namespace

CUBLASLT void virtual_cublaslt_answer(const char* symbol, int status) { world().answers[symbol] = status; }
CUBLASLT std::uint64_t virtual_cublaslt_products() { return world().products; }
CUBLASLT const char* virtual_cublaslt_failure() { return world().failure.c_str(); }

CUBLASLT std::size_t cublasLtGetVersion() { return 130002; }
CUBLASLT const char* cublasLtGetStatusName(int status) {
    return status == execution_failed ? "CUBLAS_STATUS_EXECUTION_FAILED" : "a status of the stand-in";
}
CUBLASLT int cublasLtCreate(lt::LtHandle** made) {
    if (const int status = answer("cublasLtCreate"); status != 0) {
        return status;
    }
    vgpu::KernelModel model;
    model.param_bytes = {sizeof(Problem)};
    model.function = compute;
    vgpu::kernel("virtual_cublaslt_matmul", model);
    auto* handle = new lt::LtHandle;
    if (cuModuleLoadData(&handle->module, "no PTX") != 0 ||
        cuModuleGetFunction(&handle->function, handle->module, "virtual_cublaslt_matmul") != 0) {
        delete handle;
        return not_initialized;
    }
    *made = handle;
    return 0;
}
CUBLASLT int cublasLtDestroy(lt::LtHandle* handle) {
    const int status = cuModuleUnload(handle->module) == 0 ? 0 : not_initialized;
    delete handle;
    return status;
}
CUBLASLT int cublasLtMatmulDescCreate(lt::LtDesc** made, int compute, int scale_type) {
    *made = new lt::LtDesc{compute, 0};
    return scale_type == lt::lt_type_f32 ? 0 : lt::lt_not_supported;
}
CUBLASLT int cublasLtMatmulDescDestroy(lt::LtDesc* desc) {
    delete desc;
    return 0;
}
CUBLASLT int cublasLtMatmulDescSetAttribute(lt::LtDesc* desc, int attribute, const void* value, std::size_t bytes) {
    if (attribute != lt::lt_desc_transpose_a || bytes != sizeof desc->transpose_a) {
        return lt::lt_invalid_value;
    }
    std::memcpy(&desc->transpose_a, value, bytes);
    return 0;
}
CUBLASLT int cublasLtMatrixLayoutCreate(lt::LtLayout** made, int type, std::uint64_t rows, std::uint64_t cols,
                                        std::int64_t leading) {
    *made = new lt::LtLayout{type, rows, cols, leading};
    return 0;
}
CUBLASLT int cublasLtMatrixLayoutDestroy(lt::LtLayout* layout) {
    delete layout;
    return 0;
}
CUBLASLT int cublasLtMatmulPreferenceCreate(lt::LtPreference** made) {
    *made = new lt::LtPreference;
    return 0;
}
CUBLASLT int cublasLtMatmulPreferenceDestroy(lt::LtPreference* preference) {
    delete preference;
    return 0;
}
CUBLASLT int cublasLtMatmulPreferenceSetAttribute(lt::LtPreference* preference, int attribute, const void* value,
                                                  std::size_t bytes) {
    const int matrix = attribute - lt::lt_preference_alignment_a;
    if (attribute == lt::lt_preference_workspace && bytes == sizeof preference->workspace) {
        std::memcpy(&preference->workspace, value, bytes);
    } else if (matrix >= 0 && matrix < 4 && bytes == sizeof preference->alignment[0]) {
        std::memcpy(&preference->alignment[matrix], value, bytes);
    } else {
        return lt::lt_invalid_value;
    }
    return 0;
}
CUBLASLT int cublasLtMatmulAlgoGetHeuristic(lt::LtHandle* handle, lt::LtDesc* desc, lt::LtLayout* a, lt::LtLayout* b,
                                            lt::LtLayout* c, lt::LtLayout* d, lt::LtPreference* preference, int wanted,
                                            lt::LtChoice* choices, int* found) {
    *found = 0;
    if (const int status = answer("cublasLtMatmulAlgoGetHeuristic"); status != 0) {
        return status;
    }
    if (handle == nullptr || wanted < 1) {
        return lt::lt_invalid_value;
    }
    if (const int status = check_problem(*desc, *a, *b, *c, *d); status != 0) {
        return status;
    }
    if (preference->workspace < workspace_bytes) {
        return lt::lt_not_supported;
    }
    choices[0] = {};
    choices[0].algorithm[0] = mark_of(*a, *d);
    choices[0].workspace = workspace_bytes;
    *found = 1;
    return 0;
}
CUBLASLT int cublasLtMatmul(lt::LtHandle* handle, lt::LtDesc* desc, const void* alpha, const void* a,
                            lt::LtLayout* a_layout, const void* b, lt::LtLayout* b_layout, const void* beta,
                            const void* c, lt::LtLayout* c_layout, void* d, lt::LtLayout* d_layout,
                            const std::uint64_t* algorithm, void* workspace, std::size_t bytes, CUstream_st* stream) {
    if (const int status = answer("cublasLtMatmul"); status != 0) {
        return status;
    }
    if (const int status = check_problem(*desc, *a_layout, *b_layout, *c_layout, *d_layout); status != 0) {
        return status;
    }
    if (algorithm[0] != mark_of(*a_layout, *d_layout) || bytes < workspace_bytes) {
        fail("an algorithm or a workspace that is not the product's");
        return lt::lt_invalid_value;
    }
    const auto address = [](const void* pointer) {
        return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer));
    };
    const bool shortened = a_layout->type == lt::lt_type_f32 && desc->compute == lt::lt_compute_f32;
    Problem problem{address(a),
                    address(b),
                    address(c),
                    address(d),
                    address(workspace),
                    d_layout->rows,
                    d_layout->cols,
                    a_layout->rows,
                    static_cast<std::uint32_t>(a_layout->type),
                    shortened ? 1U : 0U,
                    *static_cast<const float*>(alpha),
                    *static_cast<const float*>(beta)};
    void* parameters[] = {&problem};
    return cuLaunchKernel(handle->function, 1, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr) == 0 ? 0
                                                                                                     : execution_failed;
}
