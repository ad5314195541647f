// SPDX-License-Identifier: Apache-2.0
// An engine over the CUDA runtime that knows of no profiler: it captures a decode step into CUDA graphs and replays it. Each kernel
// folds what it was given into one number in device memory, so a kernel that is missing, doubled, out of order or old shows in it.
// Words: steps=N layers=N ranges (of NVTX around steps) fork (halfway) tool (one that holds CUPTI) mode=plain|pieces|update|hasty|change|anew|thread|random|eager. It
// prints that number. random: before each launch it moves a generator on, whose offset kernels read, as PyTorch does for dropout.
// GRAPH_ENGINE_FAIL names a driver call that fails from the end of the first capture on.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "nvtx/caller.h"
#include "virtual_gpu/control.hpp"

extern "C" {
struct Dimensions {
    unsigned x, y, z;
};
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
int cudaLaunchKernel(const void*, Dimensions, Dimensions, void**, std::size_t, void*);
int cudaMalloc(void**, std::size_t);
int cudaMemcpy(void*, const void*, std::size_t, int);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, void*);
int cudaGetLastError();
int cudaStreamCreateWithFlags(void**, unsigned);
int cudaStreamSynchronize(void*);
int cudaStreamBeginCapture(void*, int);
int cudaStreamEndCapture(void*, void**);
int cudaGraphGetNodes(void*, void**, std::size_t*);
int cudaGraphInstantiate(void**, void*, unsigned long long);
int cudaGraphLaunch(void*, void*);
int cudaGraphExecUpdate(void*, void*, void*);
int cudaGraphExecKernelNodeSetParams(void*, void*, const void*);
int cudaGraphExecDestroy(void*);
int cudaGraphDestroy(void*);
}

