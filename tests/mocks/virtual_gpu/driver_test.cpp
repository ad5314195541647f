// SPDX-License-Identifier: Apache-2.0
// The driver itself on the virtual GPU: versions, modules, memory.
#include <gtest/gtest.h>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

using ProcAddress = CuResult (*)(const char*, void**, int, std::uint64_t, int*);
using OldProcAddress = CuResult (*)(const char*, void**, int, std::uint64_t);

template <class F>
F exported(const char* name) {
    return reinterpret_cast<F>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

TEST(Driver, answers_for_entry_points_as_its_version_would) {
    Config config;
    config.driver_version = 12040;
    reset(config);
    const auto ask = exported<ProcAddress>("cuGetProcAddress_v2");
    void *old_info = nullptr, *new_info = nullptr, *between = nullptr, *none = nullptr;
    int found = -1;
    EXPECT_EQ(ask("cuStreamGetCaptureInfo", &old_info, 11030, 0, &found), ok);
    EXPECT_EQ(ask("cuStreamGetCaptureInfo", &new_info, 12030, 0, &found), ok);
    EXPECT_EQ(ask("cuStreamGetCaptureInfo", &between, 12020, 0, &found), ok);
    EXPECT_NE(old_info, new_info);
    EXPECT_EQ(between, old_info);
    EXPECT_EQ(ask("cuStreamGetCaptureInfo", &none, 10000, 0, &found), ok);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(found, 2); // the version is not sufficient
    EXPECT_EQ(ask("cuEventElapsedTime", &none, 12080, 0, &found), CuResult::invalid_value);
    EXPECT_EQ(ask("cuNoSuchCall", &none, 12040, 0, &found), ok);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(found, 1);
    const auto ask_old = exported<OldProcAddress>("cuGetProcAddress");
    EXPECT_EQ(ask_old("cuNoSuchCall", &none, 12040, 0), CuResult::not_found);
}

TEST(Memory, that_was_freed_loses_the_device) {
    Engine engine;
    const Stream stream = engine.stream();
    DevicePointer device = 0;
    engine.cu.mem_alloc(&device, 64);
    engine.cu.stream_begin_capture(stream, CaptureMode::relaxed);
    engine.cu.memset_d32_async(device, 1, 16, stream);
    Graph graph = nullptr;
    engine.cu.stream_end_capture(stream, &graph);
    GraphExec exec = nullptr;
    engine.cu.graph_instantiate(&exec, graph, 0);
    engine.cu.mem_free(device);
    engine.cu.graph_launch(exec, stream); // writes what was freed
    EXPECT_EQ(engine.cu.stream_synchronize(stream), CuResult::illegal_address);
    EXPECT_EQ(engine.launch("k", stream), CuResult::illegal_address);
    EXPECT_EQ(engine.cu.graph_exec_destroy(exec), CuResult::illegal_address);
    const char* name = nullptr;
    EXPECT_EQ(engine.cu.get_error_name(CuResult::illegal_address, &name), ok);
    EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST(Modules, know_the_entries_and_parameters_of_their_text) {
    Engine engine;
    Module module = nullptr;
    ASSERT_EQ(engine.cu.module_load_data(&module,
                                         ".version 6.0\n.target sm_50\n"
                                         ".visible .entry first(.param .u64 a, .param .align 4 .b8 b[12])\n{}\n"
                                         ".entry second\n{}\n"),
              ok);
    Function first = nullptr, second = nullptr;
    EXPECT_EQ(engine.cu.module_get_function(&first, module, "first"), ok);
    EXPECT_EQ(engine.cu.module_get_function(&second, module, "second"), ok);
    EXPECT_EQ(engine.cu.module_get_function(&second, module, "third"), CuResult::not_found);
    const char* name = nullptr;
    EXPECT_EQ(engine.cu.func_get_name(&name, first), ok);
    EXPECT_STREQ(name, "first");
    std::size_t offset = 9, bytes = 9;
    EXPECT_EQ(engine.cu.func_get_param_info(first, 0, &offset, &bytes), ok);
    EXPECT_EQ(bytes, 8u);
    EXPECT_EQ(engine.cu.func_get_param_info(first, 1, &offset, &bytes), ok);
    EXPECT_EQ(offset, 8u);
    EXPECT_EQ(bytes, 12u);
    EXPECT_NE(engine.cu.func_get_param_info(first, 2, &offset, &bytes), ok);
}

TEST(Memory, of_executables_comes_by_the_page) {
    Engine engine;
    Graph graph = nullptr;
    engine.cu.graph_create(&graph, 0);
    GraphNode node = nullptr;
    for (int i = 0; i < 100; ++i) {
        engine.cu.graph_add_empty_node(&node, graph, nullptr, 0);
    }
    const auto free_bytes = [&engine] {
        std::size_t free = 0, total = 0;
        engine.cu.mem_get_info(&free, &total);
        return free;
    };
    const std::size_t before = free_bytes();
    std::vector<GraphExec> execs(64);
    engine.cu.graph_instantiate(&execs[0], graph, 0);
    const std::size_t page = std::size_t{2} << 20;
    EXPECT_EQ(before - free_bytes(), page); // for 40 kB
    for (std::size_t i = 1; i < execs.size(); ++i) {
        engine.cu.graph_instantiate(&execs[i], graph, 0);
    }
    EXPECT_EQ(before - free_bytes(), 2 * page);
}

TEST(Driver, exports_the_names_that_a_program_links) {
    for (const char* name :
         {"cuInit", "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoD_v2", "cuCtxCreate_v2", "cuEventDestroy_v2",
          "cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuStreamGetCaptureInfo_v2",
          "cuStreamGetCaptureInfo_v3", "cuLaunchKernel"}) {
        EXPECT_NE(exported<void*>(name), nullptr) << name;
    }
    EXPECT_EQ(exported<void*>("cuGraphLaunch"), reinterpret_cast<void*>(engine_driver().graph_launch));
}

TEST(Driver, of_an_old_version_lacks_what_is_newer) {
    Config config;
    config.driver_version = 11080;
    reset(config);
    const EngineDriver cu = load_engine_driver();
    EXPECT_EQ(cu.ctx_get_id, nullptr);
    EXPECT_EQ(cu.stream_get_id, nullptr);
    EXPECT_EQ(cu.event_elapsed_time_v12080, nullptr);
    EXPECT_NE(cu.event_elapsed_time_v2000, nullptr);
    EXPECT_NE(cu.graph_exec_update_v10020, nullptr);
    int version = 0;
    EXPECT_EQ(cu.driver_get_version(&version), ok);
    EXPECT_EQ(version, 11080);
}

} // namespace
} // namespace plumb::vgpu
