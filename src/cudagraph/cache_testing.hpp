// SPDX-License-Identifier: Apache-2.0
// What tests of the graph cache share: an engine on the virtual GPU, and a profiler that remembers what it was told.
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

/// Counts captures and launches as probes do, and launches plainly.
class FakeHost final : public GraphHost {
  public:
    struct FakeProbe final : Probe {
        FakeProbe(std::uint64_t name, std::shared_ptr<GraphAccount> account)
            : name_(name), account_(std::move(account)) {}
        Status launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept override {
            const cuda::Driver& calls = *cuda::driver();
            const cuda::CuResult result = calls.graph_launch(plain, stream);
            if (result == cuda::CuResult::success) {
                account_->count_launch(probe_launch_ns);
            }
            return result == cuda::CuResult::success
                       ? Status()
                       : Status(cuda::error_of(calls, result, "cuGraphLaunch", "as told"));
        }
        [[nodiscard]] std::uint64_t key() const noexcept override { return name_; }
        std::uint64_t name_;
        std::shared_ptr<GraphAccount> account_;
    };
    static constexpr std::int64_t probe_launch_ns = 7;

    GraphLedger& graph_ledger() override { return ledger; }
    Result<GraphProbe> graph_captured(std::uint64_t key, CUgraph_st* graph) override {
        std::lock_guard lock(mutex);
        EXPECT_NE(graph, nullptr);
        told.push_back("captured " + std::to_string(key));
        if (!refusal.empty()) {
            return Error{ErrorCode::unsupported, refusal};
        }
        ++live[key];
        std::shared_ptr<GraphAccount> account = ledger.account(key);
        (void)account->captured();
        return GraphProbe(share(std::make_shared<FakeProbe>(key, std::move(account))));
    }
    void graph_dropped(std::uint64_t key) override {
        std::lock_guard lock(mutex);
        told.push_back("dropped " + std::to_string(key));
        live[key] = 0;
        ledger.account(key)->dropped();
    }
    /// As the recording would have it.
    recording::GraphInfo row(std::uint64_t key) {
        recording::GraphInfo info;
        ledger.account(key)->change([](recording::GraphInfo&) {});
        EXPECT_TRUE(ledger.account(key)->hand_over(info, 0, true));
        return info;
    }

    GraphLedger ledger{8192};
    std::mutex mutex;
    std::string refusal; // why captured() fails; empty: it does not
    std::vector<std::string> told;
    std::map<std::uint64_t, int> live;
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
    return std::make_unique<CudaGraphCache>(new Cache(driver, Error{}, std::move(options), host, &vgpu::host_clock()));
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
