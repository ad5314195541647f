// SPDX-License-Identifier: Apache-2.0
// The documents of commands that are no answers: what recover and selftest found, and the file that keeps peaks.
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "answers/report/report.hpp"
#include "asking/selftest.hpp"
#include "plumb/selftest.hpp"

namespace plumb {

namespace answers {
struct Document;
[[nodiscard]] std::vector<Document> documents_of_commands();
[[nodiscard]] std::vector<Document> documents_of_exports();
[[nodiscard]] Answer answer_of_selftest(SelfTest test);
} // namespace answers

struct RecoverSummary {
    std::uint64_t records_recovered = 0; // taken from the ring
    std::uint64_t rings = 0;             // ring files removed
    std::vector<std::string> notes;      // what was damaged or missing
};
template <class V>
void describe(V& v, const RecoverSummary& s) {
    v.type("recover", "What a killed run left in its rings (`plumb recover`).");
    v("records_recovered", s.records_recovered, "folded into the recording; 0 for a run that ended well");
    v("rings", s.rings, "ring files of that run that were removed");
    v("notes", s.notes, "sentences the reader must know");
}
constexpr const char* schema_of(const RecoverSummary&) { return "plumb.recover/1"; }
[[nodiscard]] page::Page page_of(const RecoverSummary& summary, const TextOptions& options);

template <class V>
void describe(V& v, const Capability& c) {
    v.type("capability", "What a device or its backend can do (backends.md).");
    v("name", c.name, "");
    v("supported", c.supported, "");
    v("reason", c.reason, "where it is not");
}

[[nodiscard]] std::vector<Capability> capabilities_of(const DeviceSelfTest& test);

template <class V>
void describe(V& v, const DeviceSelfTest& d) {
    v.type("device", "One device of one backend, and the clock that times its scopes.");
    v("index", d.device.index, "as its backend numbers it");
    v("name", d.device.name, "as its backend names it");
    v("driver", d.device.driver, "may be empty");
    v("source", d.source, "what times its scopes: `cuda_event`; empty where no queue of it can be timed");
    v("clock", d.clock, "that it times them on: `cuda:0`; empty as the source is");
    v("ticks_per_second", d.ticks_per_second, "slope of the fit of its clock");
    v("floor_ns", d.floor_ns, "what an empty scope reads");
    v("begin_end_ns", d.begin_end_ns, "host time to begin, end and give up one scope");
    v("clock_read_ns", d.clock_read_ns, "host time of one reading of its clock");
    v("clock_pair_ns", d.clock_pair_ns, "host time of one reading of both clocks together");
    v("fit_residual_ns", d.fit_residual_ns, "largest distance of a clock pair from the fitted line");
    v("fit_bound_ns", d.fit_bound_ns, "how far a placed stamp may be off");
    v("capabilities", capabilities_of(d), "of the device, then of its queues");
}

template <class V>
void describe(V& v, const BackendSelfTest& b) {
    v.type("backend", "A backend of this build.");
    v("name", b.name, "");
    v.or_null("unavailable", b.unavailable.empty() ? std::nullopt : std::optional(b.unavailable),
              "why, and what to do; null where it is available");
    v("devices", b.devices, "");
}

template <class V>
void describe(V& v, const SelfTest& t) {
    static constexpr const char* clocks[] = {"tsc", "monotonic", "cntvct"};
    v.type("selftest", "What this machine can measure, and how well (`plumb selftest`).");
    v("cpu", t.cpu, "as the system names it; empty where it does not");
    v("clock", page::Word{t.clock, clocks}, "what the host's scopes are stamped with");
    v("clock_reason", t.clock_reason, "why this one");
    v("backends", t.backends, "every backend of this build");
}
constexpr const char* schema_of(const SelfTest&) { return "plumb.selftest/1"; }
[[nodiscard]] page::Page page_of(const SelfTest& test, const TextOptions& options);

/// Peaks that were measured, and the file that keeps them.
struct MeasuredPeaks {
    PeakTest test;
    std::string file;
};
template <class V>
void describe(V& v, const MeasuredPeaks& p) {
    v.type("measured peaks", "What this machine can do at most (`plumb selftest --peaks`; roofline.md).");
    v("file", p.file, "where they are kept");
    v("peaks", p.test.peaks, "of the host, then of devices");
    v.pairs("unsupported", "place", "reason", p.test.unsupported, "backend or device that has no peaks, and why");
    v("notes", p.test.notes, "sentences the reader must know");
}
constexpr const char* schema_of(const MeasuredPeaks&) { return "plumb.peaks/1"; }

/// The file that keeps them; `src/session/peaks_file.cpp` writes it.
struct KeptPeaks {
    std::string host, cpu;
    unsigned cpus = 0;
    std::vector<Peaks> peaks;
};
template <class V>
void describe(V& v, const KeptPeaks& p) {
    v.type("kept peaks", "The file that keeps them for recordings made on this machine.");
    v.group("machine", "that they are valid for", [&](auto& machine) {
        machine("host", p.host, "");
        machine("cpu", p.cpu, "");
        machine("cpus", page::limited(p.cpus, {.least = 1}), "");
    });
    v("peaks", p.peaks, "");
}
constexpr const char* schema_of(const KeptPeaks&) { return "plumb.peaks/1"; }

} // namespace plumb
