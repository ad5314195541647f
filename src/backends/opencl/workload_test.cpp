// SPDX-License-Identifier: Apache-2.0
// The machine's own OpenCL driver (PoCL on the machines where these tests run): vector add, rms_norm and a matrix-vector
// product, their results checked and their times held against the host's clock.
#include <gtest/gtest.h>

#if defined(PLUMB_HAVE_OPENCL_HEADER)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/opencl/queue_timer.hpp"
#include "base/dynamic_library.hpp"
#include "clock/correlation.hpp"
#include "clock/host_clock.hpp"
#include "mocks/real_opencl.hpp"
#include "plumb/opencl.hpp"
#include "support/sanitizers.hpp"

namespace plumb::backends::opencl {
namespace {

constexpr const char* kernels = R"(
kernel void vector_add(global const float* a, global const float* b, global float* out) {
    const size_t i = get_global_id(0);
    out[i] = a[i] + b[i];
}
kernel void rms_norm(global const float* x, global const float* weight, global float* out, uint n) {
    float sum = 0;
    for (uint i = 0; i < n; ++i) sum += x[i] * x[i];
    const float scale = 1.0f / sqrt(sum / n + 1e-6f);
    for (uint i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}
kernel void gemv(global const float* w, global const float* x, global float* y, uint cols) {
    const size_t o = get_global_id(0);
    float sum = 0;
    for (uint i = 0; i < cols; ++i) sum += w[o * cols + i] * x[i];
    y[o] = sum;
}
)";

/// Calls for making work; the backend itself has only those for timing it.
struct Calls {
#define PLUMB_TEST_CALLS(X)      \
    X(clCreateContext)           \
    X(clCreateCommandQueue)      \
    X(clCreateProgramWithSource) \
    X(clBuildProgram)            \
    X(clCreateKernel)            \
    X(clSetKernelArg)            \
    X(clCreateBuffer)            \
    X(clEnqueueNDRangeKernel)    \
    X(clEnqueueReadBuffer)       \
    X(clFinish)                  \
    X(clReleaseMemObject)        \
    X(clReleaseKernel)           \
    X(clReleaseProgram)          \
    X(clGetCommandQueueInfo)     \
    X(clReleaseCommandQueue)     \
    X(clReleaseContext)          \
    X(clReleaseEvent)
#define PLUMB_TEST_MEMBER(call) decltype(&::call) call = nullptr;
    PLUMB_TEST_CALLS(PLUMB_TEST_MEMBER)
};

class OpenClWorkload : public testing::Test {
  protected:
    static constexpr cl_uint rows = 512, cols = 2'048;

