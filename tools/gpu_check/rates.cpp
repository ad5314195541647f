// SPDX-License-Identifier: Apache-2.0
#include "rates.hpp"

namespace gpu_check {

Spread rates_of(Gpu& gpu, double bytes, int repeats, const std::function<void()>& enqueue) {
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    std::vector<double> found;
    enqueue();
    gpu.wait();
    for (int i = 0; i < repeats; ++i) {
        gpu.launch_spin(gpu.stream, 20); // the launch is no part of the span
        gpu.record(begin, gpu.stream);
        enqueue();
        gpu.record(end, gpu.stream);
        gpu.wait();
        found.push_back(bytes / gpu.elapsed_ns(begin, end));
    }
    return spread_of(found);
}

} // namespace gpu_check
