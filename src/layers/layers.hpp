// SPDX-License-Identifier: Apache-2.0
// Layers of a model, found in the order of its kernels alone: which layer and which place in it each kernel of a pass has.
// The caller brings names as numbers, and what is known of each kernel; nothing here reads a trace or a graph.
// Pure functions; any thread. docs/internals/layer_detection.md says how it works, and what cannot be known.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plumb {

/// What a kernel is to a layer, as far as its name says.
enum class LayerAnchor : std::uint8_t { none, attention, norm, mlp, router, gemm, embedding, sampling };

/// One kernel in the order in which the device began them.
struct SequenceKernel {
    std::uint32_t name = 0; // equal names, equal numbers
    std::uint32_t stream = 0;
    LayerAnchor anchor = LayerAnchor::none;
    std::optional<std::int64_t> begin_ns, end_ns;
    std::uint64_t launch =
        0; // numbers launches in the order of their calls, with gaps; 0: not known. One replay has one.
};

struct DetectionOptions {
    std::uint32_t layers = 0; // what the model has; 0: not known
    bool complete = false;    // no kernel can be missing: the sequence is of a graph's nodes, not of records
    const std::atomic<bool>* stop = nullptr; // set: what is found then says nothing
};

/// Where a kernel stands. Without a layer it stands before, between or after the layers.
struct KernelPlace {
    std::optional<std::uint32_t> layer;
    std::optional<std::uint32_t> slot; // in the layer's unit; absent: a kernel that the unit does not have
    std::uint32_t unit = 0;            // index into LayerFindings::units
};

/// One kind of layer: the kernels that repeat.
struct LayerUnit {
    std::vector<std::uint32_t> names; // the usual name of each slot, from the first kernel of the layer
    std::uint32_t copies = 0;
    std::uint32_t layers = 0; // in all copies
};

/// How many layers there are, by each witness that was heard.
struct LayerWitnesses {
    std::optional<std::uint64_t> repeats; // by units that repeat
    std::optional<std::uint64_t> anchors; // by attention kernels, seen or missing from their slot
    std::optional<std::uint64_t> holes;   // layers for which there is time between kernels: repeats and lost ones
    std::optional<std::uint64_t> replays; // most of the other replays of the same graph
};

struct LayerFindings {
    std::vector<KernelPlace> places; // one for each kernel
    std::optional<std::size_t>
        like; // of several replays: the one before that has the same places; then they stand there alone
    std::vector<LayerUnit> units;
    std::uint32_t layers = 0;
    LayerWitnesses witnesses;
    bool certain = false;
    std::vector<std::string> doubts; // a sentence for each reason why they are uncertain
};

/// The kernels among which layers are looked for, as indices: all where streams take turns; else those of the stream with most
/// attention, and of those with as much, most kernels.
[[nodiscard]] std::vector<std::size_t> main_stream(std::span<const SequenceKernel> kernels);

/// The layers of one pass.
[[nodiscard]] LayerFindings find_layers(std::span<const SequenceKernel> pass, const DetectionOptions& options = {});

/// The layers of several replays of one graph, each the witness of the others. `kernels_of` gives those of a replay, and is asked
/// twice: there is not room for all at once.
[[nodiscard]] std::vector<LayerFindings> find_layers(
    std::size_t replays, const std::function<std::vector<SequenceKernel>(std::size_t)>& kernels_of,
    const DetectionOptions& options = {});

/// One pass through the model, in a sequence of several.
struct PassRange {
    std::size_t begin = 0, end = 0; // of kernels
    bool cut = false;               // begins or ends in the middle of the pass: it was not recorded whole
};

/// Where passes begin and end. Kernels of the host's own work between two passes belong to the second.
/// Once `stop` is set they say nothing.
[[nodiscard]] std::vector<PassRange> find_passes(std::span<const SequenceKernel> kernels,
                                                 const std::atomic<bool>* stop = nullptr);

} // namespace plumb
