// SPDX-License-Identifier: Apache-2.0
// The trace format of Perfetto, as its protocol buffers (perfetto_fields.hpp; docs/reference/trace.md says what is where). Packets need no
// order: a viewer sorts them by time. Each lane is a packet sequence of its own, with what all its packets share said once.
#include <cmath>
#include <unordered_map>

#include "analysis/compare_key.hpp"
#include "export/export.hpp"
#include "export/perfetto_devices.hpp"
#include "export/perfetto_packets.hpp"
#include "export/perfetto_threads.hpp"

namespace plumb::exporting {

namespace {

using resolve::Sample;

class PerfettoWriter {
  public:
    PerfettoWriter(const SampleFeed& source, std::ostream& out)
        : source_(source), packets_(out), names_(source.facts->names), graphs_(graph_tracks(source.facts->tracks)),
          arrows_(graphs_), pid_(source.facts->metadata.pid), threads_(packets_, names_, arrows_, pid_),
          devices_(packets_, names_, arrows_, pid_) {}

    Status write() {
        write_clocks();
        write_process();
        for (const recording::TrackInfo& track : source_.facts->tracks) {
            if (track.kind == recording::TrackKind::host_thread) {
                threads_.add_track(track);
            } else {
                devices_.add_track(track, clock_name(track.clock));
            }
        }
        Status read = source_.for_each_batch([this](const resolve::ResolvedBatch& batch) {
            take(batch);
            return packets_.sink().good();
        });
        threads_.flush();
        if (read.ok()) {
            read = write_counters();
        }
        write_notes(read);
        Status written = packets_.sink().flush();
        return written.ok() ? read : written;
    }

  private:
    /// All times are of the monotonic clock; where it stood in calendar time, as the run noted it, at most 64 times.
    void write_clocks() {
        const auto& pairs = source_.facts->clock_pairs;
        const std::size_t every = pairs.size() / 64 + 1;
        bool any = false;
        for (std::size_t i = 0; i < pairs.size(); i += every) {
            const recording::ClockPair& pair = pairs[i];
            if (pair.monotonic_ns < 0 || (any && (pair.realtime_ns <= 0 || pair.clock != pairs.front().clock))) {
                continue;
            }
            ProtoText snapshot;
            snapshot.message(field::ClockSnapshot::clocks,
                             PerfettoPackets::clock(field::BuiltinClock::BUILTIN_CLOCK_MONOTONIC, pair.monotonic_ns));
            if (pair.realtime_ns > 0) {
                snapshot.message(field::ClockSnapshot::clocks,
                                 PerfettoPackets::clock(field::BuiltinClock::BUILTIN_CLOCK_REALTIME, pair.realtime_ns));
            }
            snapshot.number(field::ClockSnapshot::primary_trace_clock, field::BuiltinClock::BUILTIN_CLOCK_MONOTONIC);
            packets_.packet(ProtoText()
                                .number(field::TracePacket::trusted_packet_sequence_id, 1)
                                .message(field::TracePacket::clock_snapshot, snapshot));
            any = true;
        }
    }

    void write_process() {
        const recording::Metadata& run = source_.facts->metadata;
        std::string name = run.host.empty() ? "plumb" : "plumb on " + run.host;
        name += run.rank.empty() ? "" : ", rank " + run.rank;
        ProtoText track;
        track.number(field::TrackDescriptor::uuid, PerfettoPackets::process_uuid)
            .text(field::TrackDescriptor::name, name);
        if (pid_ != 0) {
            track.message(field::TrackDescriptor::process, ProtoText()
                                                               .number(field::ProcessDescriptor::pid, pid_)
                                                               .text(field::ProcessDescriptor::process_name, name));
        }
        packets_.describe(track);
    }

    [[nodiscard]] std::string clock_name(std::uint32_t id) const {
        for (const recording::ClockInfo& clock : source_.facts->metadata.clocks) {
            if (clock.id == id) {
                return clock.name;
            }
        }
        return "clock " + std::to_string(id);
    }

    static bool is_on_time_line(std::int64_t begin_ns, std::int64_t duration_ns) {
        return begin_ns >= 0 && duration_ns >= 0;
    }

    void take(const resolve::ResolvedBatch& batch) {
        for (const resolve::Submission& submission : batch.submissions) {
            if (submission.timed && !is_on_time_line(submission.begin_ns, submission.duration_ns)) {
                ++left_out_;
                arrows_.leave_out(submission);
            } else if (submission.timed) {
                threads_.add(submission);
            }
        }
        for (const resolve::RecordedNode& node : batch.nodes) {
            take(node);
        }
        for (const Sample& sample : batch.samples) {
            take(sample, batch.launches);
        }
        threads_.keep_bounded();
    }

