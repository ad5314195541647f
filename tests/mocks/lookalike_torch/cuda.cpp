// SPDX-License-Identifier: Apache-2.0
// What the look-alike of torch does on a GPU, over the CUDA runtime: kernels on a stream, graphs, and a generator as PyTorch's CUDA
// generator is. A kernel with random numbers is given the generator's offset; while a graph is captured it is told where the offset
// will lie, and each replay writes it there and moves on, before it launches. Every kernel folds what it was given into one number, so
// that one that is missing, doubled, out of order or with old numbers shows. For ctypes; one thread.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>

#include "virtual_gpu/control.hpp"

#define TORCH extern "C" __attribute__((visibility("default")))

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
int cudaStreamCreateWithFlags(void**, unsigned);
int cudaStreamSynchronize(void*);
int cudaStreamBeginCapture(void*, int);
int cudaStreamEndCapture(void*, void**);
int cudaGraphInstantiate(void**, void*, unsigned long long);
int cudaGraphLaunch(void*, void*);
int cudaGraphExecDestroy(void*);
int cudaGraphDestroy(void*);
}

namespace {

void check(int code, const char* call) {
    if (code != 0) {
        std::fprintf(stderr, "%s: error %d\n", call, code);
        std::abort();
    }
}
#define CHECK(call) check(call, #call)

constexpr const char* kernels[] = {"embedding_kernel", "norm_kernel", "gemm_kernel", "dropout_kernel",
                                   "multinomial_kernel"};
constexpr std::int64_t kernel_ns[] = {3'000, 4'000, 20'000, 2'000, 6'000};
constexpr unsigned first_random = 3;
char stubs[std::size(kernels)] = {};

void* stream = nullptr;
void* state = nullptr;        // what all kernels fold into
void* offset_there = nullptr; // of the generator, while a graph runs
std::uint64_t offset = 0;     // of the generator
bool captures = false;
std::uint64_t captured_offset = 0; // how far the graph that is captured has moved it
std::deque<std::uint64_t> written; // offsets: a copy reads one when it runs

std::uint64_t mixed(std::uint64_t so_far, std::uint64_t value) {
    so_far ^= value + 0x9e3779b97f4a7c15u + (so_far << 6) + (so_far >> 2);
    return so_far * 0xff51afd7ed558ccdu;
}

void run(const plumb::vgpu::KernelRun& run) {
    auto* const folded = plumb::vgpu::at<std::uint64_t>(run.param<std::uint64_t>(0));
    *folded = mixed(mixed(*folded, run.param<std::uint64_t>(1)), run.param<std::uint64_t>(3));
    if (const auto there = run.param<std::uint64_t>(2); there != 0) {
        *folded = mixed(*folded, *plumb::vgpu::at<std::uint64_t>(there));
    }
}

void launch(unsigned kernel, std::uint64_t salt, const void* there, std::uint64_t number) {
    void* parameters[] = {&state, &salt, &there, &number};
    CHECK(cudaLaunchKernel(&stubs[kernel], {1, 1, 1}, {128, 1, 1}, parameters, 0, stream));
}

struct Graph {
    void* executable = nullptr;
    std::uint64_t moves = 0; // the generator, in each replay
};

} // namespace

TORCH void lookalike_start() {
    void** const handle = __cudaRegisterFatBinary(nullptr);
    for (std::size_t i = 0; i < std::size(kernels); ++i) {
        __cudaRegisterFunction(handle, &stubs[i], nullptr, kernels[i], -1, nullptr, nullptr, nullptr, nullptr, nullptr);
        plumb::vgpu::kernel(kernels[i], {{8, 8, 8, 8}, kernel_ns[i], kernel_ns[i], run});
    }
    CHECK(cudaStreamCreateWithFlags(&stream, 1));
    for (void** memory : {&state, &offset_there}) {
        CHECK(cudaMalloc(memory, sizeof(std::uint64_t)));
        const std::uint64_t first = 1;
        CHECK(cudaMemcpy(*memory, &first, sizeof first, 1));
    }
}

TORCH void* lookalike_stream() { return stream; }

/// By its number above. One with random numbers takes four of them.
TORCH void lookalike_launch(unsigned kernel, std::uint64_t salt) {
    if (kernel < first_random) {
        launch(kernel, salt, nullptr, 0);
    } else if (captures) {
        launch(kernel, salt, offset_there, captured_offset);
        captured_offset += 4;
    } else {
        launch(kernel, salt, nullptr, offset);
        offset += 4;
    }
}

TORCH int lookalike_captures() { return captures ? 1 : 0; }

TORCH void lookalike_capture_begin() {
    CHECK(cudaStreamBeginCapture(stream, 0));
    captures = true;
    captured_offset = 0;
}

TORCH void* lookalike_capture_end() {
    void* graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph));
    captures = false;
    auto* const made = new Graph;
    made->moves = captured_offset;
    CHECK(cudaGraphInstantiate(&made->executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return made;
}

TORCH void lookalike_replay(void* graph) {
    const auto& known = *static_cast<Graph*>(graph);
    written.push_back(offset);
    CHECK(cudaMemcpyAsync(offset_there, &written.back(), sizeof written.back(), 1, stream));
    offset += known.moves;
    CHECK(cudaGraphLaunch(known.executable, stream));
}

TORCH void lookalike_destroy(void* graph) {
    CHECK(cudaGraphExecDestroy(static_cast<Graph*>(graph)->executable));
    delete static_cast<Graph*>(graph);
}

TORCH void lookalike_synchronize() { CHECK(cudaStreamSynchronize(stream)); }

TORCH std::uint64_t lookalike_state() {
    std::uint64_t last = 0;
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&last, state, sizeof last, 2));
    return last;
}

TORCH std::uint64_t lookalike_generator() { return offset; }
