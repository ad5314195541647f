// SPDX-License-Identifier: Apache-2.0
// The device in virtual time as a subject: it shows that the suite itself holds for an asynchronous device.
#include "conformance/subject.hpp"
#include "mocks/pipelined_device.hpp"

namespace plumb::conformance {
namespace {

class PipelinedSubject final : public Subject {
  public:
    Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& options) override {
        return mocks::make_pipelined_timer(device_, options);
    }
    void work(std::int64_t ns) override { device_.launch(1'000, ns); }
    void settle() override { device_.catch_up(); }
    std::int64_t host_ns() const override { return device_.host_ns(); }
    std::vector<std::string> calls() const override { return {"event_record", "event_query", "clock"}; }
    void fail(const std::string& call, unsigned use) override { device_.fail(call, use); }
    bool has_failed() const override { return device_.has_failed(); }
    std::size_t resources() const override { return device_.stamps_alive(); }

  private:
    mocks::PipelinedDevice device_;
};

} // namespace

std::unique_ptr<Subject> pipelined_subject();
std::unique_ptr<Subject> pipelined_subject() { return std::make_unique<PipelinedSubject>(); }

} // namespace plumb::conformance
