// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/budget.hpp"
#include "render/json_figure.hpp"

namespace plumb {

namespace {

using base::JsonWriter;
using render::put_figure;

void put_row(JsonWriter& json, const BudgetRow& row) {
    json.begin_object();
    json.field("name", row.name);
    json.field("account", row.account);
    json.field("parent", row.parent);
    json.field("lap", row.lap);
    put_figure(json, "step_ns", row.step_ns);
    put_figure(json, "self_ns", row.self_ns);
    put_figure(json, "token_ns", row.token_ns);
    put_figure(json, "percent", row.percent);
    json.field("limited", row.limited);
    put_figure(json, "allowed_ns", row.allowed_ns);
    put_figure(json, "room_ns", row.room_ns);
    if (row.limited) {
        json.field("verdict", outcome_word(row.verdict));
    }
    json.end();
}

} // namespace

std::string render_json(const BudgetReport& report) {
    std::string out;
    JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.budget/1");
    json.field("verdict", outcome_word(report.verdict));
    json.field("phase", phase_word(report.phase));
    json.field("steps", report.steps);
    json.field("ns_per_token", report.ns_per_token);
    put_figure(json, "tokens_per_step", report.tokens_per_step);
    put_figure(json, "tokens_per_second", report.tokens_per_second);
    put_figure(json, "budget_ns", report.budget_ns);
    put_figure(json, "period_ns", report.period_ns);
    put_figure(json, "room_ns", report.room_ns);
    json.field("period_verdict", outcome_word(report.period_verdict));
    json.key("rows");
    json.begin_array();
    for (const BudgetRow& row : report.rows) {
        put_row(json, row);
    }
    json.end();
    json.key("notes");
    json.begin_array();
    for (const std::string& note : report.notes) {
        json.value(note);
    }
    json.end();
    json.finish();
    out += '\n';
    return out;
}

} // namespace plumb
