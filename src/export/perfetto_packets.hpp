// SPDX-License-Identifier: Apache-2.0
// Packets of a Perfetto trace, and the sequences they belong to: what all packets of a sequence share is said once, and their
// times count from one to the next. Owned by one exporter call; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "export/perfetto_fields.hpp"
#include "export/proto_pen.hpp"
#include "export/text_sink.hpp"

namespace plumb::exporting {

namespace field = perfetto;

/// A packet sequence: the clock that its packets count from, and the fields that all of them have.
struct Sequence {
    std::uint32_t id = 0;
    std::int64_t now_ns = 0;
    std::string prefix;
};

class PerfettoPackets {
  public:
    static constexpr std::size_t packet_room = 256; // of one packet without names
    static constexpr std::uint64_t process_uuid = 1;

    explicit PerfettoPackets(std::ostream& out) : sink_(out) {}
    [[nodiscard]] TextSink& sink() { return sink_; }
    [[nodiscard]] std::uint64_t new_uuid() { return next_uuid_++; }

    void packet(const ProtoText& fields) { sink_.append(ProtoText().message(field::Trace::packet, fields).bytes()); }

    static ProtoText clock(std::uint64_t id, std::int64_t ns, bool incremental = false) {
        ProtoText made;
        made.number(field::Clock::clock_id, id).number(field::Clock::timestamp, static_cast<std::uint64_t>(ns));
        if (incremental) {
            made.number(field::Clock::is_incremental, 1);
        }
        return made;
    }

    void describe(const ProtoText& track) {
        packet(ProtoText()
                   .number(field::TracePacket::trusted_packet_sequence_id, 1)
                   .message(field::TracePacket::track_descriptor, track));
    }

    /// A sequence's first packet: from here on its times are counted from that moment, and its track is that one.
    void begin_sequence(Sequence& to, std::int64_t now_ns, std::optional<std::uint64_t> track_uuid,
                        const ProtoText& interned) {
        to.id = next_sequence_++;
        to.now_ns = now_ns;
        ProtoText prefix;
        prefix.number(field::TracePacket::trusted_packet_sequence_id, to.id)
            .number(field::TracePacket::sequence_flags, field::SequenceFlags::SEQ_NEEDS_INCREMENTAL_STATE);
        to.prefix = prefix.bytes();
        ProtoText defaults;
        defaults.number(field::TracePacketDefaults::timestamp_clock_id, lane_clock);
        if (track_uuid) {
            defaults.message(field::TracePacketDefaults::track_event_defaults,
                             ProtoText().number(field::TrackEventDefaults::track_uuid, *track_uuid));
        }
        ProtoText snapshot;
        snapshot.message(field::ClockSnapshot::clocks, clock(field::BuiltinClock::BUILTIN_CLOCK_MONOTONIC, now_ns))
            .message(field::ClockSnapshot::clocks, clock(lane_clock, now_ns, true));
        packet(ProtoText()
                   .number(field::TracePacket::trusted_packet_sequence_id, to.id)
                   .number(field::TracePacket::sequence_flags, field::SequenceFlags::SEQ_INCREMENTAL_STATE_CLEARED)
                   .message(field::TracePacket::trace_packet_defaults, defaults)
                   .message(field::TracePacket::interned_data, interned)
                   .message(field::TracePacket::clock_snapshot, snapshot));
    }

    void intern(const Sequence& in, unsigned table, const ProtoText& entry) {
        packet(ProtoText()
                   .number(field::TracePacket::trusted_packet_sequence_id, in.id)
                   .number(field::TracePacket::sequence_flags, field::SequenceFlags::SEQ_NEEDS_INCREMENTAL_STATE)
                   .message(field::TracePacket::interned_data, ProtoText().message(table, entry)));
    }

    static ProtoText named(std::uint64_t iid, std::string_view name) {
        return ProtoText().number(field::EventName::iid, iid).text(field::EventName::name, name);
    }

    /// Counted from the packet before, or since the clock started where time went back.
    static void put_time(ProtoPen& pen, Sequence& in, std::int64_t ns) {
        if (ns >= in.now_ns) [[likely]] {
            pen.number(field::TracePacket::timestamp, static_cast<std::uint64_t>(ns - in.now_ns));
            in.now_ns = ns;
        } else {
            pen.number(field::TracePacket::timestamp, static_cast<std::uint64_t>(ns));
            pen.number(field::TracePacket::timestamp_clock_id, field::BuiltinClock::BUILTIN_CLOCK_MONOTONIC);
        }
    }

    template <class Write>
    void put_packet(Write&& write) {
        TextPen text = sink_.pen();
        ProtoPen pen(text.at());
        pen.message(field::Trace::packet, [&] { write(pen); });
        sink_.take(TextPen(pen.at()));
    }

    void event(std::int64_t when_ns, const ProtoText& track_event) {
        packet(ProtoText()
                   .number(field::TracePacket::timestamp, static_cast<std::uint64_t>(when_ns))
                   .number(field::TracePacket::timestamp_clock_id, field::BuiltinClock::BUILTIN_CLOCK_MONOTONIC)
                   .number(field::TracePacket::trusted_packet_sequence_id, 1)
                   .message(field::TracePacket::track_event, track_event));
    }

  private:
    static constexpr std::uint64_t lane_clock = 64; // the first of those that a packet sequence may define

    TextSink sink_;
    std::uint64_t next_uuid_ = process_uuid + 1;
    std::uint32_t next_sequence_ = 2; // 1 is that of descriptors and counters
};

} // namespace plumb::exporting
