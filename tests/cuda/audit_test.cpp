// SPDX-License-Identifier: Apache-2.0
// Recordings made on the virtual GPU against traces written from its CUPTI's kernel records: from engine to audit.
#include <dlfcn.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "answers/audit/audit.hpp"
#include "answers/replays/replays.hpp"
#include "engine.hpp"
#include "import/import.hpp"
#include "import/planted_trace_testing.hpp"
#include "plumb/answer.hpp"
#include "recording/recorded_run.hpp"
#include "virtual_gpu/cupti.hpp"

namespace plumb::cuda_test {
namespace {

namespace cupti = vgpu::cupti;

constexpr int audited_layers = 4;
constexpr std::int64_t ahead_ns = 41'000'000'000; // of the tracing tool's clock

template <class... Arguments>
void tell(const char* name, Arguments... arguments) {
    static void* const library = dlopen(PLUMB_VGPU_CUPTI, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto function = reinterpret_cast<cupti::Result (*)(Arguments...)>(dlsym(library, name));
    ASSERT_EQ(function(arguments...), cupti::Result::success) << name;
}

/// A tool that traces kernels by CUPTI while it lives, on a clock of its own.
class KernelTracer {
  public:
    KernelTracer() {
        records().clear();
        tell("cuptiActivityRegisterTimestampCallback", &clock);
        tell("cuptiActivityRegisterCallbacks", &request, &complete);
        tell("cuptiActivityEnable", cupti::kind_concurrent_kernel);
    }
    ~KernelTracer() { tell("cuptiActivityDisable", cupti::kind_concurrent_kernel); }
    KernelTracer(const KernelTracer&) = delete;
    KernelTracer& operator=(const KernelTracer&) = delete;

    static imported::PlannedTrace take() {
        tell("cuptiActivityFlushAll", 0U);
        imported::PlannedTrace trace;
        trace.base_ns = 0; // the tool does not say which time of day its clock has
        for (const cupti::KernelRecord& record : records()) {
            imported::PlannedOp& op = trace.ops.emplace_back();
            op.name = record.name;
            op.start = static_cast<std::int64_t>(record.start);
            op.end = static_cast<std::int64_t>(record.end);
            op.stream = record.stream_id;
            op.correlation = record.correlation_id;
        }
        return trace;
    }

  private:
    static std::vector<cupti::KernelRecord>& records() {
        static std::vector<cupti::KernelRecord> all;
        return all;
    }
    static std::uint64_t clock() { return static_cast<std::uint64_t>(vgpu::now_ns() + ahead_ns); }
    static void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most) {
        static std::uint64_t storage[8192];
        *buffer = reinterpret_cast<std::uint8_t*>(storage);
        *bytes = sizeof storage;
        *most = 0;
    }
    static void complete(CUctx_st*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
        const auto* record = reinterpret_cast<const cupti::KernelRecord*>(buffer);
        records().insert(records().end(), record, record + valid / sizeof *record);
    }
};

std::string trace_path(const char* ending) { return Engine::path() + ending; }

Result<AuditReport> audited_file(const std::string& trace) {
    imported::ImportOptions options;
    options.out = trace + ".plumb";
    options.evidence = {"annotation"};
    const auto made = imported::import_traces({trace}, options);
    if (!made) {
        return made.error();
    }
    const Result<recording::RecordedRun> ours = recording::open_run(Engine::path());
    const Result<recording::RecordedRun> theirs = recording::open_run(options.out);
    EXPECT_TRUE(ours.ok() && theirs.ok());
    Result<AuditReport> report = audit_runs(*ours, *theirs);
    std::remove(trace.c_str());
    std::remove(options.out.c_str());
    return report;
}

Result<AuditReport> audited_as_kineto(const imported::PlannedTrace& trace) {
    std::ofstream(trace_path(".json")) << imported::as_kineto(trace);
    return audited_file(trace_path(".json"));
}

Result<AuditReport> audited_as_nsys(const imported::PlannedTrace& trace) {
    imported::save_nsys(trace, trace_path(".sqlite"));
    return audited_file(trace_path(".sqlite"));
}

void run_uneven_steps(Engine& engine, int steps) {
    for (int step = 0; step < steps; ++step) {
        PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1));
        engine.kernel("ahead", 3'000'000 + 70'000 * (step % 7));
        engine.forward(audited_layers, layer_work);
        engine.wait();
    }
}

void expect_true_to_the_device(const AuditReport& report, std::uint64_t steps, double gap_ns) {
    ASSERT_TRUE(report.fits) << report.reason;
    for (const auto& [brick, ns] :
         std::map<std::string, double>{{"rms_norm", 20'000}, {"attention", 90'000}, {"down_projection", 150'000}}) {
        for (const AuditRow& row : report.rows) {
            if (row.brick != brick) {
                continue;
            }
            EXPECT_EQ(row.calls, steps * audited_layers) << brick;
            EXPECT_EQ(row.matched, row.calls) << brick;
            EXPECT_EQ(row.operations, row.calls) << brick;
            EXPECT_EQ(row.by_launch, 0U) << brick;
            EXPECT_DOUBLE_EQ(*row.span_ns.value, ns) << brick;
            EXPECT_DOUBLE_EQ(*row.sum_ns.value, ns) << brick;
            // Our scope holds the gap in front of its kernel; the events are ticks of 32 ns.
            EXPECT_NEAR(*row.error_ns.value, gap_ns, 70) << brick;
            EXPECT_EQ(row.names.size(), 1U);
        }
    }
    EXPECT_EQ(report.rows.size(), 4U);
}

TEST(AuditOnVirtualGpu, eager_scopes_agree_with_cupti_but_for_the_gap_that_events_hold) {
    vgpu::Config config;
    config.clock_drift_ppm = 24;
    Engine engine(config, "device.every=1,warmup=0");
    const KernelTracer tracer;
    run_uneven_steps(engine, 40);
    ASSERT_TRUE(engine.profiler().close().ok());
    const imported::PlannedTrace trace = KernelTracer::take();
    ASSERT_EQ(trace.ops.size(), 40U * (1 + 3 * audited_layers + 1));
    for (const auto& report : {audited_as_kineto(trace), audited_as_nsys(trace)}) {
        ASSERT_TRUE(report.ok()) << report.error().message;
        expect_true_to_the_device(*report, 40, static_cast<double>(config.gap_ns));
        EXPECT_EQ(report->inside, 40U * (3 * audited_layers + 1));
        // In front of the first scope nobody can say whose it is; later ones stand between scopes of steps that were timed.
        EXPECT_EQ(report->outside, 1U);
        EXPECT_EQ(report->not_covered, 39U);
        ASSERT_EQ(report->leftovers.size(), 1U);
        EXPECT_EQ(report->leftovers[0].name, "ahead");
    }
}

TEST(AuditOnVirtualGpu, steps_that_were_not_timed_are_no_fault) {
    Engine engine({}, "device.every=4,warmup=0");
    const KernelTracer tracer;
    run_uneven_steps(engine, 80);
    ASSERT_TRUE(engine.profiler().close().ok());
    const auto report = audited_as_kineto(KernelTracer::take());
    ASSERT_TRUE(report.ok()) << report.error().message;
    expect_true_to_the_device(*report, 20, static_cast<double>(vgpu::config().gap_ns));
    EXPECT_EQ(report->not_covered, 0U);
    EXPECT_EQ(report->inside, 20U * (3 * audited_layers + 1));
}

TEST(AuditOnVirtualGpu, bricks_inside_replays_agree_with_cupti) {
    vgpu::Config config;
    config.clock_drift_ppm = 24;
    Engine engine(config, "warmup=0,graph.every=4");
    CudaGraphCache cache(&engine.profiler());
    ASSERT_TRUE(cache.begin_capture(engine.stream()).ok());
    engine.forward(audited_layers, layer_work);
    ASSERT_TRUE(cache.end_capture(16).ok());
    const KernelTracer tracer;
    std::uint64_t instrumented = 0;
    for (int round = 0; round < 400 && instrumented < 20; ++round) {
        for (int i = 0; i < 32; ++i) {
            PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1));
            vgpu::advance(1'000 * (1 + (i * i) % 37)); // the host does something else
            const Result<bool> done = cache.replay(16, engine.stream());
            ASSERT_TRUE(done.ok() && *done);
            engine.wait();
        }
        ASSERT_TRUE(engine.profiler().flush().ok());
        const Result<ReplayReport> replays = read_replays({Engine::path()});
        ASSERT_TRUE(replays.ok() && !replays->graphs.empty());
        instrumented = replays->graphs[0].instrumented;
        std::this_thread::yield();
    }
    ASSERT_TRUE(engine.profiler().close().ok());
    const auto report = audited_as_kineto(KernelTracer::take());
    ASSERT_TRUE(report.ok()) << report.error().message;
    std::uint64_t with_bricks = 0;
    for (const AuditRow& row : report->rows) {
        with_bricks = std::max(with_bricks, row.calls / audited_layers);
    }
    EXPECT_LE(with_bricks, instrumented);
    EXPECT_GE(with_bricks, 8U) << "the others have a stamp at either end alone, and come after so many";
    expect_true_to_the_device(*report, with_bricks, static_cast<double>(config.graph_gap_ns));
    EXPECT_EQ(report->not_covered, 0U);
}

TEST(AuditOnVirtualGpu, a_trace_of_another_run_does_not_fit) {
    imported::PlannedTrace other;
    {
        Engine engine({}, "device.every=1,warmup=0");
        const KernelTracer tracer;
        for (int step = 0; step < 40; ++step) {
            PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1));
            engine.forward(audited_layers + step % 3,
                           {{Brick::rms_norm, 17'000}, {Brick::attention, 61'000 + 500 * step}});
            engine.wait();
        }
        ASSERT_TRUE(engine.profiler().close().ok());
        other = KernelTracer::take();
    }
    Engine engine({}, "device.every=1,warmup=0");
    run_uneven_steps(engine, 40);
    ASSERT_TRUE(engine.profiler().close().ok());
    const auto report = audited_as_kineto(other);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->fits);
    EXPECT_EQ(report->verdict, Outcome::unknown);
    EXPECT_TRUE(report->rows.empty());
}

} // namespace
} // namespace plumb::cuda_test
