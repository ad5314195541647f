// SPDX-License-Identifier: Apache-2.0
// The requests of a server: how long each waited for its first token and for the others, and which step it waited for.
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/request_lives.hpp"
#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/bricks.hpp"
#include "plumb/request.hpp"

namespace plumb {

inline Words words_of(RequestPhase) { return analysis::request_phase_words; }

struct RequestsOptions {
    std::uint64_t waits = 10;
};

template <class V>
void describe(V& v, RequestsOptions& o) {
    v("waits", o.waits, "List so many of the requests that waited longest", {.most = 100});
}

/// How long something took, over the requests of which it is known.
struct RequestTime {
    std::string what;
    std::uint64_t count = 0;
    std::vector<std::pair<std::string, std::uint64_t>> missing; // why it is not known, and of how many
    Figure mean_ns, p50_ns, p90_ns, p99_ns, max_ns;
};

/// The longest wait of a request, and the step that ran for most of it.
struct RequestWait {
    std::string id;    // 64 bits are more than a JSON number holds
    std::string trace; // W3C; empty: none
    RequestPhase phase = RequestPhase::queue;
    std::int64_t begin_ns = 0; // since the first mark of the recording
    double wait_ns = 0;
    std::uint64_t steps = 0;           // that ran meanwhile
    std::optional<std::uint64_t> step; // the one that took most of it
    Phase step_phase = Phase::none;
    std::uint64_t step_tokens = 0, step_sequences = 0;
    double step_ns = 0; // of the wait
    Figure ttft_ns, tpot_ns;
};

struct RequestsReport {
    std::uint64_t requests = 0, ended = 0, cut = 0;
    std::uint64_t traced = 0; // that came with a W3C trace id
    std::vector<RequestTime> times;
    std::vector<RequestWait> waits; // the longest first
    std::vector<std::string> notes;
};

[[nodiscard]] Result<RequestsReport> read_requests(const std::vector<std::string>& files,
                                                   const RequestsOptions& options);

template <class V>
void describe(V& v, const RequestTime& t) {
    v.type(
        "request time",
        "How long something took. Percentiles have at most 1 % relative error and are absent where n < 10 / (1 − X).");
    v("what", t.what,
      "`ttft`: arrival to first token; `tpot`: first token to end, per further token; `queue`, `prefill`, `kv_transfer`, "
      "`decode`: in that phase; `stalled`: in prefill or decode while no step had it in its batch; `total`: arrival to end");
    v("count", t.count, "requests of which it is known");
    v.pairs("missing", "why", "count", t.missing, "requests of which it is not known");
    v("mean_ns", t.mean_ns, "");
    v("p50_ns", t.p50_ns, "");
    v("p90_ns", t.p90_ns, "");
    v("p99_ns", t.p99_ns, "");
    v("max_ns", t.max_ns, "");
}

template <class V>
void describe(V& v, const RequestWait& w) {
    v.type("request wait",
           "The longest wait of a request: in the queue, or in prefill or decode while no step had it in its batch.");
    v("id", w.id, "as the server gave it, in decimal digits");
    v("trace", w.trace, "W3C trace id", !w.trace.empty());
    v("phase", w.phase, "in which it waited");
    v("begin_ns", w.begin_ns, "of the wait, since the first request was marked");
    v("wait_ns", w.wait_ns, "");
    v("steps", w.steps, "that ran meanwhile, without it");
    v("step", w.step, "number of the one that took most of the wait");
    v("step_phase", w.step_phase, "", w.step.has_value());
    v("step_tokens", w.step_tokens, "", w.step.has_value());
    v("step_sequences", w.step_sequences, "0: not said", w.step.has_value());
    v("step_ns", w.step_ns, "how much of the wait it took", w.step.has_value());
    v("ttft_ns", w.ttft_ns, "of this request");
    v("tpot_ns", w.tpot_ns, "of this request");
}

template <class V>
void describe(V& v, const RequestsReport& r) {
    v.type("requests", "Requests of a server (`plumb requests`).");
    v("requests", r.requests, "marked in the recording");
    v("ended", r.ended, "of these");
    v("cut", r.cut, "of these: without an end in the recording");
    v("traced", r.traced, "of these: with a W3C trace id");
    v("times", r.times, "");
    v("waits", r.waits, "the requests that waited longest at once, the longest first");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const RequestsReport&) { return "plumb.requests/1"; }
[[nodiscard]] page::Page page_of(const RequestsReport& report, const TextOptions& options);

} // namespace plumb
