// SPDX-License-Identifier: Apache-2.0
#include "analysis/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "analysis/loss_note.hpp"
#include "base/peak_fields.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

// From here on a peak is called the limit.
constexpr double limit_share = 0.5;
// A call within so many times what an empty scope reads is mostly the scope.
constexpr double latency_floors = 4;

bool known(const std::optional<double>& value) { return value && std::isfinite(*value) && *value >= 0; }

/// A peak is a divisor: only a positive one is one.
bool usable(const Figure& peak) { return peak.value && std::isfinite(*peak.value) && *peak.value > 0; }

Figure missing(const Figure& peak, const char* what) {
    return stats::absent(peak.reason.empty() ? std::string("no ") + what + " was measured" : peak.reason);
}

Figure share(const std::optional<double>& work, const char* what, const RoofInput& input, const Figure& peak_per_ns) {
    if (!known(work)) {
        return not_given(what, input.damaged);
    }
    if (!peak_per_ns.value) {
        return stats::absent(peak_per_ns.reason);
    }
    return stats::measured(*work / input.duration_ns / *peak_per_ns.value);
}

Figure intensity_of(const RoofInput& input) {
    if (!known(input.flops)) {
        return not_given("flops", input.damaged);
    }
    if (!known(input.bytes)) {
        return not_given("bytes", input.damaged);
    }
    if (*input.bytes == 0) {
        return stats::absent("no bytes are moved");
    }
    return stats::measured(*input.flops / *input.bytes);
}

/// Of weights or products, in words that engines use.
bool is_other_type(const std::string& word) {
    for (const char* type : {"bf16", "f16", "fp16", "float16", "bfloat16", "fp8", "f8", "int8", "int4"}) {
        if (word == type) {
            return true;
        }
    }
    const bool quantised = word.size() >= 2 && (word[0] == 'q' || word[0] == 'Q') && word[1] >= '0' && word[1] <= '9';
    return quantised; // q8_0, Q4_K
}

std::string sentence(const char* format, double value) {
    char text[160];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

void judge(const RoofInput& input, Roofline& roof, bool memory_side) {
    const double reached =
        roof.share.value.value_or(std::max(roof.memory_share.value.value_or(0), roof.compute_share.value.value_or(0)));
    if (input.launch_wait_share >= 0.5 || input.below_floor_share >= 0.5) {
        roof.bottleneck = Bottleneck::latency;
        roof.reason = input.below_floor_share >= 0.5 ? "most calls are shorter than their source can resolve"
                                                     : "most calls include the wait for their launch";
    } else if (known(input.floor_ns) && input.duration_ns < latency_floors * *input.floor_ns) {
        roof.bottleneck = Bottleneck::latency;
        roof.reason = sentence("a call takes less than 4 times what an empty scope reads (%.0f ns)", *input.floor_ns);
    } else if (memory_side && roof.fits_cache) {
        roof.bottleneck = Bottleneck::cache;
        roof.reason = "its bytes fit the last-level cache, so the bandwidth of memory is not its limit";
    } else if (reached >= limit_share) {
        roof.bottleneck = memory_side ? Bottleneck::memory : Bottleneck::compute;
        roof.reason =
            sentence(memory_side ? "%.0f %% of the read bandwidth measured here" : "%.0f %% of the flops measured here",
                     100 * reached);
    } else {
        roof.reason =
            sentence("%.0f %% of its nearest peak: neither memory nor arithmetic explains its time", 100 * reached);
    }
}

Roofline without_shares(Roofline roof, const std::string& reason) {
    roof.share = roof.memory_share = roof.compute_share = stats::absent(reason);
    roof.reason = reason;
    return roof;
}

} // namespace

Figure peak_flops_per_ns(const Peaks& peaks, bool f32_only) {
    const Figure* best = nullptr;
    for (const Figure* peak : {&peaks.f32_teraflops, &peaks.bf16_teraflops}) {
        if (f32_only && peak != &peaks.f32_teraflops) {
            continue;
        }
        if (usable(*peak) && (best == nullptr || *peak->value > *best->value)) {
            best = peak;
        }
    }
    return best == nullptr ? missing(peaks.f32_teraflops, "peak of flops") : stats::measured(1000 * *best->value);
}

Roofline roofline(const RoofInput& input, const PeaksOfPlace& against) {
    const Peaks* const peaks = against.peaks;
    Roofline roof;
    roof.intensity = intensity_of(input);
    if (!known(input.bytes) && !known(input.flops)) {
        return without_shares(std::move(roof), not_given("bytes or flops", input.damaged).reason);
    }
    if (peaks == nullptr) {
        return without_shares(std::move(roof), against.reason);
    }
    if (!(input.duration_ns > 0) || !std::isfinite(input.duration_ns)) {
        return without_shares(std::move(roof), "shorter than the clock can tell");
    }

    const Figure bandwidth = usable(peaks->read_gigabytes_per_second)
                                 ? peaks->read_gigabytes_per_second
                                 : missing(peaks->read_gigabytes_per_second, "read bandwidth");
    const Figure flops = peak_flops_per_ns(*peaks, input.f32_only);
    roof.memory_share = share(input.bytes, "bytes", input, bandwidth);
    roof.compute_share = share(input.flops, "flops", input, flops);
    const std::optional<double> data = known(input.data_bytes) ? input.data_bytes : input.bytes;
    roof.fits_cache = known(data) && usable(peaks->last_level_cache_bytes) && *data > 0 &&
                      *data <= *peaks->last_level_cache_bytes.value;

    if (!roof.intensity.value) {
        roof.share = stats::absent(roof.intensity.reason);
    } else if (*roof.intensity.value == 0) {
        roof.share = stats::absent("its intensity is 0: it has no flops");
    } else if (!bandwidth.value || !flops.value) {
        roof.share = stats::absent(bandwidth.value ? flops.reason : bandwidth.reason);
    } else { // work / min(peak flops, intensity x bandwidth) is the larger of the two shares
        roof.share = stats::measured(std::max(*roof.memory_share.value, *roof.compute_share.value));
    }

    if (!roof.memory_share.value && !roof.compute_share.value) {
        return without_shares(std::move(roof), !bandwidth.value ? bandwidth.reason : flops.reason);
    }
    judge(input, roof, roof.memory_share.value.value_or(0) >= roof.compute_share.value.value_or(0));
    return roof;
}

