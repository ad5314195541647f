// SPDX-License-Identifier: Apache-2.0
// Trials of layer detection under noise: layer_trials [--trials N] [--seed N] [--from FILE] [--only TEXT] [--verbose]
// Each trial is one sequence with noise of one kind. Exits 1 if any finding is certain and wrong.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "layers/sequences.hpp"

namespace plumb {
namespace {

struct Arguments {
    unsigned trials = 20, seed = 1;
    std::string from, only;
    bool verbose = false;
};

void show(const TruthSequence& sequence, const LayerFindings& findings) {
    std::printf("    found %u%s, repeats %d anchors %d holes %d; units", findings.layers,
                findings.certain ? " certain" : "", static_cast<int>(findings.witnesses.repeats.value_or(0)),
                static_cast<int>(findings.witnesses.anchors.value_or(0)),
                static_cast<int>(findings.witnesses.holes.value_or(0)));
    for (const LayerUnit& unit : findings.units) {
        std::printf(" %zu x %u", unit.names.size(), unit.copies);
    }
    std::printf("\n");
    for (const std::string& doubt : findings.doubts) {
        std::printf("      %s\n", doubt.c_str());
    }
    int shown = 0;
    for (std::size_t i = 0; i < sequence.truth.size() && findings.layers == sequence.layers && shown < 4; ++i) {
        const auto layer = findings.places[i].layer ? static_cast<int>(*findings.places[i].layer) : in_no_layer;
        if (sequence.truth[i] != layer_unknown && layer != sequence.truth[i]) {
            std::printf("      kernel %zu of %zu is in layer %d, not %d\n", i, sequence.truth.size(), sequence.truth[i],
                        layer);
            ++shown;
        }
    }
}

/// A recording may begin in the middle of a pass: the last one is looked at.
void last_pass(TruthSequence& sequence) {
    const std::vector<PassRange> passes = find_passes(sequence.kernels);
    if (passes.size() > 1) {
        std::printf("%s: %zu passes\n", sequence.name.c_str(), passes.size());
        const auto begin = static_cast<std::ptrdiff_t>(passes.back().begin);
        sequence.kernels.erase(sequence.kernels.begin(), sequence.kernels.begin() + begin);
        sequence.truth.erase(sequence.truth.begin(), sequence.truth.begin() + begin);
    }
}

int run(const Arguments& arguments) {
    std::vector<TruthSequence> sequences = planted_sequences();
    if (!arguments.from.empty()) {
        std::ifstream in(arguments.from);
        sequences = read_sequences(in);
    }
    const char* const kinds[] = {"clean", "drop 1 %", "insert 1 %", "swap 2 %", "rename 5 %", "lost buffer"};
    unsigned wrong_sum = 0;
    for (TruthSequence& sequence : sequences) {
        if (sequence.name.find(arguments.only) == std::string::npos) {
            continue;
        }
        last_pass(sequence);
        DetectionOptions options;
        LayerFindings clean = find_layers(sequence.kernels);
        const bool right = is_right(clean, sequence);
        std::printf("%-60s %5zu kernels %3u layers: %s, %s\n", sequence.name.c_str(), sequence.kernels.size(),
                    sequence.layers, right ? "right" : "WRONG", clean.certain ? "certain" : "UNCERTAIN");
        if (arguments.verbose || !right || !clean.certain) {
            show(sequence, clean);
        }
        if (!right) {
            wrong_sum += clean.certain ? 1 : 0;
            continue;
        }
        for (std::size_t i = 0; i < sequence.truth.size(); ++i) {
            sequence.truth[i] = clean.places[i].layer ? static_cast<std::int32_t>(*clean.places[i].layer) : in_no_layer;
        }
        if (!clean.certain) {
            options.layers = sequence.layers;
            clean = find_layers(sequence.kernels, options);
            std::printf("  told that the model has %u: %s\n", options.layers, clean.certain ? "certain" : "UNCERTAIN");
        }
        for (int kind = 1; kind < 6; ++kind) {
            unsigned rights = 0, certains = 0, wrong = 0;
            for (unsigned trial = 0; trial < arguments.trials; ++trial) {
                std::mt19937 random(arguments.seed * 1'000'003u + trial * 7u + static_cast<unsigned>(kind));
                const TruthSequence noisy = with_noise(sequence, static_cast<Noise>(kind), random);
                const LayerFindings findings = find_layers(noisy.kernels, options);
                const bool is = is_right(findings, noisy);
                rights += is ? 1 : 0;
                certains += findings.certain ? 1 : 0;
                wrong += findings.certain && !is ? 1 : 0;
                if ((findings.certain && !is) || (arguments.verbose && !(is && findings.certain))) {
                    std::printf("    %s trial %u: %s\n", kinds[kind], trial, is ? "right" : "WRONG");
                    show(noisy, findings);
                }
            }
            if (arguments.trials != 0) {
                std::printf("  %-12s right %5.1f %%  certain %5.1f %%  certain and wrong %u of %u\n", kinds[kind],
                            100.0 * rights / arguments.trials, 100.0 * certains / arguments.trials, wrong,
                            arguments.trials);
            }
            wrong_sum += wrong;
        }
    }
    return wrong_sum == 0 ? 0 : 1;
}

} // namespace
} // namespace plumb

int main(int argc, char** argv) {
    plumb::Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--verbose") {
            arguments.verbose = true;
        } else if (i + 1 < argc && word == "--trials") {
            arguments.trials = static_cast<unsigned>(std::stoul(argv[++i]));
        } else if (i + 1 < argc && word == "--seed") {
            arguments.seed = static_cast<unsigned>(std::stoul(argv[++i]));
        } else if (i + 1 < argc && word == "--from") {
            arguments.from = argv[++i];
        } else if (i + 1 < argc && word == "--only") {
            arguments.only = argv[++i];
        } else {
            std::fprintf(stderr, "unknown argument: %s\n", word.c_str());
            return 2;
        }
    }
    return plumb::run(arguments);
}
