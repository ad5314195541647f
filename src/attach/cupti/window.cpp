// SPDX-License-Identifier: Apache-2.0
#include "attach/cupti/window.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace plumb::attach::cupti {
namespace {

/// Of each launch, whether it has all of its kernels.
std::vector<bool> whole_launches(const std::vector<KernelLaunch>& launches, const WindowGaps& gaps) {
    const std::unordered_set<std::uint32_t> unusable(gaps.unusable.begin(), gaps.unusable.end());
    std::vector<bool> whole(launches.size());
    for (std::size_t i = gaps.opening; i < std::min(gaps.closing, launches.size()); ++i) {
        whole[i] = !gaps.any && unusable.count(launches[i].correlation) == 0;
    }
    return whole;
}

/// Steps that may lack kernels. What a thread was in at its first launch may have begun before the window, and what it was in at its
/// last one may go on behind it.
std::set<std::uint64_t> cut_steps(const std::vector<KernelLaunch>& launches, const std::vector<bool>& whole) {
    std::set<std::uint64_t> cut;
    std::unordered_map<std::uint64_t, std::uint64_t> last; // step of each thread
    for (std::size_t i = 0; i < launches.size(); ++i) {
        const KernelLaunch& launch = launches[i];
        const bool first = last.insert_or_assign(launch.thread, launch.step_plus_one).second;
        if (first || !whole[i]) {
            cut.insert(launch.step_plus_one);
        }
    }
    for (const auto& [thread, step] : last) {
        cut.insert(step);
    }
    return cut;
}

} // namespace

std::size_t ended_launches(const std::vector<KernelLaunch>& launches,
                           const std::vector<backends::cuda::TracedKernel>& kernels) {
    std::uint32_t newest = 0;
    for (const backends::cuda::TracedKernel& kernel : kernels) {
        newest = std::max(newest, kernel.correlation);
    }
    const auto behind = std::find_if(launches.begin(), launches.end(),
                                     [newest](const KernelLaunch& launch) { return launch.correlation > newest; });
    return static_cast<std::size_t>(behind - launches.begin());
}

WindowKernels arrange(const std::vector<backends::cuda::TracedKernel>& kernels,
                      const std::vector<KernelLaunch>& launches, const WindowGaps& gaps) {
    WindowKernels made;
    const std::vector<bool> whole = whole_launches(launches, gaps);
    const std::set<std::uint64_t> cut = cut_steps(launches, whole);
    std::set<std::uint64_t> slowed;
    std::unordered_map<std::uint32_t, std::size_t> launch_of; // by correlation
    for (std::size_t i = 0; i < launches.size(); ++i) {
        launch_of.emplace(launches[i].correlation, i);
        if (const std::uint64_t step = launches[i].step_plus_one; step != 0 && slowed.insert(step).second) {
            made.slowed.push_back(step);
        }
    }
    std::unordered_map<std::uint64_t, std::size_t> of_step;   // index in sequences
    std::unordered_map<std::uint32_t, std::size_t> of_replay; // by correlation
    for (std::uint32_t i = 0; i < kernels.size(); ++i) {
        const backends::cuda::TracedKernel& kernel = kernels[i];
        const auto launch = launch_of.find(kernel.correlation);
        const bool whole_launch = launch != launch_of.end() && whole[launch->second];
        const std::uint64_t step = whole_launch ? launches[launch->second].step_plus_one : 0;
        const std::size_t next = made.sequences.size();
        std::size_t at = next;
        if (step != 0 && cut.count(step) == 0) {
            at = of_step.try_emplace(step, next).first->second;
        } else if (whole_launch && kernel.graph != 0) {
            at = of_replay.try_emplace(kernel.correlation, next).first->second;
        }
        if (at == next) {
            made.sequences.push_back({cut.count(step) == 0 ? step : 0, {}});
        }
        made.sequences[at].kernels.push_back(i);
    }
    return made;
}

} // namespace plumb::attach::cupti
