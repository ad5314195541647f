// SPDX-License-Identifier: Apache-2.0
// OTLP/JSON, read back by a reader of our own that knows which fields a span may have and how each is written.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "export/export.hpp"
#include "export/planted_source_testing.hpp"
#include "planted/tape.hpp"

namespace {

using namespace plumb;
using namespace plumb::exporting;
using nlohmann::json;

constexpr std::int64_t us = 1'000;

/// What there is to see of one export: spans by their id. Fails the test where a line is no TracesData.
class Traces {
  public:
    explicit Traces(const std::string& text) {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line); ++lines_) {
            const json document = json::parse(line);
            only(document, {"resourceSpans"});
            for (const json& resource : document.at("resourceSpans")) {
                only(resource, {"resource", "scopeSpans"});
                resource_ = attributes(resource.at("resource"));
                for (const json& scope : resource.at("scopeSpans")) {
                    only(scope, {"scope", "spans"});
                    EXPECT_LE(scope.at("spans").size(), 500U);
                    for (const json& span : scope.at("spans")) {
                        add(span);
                    }
                }
            }
        }
    }
    [[nodiscard]] const std::map<std::string, json>& spans() const { return spans_; }
    [[nodiscard]] std::size_t lines() const { return lines_; }
    [[nodiscard]] const std::map<std::string, std::string>& resource() const { return resource_; }
    [[nodiscard]] std::vector<json> named(const std::string& name) const {
        std::vector<json> found;
        for (const std::string& id : order_) {
            if (spans_.at(id).at("name") == name) {
                found.push_back(spans_.at(id));
            }
        }
        return found;
    }
    static std::map<std::string, std::string> attributes(const json& of) {
        std::map<std::string, std::string> all;
        for (const json& each : of.at("attributes")) {
            only(each, {"key", "value"});
            EXPECT_EQ(each.at("value").size(), 1U);
            const auto value = each.at("value").begin();
            const bool truth = value.key() == "boolValue";
            EXPECT_TRUE(truth ? value->is_boolean() : value->is_string()) << each;
            EXPECT_TRUE(truth || value.key() == "stringValue" || value.key() == "intValue") << each;
            all[each.at("key")] = truth ? value->dump() : value->get<std::string>();
        }
        return all;
    }
    static std::int64_t begin(const json& span) { return std::stoll(span.at("startTimeUnixNano").get<std::string>()); }
    static std::int64_t end(const json& span) { return std::stoll(span.at("endTimeUnixNano").get<std::string>()); }

  private:
    static void only(const json& object, const std::set<std::string>& known) {
        for (const auto& [key, value] : object.items()) {
            EXPECT_EQ(known.count(key), 1U) << key;
        }
    }
    static void is_id(const json& id, int digits) {
        EXPECT_TRUE(std::regex_match(id.get<std::string>(), std::regex("[0-9a-f]{" + std::to_string(digits) + "}")));
        EXPECT_NE(id.get<std::string>(), std::string(static_cast<std::size_t>(digits), '0'));
    }
    void add(const json& span) {
        only(span, {"traceId", "spanId", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano",
                    "endTimeUnixNano", "attributes", "links", "droppedLinksCount"});
        is_id(span.at("traceId"), 32);
        is_id(span.at("spanId"), 16);
        if (span.contains("parentSpanId")) {
            is_id(span["parentSpanId"], 16);
        }
        EXPECT_TRUE(span.at("kind") == 1 || span.at("kind") == 2);
        EXPECT_LE(begin(span), end(span));
        if (span.contains("links")) {
            for (const json& link : span["links"]) {
                only(link, {"traceId", "spanId"});
                is_id(link.at("traceId"), 32);
                is_id(link.at("spanId"), 16);
            }
        }
        if (span.contains("attributes")) {
            (void)attributes(span);
        }
        EXPECT_TRUE(spans_.emplace(span.at("spanId"), span).second) << "one id, one span";
        order_.push_back(span.at("spanId"));
    }
    std::map<std::string, json> spans_;
    std::vector<std::string> order_;
    std::map<std::string, std::string> resource_;
    std::size_t lines_ = 0;
};

