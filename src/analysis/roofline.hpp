// SPDX-License-Identifier: Apache-2.0
// Bytes, flops and a duration against the peaks of the place where they were spent. Pure functions, linear, never NaN:
// what cannot be known is absent with its reason. Any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/roofline.hpp"
#include "recording/run_facts.hpp"

namespace plumb::analysis {

/// Said wherever peaks are missing.
inline constexpr char no_peaks[] = "no peaks in the recording: run `plumb selftest --peaks` where it is recorded";

/// Where there are some, but not of one device for certain.
inline constexpr char unlike_devices[] = "several unlike devices have peaks, and it is not known on which it ran";

/// One call, or the mean of many. Bytes and flops absent: not given.
struct RoofInput {
    std::optional<double> bytes;
    std::optional<double> flops;
    double duration_ns = 0;
    std::optional<double> floor_ns;   // what an empty scope of the same source reads
    double launch_wait_share = 0;     // 0..1 of the calls include waiting for their launch
    double below_floor_share = 0;     // 0..1 of the calls are shorter than their source resolves
    std::optional<double> data_bytes; // what must fit a cache to stay there, where that is not `bytes`
    bool damaged = false;             // records are missing that may have told work
    bool f32_only = false;            // its products are of f32: the peak of bf16 is not theirs
};

/// What a row is held against, or why there is nothing.
struct PeaksOfPlace {
    const Peaks* peaks = nullptr;
    const char* reason = no_peaks;
};

[[nodiscard]] Roofline roofline(const RoofInput& input, const PeaksOfPlace& against);

/// The largest of the measured arithmetic peaks, or that of f32, in flops per ns; absent with the reason.
[[nodiscard]] Figure peak_flops_per_ns(const Peaks& peaks, bool f32_only = false);

/// Whether a run says that its model is of f32: its description "model" holds that word and no other type.
[[nodiscard]] bool is_f32_model(const std::vector<std::pair<std::string, std::string>>& descriptions);

/// The device whose clock a queue has: "opencl:1" of "opencl:1"; empty where its name tells none.
[[nodiscard]] std::string place_of_clock(const std::string& clock);

/// The same of a queue's track; empty for a host thread.
[[nodiscard]] std::string place_of_track(const recording::Metadata& metadata, const recording::TrackInfo& track);

/// The kept peaks as the devices of a run have them: by the name of the device where its track tells it, since its index depends on
/// what the process was shown. A device whose like was not measured has absent peaks, with the reason.
[[nodiscard]] std::vector<Peaks> peaks_of_run(const recording::RunFacts& facts);

/// The peaks of the place a row's samples come from: "host" where `device` is false, else `place`, and where that is not
/// known the backend that `source` names: "cuda_event" -> "cuda:…". None where the place is not known and devices of that backend differ.
[[nodiscard]] PeaksOfPlace peaks_of(const std::vector<Peaks>& all, bool device, const std::string& source,
                                    const std::string& place);

/// Speed of light: the time that reading `bytes` takes at the peak bandwidth, in nanoseconds.
[[nodiscard]] Figure speed_of_light_ns(const Figure& bytes, const PeaksOfPlace& against);

} // namespace plumb::analysis
