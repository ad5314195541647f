// SPDX-License-Identifier: Apache-2.0
// Real decodes beside a busy loop, with sleeps, and with neither: what plumb wall says of time off the CPU against what the decoding
// thread counted itself, and plumb findings, each of whose claims must rest on rows of the kernel's counts.
#include <gtest/gtest.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>

#include "answers/findings/findings.hpp"
#include "answers/wall/wall.hpp"
#include "base/os.hpp"
#include "decoder/decoder.hpp"
#include "decoder/model_maker/maker.hpp"
#include "decoder/model_maker/shapes.hpp"
#include "plumb/plumb.hpp"

namespace plumb::decoder {
namespace {

std::int64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

/// Has the CPU with that number for itself, as far as the kernel lets it.
class BusyLoop {
  public:
    explicit BusyLoop(int cpu)
        : thread_([this, cpu] {
              base::bind_to_cpu(cpu);
              while (!stop_.load(std::memory_order_relaxed)) {
              }
          }) {}
    ~BusyLoop() {
        stop_ = true;
        thread_.join();
    }
    BusyLoop(const BusyLoop&) = delete;
    BusyLoop& operator=(const BusyLoop&) = delete;

  private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

struct Decoded {
    std::string path;
    double wall_ns = 0, cpu_ns = 0; // of the decoding thread, while it decoded
    std::uint64_t sleeps = 0;
};

class OffCpu : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        folder_ = std::filesystem::temp_directory_path() / ("plumb-off-cpu-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
        MakeOptions make;
        make.type = Type::f32;
        make.seed = 1;
        Shape shape = *find_shape("tiny-llama");
        shape.vocabulary = 64000; // steps of milliseconds: recording them costs next to nothing
        const Status made = make_model(shape, (folder_ / "m.gguf").string(), make);
        ASSERT_TRUE(made.ok()) << made.error().message;
    }
    static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

    static bool warms_up_slowly_again();

    /// By one thread, for so much of its own CPU time: however busy the machine is, samples of the kernel's counts lie in it.
    /// `sleep_ms`: after each step.
    static Decoded decode(const std::string& name, double cpu_seconds, int sleep_ms = 0) {
        Options options;
        options.threads = 1;
        options.context = 4096;
        Result<Decoder> decoder = Decoder::load((folder_ / "m.gguf").string(), options);
        EXPECT_TRUE(decoder.ok());
        Config config;
        config.on = true;
        config.warmup_steps = 0;
        config.out = (folder_ / (name + ".plumb")).string();
        Decoded made{config.out};
        Profiler off(Config{});
        EXPECT_TRUE(decoder->prefill(decoder->random_prompt(8, 1), off).ok());
        for (int i = 0; i < 40; ++i) { // the model's pages are met for the first time: a slow warm-up of its own right
            EXPECT_TRUE(decoder->decode(1, off).ok());
        }
        Profiler profiler(config);
        EXPECT_TRUE(decoder->prefill(decoder->random_prompt(8, 1), profiler).ok());
        const std::int64_t begin = now_ns(), cpu = base::thread_cpu_ns();
        while (made.cpu_ns < cpu_seconds * 1e9) {
            EXPECT_TRUE(decoder->decode(1, profiler).ok());
            if (sleep_ms > 0) {
                (void)poll(nullptr, 0, sleep_ms);
                ++made.sleeps;
            }
            made.cpu_ns = static_cast<double>(base::thread_cpu_ns() - cpu);
        }
        made.wall_ns = static_cast<double>(now_ns() - begin);
        return made;
    }

    static int a_cpu() { return base::usable_cpu_numbers().front(); }