std::string otlp_of(const SampleFeed& source) {
    std::ostringstream out;
    EXPECT_TRUE(write_as("otlp", source, out).ok());
    return out.str();
}

/// One request of a trace, one without that is cut in its prefill; two steps.
planted::Tape server() {
    planted::Tape tape;
    tape.metadata_.recording_id[0] = 4;
    tape.metadata_.host = "box";
    tape.metadata_.rank = "3";
    tape.descriptions_ = {{"model", "tiny-llama"}};
    tape.clock_pairs_[0].realtime_ns = 1'700'000'000'000'000'000;
    tape.track(1);
    tape.request(1, 11, RequestMark::queue, 0,
                 {{RequestPart::trace_high, 0x0af7651916cd43dd},
                  {RequestPart::trace_low, 0x8448eb211c80319c},
                  {RequestPart::parent_span, 0xb7ad6b7169203331}});
    tape.request(1, 11, RequestMark::prefill, 100 * us);
    tape.step_begin(1, 7, Phase::prefill, 100 * us);
    tape.step_request(1, 11);
    tape.step_end(1, Phase::prefill, 100 * us, 300 * us);
    tape.request(1, 11, RequestMark::decode, 300 * us);
    tape.request(1, 22, RequestMark::queue, 310 * us);
    tape.request(1, 22, RequestMark::prefill, 320 * us);
    tape.step_begin(1, 8, Phase::mixed, 350 * us);
    tape.step_request(1, 11);
    tape.step_request(1, 22);
    tape.step_end(1, Phase::mixed, 350 * us, 500 * us);
    tape.request(1, 11, RequestMark::end, 510 * us, {{RequestPart::tokens, 2}});
    return tape;
}

