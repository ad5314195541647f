// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "layers/laid_out.hpp"

namespace plumb {
namespace {

constexpr std::size_t foreign_stretch = 3; // so many kernels between layers part passes where no anchor does

/// What stands once in a pass: it is seen less than once in two layers.
struct Once {
    bool embedding = false, sampling = false;
};

Once once_in_a_pass(std::span<const SequenceKernel> kernels, std::size_t layers) {
    const auto rare = [kernels, layers](LayerAnchor anchor) {
        const auto count = static_cast<std::size_t>(std::count_if(
            kernels.begin(), kernels.end(), [anchor](const SequenceKernel& k) { return k.anchor == anchor; }));
        return count > 0 && 2 * count < layers;
    };
    return {rare(LayerAnchor::embedding), rare(LayerAnchor::sampling)};
}

bool any_attention(std::span<const SequenceKernel> kernels, std::size_t first, std::size_t last) {
    return std::any_of(kernels.begin() + static_cast<std::ptrdiff_t>(first),
                       kernels.begin() + static_cast<std::ptrdiff_t>(last),
                       [](const SequenceKernel& kernel) { return kernel.anchor == LayerAnchor::attention; });
}

/// Of the kernels from `first` to `last`, the one before which most time passed; the first where times are not known.
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

/// The first kernel of the pass that begins among those from `first` on and before `last`; nothing if none does. It stands behind
/// whatever is a layer's or samples, and not behind the embedding.
std::optional<std::size_t> begin_of_pass(std::span<const SequenceKernel> kernels, std::size_t first, std::size_t last,
                                         Once once) {
    std::size_t from = first, to = last;
    bool found = !once.embedding && !once.sampling && last - first >= foreign_stretch;
    for (std::size_t i = last; once.embedding && i-- > first;) {
        if (kernels[i].anchor == LayerAnchor::embedding) {
            to = i;
            found = true;
        }
    }
    for (std::size_t i = first; i < to; ++i) {
        const bool sampling = once.sampling && kernels[i].anchor == LayerAnchor::sampling;
        found = found || sampling;
        if (sampling || (kernels[i].anchor != LayerAnchor::none && kernels[i].anchor != LayerAnchor::embedding)) {
            from = i + 1;
        }
    }
    if (!found) {
        return std::nullopt;
    }
    return after_longest_wait(kernels, from, std::min(to, kernels.size() - 1));
}

} // namespace

std::vector<PassRange> find_passes(std::span<const SequenceKernel> kernels, const std::atomic<bool>* stop) {
    if (kernels.empty()) {
        return {};
    }
    const LaidOut laid_out = lay_out(kernels, stop);
    const std::vector<UnitCopy>& copies = laid_out.repeats.alignment.copies;
    std::size_t layers = 0;
    for (const UnitCopy& copy : copies) {
        layers += std::max(1u, laid_out.attentions[copy.unit]);
    }
    const Once once = once_in_a_pass(kernels, layers);
    std::vector<std::size_t> begins = {0};
    const auto look = [&](std::size_t first, std::size_t last) { // positions of the main stream
        const std::size_t end = last < laid_out.main.size() ? laid_out.main[last] : kernels.size();
        const std::optional<std::size_t> begin = begin_of_pass(kernels, laid_out.main[first], end, once);
        if (begin && *begin > begins.back() &&
            (!laid_out.anchored ||
             (any_attention(kernels, begins.back(), *begin) && any_attention(kernels, *begin, kernels.size())))) {
            begins.push_back(*begin);
        }
    };
    for (std::size_t c = 0; c < copies.size(); ++c) {
        if (c > 0 && copies[c].begin > copies[c - 1].end) {
            look(copies[c - 1].end, copies[c].begin);
        }
        if (laid_out.attentions[copies[c].unit] > 1 && once.embedding) { // whole passes repeat
            look(copies[c].begin, copies[c].end);
        }
    }
    std::vector<PassRange> passes;
    for (std::size_t i = 0; i < begins.size(); ++i) {
        passes.push_back({begins[i], i + 1 < begins.size() ? begins[i + 1] : kernels.size(), false});
    }
    // The ends of the sequence: a pass that begins or ends with a layer, while the others do not, was cut there.
    const auto one_layer = [&laid_out](const UnitCopy& copy) {
        return laid_out.attentions[copy.unit] <= 1;
    };
    if (passes.size() > 1 && !copies.empty()) {
        passes.front().cut = one_layer(copies.front()) && laid_out.main[copies.front().begin] == 0;
        passes.back().cut =
            one_layer(copies.back()) && (copies.back().midway || copies.back().end == laid_out.main.size());
    }
    return passes;
}

} // namespace plumb
