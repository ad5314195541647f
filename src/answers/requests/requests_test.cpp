// SPDX-License-Identifier: Apache-2.0
// Requests of planted servers, of which every moment is known.
#include "answers/requests/requests.hpp"

#include <gtest/gtest.h>

#include "answers/planted_answer_testing.hpp"

namespace plumb {

const answers::Entry& requests_answer();

namespace {

using nlohmann::json;
using planted::ms;
using planted::Tape;
using planted::us;

constexpr std::uint32_t engine_thread = 1, web_thread = 2;

void step(Tape& tape, std::uint64_t number, Phase phase, std::int64_t begin, std::int64_t end, std::uint64_t tokens,
          const std::vector<std::uint64_t>& requests) {
    tape.step_begin(engine_thread, number, phase, begin);
    tape.step_value(engine_thread, phase == Phase::prefill ? StepValue::prefill_tokens : StepValue::decode_tokens,
                    tokens);
    for (const std::uint64_t request : requests) {
        tape.step_request(engine_thread, request);
    }
    tape.step_end(engine_thread, phase, begin, end);
}

/// Two requests that overlap. The second's prefill keeps the first one from its second token.
Tape two_requests() {
    Tape tape;
    tape.track(engine_thread, "engine");
    tape.track(web_thread, "web");
    tape.request(web_thread, 11, RequestMark::queue, 0,
                 {{RequestPart::trace_high, 0x0af7651916cd43dd},
                  {RequestPart::trace_low, 0x8448eb211c80319c},
                  {RequestPart::parent_span, 0xb7ad6b7169203331}});
    tape.request(engine_thread, 11, RequestMark::prefill, 100 * us);
    step(tape, 1, Phase::prefill, 100 * us, 300 * us, 50, {11});
    tape.request(web_thread, 22, RequestMark::queue, 150 * us);
    tape.request(engine_thread, 11, RequestMark::decode, 300 * us);
    tape.request(engine_thread, 22, RequestMark::prefill, 310 * us);
    step(tape, 2, Phase::prefill, 310 * us, 900 * us, 400, {22});
    tape.request(engine_thread, 22, RequestMark::decode, 900 * us);
    step(tape, 3, Phase::decode, 910 * us, 1000 * us, 2, {11, 22});
    tape.request(web_thread, 11, RequestMark::end, 1000 * us, {{RequestPart::tokens, 2}});
    step(tape, 4, Phase::decode, 1000 * us, 1100 * us, 1, {22});
    tape.request(web_thread, 22, RequestMark::end, 1100 * us, {{RequestPart::tokens, 3}});
    return tape;
}

json time_of(const json& document, const std::string& what) {
    for (const json& time : document["times"]) {
        if (time["what"] == what) {
            return time;
        }
    }
    return {};
}

TEST(Requests, two_that_overlap_have_the_times_that_were_planted) {
    const auto [document, text] = answers::said_of(requests_answer(), two_requests());
    EXPECT_EQ(document["requests"], 2);
    EXPECT_EQ(document["ended"], 2);
    EXPECT_EQ(document["traced"], 1);
    const auto expect = [&document = document](const char* what, double mean, double most) {
        const json time = time_of(document, what);
        EXPECT_EQ(time["count"], 2) << what;
        EXPECT_DOUBLE_EQ(time["mean_ns"].get<double>(), mean) << what;
        EXPECT_DOUBLE_EQ(time["max_ns"].get<double>(), most) << what;
    };
    expect("ttft", (300 + 750) * us / 2.0, 750 * us);
    expect("tpot", (700 + 100) * us / 2.0, 700 * us);
    expect("queue", (100 + 160) * us / 2.0, 160 * us);
    expect("prefill", (200 + 590) * us / 2.0, 590 * us);
    expect("decode", (700 + 200) * us / 2.0, 700 * us);
    expect("stalled", (610 + 10) * us / 2.0, 610 * us);
    expect("total", (1000 + 950) * us / 2.0, 1000 * us);
    EXPECT_EQ(time_of(document, "kv_transfer")["count"], 0);
    EXPECT_EQ(text.find("KV transfer"), std::string::npos) << text;
}

TEST(Requests, each_names_the_step_that_it_waited_for) {
    const auto [document, text] = answers::said_of(requests_answer(), two_requests());
    ASSERT_EQ(document["waits"].size(), 2);
    const json& first = document["waits"][0];
    EXPECT_EQ(first["id"], "11");
    EXPECT_EQ(first["trace"], "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(first["phase"], "decode");
    EXPECT_EQ(first["wait_ns"], 610 * us);
    EXPECT_EQ(first["step"], 2);
    EXPECT_EQ(first["steps"], 1);
    EXPECT_EQ(first["step_phase"], "prefill");
    EXPECT_EQ(first["step_tokens"], 400);
    EXPECT_EQ(first["step_ns"], 590 * us);
    const json& second = document["waits"][1];
    EXPECT_EQ(second["id"], "22");
    EXPECT_EQ(second["phase"], "queue");
    EXPECT_EQ(second["begin_ns"], 150 * us);
    EXPECT_EQ(second["wait_ns"], 160 * us);
    EXPECT_EQ(second["step"], 1);
    EXPECT_EQ(second["step_ns"], 150 * us);
    EXPECT_EQ(answers::said_of(requests_answer(), two_requests(), {{"waits", "1"}}).document["waits"],
              json::array({first}));
    EXPECT_NE(text.find("0af7651916cd43dd8448eb211c80319c"), std::string::npos) << text;
}

TEST(Requests, percentiles_need_ten_over_one_minus_X_requests) {
    Tape tape;
    tape.track(engine_thread);
    for (std::int64_t i = 1; i <= 100; ++i) { // to the first token i ms, per token 2 ms
        const auto id = static_cast<std::uint64_t>(i);
        const std::int64_t at = 3 * ms * i;
        tape.request(engine_thread, id, RequestMark::queue, at);
        tape.request(engine_thread, id, RequestMark::prefill, at + i * ms / 2);
        tape.request(engine_thread, id, RequestMark::decode, at + i * ms);
        tape.request(engine_thread, id, RequestMark::end, at + i * ms + 20 * ms, {{RequestPart::tokens, 11}});
    }
    const auto [document, text] = answers::said_of(requests_answer(), tape);
    const json ttft = time_of(document, "ttft");
    EXPECT_NEAR(ttft["p50_ns"].get<double>(), 50 * ms, 0.01 * 50 * ms);
    EXPECT_NEAR(ttft["p90_ns"].get<double>(), 90 * ms, 0.01 * 90 * ms);

    EXPECT_EQ(ttft["p99_ns"]["absent"], "too few samples (n = 100, p99 needs 1000)");
    EXPECT_EQ(time_of(document, "tpot")["max_ns"], 2 * ms);
    EXPECT_NE(text.find("too few samples (n = 100, p99 needs 1000)"), std::string::npos) << text;
}

TEST(Requests, F1_what_is_not_known_is_absent_and_says_why) {
    Tape tape;
    tape.track(engine_thread);
    tape.request(engine_thread, 1, RequestMark::prefill, 0); // arrival not marked
    tape.request(engine_thread, 1, RequestMark::decode, 10 * us);
    tape.request(engine_thread, 1, RequestMark::end, 90 * us); // tokens not said
    tape.request(engine_thread, 2, RequestMark::queue, 100 * us,
                 {{RequestPart::trace_high, 0}, {RequestPart::trace_low, 0}, {RequestPart::parent_span, 0}});
    tape.request(engine_thread, 3, RequestMark::end, 110 * us, {{RequestPart::tokens, 1}});
    const auto [document, text] = answers::said_of(requests_answer(), tape);
    EXPECT_EQ(document["requests"], 2);
    EXPECT_EQ(document["cut"], 1);
    const json ttft = time_of(document, "ttft");
    EXPECT_EQ(ttft["count"], 0);
    EXPECT_TRUE(ttft["mean_ns"].contains("absent"));
    EXPECT_EQ(ttft["missing"].size(), 2);
    EXPECT_EQ(time_of(document, "tpot")["missing"][0]["count"], 1);
    EXPECT_EQ(time_of(document, "prefill")["max_ns"], 10 * us);
    const std::string notes = document["notes"].dump();
    EXPECT_NE(notes.find("1 requests have no end"), std::string::npos) << notes;
    EXPECT_NE(notes.find("1 ends are of a request"), std::string::npos) << notes;
    EXPECT_NE(notes.find("1 trace ids could not be read"), std::string::npos) << notes;
    EXPECT_NE(text.find("n/a"), std::string::npos) << text;
}

TEST(Requests, F1_time_behind_steps_without_a_known_end_is_no_stall) {
    Tape tape;
    tape.track(engine_thread);
    tape.request(engine_thread, 1, RequestMark::queue, 0);
    tape.request(engine_thread, 1, RequestMark::prefill, 10 * us);
    for (std::int64_t i = 0; i < 20; ++i) {
        step(tape, static_cast<std::uint64_t>(i), Phase::none, (20 + i * 1000) * us, (1010 + i * 1000) * us, 1, {1});
    }
    tape.request(engine_thread, 1, RequestMark::end, 20'020 * us, {{RequestPart::tokens, 20}});
    const auto [document, text] = answers::said_of(requests_answer(), tape);
    const json stalled = time_of(document, "stalled");
    EXPECT_EQ(stalled["count"], 0);
    EXPECT_EQ(stalled["missing"][0]["count"], 1);
    ASSERT_EQ(document["waits"].size(), 1);
    EXPECT_EQ(document["waits"][0]["wait_ns"], 10 * us);
    EXPECT_NE(text.find("20 times a request was in the batch of a step of which no end is known"), std::string::npos)
        << text;
}

TEST(Requests, F1_a_server_that_marks_no_decode_has_no_time_to_first_token_nor_per_token) {
    Tape tape;
    tape.track(engine_thread);
    tape.request(engine_thread, 1, RequestMark::queue, 0);
    tape.request(engine_thread, 1, RequestMark::prefill, 100 * us);
    tape.request(engine_thread, 1, RequestMark::end, 900 * us, {{RequestPart::tokens, 50}});
    const json document = answers::said_of(requests_answer(), tape).document;
    for (const char* what : {"ttft", "tpot"}) {
        const json mean = time_of(document, what)["mean_ns"];
        EXPECT_EQ(mean["absent"], "of no request: neither kv_transfer nor decode followed its prefill, so when its "
                                  "first token was there is not known")
            << what;
    }
    EXPECT_EQ(time_of(document, "total")["max_ns"], 900 * us);
}

TEST(Requests, chunks_of_threads_in_another_order_give_the_same_answer) {
    const json expected = answers::said_of(requests_answer(), two_requests()).document;
    for (const std::uint32_t first : {engine_thread, web_thread}) {
        Tape tape = two_requests();
        tape.deliver(first);
        EXPECT_EQ(answers::said_of(requests_answer(), tape).document, expected) << first;
    }
}

TEST(Requests, one_is_one_request) {
    Tape tape;
    tape.track(engine_thread);
    tape.request(engine_thread, 11, RequestMark::queue, 0);
    step(tape, 1, Phase::prefill, 0, 100 * us, 1, {11});
    const std::string text = answers::said_of(requests_answer(), tape).text;
    EXPECT_EQ(text.rfind("1 request, 0 ended", 0), 0U) << text;
}

TEST(Requests, a_recording_without_any_says_how_to_mark_them) {
    Tape tape;
    tape.track(engine_thread);
    step(tape, 1, Phase::decode, 0, 100 * us, 1, {});
    EXPECT_NE(answers::said_of(requests_answer(), tape).text.find("PLUMB_REQUEST"), std::string::npos);
}

} // namespace
} // namespace plumb
