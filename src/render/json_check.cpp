// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "plumb/invariants.hpp"
#include "render/json_figure.hpp"

namespace plumb {

std::string render_json(const CheckReport& report) {
    std::string out;
    base::JsonWriter json(out, 1);
    json.begin_object();
    json.field("schema", "plumb.check/1");
    json.field("verdict", outcome_word(report.verdict));
    json.key("checks");
    json.begin_array();
    for (const CheckRow& row : report.rows) {
        json.begin_object();
        json.field("check", row.check);
        json.field("recording", row.recording);
        json.field("verdict", outcome_word(row.verdict));
        render::put_figure(json, "found", row.found);
        json.field("finding", row.finding);
        json.end();
    }
    json.end();
    json.finish();
    out += '\n';
    return out;
}

} // namespace plumb