namespace {

void check(int code, const char* call) {
    if (code != 0) {
        std::fprintf(stderr, "%s: error %d\n", call, code);
        std::exit(1);
    }
}
#define CHECK(call) check(call, #call)

std::uint64_t mixed(std::uint64_t state, std::uint64_t value) {
    state ^= value + 0x9e3779b97f4a7c15u + (state << 6) + (state >> 2);
    return state * 0xff51afd7ed558ccdu;
}

struct Kernel {
    const char* name;
    std::int64_t ns;
};
// As vLLM's kernels for a Llama on Hopper are called; which product a matrix multiplication is, its place alone tells.
constexpr Kernel layer_kernels[] = {
    {"void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*, c10::BFloat16 const*, long, long, long, long, long, c10::BFloat16 const*, float, int, int)",
     4'000},
    {"nvjet_tst_64x8_64x16_2x1_v_bz_TNN", 21'000},
    {"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, long, int, int, int)",
     5'000},
    {"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, __nv_bfloat16*, long const*, long, long, long, long, long, int, int, int, float const*, float const*)",
     3'000},
    {"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t>>(flash::Flash_fwd_params)",
     30'000},
    {"nvjet_tst_64x8_64x16_4x1_v_bz_TNN", 15'000},
    {"void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
     4'000},
    {"nvjet_tst_128x8_64x12_2x1_v_bz_TNT", 44'000},
    {"void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
     5'000},
    {"nvjet_tst_64x8_64x16_4x2_v_bz_TNN", 27'000},
};
constexpr std::size_t layer_size = std::size(layer_kernels);

struct Words {
    int steps = 200, layers = 4;
    bool ranges = false, fork = false, tool = false;
    std::string mode = "plain";
};

class Model {
  public:
    explicit Model(const Words& words) : words_(words) {
        void** const handle = __cudaRegisterFatBinary(nullptr);
        for (std::size_t i = 0; i < layer_size; ++i) {
            const Kernel& kernel = layer_kernels[i];
            __cudaRegisterFunction(handle, &stubs_[i], nullptr, kernel.name, -1, nullptr, nullptr, nullptr, nullptr,
                                   nullptr);
            plumb::vgpu::kernel(
                kernel.name, {{8, 8}, kernel.ns, kernel.ns + kernel.ns / 10, [this](const plumb::vgpu::KernelRun& run) {
                                  auto* const state = plumb::vgpu::at<std::uint64_t>(run.param<std::uint64_t>(0));
                                  *state = mixed(mixed(*state, run.param<std::uint64_t>(1)), run.grid[0]);
                                  if (generator_ != nullptr) {
                                      const auto at = reinterpret_cast<plumb::vgpu::DevicePointer>(generator_);
                                      *state = mixed(*state, *plumb::vgpu::at<std::uint64_t>(at));
                                  }
                              }});
        }
        CHECK(cudaStreamCreateWithFlags(&stream_, 1));
        CHECK(cudaMalloc(&state_, sizeof(std::uint64_t)));
        if (words.mode == "random") {
            CHECK(cudaMalloc(&generator_, sizeof(std::uint64_t)));
        }
        const std::uint64_t first = 1;
        CHECK(cudaMemcpy(state_, &first, sizeof first, 1));
    }

    std::uint64_t run() {
        if (words_.mode == "thread") { // one that has called nothing of CUDA before
            capture_all(0);
            std::thread([this] { decode(); }).join();
        } else {
            decode();
        }
        std::uint64_t last = 0;
        CHECK(cudaMemcpy(&last, state_, sizeof last, 2));
        return last;
    }

  private:
    struct Piece {
        void* graph = nullptr;
        void* executable = nullptr;
    };

    void decode() {
        if (executables_.empty() && words_.mode != "eager") {
            capture_all(0);
        }
        for (int step = 1; step <= words_.steps; ++step) {
            if (words_.mode == "hasty" || (words_.mode == "update" && step % (words_.steps / 4) == 0)) {
                const Piece anew = capture(static_cast<std::uint64_t>(step), 0, words_.layers);
                CHECK(cudaGraphExecUpdate(executables_.front().executable, anew.graph, nullptr));
                CHECK(cudaGraphDestroy(anew.graph));
            } else if (words_.mode == "anew" && step % (words_.steps / 4) == 0) {
                CHECK(cudaGraphExecDestroy(executables_.front().executable));
                executables_.clear();
                capture_all(static_cast<std::uint64_t>(step));
            } else if (words_.mode == "change" && step == words_.steps / 2) {
                change();
            }
            if (words_.fork && step == words_.steps / 2) {
                if (const pid_t child = fork(); child == 0) {
                    std::exit(0);
                } else {
                    waitpid(child, nullptr, 0);
                }
            }
            if (words_.ranges) {
                (void)nvtxRangePushA("decode step");
            }
            if (generator_ != nullptr) {
                offsets_.push_back(4 * static_cast<std::uint64_t>(step)); // a copy reads it when it runs
                CHECK(cudaMemcpyAsync(generator_, &offsets_.back(), sizeof offsets_.back(), 1, stream_));
            }
            for (const Piece& piece : executables_) {
                CHECK(cudaGraphLaunch(piece.executable, stream_));
            }
            if (words_.mode == "eager") {
                enqueue(0, 0, words_.layers);
            }
            if (step % 4 == 0) {
                CHECK(cudaStreamSynchronize(stream_));
            }
            if (words_.ranges) {
                (void)nvtxRangePop();
            }
        }
        CHECK(cudaStreamSynchronize(stream_));
        if (words_.mode == "eager") {
            return;
        }
        if (cudaGraphLaunch(executables_.front().executable, reinterpret_cast<void*>(0x5a5a)) == 0 ||
            cudaGetLastError() == 0) {
            std::fputs("a launch on no stream went well\n", stderr);
            std::exit(1);
        }
    }

    void launch(std::size_t kernel, std::uint64_t salt, unsigned grid) {
        void* parameters[] = {&state_, &salt};
        CHECK(cudaLaunchKernel(&stubs_[kernel], {grid, 1, 1}, {128, 1, 1}, parameters, 0, stream_));
    }

    void enqueue(std::uint64_t salt, int from, int to) {
        for (int layer = from; layer < to; ++layer) {
            for (std::size_t i = 0; i < layer_size; ++i) {
                launch(i, salt * 1'000'003 + static_cast<std::uint64_t>(layer) * 101 + i,
                       static_cast<unsigned>(layer + 1));
            }
        }
    }

    Piece capture(std::uint64_t salt, int from, int to) {
        Piece made;
        CHECK(cudaStreamBeginCapture(stream_, 2));
        enqueue(salt, from, to);
        CHECK(cudaStreamEndCapture(stream_, &made.graph));
        if (const char* call = std::getenv("GRAPH_ENGINE_FAIL"); call != nullptr) {
            plumb::vgpu::fail(call, plumb::backends::cuda::CuResult::out_of_memory, 1, 1'000'000);
        }
        return made;
    }

    void capture_all(std::uint64_t salt) {
        const int pieces = words_.mode == "pieces" ? words_.layers : 1;
        for (int i = 0; i < pieces; ++i) {
            Piece made = capture(salt, words_.layers / pieces * i, words_.layers / pieces * (i + 1));
            CHECK(cudaGraphInstantiate(&made.executable, made.graph, 0));
            if (words_.mode != "change") {
                CHECK(cudaGraphDestroy(made.graph)); // as PyTorch does
            }
            executables_.push_back(made);
        }
    }

    /// Other parameters for one node of the executable.
    void change() {
        const Piece& piece = executables_.front();
        std::size_t count = 0;
        CHECK(cudaGraphGetNodes(piece.graph, nullptr, &count));
        std::vector<void*> nodes(count);
        CHECK(cudaGraphGetNodes(piece.graph, nodes.data(), &count));
        std::uint64_t salt = 77;
        void* parameters[] = {&state_, &salt};
        struct {
            const void* stub;
            Dimensions grid, block;
            unsigned shared_bytes;
            void** parameters;
            void** extra;
        } params = {&stubs_[0], {9, 1, 1}, {128, 1, 1}, 0, parameters, nullptr};
        CHECK(cudaGraphExecKernelNodeSetParams(piece.executable, nodes[0], &params));
    }

    const Words words_;
    static inline char stubs_[layer_size] = {};
    void* stream_ = nullptr;
    void* state_ = nullptr;
    void* generator_ = nullptr; // its offset; null: there is none
    std::deque<std::uint64_t> offsets_;
    std::deque<Piece> executables_;
};

/// As a profiler does that was there first.
void hold_cupti() {
    void* const library = dlopen("libcupti.so.13", RTLD_NOW);
    using Callback = void (*)(void*, unsigned, unsigned, const void*);
    const auto subscribe = library != nullptr
                               ? reinterpret_cast<int (*)(void**, Callback, void*)>(dlsym(library, "cuptiSubscribe"))
                               : nullptr;
    void* subscriber = nullptr;
    if (subscribe == nullptr || subscribe(
                                    &subscriber, [](void*, unsigned, unsigned, const void*) {}, nullptr) != 0) {
        std::fputs("CUPTI cannot be held\n", stderr);
        std::exit(1);
    }
}

} // namespace

int main(int count, char** arguments) {
    Words words;
    for (int i = 1; i < count; ++i) {
        const std::string word = arguments[i];
        const std::string value = word.substr(word.find('=') + 1);
        if (word.starts_with("steps=")) {
            words.steps = std::atoi(value.c_str());
        } else if (word.starts_with("layers=")) {
            words.layers = std::atoi(value.c_str());
        } else if (word == "ranges") {
            words.ranges = true;
        } else if (word == "fork") {
            words.fork = true;
        } else if (word == "tool") {
            words.tool = true;
        } else if (word.starts_with("mode=")) {
            words.mode = value;
        } else {
            std::fprintf(stderr, "unknown: %s\n", word.c_str());
            return 2;
        }
    }
    plumb::vgpu::Config config = plumb::vgpu::config();
    config.shuffle_nodes = false; // so that the node that is changed is the same one in each run
    plumb::vgpu::configure(config);
    if (words.tool) {
        hold_cupti();
    }
    Model model(words);
    std::printf("%016llx\n", static_cast<unsigned long long>(model.run()));
    for (const std::string& error : plumb::vgpu::errors()) {
        std::fprintf(stderr, "misuse: %s\n", error.c_str());
    }
    return 0;
}
