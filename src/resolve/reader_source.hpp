// SPDX-License-Identifier: Apache-2.0
// A recording as the resolver's source. Borrows the reader; one thread at a time.
#pragma once

#include "recording/reader.hpp"
#include "resolve/record_source.hpp"

namespace plumb::resolve {

class ReaderSource final : public RecordSource {
  public:
    explicit ReaderSource(recording::Reader& reader) : reader_(&reader) {}

    [[nodiscard]] const recording::Metadata& metadata() const override { return reader_->metadata(); }
    [[nodiscard]] const std::vector<recording::TrackInfo>& tracks() const override { return reader_->tracks(); }
    [[nodiscard]] const std::vector<recording::NameInfo>& names() const override { return reader_->names(); }
    [[nodiscard]] const std::vector<recording::ClockPair>& clock_pairs() const override {
        return reader_->clock_pairs();
    }
    [[nodiscard]] const recording::Counters& counters() const override { return reader_->counters(); }
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& descriptions() const override {
        return reader_->descriptions();
    }
    [[nodiscard]] const std::vector<recording::GraphInfo>& graphs() const override { return reader_->graphs(); }
    [[nodiscard]] const std::vector<recording::KernelInfo>& kernels() const override { return reader_->kernels(); }
    [[nodiscard]] const std::vector<std::string>& notes() const override { return reader_->notes(); }
    Status for_each_batch(const std::function<bool(const recording::RecordBatch&)>& visit) override {
        return reader_->for_each_batch(visit);
    }

  private:
    recording::Reader* reader_;
};

} // namespace plumb::resolve