bool is_f32_model(const std::vector<std::pair<std::string, std::string>>& descriptions) {
    bool found = false;
    for (const auto& [key, value] : descriptions) {
        if (key != "model") {
            continue;
        }
        constexpr char separators[] = " \t,;()/";
        for (std::size_t begin = value.find_first_not_of(separators); begin != std::string::npos;) {
            const std::size_t end = std::min(value.find_first_of(separators, begin), value.size());
            const std::string word = value.substr(begin, end - begin);
            if (is_other_type(word)) {
                return false;
            }
            found = found || word == "f32" || word == "fp32" || word == "float32";
            begin = value.find_first_not_of(separators, end);
        }
    }
    return found;
}

std::string place_of_clock(const std::string& clock) {
    const std::size_t colon = clock.find(':');
    if (colon == 0 || colon == std::string::npos) {
        return {};
    }
    const std::size_t end = std::min(clock.find_first_not_of("0123456789", colon + 1), clock.size());
    return end > colon + 1 && (end == clock.size() || clock.find_first_of(" :#", end) == end) ? clock.substr(0, end)
                                                                                              : std::string();
}

std::string place_of_track(const recording::Metadata& metadata, const recording::TrackInfo& track) {
    if (track.kind == recording::TrackKind::host_thread) {
        return {};
    }
    const auto clock = std::find_if(metadata.clocks.begin(), metadata.clocks.end(),
                                    [&](const recording::ClockInfo& known) { return known.id == track.clock; });
    return clock == metadata.clocks.end() ? std::string() : place_of_clock(clock->name);
}

namespace {

Peaks unlike_the_kept(const std::string& name) {
    Peaks peaks;
    peaks.name = name;
    for (const PeakField& field : peak_fields) {
        peaks.*field.figure = stats::absent("the kept peaks are of other devices than " + name +
                                            ": run `plumb selftest --peaks` where it is seen");
    }
    return peaks;
}

} // namespace

std::vector<Peaks> peaks_of_run(const recording::RunFacts& facts) {
    const std::vector<Peaks>& kept = facts.metadata.peaks;
    std::vector<Peaks> peaks = kept;
    for (const recording::TrackInfo& track : facts.tracks) {
        const std::string place = place_of_track(facts.metadata, track);
        const auto here =
            std::find_if(peaks.begin(), peaks.end(), [&](const Peaks& known) { return known.place == place; });
        if (place.empty() || track.device_name.empty() || (here != peaks.end() && here->name == track.device_name)) {
            continue;
        }
        const std::string backend = place.substr(0, place.find(':') + 1);
        const auto like = std::find_if(kept.begin(), kept.end(), [&](const Peaks& known) {
            return known.name == track.device_name && known.place.compare(0, backend.size(), backend) == 0;
        });
        if (here == peaks.end() && like == kept.end()) {
            continue;
        }
        Peaks& placed = here != peaks.end() ? *here : peaks.emplace_back();
        placed = like != kept.end() ? *like : unlike_the_kept(track.device_name);
        placed.place = place;
    }
    return peaks;
}

PeaksOfPlace peaks_of(const std::vector<Peaks>& all, bool device, const std::string& source, const std::string& place) {
    const std::string wanted = !device ? "host" : !place.empty() ? place : source.substr(0, source.find('_')) + ":";
    const bool any_of_backend = device && place.empty();
    PeaksOfPlace found;
    for (const Peaks& peaks : all) {
        if (any_of_backend ? peaks.place.compare(0, wanted.size(), wanted) != 0 : peaks.place != wanted) {
            continue;
        }
        if (found.peaks != nullptr && found.peaks->name != peaks.name) {
            return {nullptr, unlike_devices};
        }
        found.peaks = found.peaks == nullptr ? &peaks : found.peaks;
    }
    return found;
}

Figure speed_of_light_ns(const Figure& bytes, const PeaksOfPlace& against) {
    if (!known(bytes.value)) {
        return stats::absent(bytes.reason.empty() ? "no bytes were given" : bytes.reason);
    }
    if (against.peaks == nullptr) {
        return stats::absent(against.reason);
    }
    const Figure& bandwidth = against.peaks->read_gigabytes_per_second;
    return usable(bandwidth) ? stats::measured(*bytes.value / *bandwidth.value) : missing(bandwidth, "read bandwidth");
}

} // namespace plumb::analysis
