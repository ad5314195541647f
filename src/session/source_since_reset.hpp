// SPDX-License-Identifier: Apache-2.0
// A recording less the losses and costs that were cleared by reset(). Borrows the reader; one thread at a time.
#pragma once

#include <algorithm>

#include "resolve/reader_source.hpp"

namespace plumb::session {

class SourceSinceReset final : public resolve::RecordSource {
  public:
    SourceSinceReset(recording::Reader& reader, const recording::Counters& cleared)
        : reader_(reader), counters_(reader.counters()) {
        for (auto& [reason, count] : counters_.drops) {
            for (const auto& [cleared_reason, cleared_count] : cleared.drops) {
                count -= reason == cleared_reason ? std::min(count, cleared_count) : 0;
            }
        }
        for (auto& [name, total] : counters_.hardware) {
            for (const auto& [cleared_name, cleared_total] : cleared.hardware) {
                total -= name == cleared_name ? std::min(total, cleared_total) : 0;
            }
        }
        counters_.drain_cpu_ns -= std::min(counters_.drain_cpu_ns, cleared.drain_cpu_ns);
        counters_.records -= std::min(counters_.records, cleared.records);
        counters_.unresolved -= std::min(counters_.unresolved, cleared.unresolved);
    }

    [[nodiscard]] const recording::Metadata& metadata() const override { return reader_.metadata(); }
    [[nodiscard]] const std::vector<recording::TrackInfo>& tracks() const override { return reader_.tracks(); }
    [[nodiscard]] const std::vector<recording::NameInfo>& names() const override { return reader_.names(); }
    [[nodiscard]] const std::vector<recording::ClockPair>& clock_pairs() const override {
        return reader_.clock_pairs();
    }
    [[nodiscard]] const recording::Counters& counters() const override { return counters_; }
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& descriptions() const override {
        return reader_.descriptions();
    }
    [[nodiscard]] const std::vector<recording::GraphInfo>& graphs() const override { return reader_.graphs(); }
    [[nodiscard]] const std::vector<recording::KernelInfo>& kernels() const override { return reader_.kernels(); }
    [[nodiscard]] const std::vector<std::string>& notes() const override { return reader_.notes(); }
    Status for_each_batch(const std::function<bool(const recording::RecordBatch&)>& visit) override {
        return reader_.for_each_batch(visit);
    }

  private:
    recording::Reader& reader_;
    recording::Counters counters_;
};

} // namespace plumb::session