    static void SetUpTestSuite() {
        std::string folder = (std::filesystem::temp_directory_path() / "plumb-pocl-XXXXXX").string();
        if (::mkdtemp(folder.data()) != nullptr) {
            cache_ = new std::filesystem::path(folder);
            ::setenv("POCL_CACHE_DIR", folder.c_str(), 1);
        }
    }
    static void TearDownTestSuite() {
        std::error_code ignored;
        if (cache_ != nullptr) {
            std::filesystem::remove_all(*cache_, ignored);
        }
        delete cache_;
    }

    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not see what the driver synchronises";
        }
        const Result<OpenClDriver>& loaded = driver();
        const auto devices = loaded ? devices_of(*loaded) : Result<std::vector<DeviceId>>(loaded.error());
        if (!devices) {
            GTEST_SKIP() << devices.error().message;
        }
        device_ = devices->front();
        library_ = std::make_unique<base::DynamicLibrary>(*base::DynamicLibrary::open({"libOpenCL.so.1"}, ""));
#define PLUMB_TEST_FIND(call) calls_.call = reinterpret_cast<decltype(&::call)>(*library_->symbol(#call));
        PLUMB_TEST_CALLS(PLUMB_TEST_FIND)
        cl_int error = 0;
        context_ = calls_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        program_ = calls_.clCreateProgramWithSource(context_, 1, const_cast<const char**>(&text_), nullptr, &error);
        ASSERT_EQ(calls_.clBuildProgram(program_, 1, &device_, "", nullptr, nullptr), CL_SUCCESS);
        for (std::size_t i = 0; i < std::size(values_); ++i) {
            values_[i].resize(i == 0 ? std::size_t{rows} * cols : cols);
            for (std::size_t k = 0; k < values_[i].size(); ++k) {
                values_[i][k] = static_cast<float>((k * 7 + i * 13) % 31) / 16.0F - 1.0F;
            }
            buffers_[i] = calls_.clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                                values_[i].size() * sizeof(float), values_[i].data(), &error);
            ASSERT_EQ(error, CL_SUCCESS);
        }
    }
    void TearDown() override {
        if (context_ == nullptr) {
            return;
        }
        for (const cl_mem buffer : buffers_) {
            calls_.clReleaseMemObject(buffer);
        }
        for (const cl_kernel kernel : made_kernels_) {
            calls_.clReleaseKernel(kernel);
        }
        calls_.clReleaseProgram(program_);
        for (const cl_command_queue queue : queues_) {
            calls_.clReleaseCommandQueue(queue);
        }
        calls_.clReleaseContext(context_);
    }

    cl_command_queue new_queue(cl_command_queue_properties properties) {
        cl_int error = 0;
        queues_.push_back(calls_.clCreateCommandQueue(context_, device_, properties, &error));
        EXPECT_EQ(error, CL_SUCCESS);
        return queues_.back();
    }
    std::unique_ptr<OpenClQueueTimer> new_timer(cl_command_queue queue, std::uint32_t in_flight = 16'384) {
        TimerOptions options;
        options.max_in_flight = in_flight;
        auto made = OpenClQueueTimer::create(*driver(), queue, options);
        EXPECT_TRUE(made.ok()) << made.error().message;
        return std::move(*made);
    }
    cl_kernel new_kernel(const char* name, const std::vector<std::size_t>& buffers, bool with_cols) {
        cl_int error = 0;
        made_kernels_.push_back(calls_.clCreateKernel(program_, name, &error));
        EXPECT_EQ(error, CL_SUCCESS);
        cl_uint next = 0;
        for (const std::size_t buffer : buffers) {
            calls_.clSetKernelArg(made_kernels_.back(), next++, sizeof(cl_mem), &buffers_[buffer]);
        }
        if (with_cols) {
            calls_.clSetKernelArg(made_kernels_.back(), next, sizeof cols, &cols);
        }
        return made_kernels_.back();
    }
    void launch(cl_command_queue queue, cl_kernel kernel, std::size_t items, cl_event* event = nullptr) {
        const std::size_t local = 1;
        ASSERT_EQ(calls_.clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, &local, 0, nullptr, event),
                  CL_SUCCESS);
    }
    std::vector<float> result(cl_command_queue queue, std::size_t buffer, std::size_t count) {
        std::vector<float> values(count);
        calls_.clEnqueueReadBuffer(queue, buffers_[buffer], CL_TRUE, 0, count * sizeof(float), values.data(), 0,
                                   nullptr, nullptr);
        return values;
    }
    /// A fit over pairs that span `spread_ns`, widened by the pairs' own uncertainty.
    static void read_pairs(OpenClQueueTimer& timer, std::vector<clock::CorrelationPair>& pairs) {
        for (int i = 0; i < 200 && pairs.size() < 200; ++i) {
            if (const auto pair = timer.clock_pair()) {
                pairs.push_back({{pair->ticks},
                                 {pair->monotonic_ns},
                                 {static_cast<std::int64_t>(pair->uncertainty_ticks / 2 + 1)}});
            }
        }
    }

    inline static std::filesystem::path* cache_ = nullptr;
    const char* text_ = kernels;
    std::unique_ptr<base::DynamicLibrary> library_;
    Calls calls_;
    cl_device_id device_ = nullptr;
    cl_context context_ = nullptr;
    cl_program program_ = nullptr;
    std::vector<cl_command_queue> queues_;
    std::vector<cl_kernel> made_kernels_;
    std::vector<float> values_[4]; // matrix, a, b, out
    cl_mem buffers_[4] = {};
};

