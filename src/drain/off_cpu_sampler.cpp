// SPDX-License-Identifier: Apache-2.0
#include "drain/off_cpu_sampler.hpp"

#include <algorithm>

namespace plumb::drain {
namespace {

constexpr std::uint64_t migrations_every = 10; // samples: reading them costs 5 us a thread

} // namespace

Status OffCpuSampler::write(const std::vector<std::shared_ptr<record::Ring>>& rings, std::int64_t monotonic_ns,
                            recording::Writer& writer) {
    recording::OffCpuSample sample;
    sample.monotonic_ns = monotonic_ns;
    sample.process = process_.read();
    for (Thread& thread : threads_) {
        thread.alive = false;
    }
    for (const auto& ring : rings) {
        const detail::RingHeader& header = ring->header();
        auto known = std::find_if(threads_.begin(), threads_.end(),
                                  [&](const Thread& thread) { return thread.track == header.track; });
        if (known == threads_.end()) {
            if (threads_.size() == most_threads) {
                ++sample.threads_left_out;
                continue;
            }
            threads_.push_back({header.track, true, base::ThreadTimesReader(header.os_thread)});
            known = threads_.end() - 1;
        }
        known->alive = true;
        recording::ThreadSample& taken = sample.threads.emplace_back();
        taken.track = header.track;
        known->reader.read(taken.times, samples_ % migrations_every == 0);
    }
    threads_.erase(std::remove_if(threads_.begin(), threads_.end(), [](const Thread& thread) { return !thread.alive; }),
                   threads_.end());
    ++samples_;
    return writer.add_off_cpu(sample);
}

} // namespace plumb::drain
