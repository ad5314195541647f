// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/peaks.hpp"

#include <algorithm>
#include <string>

#include "backends/cpu/fma_peak.hpp"
#include "backends/cpu/read_bandwidth.hpp"
#include "backends/peak_measurement.hpp"
#include "base/os.hpp"

namespace plumb::backends::cpu {
namespace {

/// All cores can do what one does.
void at_least(Figure& all, const Figure& one) {
    if (all.value && one.value) {
        all.value = std::max(*all.value, *one.value);
    }
}

void measure_reads(Peaks& peaks, const PeakProgress& progress) {
    const double cache = peaks.last_level_cache_bytes.value.value_or(0);
    const std::size_t bytes = bytes_to_read(static_cast<std::uint64_t>(cache), base::available_memory());
    if (bytes == 0) {
        peaks.read_gigabytes_per_second = peaks.one_thread_gigabytes_per_second = absent_peak(too_little_to_read);
        return;
    }
    ReadBandwidth bandwidth(bytes);
    peaks.read_gigabytes_per_second =
        best_of("read bandwidth, all cores", progress, [&](int) { return bandwidth.measure(); });
    peaks.one_thread_gigabytes_per_second =
        best_of("read bandwidth, one thread", progress, [&](int) { return bandwidth.measure(1); });
    at_least(peaks.read_gigabytes_per_second, peaks.one_thread_gigabytes_per_second);
}

void measure_arithmetic(Peaks& peaks, const PeakProgress& progress) {
    Workers workers(base::usable_cpus());
    const auto on = [&](unsigned threads) {
        return [&workers, threads](int) -> Result<double> {
            return measure_multiply_adds(workers, threads) / 1000;
        };
    };
    peaks.f32_teraflops = best_of("f32 multiply-adds, all cores", progress, on(workers.size()));
    peaks.one_thread_f32_teraflops = best_of("f32 multiply-adds, one thread", progress, on(1));
    at_least(peaks.f32_teraflops, peaks.one_thread_f32_teraflops);
}

void note_caches(Peaks& peaks) {
    const std::string unknown = "this system does not tell the sizes of its caches";
    peaks.l1_bytes = peaks.l2_bytes = peaks.last_level_cache_bytes = absent_peak(unknown);
    unsigned last = 0;
    for (const base::CpuCache& cache : base::cpu_caches()) {
        const auto one = static_cast<double>(cache.bytes);
        if (cache.level == 1) {
            peaks.l1_bytes = measured_peak(one);
        }
        if (cache.level == 2) {
            peaks.l2_bytes = measured_peak(one);
        }
        if (cache.level > last) {
            last = cache.level;
            peaks.last_level_cache_bytes = measured_peak(one * cache.instances);
        }
    }
}

} // namespace

Peaks measure_host_peaks(const PeakProgress& progress) {
    Peaks peaks = unmeasured_peaks("host", base::cpu_model(), {});
    peaks.bf16_teraflops = absent_peak("only the plumb command with its reference decoder measures bf16 products");
    note_caches(peaks);
    measure_reads(peaks, progress);
    measure_arithmetic(peaks, progress);
    return peaks;
}

} // namespace plumb::backends::cpu
