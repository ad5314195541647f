// SPDX-License-Identifier: Apache-2.0
#include "import/quality.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

namespace plumb::imported {
namespace {

constexpr std::size_t most_in_sentence = 5; // in one sentence
constexpr std::size_t most_kinds = 8;       // of passes
constexpr double most_abut = 0.5;           // beyond it dispatch gaps lie inside of durations

std::string percent(double share, int decimals = 1) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f %%", decimals, 100 * share);
    return text;
}

/// "elementwise 0.61 %, copy 0.10 %": the largest first.
std::string largest(const std::map<std::string, double>& ns_of, double all) {
    std::vector<std::pair<double, std::string>> sorted;
    for (const auto& [name, ns] : ns_of) {
        sorted.emplace_back(-ns, name);
    }
    std::sort(sorted.begin(), sorted.end());
    std::string text;
    for (std::size_t i = 0; i < std::min(sorted.size(), most_in_sentence); ++i) {
        text += (i == 0 ? ": " : ", ") + sorted[i].second + " " + percent(-sorted[i].first / all, 2);
    }
    return text + (sorted.size() > most_in_sentence ? ", …" : "");
}

/// Whether an operation of it waits for other ranks. Experts may also lie all on one.
bool crosses_ranks(const BrickName& brick, const TraceFacts& facts) {
    const bool between_experts = brick.name == "moe_dispatch" || brick.name == "moe_combine";
    return brick.category == Category::collective ||
           (between_experts && !facts.world_size.empty() && facts.world_size != "1");
}

/// of(brick, evidence, certainty, ns), where there is any.
template <class Of>
void for_each_time(const OpTimes& times, Of of) {
    for (std::size_t brick = 0; brick < times.bricks.size(); ++brick) {
        for (std::size_t evidence = 0; evidence < times.bricks[brick].size(); ++evidence) {
            for (std::size_t certainty = 0; certainty < times.bricks[brick][evidence].size(); ++certainty) {
                if (const double ns = times.bricks[brick][evidence][certainty]; ns >= 0) {
                    of(brick, static_cast<LabelEvidence>(evidence), static_cast<Certainty>(certainty), ns);
                }
            }
        }
    }
}

std::vector<std::string> brick_notes(const Trace& trace, const Labels& labels, const OpTimes& times) {
    std::map<LabelEvidence, double> by_evidence;
    std::map<std::string, double> unknown;
    std::map<std::string, double> weak;
    std::map<std::string, double> collective;
    const double all = times.ns;
    double collective_ns = 0;
    double unknown_ns = 0;
    double weak_ns = 0;
    for_each_time(times, [&](std::size_t number, LabelEvidence evidence, Certainty certainty, double ns) {
        const BrickName& brick = labels.bricks[number];
        if (crosses_ranks(brick, trace.facts)) {
            collective_ns += ns;
            collective[brick.name] += ns;
        }
        by_evidence[evidence] += ns;
        if (certainty == Certainty::unknown) {
            unknown_ns += ns;
            unknown[brick.name] += ns;
        } else if (certainty == Certainty::weak) {
            weak_ns += ns;
            weak[brick.name] += ns;
        }
    });
    if (all <= 0) {
        return {};
    }
    std::string known = "bricks are known by name for " + percent(by_evidence[LabelEvidence::name] / all, 2) +
                        " of the time of all operations, by place for " +
                        percent(by_evidence[LabelEvidence::place] / all, 2);
    for (const LabelEvidence more : {LabelEvidence::capture, LabelEvidence::stack, LabelEvidence::annotation}) {
        if (by_evidence[more] > 0) {
            known += std::string(", by ") + evidence_word(more) + " for " + percent(by_evidence[more] / all, 2);
        }
    }
    std::vector<std::string> notes = {
        known, "unknown " + percent(unknown_ns / all, 2) + " of the time" + largest(unknown, all),
        "weak " + percent(weak_ns / all, 2) + " of the time" + largest(weak, all)};
    if (collective_ns > 0) {
        notes.push_back("between ranks " + percent(collective_ns / all, 2) + " of the time" + largest(collective, all) +
                        ": that holds waiting for other ranks, which the trace of one rank does not tell apart");
    }
    return notes;
}

/// "61 layers: 61 by repeats, 61 by attention, 61 by time"
std::string witnesses_of(const LabelledPass& pass) {
    std::string text = std::to_string(pass.layers) + (pass.layers == 1 ? " layer" : " layers");
    const std::pair<const char*, const std::optional<std::uint64_t>*> witnesses[] = {
        {" by repeats", &pass.witnesses.repeats},
        {" by attention", &pass.witnesses.anchors},
        {" by time", &pass.witnesses.holes},
        {" by other replays", &pass.witnesses.replays}};
    std::string before = ": ";
    if (pass.told != LabelEvidence::none) {
        text += before + std::to_string(pass.layers) + " by " + evidence_word(pass.told);
        before = ", ";
    }
    for (const auto& [word, count] : witnesses) {
        if (count->has_value()) {
            text += before + std::to_string(**count) + word;
            before = ", ";
        }
    }
    return text;
}

/// Passes alike are one sentence.
std::vector<std::string> layer_notes(const Labels& labels, std::uint16_t process) {
    std::vector<std::pair<std::string, std::uint64_t>> found; // in the order of their first pass
    std::map<std::string, std::size_t> known;                 // indices in it
    for (const LabelledPass& pass : labels.passes) {
        if (pass.process != process) {
            continue;
        }
        std::string text = (pass.certain ? "layers certain, " : "layers uncertain, ") + witnesses_of(pass);
        for (std::size_t i = 0; i < pass.doubts.size(); ++i) {
            text += "; " +
                    (i < most_in_sentence ? pass.doubts[i] : std::to_string(pass.doubts.size() - i) + " more doubts");
            if (i == most_in_sentence) {
                break;
            }
        }
        const auto [at, is_new] = known.try_emplace(text, found.size());
        if (is_new) {
            found.emplace_back(std::move(text), 0);
        }
        ++found[at->second].second;
    }
    std::vector<std::string> notes;
    for (const auto& [text, passes] : found) {
        notes.push_back(std::to_string(passes) + (passes == 1 ? " pass: " : " passes: ") + text);
    }
    return notes;
}

} // namespace

