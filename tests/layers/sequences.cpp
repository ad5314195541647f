// SPDX-License-Identifier: Apache-2.0
#include "layers/sequences.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <stdexcept>

namespace plumb {
namespace {

LayerAnchor anchor_of(const std::string& word) {
    constexpr std::array<const char*, 8> words = {"none",   "attention", "norm",      "mlp",
                                                  "router", "gemm",      "embedding", "sampling"};
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) {
        throw std::runtime_error("no such anchor: " + word);
    }
    return static_cast<LayerAnchor>(found - words.begin());
}

} // namespace

std::vector<TruthSequence> read_sequences(std::istream& in) {
    std::vector<TruthSequence> found;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        if (line.starts_with("= ")) {
            char sign = 0;
            std::string told;
            words >> sign >> found.emplace_back().name >> found.back().layers >> told;
            found.back().ambiguous = told == "told";
            continue;
        }
        SequenceKernel kernel;
        std::int64_t begin = 0, end = 0;
        std::string anchor;
        std::int32_t layer = 0;
        if (found.empty() ||
            !(words >> kernel.name >> begin >> end >> anchor >> kernel.stream >> kernel.launch >> layer)) {
            throw std::runtime_error("no kernel: " + line);
        }
        kernel.begin_ns = begin;
        kernel.end_ns = end;
        kernel.anchor = anchor_of(anchor);
        found.back().kernels.push_back(kernel);
        found.back().truth.push_back({layer});
    }
    return found;
}

TruthSequence with_noise(const TruthSequence& sequence, Noise noise, std::mt19937& random) {
    constexpr std::uint32_t foreign = 1'000'000, renamed = 2'000'000;
    const auto chance = [&random](double share) {
        return std::uniform_real_distribution<>()(random) < share;
    };
    const auto below = [&random](std::size_t count) {
        return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    };
    TruthSequence noisy = sequence;
    std::vector<SequenceKernel>& kernels = noisy.kernels;
    switch (noise) {
    case Noise::none:
        break;
    case Noise::lost_buffer: {
        const std::size_t count = std::min(10 + below(21), kernels.size());
        const auto first = static_cast<std::ptrdiff_t>(below(kernels.size() - count + 1));
        kernels.erase(kernels.begin() + first, kernels.begin() + first + static_cast<std::ptrdiff_t>(count));
        noisy.truth.erase(noisy.truth.begin() + first,
                          noisy.truth.begin() + first + static_cast<std::ptrdiff_t>(count));
        break;
    }
    case Noise::swap:
        for (std::size_t i = 0; i + 1 < kernels.size(); ++i) {
            if (chance(0.02)) {
                std::swap(kernels[i].name, kernels[i + 1].name);
                std::swap(kernels[i].anchor, kernels[i + 1].anchor);
                noisy.truth[i].other = noisy.truth[i + 1].layer;
                noisy.truth[i + 1].other = noisy.truth[i].layer;
                ++i;
            }
        }
        break;
    case Noise::rename:
        for (SequenceKernel& kernel : kernels) {
            kernel.name += chance(0.05) ? renamed : 0;
        }
        break;
    case Noise::drop:
    case Noise::insert:
        kernels.clear();
        noisy.truth.clear();
        for (std::size_t i = 0; i < sequence.kernels.size(); ++i) {
            const bool now = chance(0.01);
            if (noise == Noise::drop && now) {
                continue;
            }
            kernels.push_back(sequence.kernels[i]);
            noisy.truth.push_back(sequence.truth[i]);
            if (noise == Noise::insert && now) {
                SequenceKernel more = sequence.kernels[i];
                more.name = foreign + static_cast<std::uint32_t>(below(5));
                more.anchor = LayerAnchor::none;
                more.begin_ns = more.end_ns;
                kernels.push_back(more);
                const std::size_t next = std::min(i + 1, sequence.truth.size() - 1);
                noisy.truth.push_back({sequence.truth[i].layer, sequence.truth[next].layer});
            }
        }
        break;
    }
    return noisy;
}

bool is_right(const LayerFindings& findings, const TruthSequence& sequence, std::size_t kernel) {
    const TrueLayer truth = sequence.truth[kernel];
    const std::optional<std::uint32_t> found = findings.places[kernel].layer;
    const std::int32_t layer = found ? static_cast<std::int32_t>(*found) : in_no_layer;
    return truth.layer == layer_unknown || truth.layer == layer || truth.other == layer;
}

bool is_right(const LayerFindings& findings, const TruthSequence& sequence) {
    bool right = findings.layers == sequence.layers;
    for (std::size_t i = 0; i < sequence.truth.size() && right; ++i) {
        right = is_right(findings, sequence, i);
    }
    return right;
}

} // namespace plumb
