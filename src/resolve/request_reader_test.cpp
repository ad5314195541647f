// SPDX-License-Identifier: Apache-2.0
// Marks of requests, as planted and as they come out of the resolver.
#include <gtest/gtest.h>

#include "planted/tape.hpp"
#include "resolve/resolve.hpp"

namespace plumb::resolve {
namespace {

struct ResolvedRequests {
    std::vector<RequestEvent> events;
    std::uint64_t lost = 0, unknown = 0;
};

ResolvedRequests resolved_requests(planted::Tape& tape) {
    ResolvedRequests all;
    const auto done = resolve(
        tape, {}, [](const StepTable&, const TrackTable&) {},
        [&](const ResolvedBatch& batch) {
            all.events.insert(all.events.end(), batch.requests.begin(), batch.requests.end());
        });
    EXPECT_TRUE(done.ok());
    if (done.ok()) {
        all.lost = done->losses.of(Loss::request_incomplete);
        all.unknown = done->losses.of(Loss::unknown_kind);
    }
    return all;
}

Record part(RequestPart which, std::uint64_t value, std::uint64_t payload = 0) {
    return {value, pack(RecordKind::request_part, static_cast<std::uint16_t>(which), payload)};
}
Record mark(RequestMark which, std::uint64_t id) {
    return {id, pack(RecordKind::request, static_cast<std::uint16_t>(which))};
}

TEST(RequestReader, a_mark_has_its_moment_and_what_was_said_with_it) {
    planted::Tape tape;
    tape.track(1);
    tape.raw(1, {part(RequestPart::ticks, planted::Tape::at(5'000)), part(RequestPart::trace_high, 1, 3),
                 part(RequestPart::trace_low, 2), part(RequestPart::parent_span, 4), mark(RequestMark::queue, 77)});
    tape.request(1, 77, RequestMark::end, 9'000, {{RequestPart::tokens, 12}});
    const ResolvedRequests all = resolved_requests(tape);
    ASSERT_EQ(all.events.size(), 2U);
    EXPECT_EQ(all.events[0].id, 77U);
    EXPECT_EQ(all.events[0].mark, RequestMark::queue);
    EXPECT_EQ(all.events[0].time_ns, 5'000);
    EXPECT_TRUE(all.events[0].trace_given);
    EXPECT_EQ(all.events[0].trace, (RequestTrace{1, 2, 4, 3}));
    EXPECT_FALSE(all.events[0].has_tokens);
    EXPECT_EQ(all.events[1].time_ns, 9'000);
    EXPECT_TRUE(all.events[1].has_tokens);
    EXPECT_EQ(all.events[1].tokens, 12U);
    EXPECT_FALSE(all.events[1].trace_given);
    EXPECT_FALSE(all.events[1].trace.known()) << "of the mark before";
    EXPECT_EQ(all.lost, 0U);
}

TEST(RequestReader, a_request_of_a_step_knows_that_step_and_when_it_began_and_not_a_carried_one) {
    planted::Tape tape;
    tape.track(1);
    tape.step_begin(1, 7, Phase::decode, 1'000);
    tape.step_request(1, 5);
    tape.context(1, 99);
    tape.step_request(1, 6);
    tape.context_end(1);
    tape.step_end(1, Phase::decode, 1'000, 2'000);
    tape.step_request(1, 8); // of none
    const ResolvedRequests all = resolved_requests(tape);
    ASSERT_EQ(all.events.size(), 2U);
    for (const RequestEvent& event : all.events) {
        EXPECT_EQ(event.step, 7U);
        EXPECT_EQ(event.time_ns, 1'000);
    }
    EXPECT_EQ(all.lost, 1U);
}

TEST(RequestReader, parts_that_do_not_stand_directly_before_a_mark_are_not_its_own) {
    planted::Tape tape;
    tape.track(1);
    tape.raw(1, {part(RequestPart::ticks, planted::Tape::at(5'000)), part(RequestPart::tokens, 12)});
    tape.label(1, Brick::attention, 1);
    tape.raw(1, mark(RequestMark::end, 77));
    tape.request(1, 78, RequestMark::end, 6'000);
    const ResolvedRequests all = resolved_requests(tape);
    ASSERT_EQ(all.events.size(), 1U);
    EXPECT_EQ(all.events[0].id, 78U);
    EXPECT_FALSE(all.events[0].has_tokens);
    EXPECT_EQ(all.lost, 1U);
}

TEST(RequestReader, what_no_writer_writes_is_counted_and_gives_no_event) {
    planted::Tape tape;
    tape.track(1);
    tape.raw(1, {part(static_cast<RequestPart>(5), 1), part(static_cast<RequestPart>(0xffff), 1)});
    tape.request(1, 1, static_cast<RequestMark>(6), 1'000);
    tape.request(1, 1, RequestMark::queue, 1'000, {{RequestPart::trace_high, 1}});           // a third of a trace
    tape.raw(1, {part(RequestPart::ticks, ~std::uint64_t{0}), mark(RequestMark::queue, 2)}); // in another age
    tape.step_begin(1, 7, Phase::decode, 1'000);
    tape.request(1, 3, RequestMark::in_step, 1'500); // with parts
    const ResolvedRequests all = resolved_requests(tape);
    EXPECT_EQ(all.events.size(), 0U);
    EXPECT_EQ(all.unknown, 2U);
    EXPECT_EQ(all.lost, 4U);
}

} // namespace
} // namespace plumb::resolve