OpTimes op_times(const Trace& trace, const Labels& labels, std::uint16_t process) {
    OpTimes times;
    OpTimes::OfBrick none;
    for (auto& of_evidence : none) {
        of_evidence.fill(-1); // no operation
    }
    times.bricks.assign(labels.bricks.size(), none);
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        if (trace.ops[i].process == process) {
            const auto ns = static_cast<double>(trace.ops[i].duration_ns());
            ++times.operations;
            times.ns += ns;
            double& sum = times.bricks[labels.brick_of[i]][static_cast<std::size_t>(labels.evidence_of[i])]
                                      [static_cast<std::size_t>(labels.certainty_of[i])];
            sum = std::max(sum, 0.0) + ns;
        }
    }
    return times;
}

std::vector<std::string> label_notes(const Trace& trace, const Labels& labels, const OpTimes& times,
                                     std::uint16_t process) {
    std::vector<std::string> notes = brick_notes(trace, labels, times);
    const std::vector<std::string> layers = layer_notes(labels, process);
    notes.insert(notes.end(), layers.begin(),
                 layers.begin() + static_cast<std::ptrdiff_t>(std::min(layers.size(), most_kinds)));
    if (layers.size() > most_kinds) {
        notes.push_back(std::to_string(layers.size() - most_kinds) + " more kinds of passes");
    }
    return notes;
}

