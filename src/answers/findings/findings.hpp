// SPDX-License-Identifier: Apache-2.0
// What is worth doing about a run: claims with their evidence, the most that each could gain, how sure it is and what would refute
// it, the most worthwhile first. Made of what other answers found, and silent where they found nothing. Definitions:
// docs/reference/findings.md. Plain data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/bricks.hpp"
#include "plumb/figure.hpp"
#include "plumb/result.hpp"

namespace plumb {

/// What is wrong. Append-only: scripts know the words.
enum class FindingKind : std::uint8_t {
    host_bound,
    launch_gaps,
    off_cpu,
    odd_layer,
    far_from_roofline,
    padding,
    eager_steps,
    ping_pong,
    slow_warm_up,
    own_cost,
    steal,
    straggler,
};

inline Words words_of(FindingKind) {
    static constexpr const char* words[] = {"host_bound",        "launch_gaps", "off_cpu",     "odd_layer",
                                            "far_from_roofline", "padding",     "eager_steps", "ping_pong",
                                            "slow_warm_up",      "own_cost",    "steal",       "straggler"};
    return words;
}

/// Sure: the time itself was measured, in steps enough. Likely: it follows from a comparison or a model. Possible: from little.
enum class Sureness : std::uint8_t { possible, likely, sure };

inline Words words_of(Sureness) {
    static constexpr const char* words[] = {"possible", "likely", "sure"};
    return words;
}

/// One measured figure that a claim rests on, and the command that shows it.
struct EvidenceRow {
    std::string command; // "plumb wall"
    std::string what;
    Figure value;
    std::string unit; // "us per step", "%", "steps", …; empty: a number
};

struct Finding {
    FindingKind kind = FindingKind::host_bound;
    Phase phase = Phase::none;
    std::string subject;                // the brick, scope, device or graph; empty: the step as a whole
    std::optional<std::uint32_t> layer; // of an odd layer
    std::string claim;                  // one sentence
    double at_most_ns = 0;              // a step would be shorter by no more than this
    double likely_ns = 0;               // by this, as far as the rest of the run tells; at most at_most_ns
    double share = 0;                   // at_most_ns of the mean period, 0..1; of slow_warm_up that of all steps
    double weight = 0; // likely_ns in all steps of the phase, of the time of all steps: findings are in this order
    Sureness sure = Sureness::possible;
    std::string because; // why so sure and no surer
    std::string refuted_by;
    std::vector<EvidenceRow> evidence;
};

/// A kind that could not be looked for.
struct NotLookedFor {
    FindingKind kind = FindingKind::host_bound;
    std::string reason;
};

struct FindingsOfRun {
    std::string recording; // name of the file; empty: the only one
    std::vector<Finding> findings;
    std::vector<NotLookedFor> not_looked_for;
    std::vector<std::string> notes;
    bool looked = true; // false: it holds nothing to look at; notes say why
};

struct FindingsReport {
    std::vector<FindingsOfRun> runs;
    std::vector<Finding> together; // of ranks of one job: what one costs the others
};

/// What may be asked for: nothing.
struct FindingsOptions {};

/// Less of the period than this, or of the time of all steps, is no finding.
inline constexpr double least_finding = 0.02;

[[nodiscard]] Result<FindingsReport> read_findings(const std::vector<std::string>& files);

template <class V>
void describe(V&, FindingsOptions&) {}

template <class V>
void describe(V& v, const EvidenceRow& e) {
    v.type("evidence", "One figure that a claim rests on.");
    v("command", e.command, "that shows it");
    v("what", e.what, "");
    v("value", e.value, "");
    v("unit", e.unit, "of `value`; empty: a number");
}

template <class V>
void describe(V& v, const Finding& f) {
    v.type("finding", "A claim about a run, and what it rests on.");
    v("kind", f.kind, "");
    v("phase", f.phase, "");
    v("subject", f.subject, "the brick, scope, device or graph; empty: the step as a whole");
    v("layer", f.layer, "of an odd layer");
    v("claim", f.claim, "one sentence");
    v("at_most_ns", f.at_most_ns, "a step would be shorter by no more than this");
    v("likely_ns", f.likely_ns, "by this, as far as the rest of the run tells");
    v("share", f.share, "`at_most_ns` of the mean period, 0..1; of `slow_warm_up` with the period of all steps");
    v("weight", f.weight,
      "`likely_ns` in all steps of the phase, of the time of all steps, 0..1: the order of findings");
    v("sure", f.sure, "");
    v("because", f.because, "why so sure and no surer");
    v("refuted_by", f.refuted_by, "what would show that the claim is wrong");
    v("evidence", f.evidence, "");
}

template <class V>
void describe(V& v, const NotLookedFor& n) {
    v.type("not looked for", "A kind of finding that this recording cannot show.");
    v("kind", n.kind, "");
    v("reason", n.reason, "");
}

template <class V>
void describe(V& v, const FindingsOfRun& r) {
    v.type("findings of a run", "What was found in one recording.");
    v("recording", r.recording, "name of the file; missing: there is one only", !r.recording.empty());
    v("findings", r.findings, "the most worthwhile first; empty: nothing was found");
    v("not_looked_for", r.not_looked_for, "");
    v("notes", r.notes, "sentences the reader must know");
    v("looked", r.looked, "false: nothing could be looked for, and `notes` say why");
}

template <class V>
void describe(V& v, const FindingsReport& r) {
    v.type("findings",
           "What is worth doing about a run (`plumb findings`; [findings.md](findings.md) says what the kinds mean).");
    v("runs", r.runs, "a recording each, in the order given");
    v("together", r.together, "of the ranks of one job: what one of them costs the others, the most worthwhile first");
}

constexpr const char* schema_of(const FindingsReport&) { return "plumb.findings/1"; }
[[nodiscard]] page::Page page_of(const FindingsReport& report, const TextOptions& options);

} // namespace plumb
