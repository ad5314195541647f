// SPDX-License-Identifier: Apache-2.0
// The Backend of a vendor whose driver fills a Driver table: its devices, and timers of their streams. As long as the
// process; any thread.
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::cuda {

class DriverBackend final : public Backend {
  public:
    using Load = const Result<Driver>&();
    DriverBackend(const Vendor& vendor, Load& load) : vendor_(vendor), load_(load) {}

    const char* name() const noexcept override { return vendor_.backend; }
    Result<std::vector<plumb::Device>> enumerate() override;
    Result<std::unique_ptr<QueueTimer>> make_queue_timer(std::uint32_t device, void* native,
                                                         const TimerOptions& options) override;
    Result<Peaks> measure_peaks(std::uint32_t device, const PeakProgress& progress) override;

  private:
    const Vendor& vendor_;
    Load& load_;
};

} // namespace plumb::backends::cuda
