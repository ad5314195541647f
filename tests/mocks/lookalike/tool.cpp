// SPDX-License-Identifier: Apache-2.0
// A tool of somebody else: preloaded, it counts the graphs of a ggml and writes their number into the file that
// LOOKALIKE_TOOL names.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace {

struct Count {
    std::atomic<int> graphs{0};
    ~Count() {
        const char* path = std::getenv("LOOKALIKE_TOOL");
        if (std::FILE* file = path != nullptr && graphs > 0 ? std::fopen(path, "w") : nullptr; file != nullptr) {
            std::fprintf(file, "%d", graphs.load());
            std::fclose(file);
        }
    }
} count;

} // namespace

extern "C" int ggml_backend_sched_graph_compute_async(void* scheduler, void* graph) {
    ++count.graphs;
    static const auto next =
        reinterpret_cast<int (*)(void*, void*)>(dlsym(RTLD_NEXT, "ggml_backend_sched_graph_compute_async"));
    return next(scheduler, graph);
}
