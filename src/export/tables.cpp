// SPDX-License-Identifier: Apache-2.0
#include "export/tables.hpp"

namespace plumb::exporting::tables {

namespace {

using resolve::Sample;

std::int64_t step_value(std::uint64_t step) {
    return step == resolve::no_step ? no_integer : static_cast<std::int64_t>(step);
}
std::int64_t layer_value(std::optional<std::uint32_t> layer) { return layer ? std::int64_t{*layer} : no_integer; }

/// What gives marks, as one code, and their words. Nodes have words of their own.
constexpr std::uint16_t of_a_sample(const Sample& sample) {
    return static_cast<std::uint16_t>(sample.flags | (sample.left_out ? 0x100 : 0));
}
constexpr std::uint16_t of_a_node(const resolve::RecordedNode& node) {
    return static_cast<std::uint16_t>(0x200 | (node.timed ? 1 : 0) | (node.left_out ? 0x100 : 0));
}
constexpr std::uint32_t first_node_kind = 16; // below it SampleKind, from it on RecordedKind

ScopeRow row_of(const Sample& sample, std::uint32_t track) {
    const bool layer = sample.kind == resolve::SampleKind::layer;
    return {.kind = static_cast<std::uint32_t>(sample.kind),
            .phase = sample.phase,
            .brick = layer ? no_text : sample.name,
            .track = track,
            .step = step_value(sample.step),
            .layer = layer_value(sample.layer),
            .begin = sample.begin_ns,
            .duration = sample.duration_ns,
            .bytes = sample.bytes,
            .flops = sample.flops,
            .leaf = layer ? no_truth : static_cast<std::uint8_t>(sample.leaf),
            .warmup = sample.warmup,
            .marks = of_a_sample(sample)};
}

ScopeRow row_of(const resolve::RecordedNode& node, std::uint32_t track) {
    const bool transfer = node.kind == resolve::RecordedKind::transfer;
    return {.kind = first_node_kind + static_cast<std::uint32_t>(node.kind),
            .phase = node.phase,
            .brick = transfer ? name_of(node.direction).id : node.name,
            .track = track,
            .step = step_value(node.step),
            .layer = layer_value(node.layer),
            .begin = node.begin_ns,
            .duration = node.timed ? node.duration_ns : no_integer,
            .bytes = transfer && node.has_parts ? static_cast<double>(node.transferred) : node.bytes,
            .flops = node.flops,
            .leaf = no_truth,
            .warmup = node.warmup,
            .marks = of_a_node(node)};
}

} // namespace

std::string marks_text(std::uint32_t code) {
    Sample sample;
    sample.flags = static_cast<std::uint8_t>(code);
    resolve::RecordedNode node;
    node.timed = (code & 1) != 0;
    sample.left_out = node.left_out = (code & 0x100) != 0;
    std::string text;
    for (const MarkWord& mark : (code & 0x200) != 0 ? marks_of(node) : marks_of(sample)) {
        if (mark.set) {
            text += (text.empty() ? "" : " ") + std::string(mark.word);
        }
    }
    return text;
}

std::string scope_kind_text(std::uint32_t code) {
    return std::string(code < first_node_kind ? kind_word(static_cast<resolve::SampleKind>(code))
                                              : kind_word(static_cast<resolve::RecordedKind>(code - first_node_kind)));
}

Status for_each_scope(const SampleFeed& source, Recording& recording, const RowTaker<ScopeRow>& take) {
    return source.for_each_batch([&](const resolve::ResolvedBatch& batch) {
        bool wanted = true;
        for (const resolve::RecordedNode& node : batch.nodes) {
            wanted = wanted && take(row_of(node, recording.track(node.key.track)));
        }
        for (const Sample& sample : batch.samples) {
            if (sample.kind != resolve::SampleKind::step) {
                wanted = wanted && take(row_of(sample, recording.track(sample.track)));
            }
        }
        return wanted;
    });
}

Status for_each_step(const SampleFeed& source, Recording& recording, const RowTaker<StepRow>& take) {
    return source.for_each_step([&](const resolve::ResolvedStep& step, std::uint32_t track) {
        return !step.counted || take({step, recording.track(track)});
    });
}

} // namespace plumb::exporting::tables