TEST_F(OpenClWorkload, ten_thousand_dispatches_lie_in_order_between_their_submit_and_the_end_of_the_wait) {
    constexpr int dispatches = 10'000;
    const cl_command_queue queue = new_queue(CL_QUEUE_PROFILING_ENABLE);
    const auto timer = new_timer(queue);
    const cl_kernel work[] = {new_kernel("vector_add", {1, 2, 3}, false), new_kernel("rms_norm", {1, 2, 3}, true),
                              new_kernel("gemv", {0, 1, 3}, true)};
    const std::size_t items[] = {cols, 1, 8};
    for (std::size_t i = 0; i < 3; ++i) {
        launch(queue, work[i], items[i]); // compiled now
    }
    calls_.clFinish(queue);

    std::vector<clock::CorrelationPair> pairs;
    read_pairs(*timer, pairs);
    std::vector<DeviceToken> tokens;
    std::vector<std::int64_t> submitted;
    for (std::size_t i = 0; i < dispatches; ++i) {
        submitted.push_back(clock::monotonic_ns());
        const auto token = timer->begin();
        ASSERT_TRUE(token.ok()) << token.error().message;
        launch(queue, work[i % 3], items[i % 3]);
        ASSERT_TRUE(timer->end(*token).ok());
        tokens.push_back(*token);
    }
    calls_.clFinish(queue);
    const std::int64_t waited = clock::monotonic_ns();
    pairs.resize(std::min<std::size_t>(pairs.size(), 100));
    read_pairs(*timer, pairs);

    // Pairs in which this process was interrupted would hide what the others can show.
    const auto narrower = [](const auto& a, const auto& b) {
        return a.uncertainty.value < b.uncertainty.value;
    };
    const std::int64_t narrowest = std::min_element(pairs.begin(), pairs.end(), narrower)->uncertainty.value;
    pairs.erase(std::remove_if(pairs.begin(), pairs.end(),
                               [&](const auto& pair) { return pair.uncertainty.value > 20 * narrowest; }),
                pairs.end());
    const auto fit = clock::Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    const double slack = fit->residual_ns() + 1.0;
    std::uint64_t last_end = 0;
    for (std::size_t i = 0; i < dispatches; ++i) {
        const auto span = timer->collect(tokens[i]);
        ASSERT_TRUE(span.ok()) << span.error().message;
        ASSERT_LT(span->begin_ticks, span->end_ticks);
        ASSERT_LE(last_end, span->begin_ticks) << "an in-order queue";
        last_end = span->end_ticks;
        ASSERT_LE(span->queued_ticks, span->submitted_ticks);
        ASSERT_LE(span->submitted_ticks, span->begin_ticks);
        const double bound = slack + fit->bound_ns({span->begin_ticks});
        ASSERT_GE(static_cast<double>(fit->to_host({span->begin_ticks}).value - submitted[i]), -bound) << i;
        ASSERT_LE(static_cast<double>(fit->to_host({span->end_ticks}).value - waited), bound) << i;
    }
    EXPECT_EQ(timer->in_flight(), 0u);
    RecordProperty("fit_residual_ns", std::to_string(fit->residual_ns()));
}

TEST_F(OpenClWorkload, the_kernels_compute_what_they_say_while_they_are_timed) {
    const cl_command_queue queue = new_queue(CL_QUEUE_PROFILING_ENABLE);
    const auto timer = new_timer(queue);
    const auto timed = [&](cl_kernel kernel, std::size_t items) {
        const auto token = timer->begin();
        launch(queue, kernel, items);
        EXPECT_TRUE(token.ok() && timer->end(*token).ok());
        const std::vector<float> out = result(queue, 3, cols);
        EXPECT_TRUE(timer->collect(*token).ok());
        return out;
    };
    const std::vector<float> sum = timed(new_kernel("vector_add", {1, 2, 3}, false), cols);
    const std::vector<float> normed = timed(new_kernel("rms_norm", {1, 2, 3}, true), 1);
    const std::vector<float> product = timed(new_kernel("gemv", {0, 1, 3}, true), rows);
    double squares = 0;
    for (const float x : values_[1]) {
        squares += static_cast<double>(x) * static_cast<double>(x);
    }
    const double scale = 1.0 / std::sqrt(squares / cols + 1e-6);
    for (std::size_t i = 0; i < cols; ++i) {
        EXPECT_EQ(sum[i], values_[1][i] + values_[2][i]);
        EXPECT_NEAR(normed[i], static_cast<double>(values_[1][i]) * scale * static_cast<double>(values_[2][i]), 1e-4);
    }
    for (std::size_t o = 0; o < rows; ++o) {
        double expected = 0;
        for (std::size_t i = 0; i < cols; ++i) {
            expected += static_cast<double>(values_[0][o * cols + i]) * static_cast<double>(values_[1][i]);
        }
        EXPECT_NEAR(product[o], expected, 1e-2);
    }
}

