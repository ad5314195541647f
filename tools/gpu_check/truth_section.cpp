// SPDX-License-Identifier: Apache-2.0
// The section that asserts the truths, in processes of their own: a truth may lose the device.
#include <unistd.h>

#include <iterator>

#include "child.hpp"
#include "sections.hpp"
#include "truths/truth.hpp"

namespace gpu_check {
namespace {

constexpr int start_anew = 10; // exit status: this process cannot assert any more, the next one goes on
constexpr double limit_of_one_s = 12;

constexpr unsigned truth_count = std::size(truths);

void write_verdict(const ResultFile& results, const Truth& truth, const char* verdict, const std::string& detail) {
    results.append({{"record", "truth"},
                    {"id", std::string(truth.id)},
                    {"source", truth.source},
                    {"verdict", verdict},
                    {"detail", detail}});
}

/// Beliefs about durations lose to a host that stops for milliseconds: what fails is asked again, and the line says so.
constexpr int times_asked = 3;

void assert_one(const ResultFile& results, const Truth& truth, Gpu& gpu) {
    std::string first_failure;
    for (int asked = 1;; ++asked) {
        static_cast<void>(take_said());
        const std::string again = first_failure.empty() ? "" : " (asked again; at first: " + first_failure + ")";
        try {
            truth.check(gpu);
            write_verdict(results, truth, "passes", take_said() + again);
            return;
        } catch (const NotApplicable& reason) {
            write_verdict(results, truth, "not applicable", reason.reason);
            return;
        } catch (const Failure& failure) {
            const std::string said = take_said();
            const std::string sentence = failure.sentence + (said.empty() ? "" : "; " + said);
            if (asked == times_asked || truth.needs_fresh_process() ||
                gpu.d.stream_synchronize(gpu.stream) != CuResult::success) {
                write_verdict(results, truth, "fails", sentence);
                return;
            }
            first_failure = sentence;
        }
    }
}

void tell_begun() {
    const char byte = '.';
    if (write(progress_fd, &byte, 1) != 1) {
        _exit(1); // nobody watches any more
    }
}

} // namespace

int run_truths_from(const ResultFile& results, unsigned first) {
    try {
        if (first < truth_count && truths[first].needs_fresh_process()) {
            tell_begun();
            Gpu gpu(not_ready);
            assert_one(results, truths[first], gpu);
            return start_anew;
        }
        auto* gpu = new Gpu;            // never destroyed: its context may be lost by then
        gpu->launch_empty(gpu->stream); // whatever the driver loads late is loaded before anything is timed
        gpu->launch_spin(gpu->stream, 20);
        gpu->wait();
        for (unsigned i = first; i < truth_count; ++i) {
            if (truths[i].needs_fresh_process()) {
                return start_anew;
            }
            tell_begun();
            if (truths[i].provokes_an_xid()) {
                continue;
            }
            assert_one(results, truths[i], *gpu);
            const CuResult alive = gpu->d.stream_synchronize(gpu->stream);
            if (alive != CuResult::success) {
                return start_anew;
            }
        }
    } catch (const Failure& failure) {
        results.append({{"record", "problem"}, {"sentence", failure.sentence}});
        return 1;
    }
    return 0;
}

void run_truth(const ResultFile& results, const Options&) {
    unsigned first = 0;
    while (first < truth_count) {
        unsigned begun = 0;
        const Ended ended =
            run_child_with_progress({"truths", std::to_string(first), "--out", results.path()}, limit_of_one_s, begun);
        const bool recorded = ended.how == Ended::How::exited && (ended.code == 0 || ended.code == start_anew);
        expect(begun > 0 || (recorded && ended.code == start_anew),
               "the process that asserts could not start or could not use the device");
        first += begun;
        if (!recorded) {
            const std::string how =
                ended.how == Ended::How::timed_out
                    ? "it did not come to an end within " + std::to_string(int(limit_of_one_s)) + " s"
                    : "the process ended with " + std::to_string(ended.code);
            write_verdict(results, truths[first - 1], "fails", how);
        }
    }
}

void run_break(const ResultFile& results, const Options&) {
    auto* gpu = new Gpu; // never destroyed: its context is lost after the first
    for (const Truth& truth : truths) {
        if (truth.provokes_an_xid()) {
            assert_one(results, truth, *gpu);
        }
    }
}

} // namespace gpu_check
