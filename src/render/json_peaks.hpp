// SPDX-License-Identifier: Apache-2.0
// Peaks, rooflines and the speed of light as JSON members: what reports of several kinds share. One thread per writer.
#pragma once

#include "plumb/results.hpp"
#include "render/json_figure.hpp"

namespace plumb::render {

inline void put_peaks(base::JsonWriter& json, const Peaks& peaks) {
    json.begin_object();
    json.field("place", peaks.place);
    json.field("name", peaks.name);
    json.field("uuid", peaks.uuid);
    json.field("measured_unix_s", peaks.measured_unix_s);
    for (const PeakField& field : peak_fields) {
        put_figure(json, field.name, peaks.*field.figure);
    }
    json.end();
}

inline void put_roofline(base::JsonWriter& json, const Roofline& roof) {
    put_figure(json, "intensity", roof.intensity);
    put_figure(json, "percent", roof.percent);
    put_figure(json, "memory_percent", roof.memory_percent);
    put_figure(json, "compute_percent", roof.compute_percent);
    json.field("fits_cache", roof.fits_cache);
    json.field("bottleneck", bottleneck_word(roof.bottleneck));
    json.field("reason", roof.reason);
}

inline void put_speed_of_light(base::JsonWriter& json, const std::vector<SpeedOfLight>& places) {
    if (places.empty()) {
        return;
    }
    json.key("speed_of_light");
    json.begin_array();
    for (const SpeedOfLight& light : places) {
        json.begin_object();
        json.field("place", light.place);
        put_figure(json, "bytes_per_step", light.bytes_per_step);
        put_figure(json, "ns_per_step", light.ns_per_step);
        put_figure(json, "reached_percent", light.reached_percent);
        json.field("fits_cache", light.fits_cache);
        json.field("bricks_without_bytes", light.bricks_without_bytes);
        json.end();
    }
    json.end();
}

} // namespace plumb::render
