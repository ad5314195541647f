// SPDX-License-Identifier: Apache-2.0
// The opencl backend before the conformance suite (tests/conformance): on OpenCL in virtual time, whose every call can be
// made to fail. workload_test.cpp runs it on the machine's own driver.
#include "backends/opencl/queue_timer.hpp"
#include "conformance/subject.hpp"
#include "mocks/virtual_opencl.hpp"

namespace plumb::conformance {
namespace {

using namespace backends::opencl;

class OpenClSubject final : public Subject {
  public:
    OpenClSubject() {
        vocl::reset();
        queue_ = vocl::make_queue(queue_profiling);
        held_before_ = vocl::alive();
    }
    ~OpenClSubject() override { vocl::release(queue_); }

    Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& options) override {
        TimerOptions virtual_time = options;
        virtual_time.host_clock = &vocl::host_clock();
        Result<std::unique_ptr<OpenClQueueTimer>> timer =
            OpenClQueueTimer::create(vocl::driver(), queue_, virtual_time);
        return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
    }
    void work(std::int64_t ns) override { vocl::enqueue(queue_, ns); }
    void settle() override { vocl::settle(); }
    std::int64_t host_ns() const override { return vocl::now_ns(); }

    // Left out: what gives things back (its failure leaks by nature), clGetDeviceAndHostTimer (its failure chooses the
    // other way to read pairs), clWaitForEvents and clRetainEvent (of wait() and attach(); queue_timer_test.cpp).
    std::vector<std::string> calls() const override {
        return {"clGetPlatformIDs",
                "clGetDeviceIDs",
                "clGetDeviceInfo",
                "clGetCommandQueueInfo",
                "clRetainCommandQueue",
                "clCreateCommandQueue",
                "clFlush",
                "clGetEventInfo",
                "clGetEventProfilingInfo",
                "clEnqueueMarkerWithWaitList",
                "clCreateUserEvent",
                "clSetUserEventStatus"};
    }
    void fail(const std::string& call, unsigned use) override { vocl::fail(call, use); }
    bool has_failed() const override { return vocl::has_failed(); }
    std::size_t resources() const override { return vocl::alive() - held_before_; }

  private:
    CommandQueue queue_;
    std::size_t held_before_ = 0;
};

} // namespace

std::unique_ptr<Subject> opencl_subject();
std::unique_ptr<Subject> opencl_subject() { return std::make_unique<OpenClSubject>(); }

} // namespace plumb::conformance