TEST_F(OpenClWorkload, on_a_saturated_queue_of_long_kernels_the_spans_sum_to_the_hosts_wall_clock_within_5_percent) {
    const cl_command_queue queue = new_queue(CL_QUEUE_PROFILING_ENABLE);
    const auto timer = new_timer(queue);
    const cl_kernel gemv = new_kernel("gemv", {0, 1, 3}, true);
    launch(queue, gemv, rows); // compiled now
    calls_.clFinish(queue);
    const auto run = [&](std::vector<DeviceToken>& tokens) {
        const std::int64_t begin = clock::monotonic_ns();
        for (int i = 0; i < 400; ++i) {
            const auto token = timer->begin();
            for (int k = 0; k < 4; ++k) {
                launch(queue, gemv, rows);
            }
            EXPECT_TRUE(token.ok() && timer->end(*token).ok());
            tokens.push_back(*token);
        }
        calls_.clFinish(queue);
        return clock::monotonic_ns() - begin;
    };
    std::vector<DeviceToken> tokens;
    const std::int64_t wall = run(tokens);
    double sum = 0;
    for (const DeviceToken token : tokens) {
        const auto span = timer->collect(token);
        ASSERT_TRUE(span.ok());
        sum += static_cast<double>(span->end_ticks - span->begin_ticks);
    }
    EXPECT_NEAR(sum / static_cast<double>(wall), 1.0, 0.05);
    RecordProperty("sum_over_wall", std::to_string(sum / static_cast<double>(wall)));
}

TEST_F(OpenClWorkload, an_out_of_order_queue_times_commands_by_their_own_events) {
    const cl_command_queue queue = new_queue(CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    const auto timer = new_timer(queue);
    EXPECT_EQ(timer->begin().error().code, ErrorCode::unsupported);
    const cl_kernel gemv = new_kernel("gemv", {0, 1, 3}, true);
    std::vector<DeviceToken> tokens;
    const std::int64_t before = clock::monotonic_ns();
    for (int i = 0; i < 50; ++i) {
        cl_event event = nullptr;
        launch(queue, gemv, rows, &event);
        const auto token = timer->attach(event);
        ASSERT_TRUE(token.ok()) << token.error().message;
        calls_.clReleaseEvent(event);
        tokens.push_back(*token);
    }
    calls_.clFinish(queue);
    const std::int64_t wall = clock::monotonic_ns() - before;
    std::uint64_t first = ~std::uint64_t{0}, last = 0;
    for (const DeviceToken token : tokens) {
        const auto span = timer->collect(token);
        ASSERT_TRUE(span.ok()) << span.error().message;
        EXPECT_NE(span->flags & span_may_overlap, 0u);
        first = std::min(first, span->begin_ticks);
        last = std::max(last, span->end_ticks);
    }
    EXPECT_LE(static_cast<std::int64_t>(last - first), wall) << "their union fits, whatever they sum to";
}

TEST_F(OpenClWorkload, M8_a_queue_without_profiling_is_not_timed_and_says_why) {
    const auto made = OpenClQueueTimer::create(*driver(), new_queue(0), {});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
}

TEST_F(OpenClWorkload, M8_a_queue_made_after_one_without_profiling_has_gone_is_timed) {
    cl_int error = 0;
    const cl_command_queue untimed = calls_.clCreateCommandQueue(context_, device_, 0, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_FALSE(plumb::opencl(untimed).timer->begin().ok());
    cl_uint holders = 0;
    ASSERT_EQ(calls_.clGetCommandQueueInfo(untimed, CL_QUEUE_REFERENCE_COUNT, sizeof holders, &holders, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(holders, 2u) << "whom nobody holds is freed, and drivers give the same handle out again";
    calls_.clReleaseCommandQueue(untimed);
    const Queue queue = plumb::opencl(new_queue(CL_QUEUE_PROFILING_ENABLE));
    const auto token = queue.timer->begin();
    ASSERT_TRUE(token.ok()) << token.error().message;
    queue.timer->cancel(*token);
}

} // namespace
} // namespace plumb::backends::opencl

#else

TEST(OpenClWorkload, needs_the_headers) { GTEST_SKIP() << "there is no CL/cl.h on this machine"; }

#endif
