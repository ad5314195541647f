// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/peaks.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "backends/cpu/fma_peak.hpp"
#include "backends/cpu/read_bandwidth.hpp"
#include "base/os.hpp"

namespace plumb::backends::cpu {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr int most_passes = 40;
constexpr int passes_without_gain = 10;

Figure measured(double value) { return {value, {}}; }
Figure absent(std::string reason) { return {std::nullopt, std::move(reason)}; }

/// All cores can do what one does.
void at_least(Figure& all, const Figure& one) {
    if (all.value && one.value)
        all.value = std::max(*all.value, *one.value);
}

/// A peak is the best that was seen: what else the machine did can only take away from it.
Figure best_of(const char* what, const PeakProgress& progress, const std::function<Result<double>()>& pass) {
    double best = 0;
    for (int i = 0, last_gain = 0; i < most_passes && i - last_gain < passes_without_gain; ++i) {
        if (progress)
            progress(what, i, most_passes);
        const Result<double> value = pass();
        if (!value)
            return absent(value.error().message);
        last_gain = *value > 1.01 * best ? i : last_gain;
        best = std::max(best, *value);
    }
    return best > 0 ? measured(best) : absent("it took no time on this clock");
}

void measure_reads(Peaks& peaks, const PeakProgress& progress) {
    const double cache = peaks.last_level_cache_bytes.value.value_or(0);
    const std::size_t bytes = bytes_to_read(static_cast<std::uint64_t>(cache), base::available_memory());
    if (bytes == 0) {
        peaks.read_gigabytes_per_second = peaks.one_thread_gigabytes_per_second =
            absent("too little memory is free to read from; free some and measure again");
        return;
    }
    ReadBandwidth bandwidth(bytes);
    peaks.read_gigabytes_per_second =
        best_of("read bandwidth, all cores", progress, [&] { return bandwidth.measure(); });
    peaks.one_thread_gigabytes_per_second =
        best_of("read bandwidth, one thread", progress, [&] { return bandwidth.measure(1); });
    at_least(peaks.read_gigabytes_per_second, peaks.one_thread_gigabytes_per_second);
}

void measure_arithmetic(Peaks& peaks, const PeakProgress& progress) {
    Workers workers(base::usable_cpus());
    const auto on = [&](unsigned threads) {
        return [&workers, threads]() -> Result<double> {
            return measure_multiply_adds(workers, threads) / 1000;
        };
    };
    peaks.f32_teraflops = best_of("f32 multiply-adds, all cores", progress, on(workers.size()));
    peaks.one_thread_f32_teraflops = best_of("f32 multiply-adds, one thread", progress, on(1));
    at_least(peaks.f32_teraflops, peaks.one_thread_f32_teraflops);
}

void note_caches(Peaks& peaks) {
    const std::string unknown = "this system does not tell the sizes of its caches";
    peaks.l1_bytes = peaks.l2_bytes = peaks.last_level_cache_bytes = absent(unknown);
    unsigned last = 0;
    for (const base::CpuCache& cache : base::cpu_caches()) {
        const auto one = static_cast<double>(cache.bytes);
        if (cache.level == 1)
            peaks.l1_bytes = measured(one);
        if (cache.level == 2)
            peaks.l2_bytes = measured(one);
        if (cache.level > last) {
            last = cache.level;
            peaks.last_level_cache_bytes = measured(one * cache.instances);
        }
    }
}

} // namespace

std::size_t bytes_to_read(std::uint64_t last_level_bytes, std::uint64_t free_bytes) noexcept {
    const std::uint64_t wanted = std::min(std::max(gib, 8 * last_level_bytes), 8 * gib);
    // Where the system does not say what is free, 1 GiB is what a machine for inference has.
    const std::uint64_t bytes = free_bytes == 0 ? gib : std::min(wanted, free_bytes / 4);
    return bytes >= 4 * last_level_bytes && bytes >= gib / 16 ? static_cast<std::size_t>(bytes) : 0;
}

Peaks measure_host_peaks(const PeakProgress& progress) {
    Peaks peaks;
    peaks.place = "host";
    peaks.name = base::cpu_model();
    peaks.measured_unix_s =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    peaks.bf16_teraflops = absent("only the plumb command with its reference decoder measures bf16 products");
    note_caches(peaks);
    measure_reads(peaks, progress);
    measure_arithmetic(peaks, progress);
    return peaks;
}

} // namespace plumb::backends::cpu