    void take(const Sample& sample, std::span<const resolve::Launch> launches) {
        if (!is_on_time_line(sample.begin_ns, sample.duration_ns)) {
            ++left_out_;
            return;
        }
        if (sample.leaf && std::isfinite(sample.bytes) && source_.for_each_step && source_.whole_steps &&
            sample.step != resolve::no_step) {
            bytes_[sample.step] += sample.bytes;
        }
        if (devices_.has(sample.track)) {
            devices_.write(sample, launches);
        } else {
            threads_.add(sample);
        }
    }

    void take(const resolve::RecordedNode& node) {
        const bool transfer = node.kind == resolve::RecordedKind::transfer;
        const std::uint16_t name = transfer ? name_of(node.direction).id : node.name;
        if (!is_on_time_line(node.begin_ns, node.duration_ns)) {
            ++left_out_;
        } else if (node.timed) {
            devices_.write(node, name, threads_.name_of(node.key.track));
        } else {
            threads_.write(node, name);
        }
    }

    struct Counter {
        const char* name;
        const char* unit;
        std::uint64_t uuid = 0;
    };

    void count(Counter& counter, std::int64_t when_ns, double value) {
        if (counter.uuid == 0) {
            counter.uuid = packets_.new_uuid();
            packets_.describe(ProtoText()
                                  .number(field::TrackDescriptor::uuid, counter.uuid)
                                  .number(field::TrackDescriptor::parent_uuid, PerfettoPackets::process_uuid)
                                  .text(field::TrackDescriptor::name, counter.name)
                                  .message(field::TrackDescriptor::counter,
                                           ProtoText().text(field::CounterDescriptor::unit_name, counter.unit)));
        }
        packets_.event(when_ns, ProtoText()
                                    .number(field::TrackEvent::type, field::TrackEventType::TYPE_COUNTER)
                                    .number(field::TrackEvent::track_uuid, counter.uuid)
                                    .real(field::TrackEvent::double_counter_value, value));
    }

    /// At the end of each step, of that step.
    Status write_counters() {
        if (!source_.for_each_step) {
            return {};
        }
        Counter tokens{"tokens per second", "tok/s"}, kv{"kv length", "positions"}, bandwidth{"bandwidth", "GB/s"};
        return source_.for_each_step([&](const resolve::ResolvedStep& step, std::uint32_t) {
            const auto length_ns = static_cast<double>(step.end_ns - step.begin_ns);
            const std::uint64_t made = step.decode_tokens + step.prefill_tokens;
            if (step.begin_ns < 0 || length_ns <= 0) {
                return true;
            }
            if (made != 0) {
                count(tokens, step.end_ns, static_cast<double>(made) / length_ns * 1e9);
            }
            if (step.has_kv_length) {
                count(kv, step.end_ns, static_cast<double>(step.kv_length));
            }
            if (const auto bytes = bytes_.find(step.id); bytes != bytes_.end()) {
                count(bandwidth, step.end_ns, bytes->second / length_ns);
            }
            return true;
        });
    }

    /// What the reader must know, as moments of a track of their own.
    void write_notes(const Status& read) {
        left_out_ += threads_.left_out();
        std::vector<std::string> notes = source_.facts->notes;
        for (const auto& [key, value] : analysis::head_key({}, source_.facts->descriptions)) {
            notes.push_back(key + ": " + value);
        }
        if (arrows_.inferred()) {
            notes.emplace_back(resolve::inferred_launches_note);
        }
        if (left_out_ != 0) {
            notes.push_back(left_out_note(left_out_));
            if (source_.tell) {
                source_.tell(notes.back());
            }
        }
        if (!read.ok()) {
            notes.push_back("cut short: " + read.error().message);
        }
        if (notes.empty()) {
            return;
        }
        const std::uint64_t uuid = packets_.new_uuid();
        packets_.describe(ProtoText()
                              .number(field::TrackDescriptor::uuid, uuid)
                              .number(field::TrackDescriptor::parent_uuid, PerfettoPackets::process_uuid)
                              .text(field::TrackDescriptor::name, "notes"));
        for (const std::string& note : notes) {
            packets_.event(std::max<std::int64_t>(origin_of(*source_.facts), 0),
                           ProtoText()
                               .number(field::TrackEvent::type, field::TrackEventType::TYPE_INSTANT)
                               .number(field::TrackEvent::track_uuid, uuid)
                               .text(field::TrackEvent::name, note));
        }
    }

    const SampleFeed& source_;
    PerfettoPackets packets_;
    NameWords names_;
    GraphTracks graphs_;
    LaunchArrows arrows_;
    std::uint64_t pid_;
    PerfettoThreads threads_;
    PerfettoDevices devices_;
    std::unordered_map<std::uint64_t, double> bytes_; // that leaves stated, by step
    std::uint64_t left_out_ = 0;
};

Status write(const SampleFeed& source, std::ostream& out) { return PerfettoWriter(source, out).write(); }

} // namespace

const Format& perfetto_format() {
    static const Format format{"perfetto", "For Perfetto, in its own format: smaller, with counters and device queues",
                               write, 2'000'000};
    return format;
}

} // namespace plumb::exporting
