// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "base/utf8.hpp"
#include "metrics/figures.hpp"

namespace plumb::metrics {
namespace {

using Label = std::pair<std::string_view, std::string_view>;

void append_escaped(std::string& to, std::string_view value) {
    for (const char c : base::valid_utf8(value)) {
        if (c == '\\' || c == '"') {
            to += '\\';
        }
        if (c == '\n') {
            to += "\\n";
        } else {
            to += c;
        }
    }
}

void append_number(std::string& to, double value) {
    char digits[32];
    to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_number(std::string& to, std::uint64_t value) {
    char digits[32];
    to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

class Exposition {
  public:
    explicit Exposition(const Figures& figures) {
        for (const auto& [name, value] : {Label("model_name", figures.model), Label("tp_rank", figures.tp_rank),
                                          Label("pp_rank", figures.pp_rank)}) {
            if (!value.empty()) {
                append_label(common_, name, value);
            }
        }
    }

    /// What follows is of that name. Families of which there is nothing are not begun.
    void family(std::string_view name, std::string_view type, std::string_view help) {
        name_ = name;
        for (const auto& [word, rest] : {Label("# HELP ", help), Label("# TYPE ", type)}) {
            ((((text_ += word) += name) += ' ') += rest) += '\n';
        }
    }
    template <class Number>
    void sample(Number value, std::initializer_list<Label> labels = {}, std::string_view suffix = {}) {
        std::string all = common_;
        for (const auto& [name, label] : labels) {
            append_label(all, name, label);
        }
        (text_ += name_) += suffix;
        if (!all.empty()) {
            ((text_ += '{') += all) += '}';
        }
        text_ += ' ';
        append_number(text_, value);
        text_ += '\n';
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    static void append_label(std::string& to, std::string_view name, std::string_view value) {
        ((to += to.empty() ? "" : ",") += name) += "=\"";
        append_escaped(to, value);
        to += '"';
    }

    std::string text_;
    std::string common_; // labels of every sample
    std::string_view name_;
};

void put_steps(Exposition& to, const Figures& figures) {
    bool begun = false;
    for (std::size_t phase = 0; phase < phases; ++phase) {
        const StepFigures& steps = figures.steps[phase];
        if (steps.steps == 0) {
            continue;
        }
        if (!begun) {
            to.family("plumb_step_seconds", "histogram",
                      "Time of a step from begin to end on the thread that ran it. Work on a device that this thread "
                      "did not wait for is not in it.");
        }
        begun = true;
        const char* const label = phase_label(phase);
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < step_bounds.size(); ++i) {
            below += steps.buckets[i];
            std::string bound;
            append_number(bound, step_bounds[i]);
            to.sample(below, {{"phase", label}, {"le", bound}}, "_bucket");
        }
        to.sample(steps.steps, {{"phase", label}, {"le", "+Inf"}}, "_bucket");
        to.sample(steps.ns / 1e9, {{"phase", label}}, "_sum");
        to.sample(steps.steps, {{"phase", label}}, "_count");
    }
}

void put_bricks(Exposition& to, const Figures& figures) {
    if (figures.bricks.empty()) {
        return;
    }
    to.family("plumb_brick_seconds_total", "counter",
              "Time in scopes of a brick that were timed, scopes inside them included. Device scopes may be timed in "
              "some steps or replays only: then divide by plumb_brick_calls_total.");
    for (const BrickFigures& one : figures.bricks) {
        to.sample(one.ns / 1e9, {{"brick", one.brick}, {"phase", phase_label(one.phase)}, {"source", one.source}});
    }
    to.family("plumb_brick_calls_total", "counter", "Scopes of a brick that were timed.");
    for (const BrickFigures& one : figures.bricks) {
        to.sample(one.calls, {{"brick", one.brick}, {"phase", phase_label(one.phase)}, {"source", one.source}});
    }
}

void put_run(Exposition& to, const Figures& figures) {
    if (figures.prefill_tokens || figures.decode_tokens) {
        to.family(
            "plumb_tokens_total", "counter",
            "Tokens of finished steps, as the program stated them, by what they were for: a mixed step has both.");
    }
    if (figures.prefill_tokens) {
        to.sample(*figures.prefill_tokens, {{"phase", "prefill"}});
    }
    if (figures.decode_tokens) {
        to.sample(*figures.decode_tokens, {{"phase", "decode"}});
    }
    if (!figures.collective_ns.empty()) {
        to.family("plumb_collective_seconds_total", "counter",
                  "Time in collectives that were timed, waiting for other ranks included.");
    }
    for (const auto& [group, ns] : figures.collective_ns) {
        group.empty() ? to.sample(ns / 1e9) : to.sample(ns / 1e9, {{"group", group}});
    }
    if (figures.graph_replays) {
        to.family("plumb_graph_replays_total", "counter", "Launches of captured graphs.");
        to.sample(*figures.graph_replays);
    }
    if (!figures.eager_steps.empty()) {
        to.family("plumb_graph_eager_steps_total", "counter",
                  "Steps that ran without the graph they could have had, by reason.");
    }
    for (const auto& [reason, steps] : figures.eager_steps) {
        to.sample(steps, {{"reason", reason}});
    }
}

void put_profiler(Exposition& to, const Figures& figures) {
    if (figures.dropped_records) {
        to.family("plumb_dropped_records_total", "counter",
                  "Records that were lost: they are in no other figure. plumb report says why.");
        to.sample(*figures.dropped_records);
    }
    if (figures.own_cost) {
        to.family("plumb_own_cost_ratio", "gauge", "Measured cost of recording by the time since the first record.");
        to.sample(*figures.own_cost);
    }
    to.family("plumb_bricks_in_other", "gauge", "Names of bricks that are counted as brick=\"other\".");
    to.sample(figures.bricks_in_other);
}

} // namespace

std::string text_of(const Figures& figures) {
    Exposition to(figures);
    put_steps(to, figures);
    put_bricks(to, figures);
    put_run(to, figures);
    put_profiler(to, figures);
    return to.take();
}

} // namespace plumb::metrics
