// SPDX-License-Identifier: Apache-2.0
#include "attach/cupti/kernel_writer.hpp"

#include <algorithm>
#include <optional>

#include "base/layout.hpp"
#include "import/rules/node_naming.hpp"
#include "plumb/record.hpp"

namespace plumb::attach::cupti {

using backends::cuda::TracedKernel;

namespace {

constexpr std::size_t most_lanes = 256;
constexpr std::size_t most_known_kernels = std::size_t{1} << 20; // in sequences whose names are kept
constexpr std::uint64_t most_records = 16;                       // of one kernel or one mark, with its place

} // namespace

/// Null: this thread has none, or its ring is not emptied.
detail::ThreadRecorder* KernelWriter::pen_with_room() {
    detail::ThreadRecorder* const pen = full_ ? nullptr : profiler_.thread();
    if (pen != nullptr && !pen->has_room(most_records)) {
        (void)profiler_.flush();
        full_ = !pen->has_room(most_records);
    }
    return full_ ? nullptr : pen;
}

/// What its kernels are called and in which layer they are; the same as a captured graph's of these kernels.
const std::vector<KernelWriter::Called>& KernelWriter::names_of(const KernelSequence& sequence,
                                                                const std::vector<TracedKernel>& kernels) {
    std::vector<std::uint64_t> key;
    std::vector<recording::NodeToName> nodes;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
        lanes; // device and stream: each context counts its streams
    for (const std::uint32_t i : sequence.kernels) {
        const TracedKernel& kernel = kernels[i];
        const std::uint32_t lane =
            lanes.try_emplace({kernel.device, kernel.stream}, static_cast<std::uint32_t>(lanes.size())).first->second;
        const auto number = static_cast<std::uint32_t>(name_numbers_.size());
        key.push_back(std::uint64_t{name_numbers_.try_emplace(kernel.name, number).first->second} << 32 | lane);
        nodes.push_back({kernel.name, lane, recording::CapturedWork::kernel});
    }
    known_kernels_ += nodes.size();
    if (known_kernels_ > most_known_kernels) {
        known_.clear();
        known_kernels_ = nodes.size();
    }
    const auto [found, is_new] = known_.try_emplace(std::move(key));
    if (is_new) {
        const recording::NodeNames made = imported::name_nodes(nodes);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            Called named{profiler_.intern("unknown"), 0};
            if (i < made.brick_of.size()) { // else the rules could not be read
                const recording::NodeBrick& brick = made.bricks[made.brick_of[i]];
                named = {profiler_.intern(brick.name, brick.category), made.layer_of[i] ? *made.layer_of[i] + 1 : 0};
            }
            found->second.push_back(named);
        }
    }
    return found->second;
}

/// In the order of their ends, as queues are written.
std::vector<KernelWriter::PlacedKernel> KernelWriter::in_order(const std::vector<TracedKernel>& kernels,
                                                               const std::vector<KernelSequence>& sequences) {
    std::vector<PlacedKernel> made;
    for (const KernelSequence& sequence : sequences) {
        const std::vector<Called>& names = names_of(sequence, kernels);
        for (std::size_t i = 0; i < names.size(); ++i) {
            made.push_back({sequence.kernels[i], 0, {sequence.step_plus_one, names[i].layer_plus_one}, names[i].name});
        }
    }
    std::stable_sort(made.begin(), made.end(), [&kernels](const PlacedKernel& a, const PlacedKernel& b) {
        return kernels[a.kernel].end_ns < kernels[b.kernel].end_ns;
    });
    std::map<std::pair<std::uint32_t, std::uint32_t>, PlacedKernel*> before; // on the same lane
    for (PlacedKernel& one : made) {
        const TracedKernel& kernel = kernels[one.kernel];
        PlacedKernel*& last = before[{kernel.device, kernel.stream}];
        if (last != nullptr && kernel.begin_ns < kernels[last->kernel].end_ns) { // programmatic launches overlap
            one.flags = last->flags = span_may_overlap;
        }
        last = &one;
    }
    return made;
}

/// Null: there are too many.
KernelWriter::StreamLane* KernelWriter::lane_of(const TracedKernel& kernel) {
    const auto found = lanes_.find({kernel.device, kernel.stream});
    if (found != lanes_.end()) {
        return &found->second;
    }
    if (lanes_.size() == most_lanes) {
        return nullptr;
    }
    StreamLane made{std::make_unique<ToldLane>(ToldBy{"cupti", "cupti:" + std::to_string(kernel.device)}), {}};
    made.queue = profiler_.add_queue(*made.timer, "kernels of gpu:" + std::to_string(kernel.device) + " stream " +
                                                      std::to_string(kernel.stream));
    return &lanes_.emplace(std::pair{kernel.device, kernel.stream}, std::move(made)).first->second;
}

void KernelWriter::mark(const std::vector<std::uint64_t>& slowed) {
    for (const std::uint64_t step : slowed) {
        detail::ThreadRecorder* const pen = pen_with_room();
        const ContextScope place(profiler_, profiler_.mode(), {step, 0});
        if (pen != nullptr) {
            (void)pen->push(profiler_.now().ticks,
                            pack(RecordKind::mark, static_cast<std::uint16_t>(Mark::slowed_step)));
        }
    }
}

std::uint64_t KernelWriter::write(const std::vector<TracedKernel>& kernels, const WindowKernels& content) {
    full_ = false;
    mark(content.slowed);
    std::optional<ContextScope> place;
    Context here;
    std::uint64_t written = 0;
    for (const PlacedKernel& one : in_order(kernels, content.sequences)) {
        const TracedKernel& kernel = kernels[one.kernel];
        StreamLane* const lane = lane_of(kernel);
        if (lane == nullptr || lane->queue.timer == nullptr || pen_with_room() == nullptr) {
            continue;
        }
        if (!place || here.step_plus_one != one.place.step_plus_one ||
            here.layer_plus_one != one.place.layer_plus_one) {
            place.reset();
            here = one.place;
            place.emplace(profiler_, profiler_.mode(), here);
        }
        const DeviceToken token = lane->timer->add({kernel.begin_ns, kernel.end_ns, one.flags});
        if (token.value == 0) {
            continue;
        }
        profiler_.record_device(one.name, lane->queue, token);
        ++written;
    }
    return written;
}

} // namespace plumb::attach::cupti
