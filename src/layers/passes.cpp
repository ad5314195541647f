// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "layers/laid_out.hpp"

namespace plumb {
namespace {

constexpr std::size_t foreign_stretch = 3; // so many kernels between layers part passes where no anchor does

/// Whether a kernel of this class stands once in a pass: it is seen less than once in two layers.
bool once_in_a_pass(std::span<const SequenceKernel> kernels, LayerAnchor anchor, std::size_t layers) {
    const auto count = static_cast<std::size_t>(std::count_if(kernels.begin(), kernels.end(), [anchor](const SequenceKernel& k) {
        return k.anchor == anchor;
    }));
    return count > 0 && 2 * count < layers;
}

/// Of the kernels from `first` to `last`, the one before which most time passed; else the first.
std::size_t after_longest_wait(std::span<const SequenceKernel> kernels, std::size_t first, std::size_t last) {
    std::size_t best = first;
    std::int64_t longest = -1;
    for (std::size_t i = std::max<std::size_t>(first, 1); i <= last; ++i) {
        if (!kernels[i].begin_ns || !kernels[i - 1].end_ns) {
            return first;
        }
        if (const std::int64_t wait = *kernels[i].begin_ns - *kernels[i - 1].end_ns; wait > longest) {
            longest = wait;
            best = i;
        }
    }
    return best;
}

struct Anchors {
    bool embedding = false, sampling = false; // what stands once in a pass
};

/// The first kernel of a pass among those from `first` to `last`, which is a layer's or the end; nothing if none begins there.
std::optional<std::size_t> begin_of_pass(std::span<const SequenceKernel> kernels, std::size_t first, std::size_t last, Anchors once) {
    std::size_t from = first, to = last;
    bool found = false;
    for (std::size_t i = first; i < last; ++i) {
        if (once.sampling && kernels[i].anchor == LayerAnchor::sampling) {
            from = i + 1;
            found = true;
        }
    }
    for (std::size_t i = from; i < last; ++i) {
        if (once.embedding && kernels[i].anchor == LayerAnchor::embedding) {
            to = i;
            found = true;
            break;
        }
    }
    if (!found && (once.embedding || once.sampling || last - first < foreign_stretch)) {
        return std::nullopt;
    }
    return after_longest_wait(kernels, from, std::min(to, kernels.size() - 1));
}

} // namespace

std::vector<PassRange> find_passes(std::span<const SequenceKernel> kernels) {
    if (kernels.empty()) {
        return {};
    }
    const LaidOut laid_out = lay_out(kernels);
    const std::vector<UnitCopy>& copies = laid_out.repeats.alignment.copies;
    std::size_t layers = 0;
    for (const UnitCopy& copy : copies) {
        layers += std::max(1u, laid_out.attentions[copy.unit]);
    }
    const Anchors once = {once_in_a_pass(kernels, LayerAnchor::embedding, layers),
                          once_in_a_pass(kernels, LayerAnchor::sampling, layers)};
    std::vector<std::size_t> begins = {0};
    const auto at = [&laid_out](std::size_t position) {
        return laid_out.main[position];
    };
    for (std::size_t c = 0; c < copies.size(); ++c) {
        // Between two copies; and within one that is a whole pass of several layers.
        std::vector<std::pair<std::size_t, std::size_t>> stretches;
        if (c > 0 && copies[c].begin > copies[c - 1].end) {
            stretches.emplace_back(at(copies[c - 1].end), at(copies[c].begin));
        }
        (void)stretches;
        for (const auto& [first, last] : stretches) {
            if (const std::optional<std::size_t> begin = begin_of_pass(kernels, first, last, once); begin && *begin > begins.back()) {
                begins.push_back(*begin);
            }
        }
    }
    std::vector<PassRange> passes;
    for (std::size_t i = 0; i < begins.size(); ++i) {
        passes.push_back({begins[i], i + 1 < begins.size() ? begins[i + 1] : kernels.size(), false});
    }
    return passes;
}

} // namespace plumb