    static std::filesystem::path folder_;
};

std::filesystem::path OffCpu::folder_;

/// Of the decode phase; none where this kernel does not count.
std::optional<OffCpuCauses> causes_of(const Decoded& decoded) {
    WallOptions wanted;
    wanted.phase = Phase::decode;
    Result<WallReport> wall = read_wall({decoded.path}, wanted);
    EXPECT_TRUE(wall.ok()) << wall.error().message;
    if (!wall.ok() || wall->phases.empty() || !wall->phases[0].off_cpu ||
        !wall->phases[0].off_cpu->run_queue_ns.value) {
        return std::nullopt;
    }
    return wall->phases[0].off_cpu;
}

TEST_F(OffCpu, a_busy_loop_beside_a_decode_is_time_in_the_run_queue) {
    Decoded decoded;
    std::thread worker([&] {
        base::bind_to_cpu(a_cpu());
        const BusyLoop beside(a_cpu());
        decoded = decode("beside", 1.5);
    });
    worker.join();
    const std::optional<OffCpuCauses> causes = causes_of(decoded);
    if (!causes) {
        GTEST_SKIP() << "this kernel keeps no schedstat";
    }
    const double planted = (decoded.wall_ns - decoded.cpu_ns) / decoded.wall_ns; // it never blocks
    EXPECT_GT(planted, 0.2) << "the busy loop had its share";
    EXPECT_NEAR(*causes->run_queue_ns.value / causes->covered_ns, planted, 0.1 * planted);
    EXPECT_LT(*causes->blocked_ns.value, 0.1 * *causes->run_queue_ns.value);
}

TEST_F(OffCpu, sleeps_between_the_steps_of_a_decode_are_blocked_time) {
    const Decoded decoded = decode("sleeps", 0.7, 5);
    const std::optional<OffCpuCauses> causes = causes_of(decoded);
    if (!causes) {
        GTEST_SKIP() << "this kernel keeps no schedstat";
    }
    // When its sleep is over a thread is in the run queue, however long it has to wait there.
    const double planted = static_cast<double>(decoded.sleeps) * 5e6 / decoded.wall_ns;
    EXPECT_NEAR(*causes->blocked_ns.value / causes->covered_ns, planted, 0.1 * planted);
    const double off = (decoded.wall_ns - decoded.cpu_ns) / decoded.wall_ns;
    EXPECT_NEAR((*causes->blocked_ns.value + *causes->run_queue_ns.value) / causes->covered_ns, off, 0.1 * off);
}

/// The sum of the rows whose text ends so, us per step.
double rows(const Finding& finding, std::string_view end) {
    double sum = 0;
    for (const EvidenceRow& row : finding.evidence) {
        if (row.what.size() >= end.size() && std::string_view(row.what).substr(row.what.size() - end.size()) == end) {
            sum += row.value.value.value_or(0);
        }
    }
    return sum;
}

/// Whether the first steps of a second decode are as slow too: else others used the machine when the first one began.
bool OffCpu::warms_up_slowly_again() {
    const Result<FindingsReport> report = read_findings({decode("again", 0.5).path});
    return report.ok() && std::any_of(report->runs.at(0).findings.begin(), report->runs.at(0).findings.end(),
                                      [](const Finding& f) { return f.kind == FindingKind::slow_warm_up; });
}

TEST_F(OffCpu, findings_of_ten_real_decodes_rest_on_what_the_kernel_counted) {
    if (!causes_of(decode("probe", 0.5))) {
        GTEST_SKIP() << "this kernel keeps no schedstat";
    }
    for (int i = 0; i < 10; ++i) {
        SCOPED_TRACE(i);
        const bool beside = i % 2 == 1;
        Decoded decoded;
        std::thread worker([&] {
            if (!beside) {
                decoded = decode("real", 0.5);
                return;
            }
            base::bind_to_cpu(a_cpu());
            const BusyLoop busy(a_cpu());
            decoded = decode("real", 0.5);
        });
        worker.join();
        const Result<FindingsReport> report = read_findings({decoded.path});
        ASSERT_TRUE(report.ok()) << report.error().message;
        bool found = false;
        for (const Finding& finding : report->runs.at(0).findings) {
            if (finding.phase != Phase::decode) {
                continue; // of a prefill of a few tokens no two samples tell
            }
            SCOPED_TRACE(finding.claim);
            if (finding.kind == FindingKind::steal) {
                EXPECT_GT(rows(finding, "stolen from all CPUs of the machine"), 0);
                continue;
            }
            if (finding.kind == FindingKind::slow_warm_up) {
                EXPECT_FALSE(warms_up_slowly_again());
                continue;
            }
            ASSERT_EQ(finding.kind, FindingKind::off_cpu);
            const double counted = rows(finding, ", in the run queue") + rows(finding, ", blocked");
            EXPECT_GT(counted, 0.8e-3 * finding.likely_ns);
            found = found || rows(finding, ", in the run queue") > 0.5e-3 * finding.likely_ns;
        }
        EXPECT_TRUE(found || !beside) << "a busy loop had half of its CPU";
    }
}

} // namespace
} // namespace plumb::decoder
