// SPDX-License-Identifier: Apache-2.0
// Trials of layer detection under noise: layer_trials [--trials N] [--seed N] [--from FILE] [--only TEXT] [--verbose]
// N trials of each kind of noise, spread over all sequences; each is one sequence with noise. Exits 1 where the table it prints is
// beyond the limits, or where any finding is certain and wrong.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "layers/sequences.hpp"

namespace plumb {
namespace {

struct Arguments {
    unsigned trials = 100, seed = 1;
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
        if (!is_right(findings, sequence, i)) {
            const auto layer = findings.places[i].layer ? static_cast<int>(*findings.places[i].layer) : in_no_layer;
            std::printf("      kernel %zu of %zu is in layer %d, not %d\n", i, sequence.truth.size(),
                        sequence.truth[i].layer, layer);
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

/// Of one kind of noise, over all sequences.
struct Kind {
    const char* name;
    double least_right, least_certain, most_certain; // per cent of trials
    unsigned trials = 0, right = 0, certain = 0, wrong = 0;

    double percent(unsigned count) const { return trials == 0 ? 0 : 100.0 * count / trials; }
    bool within_limits() const {
        return wrong == 0 && (trials == 0 || (percent(right) >= least_right && percent(certain) >= least_certain &&
                                              percent(certain) <= most_certain));
    }
    /// False if it is certain and wrong.
    bool count(bool is_right, bool is_certain) {
        ++trials;
        right += is_right ? 1 : 0;
        certain += is_certain ? 1 : 0;
        wrong += is_certain && !is_right ? 1 : 0;
        return is_right || !is_certain;
    }
};

class Trials {
  public:
    explicit Trials(const Arguments& arguments) : arguments_(arguments) {}

    /// As many trials of each kind as make up the wanted ones with those of `more` other sequences.
    void run(TruthSequence sequence, unsigned more) {
        last_pass(sequence);
        DetectionOptions options;
        if (sequence.layers == 0) { // not known
            std::printf("%s:\n", sequence.name.c_str());
            show(sequence, find_layers(sequence.kernels));
            return;
        }
        if (sequence.ambiguous) {
            const LayerFindings untold = find_layers(sequence.kernels);
            if (untold.certain && !is_right(untold, sequence)) {
                kinds_[0].count(false, true);
            }
            options.layers = sequence.layers;
        }
        const LayerFindings clean = find_layers(sequence.kernels, options);
        const bool right = is_right(clean, sequence);
        kinds_[0].count(right, clean.certain);
        std::printf("%-60s %5zu kernels %3u layers%s: %s, %s\n", sequence.name.c_str(), sequence.kernels.size(),
                    sequence.layers, sequence.ambiguous ? " (told)" : "", right ? "right" : "WRONG",
                    clean.certain ? "certain" : "UNCERTAIN");
        if (arguments_.verbose || !right || !clean.certain) {
            show(sequence, clean);
        }
        if (!right) {
            return;
        }
        for (std::size_t i = 0; i < sequence.truth.size(); ++i) {
            sequence.truth[i] = {clean.places[i].layer ? static_cast<std::int32_t>(*clean.places[i].layer)
                                                       : in_no_layer};
        }
        for (std::size_t kind = 1; kind < kinds_.size(); ++kind) {
            const unsigned done = kinds_[kind].trials;
            const unsigned wanted = arguments_.trials > done ? (arguments_.trials - done + more) / (more + 1) : 0;
            for (unsigned trial = 0; trial < wanted; ++trial) {
                run_one(sequence, options, kind, trial);
            }
        }
    }

    bool print() const {
        std::printf("\n%-14s %7s %9s %9s %15s\n", "kind", "trials", "right", "certain", "silently wrong");
        bool good = true;
        for (const Kind& kind : kinds_) {
            std::printf("%-14s %7u %7.2f %% %7.2f %% %15u%s\n", kind.name, kind.trials, kind.percent(kind.right),
                        kind.percent(kind.certain), kind.wrong, kind.within_limits() ? "" : "  beyond its limits");
            good = good && kind.within_limits();
        }
        return good;
    }

  private:
    void run_one(const TruthSequence& sequence, const DetectionOptions& options, std::size_t kind, unsigned trial) {
        std::seed_seq seed{arguments_.seed, trial, static_cast<unsigned>(kind), kinds_[kind].trials};
        std::mt19937 random(seed);
        const TruthSequence noisy = with_noise(sequence, static_cast<Noise>(kind), random);
        const LayerFindings findings = find_layers(noisy.kernels, options);
        const bool right = is_right(findings, noisy);
        if (!kinds_[kind].count(right, findings.certain) || (arguments_.verbose && !(right && findings.certain))) {
            std::printf("    %s, trial %u: %s\n", kinds_[kind].name, trial, right ? "right" : "WRONG");
            show(noisy, findings);
        }
    }

    const Arguments& arguments_;
    // A buffer lost outside all layers may leave them certain.
    std::vector<Kind> kinds_ = {{"clean", 100, 100, 100},  {"drop 1 %", 90, 70, 100},   {"insert 1 %", 90, 70, 100},
                                {"swap 2 %", 90, 70, 100}, {"rename 5 %", 90, 70, 100}, {"lost buffer", 0, 0, 1}};
};

int run(const Arguments& arguments) {
    std::vector<TruthSequence> sequences = planted_sequences();
    if (!arguments.from.empty()) {
        std::ifstream in(arguments.from);
        sequences = read_sequences(in);
    }
    std::erase_if(sequences, [&arguments](const TruthSequence& sequence) {
        return sequence.name.find(arguments.only) == std::string::npos;
    });
    Trials trials(arguments);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        trials.run(sequences[i], static_cast<unsigned>(sequences.size() - 1 - i));
    }
    return trials.print() ? 0 : 1;
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
