// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto_devices.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/hex.hpp"

namespace plumb::exporting {
namespace {

using resolve::Sample;

constexpr std::size_t most_stages = std::size_t{1} << 16;

std::uint64_t api_of(std::string_view clock) {
    const std::pair<std::string_view, std::uint64_t> known[] = {{"cuda", field::Api::CUDA},
                                                                {"hip", field::Api::HIP},
                                                                {"opencl", field::Api::OPEN_CL},
                                                                {"vulkan", field::Api::VULKAN}};
    for (const auto& [word, api] : known) {
        if (clock.substr(0, word.size()) == word) {
            return api;
        }
    }
    return field::Api::UNDEFINED;
}

bool same_work(const std::array<double, 3>& a, const std::array<double, 3>& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

std::string number_text(double value) {
    char text[64];
    TextPen pen(text);
    pen.put_number(value);
    return {text, static_cast<std::size_t>(pen.at() - text)};
}

std::string work_text(const std::array<double, 3>& work) {
    constexpr const char* units[] = {" bytes", " flops", " elements"};
    std::string text;
    for (std::size_t i = 0; i < work.size(); ++i) {
        if (std::isfinite(work[i])) {
            text += (text.empty() ? "" : ", ") + number_text(work[i]) + units[i];
        }
    }
    return text;
}

ProtoText extra(std::string_view name, std::string_view value) {
    return ProtoText().text(field::ExtraData::name, name).text(field::ExtraData::value, value);
}

ProtoText dimensions(const Extent& extent) {
    return ProtoText()
        .number(field::Dim3::x, extent.x)
        .number(field::Dim3::y, extent.y)
        .number(field::Dim3::z, extent.z);
}

} // namespace

void PerfettoDevices::add_track(const recording::TrackInfo& info, const std::string& clock) {
    Track& made = tracks_[info.id];
    made.name = info.name.empty() ? "track " + std::to_string(info.id) : info.name;
    made.description = info.source;
    made.gpu = gpu_of(clock);
    made.api = api_of(clock);
}

/// "cuda:1" is GPU 1, unless another has taken that number.
std::uint64_t PerfettoDevices::gpu_of(const std::string& clock) {
    if (const auto known = gpus_.find(clock); known != gpus_.end()) {
        return known->second;
    }
    const std::size_t colon = clock.rfind(':');
    std::uint64_t number = colon == std::string::npos ? 0 : std::strtoull(clock.c_str() + colon + 1, nullptr, 10);
    number = std::min<std::uint64_t>(number, 1 << 20);
    while (!taken_gpus_.insert(number).second) {
        ++number;
    }
    return gpus_[clock] = number;
}

PerfettoDevices::Lane& PerfettoDevices::lane_of(Track& track, std::int64_t begin_ns, std::int64_t duration_ns) {
    // What fits in no lane overlaps in the last: viewers draw events of a queue beside each other where they must.
    const std::size_t place = track.places.place(begin_ns, begin_ns + duration_ns).value_or(SpanLanes::max_lanes - 1);
    while (place >= track.lanes.size()) {
        const std::size_t number = track.lanes.size() + 1;
        ProtoText queue;
        queue.number(field::InternedGpuRenderStageSpecification::iid, 1)
            .text(field::InternedGpuRenderStageSpecification::name,
                  track.name + (number == 1 ? "" : ", " + std::to_string(number)))
            .text(field::InternedGpuRenderStageSpecification::description, track.description);
        ProtoText context;
        context.number(field::InternedGraphicsContext::iid, track.gpu + 1)
            .number(field::InternedGraphicsContext::pid, pid_)
            .number(field::InternedGraphicsContext::api, track.api);
        ProtoText interned;
        interned.message(field::InternedData::gpu_specifications, queue)
            .message(field::InternedData::graphics_contexts, context);
        packets_.begin_sequence(track.lanes.emplace_back(), begin_ns, std::nullopt, interned);
    }
    return track.lanes[place];
}

/// One for each name and layer, which are said once; and its work, which its slices repeat where theirs differs.
const PerfettoDevices::Stage& PerfettoDevices::stage_of(Lane& lane, const Event& event) {
    const std::uint32_t layer_key = event.layer && *event.layer < 65535 ? *event.layer + 1 : 0;
    std::uint32_t key = std::uint32_t{event.name} << 16 | layer_key;
    if (lane.stages.size() >= most_stages) {
        key &= 0xffff0000;
    }
    Stage& stage = lane.stages[key];
    if (stage.iid != 0) [[likely]] {
        return stage;
    }
    stage.iid = static_cast<std::uint32_t>(lane.stages.size()) + 1; // 1 is the queue
    stage.work = event.work;
    const NameWords::Entry entry = names_.entry(event.name);
    std::string what = (key & 0xffff) != 0 ? "layer " + std::to_string(*event.layer) + ", " : "";
    what += category_word(entry.category);
    const std::string amounts = work_text(event.work);
    what += amounts.empty() ? "" : "; " + amounts + " unless a slice says otherwise";
    ProtoText text;
    text.number(field::InternedGpuRenderStageSpecification::iid, stage.iid)
        .text(field::InternedGpuRenderStageSpecification::name, entry.name)
        .text(field::InternedGpuRenderStageSpecification::description, what)
        .number(field::InternedGpuRenderStageSpecification::category, entry.category == Category::transfer
                                                                          ? field::RenderStageCategory::OTHER
                                                                          : field::RenderStageCategory::COMPUTE);
    packets_.intern(lane, field::InternedData::gpu_specifications, text);
    return stage;
}

void PerfettoDevices::write(Track& track, const Event& event, const std::string& more) {
    Lane& lane = lane_of(track, event.begin_ns, event.duration_ns);
    const Stage& stage = stage_of(lane, event);
    ProtoText fields;
    if (!same_work(stage.work, event.work)) [[unlikely]] {
        constexpr std::string_view words[] = {"bytes", "flops", "elements"};
        for (std::size_t i = 0; i < std::size(words); ++i) {
            if (std::isfinite(event.work[i])) {
                fields.message(field::GpuRenderStageEvent::extra_data, extra(words[i], number_text(event.work[i])));
            } else if (std::isfinite(stage.work[i])) {
                fields.message(field::GpuRenderStageEvent::extra_data, extra(words[i], "not given"));
            }
        }
    }
    fields.append(more);
    // In this order a compressor finds one repetition for each event: first what is its own, then what the same event of the step before
    // had, then what neighbours have in common.
    const auto put = [&](ProtoPen& pen) {
        pen.number(field::GpuRenderStageEvent::duration, static_cast<std::uint64_t>(event.duration_ns));
        pen.number(field::GpuRenderStageEvent::stage_iid, stage.iid);
        pen.number(field::GpuRenderStageEvent::event_id, event.id); // an event without one is not drawn
        pen.number(field::GpuRenderStageEvent::context, track.gpu + 1);
        if (track.gpu != 0) {
            pen.number(field::GpuRenderStageEvent::gpu_id, track.gpu);
        }
        pen.number(field::GpuRenderStageEvent::hw_queue_iid, 1);
        if (event.step != resolve::no_step) {
            pen.number(field::GpuRenderStageEvent::render_pass_instance_id, event.step);
        }
    };
    if (fields.bytes().empty()) [[likely]] {
        packets_.sink().reserve(PerfettoPackets::packet_room);
        packets_.put_packet([&](ProtoPen& pen) {
            PerfettoPackets::put_time(pen, lane, event.begin_ns);
            pen.message(field::TracePacket::gpu_render_stage_event, [&] { put(pen); });
            pen.raw(lane.prefix);
        });
        return;
    }
    char room[PerfettoPackets::packet_room];
    ProtoPen time(room);
    PerfettoPackets::put_time(time, lane, event.begin_ns);
    char* const middle = time.at();
    put(time);
    ProtoText whole, packet;
    whole.append({middle, static_cast<std::size_t>(time.at() - middle)}).append(fields.bytes());
    packet.append({room, static_cast<std::size_t>(middle - room)})
        .message(field::TracePacket::gpu_render_stage_event, whole)
        .append(lane.prefix);
    packets_.packet(packet);
}

/// Of an event that nothing in the trace submitted: odd. Counted from the beginning of each step, below a number that grows from one step
/// to the next: the same event of another step has the same low bytes.
std::uint64_t PerfettoDevices::new_id(std::uint64_t step) {
    constexpr unsigned low_bits = 14;
    if (step != last_step_) {
        last_step_ = step;
        next_id_ = ((next_id_ >> low_bits) + 1) << low_bits;
    }
    next_id_ += 2;
    return next_id_ - 1;
}

void PerfettoDevices::write(const Sample& sample, std::span<const resolve::Launch> launches) {
    const auto arrow = arrows_.end_at(sample, launches);
    const Event event{sample.begin_ns,
                      sample.duration_ns,
                      arrow ? *arrow * 2 : new_id(sample.step), // as the submission names it, and never that
                      sample.step,
                      sample.name,
                      sample.layer,
                      {sample.bytes, sample.flops, sample.elements}};
    ProtoText more;
    const bool lap = sample.kind == resolve::SampleKind::lap;
    if (lap || sample.flags != 0 || sample.left_out || sample.warmup) [[unlikely]] {
        const auto say = [&more](std::string_view word) {
            more.message(field::GpuRenderStageEvent::extra_data, extra(word, "true"));
        };
        if (lap) {
            say("lap");
        }
        if (sample.warmup) {
            say("warmup");
        }
        for (const MarkWord& mark : marks_of(sample)) {
            if (mark.set) {
                say(mark.word);
            }
        }
    }
    write(tracks_.find(sample.track)->second, event, more.bytes());
}

void PerfettoDevices::write(const resolve::RecordedNode& node, std::uint16_t name, const std::string& thread) {
    const bool transfer = node.kind == resolve::RecordedKind::transfer;
    const auto [known, first] = recorded_.try_emplace(node.key.track);
    if (first) {
        known->second.name = "recorded by " + thread;
        known->second.description = "kernels and transfers, with the times that the program gave";
    }
    const double bytes = transfer && node.has_parts ? static_cast<double>(node.transferred) : node.bytes;
    const Event event{node.begin_ns,
                      node.duration_ns,
                      new_id(node.step),
                      node.step,
                      name,
                      node.layer,
                      {bytes, node.flops, node.elements}};
    ProtoText more;
    if (node.has_parts && !transfer) {
        more.message(field::GpuRenderStageEvent::launch,
                     ProtoText()
                         .message(field::ComputeKernelLaunch::grid_size, dimensions(node.grid))
                         .message(field::ComputeKernelLaunch::workgroup_size, dimensions(node.block)));
        if (node.code_hash != 0) {
            more.message(field::GpuRenderStageEvent::extra_data, extra("code", base::hex_digits(node.code_hash)));
        }
        more.message(field::GpuRenderStageEvent::extra_data, extra("shared_bytes", std::to_string(node.shared_bytes)));
    }
    write(known->second, event, more.bytes());
}

} // namespace plumb::exporting
