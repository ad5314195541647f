// SPDX-License-Identifier: Apache-2.0
// What tests of the graph cache share: an engine on the virtual GPU, and a profiler that only remembers what it was told.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cudagraph/graph_cache.hpp"
#include "cudagraph/probe.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::cudagraph {

inline std::string message_of(const Status& status) { return status ? "" : status.error().message; }
template <class T>
std::string message_of(const Result<T>& result) {
    return result ? "" : result.error().message;
}

/// Counts what a probe would, and launches plainly.
class FakeHost final : public GraphHost {
  public:
    struct FakeProbe final : Probe {
        explicit FakeProbe(std::uint64_t name) : name_(name) {}
        Status launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept override {
            const cuda::Driver& calls = *cuda::driver();
            const cuda::CuResult result = calls.graph_launch(plain, stream);
            return result == cuda::CuResult::success
                       ? Status()
                       : Status(cuda::error_of(calls, result, "cuGraphLaunch", "as told"));
        }
        [[nodiscard]] std::uint64_t key() const noexcept override { return name_; }
        std::uint64_t name_;
    };

    Result<GraphProbe> captured(std::uint64_t key, CUgraph_st* graph) override {
        std::lock_guard lock(mutex);
        EXPECT_NE(graph, nullptr);
        told.push_back("captured " + std::to_string(key));
        if (!refusal.empty()) {
            return Error{ErrorCode::unsupported, refusal};
        }
        ++live[key];
        return GraphProbe(std::make_shared<FakeProbe>(key));
    }
    void evicted(std::uint64_t key) override {
        std::lock_guard lock(mutex);
        told.push_back("evicted " + std::to_string(key));
        live[key] = 0;
        ++rows[key].evictions;
    }
    void update(std::uint64_t key, const std::function<void(recording::GraphInfo&)>& change) override {
        std::lock_guard lock(mutex);
        recording::GraphInfo& row = rows[key];
        row.key = key;
        change(row);
    }
    recording::GraphInfo row(std::uint64_t key) {
        std::lock_guard lock(mutex);
        return rows[key];
    }

    std::mutex mutex;
    std::string refusal; // why captured() fails; empty: it does not
    std::vector<std::string> told;
    std::map<std::uint64_t, int> live;
    std::map<std::uint64_t, recording::GraphInfo> rows;
};

/// For a host that outlives the cache.
class HostReference final : public GraphHost {
  public:
    explicit HostReference(GraphHost& host) : host_(host) {}
    Result<GraphProbe> captured(std::uint64_t key, CUgraph_st* graph) override { return host_.captured(key, graph); }
    void evicted(std::uint64_t key) override { host_.evicted(key); }
    void update(std::uint64_t key, const std::function<void(recording::GraphInfo&)>& change) override {
        host_.update(key, change);
    }

  private:
    GraphHost& host_;
};

/// A context, a stream and kernels without parameters, named at will.
class Engine {
  public:
    Engine() : calls(*cuda::driver()) {
        check(calls.init(0));
        check(calls.primary_ctx_retain(&context, 0));
        check(calls.ctx_push_current(context));
        check(calls.stream_create(&stream, cuda::stream_non_blocking));
        check(calls.module_load_data(&module, "any image"));
    }
    ~Engine() {
        (void)calls.module_unload(module);
        (void)calls.stream_destroy(stream);
        cuda::Context popped = nullptr;
        (void)calls.ctx_pop_current(&popped);
        (void)calls.primary_ctx_release(0);
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    static void check(cuda::CuResult result) { ASSERT_EQ(result, cuda::CuResult::success); }

    cuda::Function function(const char* name) {
        cuda::Function found = nullptr;
        check(calls.module_get_function(&found, module, name));
        return found;
    }
    /// No parameters, or pointers to them.
    void kernel(cuda::Stream on, const char* name, std::vector<void*> params = {}) {
        (void)calls.launch_kernel(function(name), 1, 1, 1, 32, 1, 1, 0, on, params.empty() ? nullptr : params.data(),
                                  nullptr);
    }
    void kernels(const char* name, int count) {
        for (int i = 0; i < count; ++i) {
            kernel(stream, name);
        }
    }
    /// Captures `count` kernels under a key.
    Status capture(CudaGraphCache& cache, std::uint64_t key, int count = 3, const char* name = "gemm") {
        if (Status status = cache.begin_capture(stream); !status) {
            return status;
        }
        kernels(name, count);
        return cache.end_capture(key);
    }

    const cuda::Driver& calls;
    cuda::Context context = nullptr;
    cuda::Stream stream = nullptr;
    cuda::Module module = nullptr;
};

inline std::unique_ptr<CudaGraphCache> make_cache(CudaGraphOptions options = {}, GraphHost* host = nullptr,
                                                  const cuda::Driver* driver = &*cuda::driver()) {
    std::unique_ptr<GraphHost> reference;
    if (host != nullptr) {
        reference = std::make_unique<HostReference>(*host);
    }
    return std::make_unique<CudaGraphCache>(
        std::make_unique<Cache>(driver, Error{}, std::move(options), std::move(reference), &vgpu::host_clock()));
}

/// A fresh GPU and engine for each test; in the end nothing is left and nothing was misused.
class CacheTest : public testing::Test {
  protected:
    void SetUp() override { start(vgpu::Config{}); }
    void start(const vgpu::Config& config) {
        engine.reset();
        vgpu::reset(config);
        engine = std::make_unique<Engine>();
    }
    void TearDown() override {
        cache.reset();
        engine.reset();
        if (!expect_lost) {
            EXPECT_EQ(vgpu::leaks(), "");
        }
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        EXPECT_TRUE(vgpu::invalidations().empty());
        vgpu::reset();
    }
    [[nodiscard]] CudaGraphRow row(std::uint64_t key) const {
        for (CudaGraphRow& row : cache->rows()) {
            if (row.key == key) {
                return row;
            }
        }
        ADD_FAILURE() << "no row of key " << key;
        return {};
    }
    [[nodiscard]] bool replays(std::uint64_t key) const {
        const Result<bool> replayed = cache->replay(key, engine->stream);
        EXPECT_TRUE(replayed.ok()) << message_of(replayed);
        return replayed && *replayed;
    }

    std::unique_ptr<Engine> engine;
    FakeHost host;
    std::unique_ptr<CudaGraphCache> cache;
    bool expect_lost = false;
};

} // namespace plumb::cudagraph
