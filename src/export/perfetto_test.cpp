// SPDX-License-Identifier: Apache-2.0
// What a viewer would draw is compared with plumb export by tests/perfetto; here are the bounds that real recordings do not reach.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <sstream>

#include "export/export.hpp"
#include "export/perfetto_fields.hpp"
#include "export/planted_source_testing.hpp"

namespace plumb::exporting {
namespace {

namespace field = perfetto;
using resolve::SampleKind;

/// The fields of a message: of each its number and, of numbers, its value, else its bytes. Nothing where they do not end with it.
struct Message {
    std::multimap<std::uint64_t, std::uint64_t> numbers;
    std::multimap<std::uint64_t, std::string_view> parts;
};

std::optional<std::uint64_t> varint(std::string_view& rest) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && !rest.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(rest.front());
        rest.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    return std::nullopt;
}

std::optional<Message> message(std::string_view rest) {
    Message found;
    while (!rest.empty()) {
        const auto tag = varint(rest);
        if (!tag) {
            return std::nullopt;
        }
        if ((*tag & 7) == 0) {
            const auto value = varint(rest);
            if (!value) {
                return std::nullopt;
            }
            found.numbers.emplace(*tag >> 3, *value);
            continue;
        }
        const auto size = (*tag & 7) == 1 ? std::optional<std::uint64_t>(8) : varint(rest);
        if (!size || *size > rest.size() || (*tag & 7) > 2) {
            return std::nullopt;
        }
        found.parts.emplace(*tag >> 3, rest.substr(0, *size));
        rest.remove_prefix(*size);
    }
    return found;
}

std::string written(const PlantedSource& source) {
    std::ostringstream out;
    const Status status = write_as("perfetto", source, out);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return out.str();
}

/// Of every event of the trace, that part of its packets.
std::vector<Message> events_of(const std::string& trace, unsigned kind) {
    std::vector<Message> events;
    const auto packets = message(trace);
    EXPECT_TRUE(packets.has_value());
    for (const auto& [number, bytes] : packets ? packets->parts : decltype(packets->parts)()) {
        EXPECT_EQ(number, field::Trace::packet);
        const auto packet = message(bytes);
        EXPECT_TRUE(packet.has_value());
        const auto event = packet ? packet->parts.find(kind) : decltype(packet->parts.find(kind))();
        if (packet && event != packet->parts.end()) {
            const auto said = message(event->second);
            EXPECT_TRUE(said.has_value());
            events.push_back(said.value_or(Message()));
        }
    }
    return events;
}

TEST(Perfetto, the_largest_slice_there_can_be_is_whole) {
    PlantedSource source;
    source.add_track(2, recording::TrackKind::device_queue, "queue");
    for (const std::int64_t begin :
         {4'000'000'000'000'000'000, 1'000'000'000'000}) { // the second is earlier: its time is written in full
        for (std::uint32_t layer = 0; layer < 3; ++layer) {
            const std::uint64_t step = (std::uint64_t{1} << 40) - 1 - layer;
            auto& slice = source.add(SampleKind::lap, static_cast<std::uint16_t>(65533 + layer), begin,
                                     3'000'000'000'000'000'000);
            slice.step = step;
            slice.layer = 65534;
            slice.phase = Phase::prefill;
            slice.warmup = true;
            slice.bytes = slice.flops = slice.elements = 1e300;
            slice.barrier_wait_ns = 1.5e300;
            auto& run = source.add(SampleKind::lap, static_cast<std::uint16_t>(65533 + layer), begin,
                                   3'000'000'000'000'000'000);
            run.track = 2;
            run.step = step;
            run.layer = 65534;
            run.warmup = run.left_out = true;
            run.flags = 0xff;
            run.bytes = run.flops = run.elements = begin > 2'000'000'000'000 ? 1e300 : 2e300;
        }
    }
    const std::string trace = written(source);
    std::size_t begins = 0, ends = 0;
    for (const Message& event : events_of(trace, field::TracePacket::track_event)) {
        const auto type = event.numbers.find(field::TrackEvent::type);
        ASSERT_NE(type, event.numbers.end());
        begins += type->second == field::TrackEventType::TYPE_SLICE_BEGIN ? 1 : 0;
        ends += type->second == field::TrackEventType::TYPE_SLICE_END ? 1 : 0;
        if (type->second == field::TrackEventType::TYPE_SLICE_BEGIN) {
            EXPECT_EQ(event.parts.count(field::TrackEvent::debug_annotations), 7U);
        }
    }
    EXPECT_EQ(begins, 6U);
    EXPECT_EQ(ends, 6U);
    EXPECT_EQ(events_of(trace, field::TracePacket::gpu_render_stage_event).size(), 6U);
}

TEST(Perfetto, T8_hostile_names_of_any_length_are_kept) {
    PlantedSource source;
    const std::string name = std::string(100'000, 'x') + "\"},{\n\x01";
    source.all_names.push_back({300, Category::other, name});
    source.add(SampleKind::scope, 300, 5, 7);
    EXPECT_NE(written(source).find(name), std::string::npos);
}

TEST(Perfetto, the_notes_say_what_the_run_was) {
    PlantedSource source;
    source.all_descriptions = {{"model", "tiny-llama"}, {"note 1", "by hand"}};
    const std::string trace = written(source);
    EXPECT_NE(trace.find("model: tiny-llama"), std::string::npos);
    EXPECT_EQ(trace.find("by hand"), std::string::npos);
}

TEST(Perfetto, what_has_no_place_on_the_time_line_is_left_out_and_said) {
    PlantedSource source;
    source.add(SampleKind::scope, 1, 5, -7);
    source.add(SampleKind::scope, 1, -source.origin - 1, 7);
    EXPECT_NE(written(source).find("2 slices are left out"), std::string::npos);
}

TEST(Perfetto, what_is_left_out_is_told_to_whoever_asked) {
    PlantedSource source;
    source.add(SampleKind::scope, 1, 5, -7);
    SampleFeed feed = source;
    std::vector<std::string> told;
    feed.tell = [&](std::string sentence) {
        told.push_back(std::move(sentence));
    };
    for (const char* format : {"perfetto", "chrome_trace"}) {
        std::ostringstream out;
        EXPECT_TRUE(write_as(format, feed, out).ok());
    }
    const std::string sentence = "1 slices are left out: they have no place on the time line";
    EXPECT_EQ(told, (std::vector<std::string>{sentence, sentence}));
}

TEST(Perfetto, an_output_that_refuses_data_is_an_error) {
    PlantedSource source;
    source.add_steps(10, 2);
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_EQ(write_as("perfetto", source, out).error().code, ErrorCode::no_space);
}

} // namespace
} // namespace plumb::exporting