std::vector<std::pair<std::string, std::string>> evidence_of_bricks(const Labels& labels, const OpTimes& times) {
    std::map<std::size_t, std::map<std::string, double>> found;
    for_each_time(times, [&found](std::size_t brick, LabelEvidence evidence, Certainty certainty, double ns) {
        if (certainty != Certainty::unknown) {
            found[brick][(certainty == Certainty::weak ? "weak " : "") + std::string(evidence_word(evidence))] += ns;
        }
    });
    std::vector<std::pair<std::string, std::string>> bricks;
    for (const auto& [brick, shares] : found) {
        double all = 0;
        for (const auto& [word, ns] : shares) {
            all += ns;
        }
        std::vector<std::pair<double, std::string>> sorted;
        for (const auto& [word, ns] : shares) {
            sorted.emplace_back(-ns, word);
        }
        std::sort(sorted.begin(), sorted.end());
        std::string text = sorted.size() == 1 ? sorted[0].second : "";
        for (std::size_t i = 0; i < sorted.size() && sorted.size() > 1 && all > 0; ++i) {
            text += (i == 0 ? "" : ", ") + sorted[i].second + " " + percent(-sorted[i].first / all);
        }
        bricks.emplace_back(labels.bricks[brick].name, text);
    }
    return bricks;
}

bool hides_gaps(const Trace& trace, std::uint16_t process) {
    const auto quality = trace.of_process.find(process);
    return trace.tick_ns <= abut_ns && quality != trace.of_process.end() && quality->second.abutting > most_abut;
}

std::vector<std::string> quality_notes(const Trace& trace, const EngineSteps& steps, std::uint16_t process) {
    std::vector<std::string> notes = trace.facts.notes;
    std::uint64_t graphs = 0, outside = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        if (trace.ops[i].process == process) {
            graphs += trace.ops[i].kind == DeviceOpKind::graph ? 1 : 0;
            outside += steps.of_op[i] == no_step ? 1 : 0;
        }
    }
    if (graphs != 0) {
        notes.push_back(std::to_string(graphs) +
                        " replays of captured graphs stand there as a whole, so their bricks are n/a: "
                        "record with nsys profile --cuda-graph-trace=node");
    }
    if (trace.facts.cut) {
        notes.emplace_back("the file ends before the trace does: what it holds was taken");
    }
    notes.push_back("times are multiples of " + std::to_string(trace.tick_ns) + " ns");
    const auto found = trace.of_process.find(process);
    const ProcessQuality quality = found == trace.of_process.end() ? ProcessQuality() : found->second;
    const bool alone = trace.processes.size() == 1;
    for (std::size_t i = 0; i < anomalies; ++i) {
        const auto say = [&notes, i](std::uint64_t count, const char* of) {
            if (count != 0) {
                notes.push_back(std::to_string(count) + (count == 1 ? " operation" : " operations") + of + ": " +
                                anomaly_words(static_cast<Anomaly>(i)));
            }
        };
        say(quality.counts[i] + (alone ? trace.counts[i] : 0), "");
        say(alone ? 0 : trace.counts[i], " of the whole trace");
    }
    if (hides_gaps(trace, process)) {
        notes.push_back("gaps between operations are not in this trace: " + percent(quality.abutting) +
                        " of them begin where the one before ended, so that launch gaps lie inside of durations");
    }
    const auto at = steps.cut.find(process);
    const CutSteps cut = at == steps.cut.end() ? CutSteps() : at->second;
    if (cut.partial != 0) {
        notes.push_back(std::to_string(cut.partial) + (cut.partial == 1 ? " step" : " steps") +
                        " began before the trace: left out");
    }
    if (cut.unfinished != 0) {
        notes.push_back(std::to_string(cut.unfinished) + (cut.unfinished == 1 ? " step" : " steps") +
                        " ended behind the trace: left out");
    }
    if (outside != 0) {
        notes.push_back(std::to_string(outside) + (outside == 1 ? " operation belongs" : " operations belong") +
                        " to no step");
    }
    if (std::any_of(steps.steps.begin(), steps.steps.end(),
                    [process](const EngineStep& step) { return step.process == process && !step.phase_known; })) {
        notes.emplace_back("whether steps are prefill or decode is not in the trace: --phase says it");
    }
    return notes;
}

} // namespace plumb::imported
