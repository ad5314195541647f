// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <utility>

#include "backends/registry.hpp"
#include "base/os.hpp"
#include "plumb/selftest.hpp"

namespace plumb {

PeakTest measure_peaks(const PeakProgress& progress) {
    PeakTest test;
    for (const auto& [what, value] : base::cpu_conditions()) {
        if (what == "load.average" && std::strtod(value.c_str(), nullptr) > 0.5 * base::usable_cpus()) {
            test.notes.push_back("The machine was busy (load " + value + " on " + std::to_string(base::usable_cpus()) +
                                 " CPUs): peaks may be too low; measure again while it is quiet.");
        }
    }
    for (Backend* backend : registered_backends()) {
        const Result<std::vector<Device>> devices = backend->enumerate();
        if (!devices) {
            test.unsupported.emplace_back(backend->name(), devices.error().message);
            continue;
        }
        for (const Device& device : *devices) {
            Result<Peaks> peaks = backend->measure_peaks(device.index, progress);
            if (peaks) {
                test.peaks.push_back(*std::move(peaks));
            } else {
                test.unsupported.emplace_back(std::string(backend->name()) + " " + device.name, peaks.error().message);
            }
        }
    }
    return test;
}

} // namespace plumb