TEST(Otlp, a_request_is_a_span_of_its_servers_trace_and_its_phases_are_children_that_tile_it) {
    planted::Tape tape = server();
    const Traces traces(otlp_of(samples_of(tape)));
    const std::vector<json> requests = traces.named("request");
    ASSERT_EQ(requests.size(), 2U);
    const json& first = requests[0];
    EXPECT_EQ(first["traceId"], "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(first["parentSpanId"], "b7ad6b7169203331");
    EXPECT_EQ(first["flags"], 0x300);
    EXPECT_EQ(Traces::begin(first), 1'700'000'000'000'000'000);
    EXPECT_EQ(Traces::end(first) - Traces::begin(first), 510 * us);
    EXPECT_EQ(Traces::attributes(first),
              (std::map<std::string, std::string>{{"plumb.request", "11"},
                                                  {"gen_ai.usage.output_tokens", "2"},
                                                  {"plumb.time_to_first_token_ns", "300000"}}));
    std::int64_t at = Traces::begin(first);
    for (const char* phase : {"queue", "prefill", "decode"}) {
        const json child = traces.named(phase).at(0);
        EXPECT_EQ(child["traceId"], first["traceId"]);
        EXPECT_EQ(child["parentSpanId"], first["spanId"]);
        EXPECT_EQ(Traces::begin(child), at);
        at = Traces::end(child);
    }
    EXPECT_EQ(at, Traces::end(first));
}

TEST(Otlp, a_request_links_to_the_steps_that_had_it_in_their_batch) {
    planted::Tape tape = server();
    const Traces traces(otlp_of(samples_of(tape)));
    const std::vector<json> steps = traces.named("step");
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(Traces::attributes(steps[0]),
              (std::map<std::string, std::string>{{"plumb.step", "7"}, {"plumb.phase", "prefill"}}));
    const auto linked = [](const json& request) {
        std::vector<std::string> ids;
        for (const json& link : request.at("links")) {
            ids.push_back(link["spanId"]);
        }
        return ids;
    };
    const std::vector<json> requests = traces.named("request");
    EXPECT_EQ(linked(requests.at(0)), (std::vector<std::string>{steps[0]["spanId"], steps[1]["spanId"]}));
    EXPECT_EQ(linked(requests.at(1)), (std::vector<std::string>{steps[1]["spanId"]}));
    const json run = traces.named("run").at(0);
    for (const json& step : steps) {
        EXPECT_EQ(step["parentSpanId"], run["spanId"]);
        EXPECT_EQ(step["traceId"], run["traceId"]);
        EXPECT_EQ(requests[0]["links"][0]["traceId"], run["traceId"]);
    }
    EXPECT_EQ(Traces::begin(run), Traces::begin(steps[0]));
    EXPECT_EQ(Traces::end(run), Traces::end(steps[1]));
    EXPECT_EQ(traces.resource().at("host.name"), "box");
    EXPECT_EQ(traces.resource().at("plumb.rank"), "3");
    EXPECT_EQ(traces.resource().at("plumb.description.model"), "tiny-llama");
}

TEST(Otlp, one_that_was_cut_says_so_and_has_a_trace_of_its_own) {
    planted::Tape tape = server();
    const Traces traces(otlp_of(samples_of(tape)));
    const json cut = traces.named("request").at(1);
    EXPECT_EQ(Traces::attributes(cut).at("plumb.cut"), "true");
    EXPECT_FALSE(cut.contains("parentSpanId"));
    EXPECT_FALSE(cut.contains("flags"));
    EXPECT_NE(cut["traceId"], traces.named("run").at(0)["traceId"]);
    EXPECT_EQ(Traces::end(cut) - Traces::begin(cut), 40 * us) << "to the step that had it, the last that is known";
}

TEST(Otlp, ids_beyond_a_signed_integer_stay_whole_and_such_counts_are_left_out) {
    planted::Tape tape;
    tape.track(1);
    tape.request(1, ~std::uint64_t{0}, RequestMark::queue, 0);
    tape.request(1, ~std::uint64_t{0}, RequestMark::end, 5 * us, {{RequestPart::tokens, ~std::uint64_t{0}}});
    const Traces traces(otlp_of(samples_of(tape)));
    EXPECT_EQ(Traces::attributes(traces.named("request").at(0)),
              (std::map<std::string, std::string>{{"plumb.request", "18446744073709551615"}}));
}

TEST(Otlp, ids_are_the_same_each_time_and_others_in_another_recording) {
    planted::Tape tape = server();
    const std::string once = otlp_of(samples_of(tape));
    EXPECT_EQ(otlp_of(samples_of(tape)), once);
    tape.metadata_.recording_id[0] = 5;
    const Traces first(once), second(otlp_of(samples_of(tape)));
    for (const auto& [id, span] : first.spans()) {
        EXPECT_EQ(second.spans().count(id), 0U);
    }
}

TEST(Otlp, many_spans_stand_in_several_lines_each_of_which_is_whole) {
    PlantedSource source;
    source.add_steps(1200, 1);
    const Traces traces(otlp_of(source));
    EXPECT_EQ(traces.named("step").size(), 1200U);
    EXPECT_EQ(traces.lines(), 3U);
}

TEST(Otlp, links_beyond_128_are_counted) {
    PlantedSource source;
    resolve::RequestEvent event;
    event.mark = RequestMark::queue;
    source.requests.push_back(event);
    for (std::uint64_t step = 0; step < 200; ++step) {
        event.mark = RequestMark::in_step;
        event.step = step;
        source.requests.push_back(event);
    }
    const json request = Traces(otlp_of(source)).named("request").at(0);
    EXPECT_EQ(request["links"].size(), 128U);
    EXPECT_EQ(request["droppedLinksCount"], 72);
}

TEST(Otlp, an_empty_run_is_one_line_without_spans_and_an_output_that_refuses_data_an_error) {
    PlantedSource source;
    EXPECT_EQ(Traces(otlp_of(source)).lines(), 1U);
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_FALSE(write_as("otlp", source, out).ok());
}

} // namespace
