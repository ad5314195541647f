// SPDX-License-Identifier: Apache-2.0
// Samples of what the kernel counted for threads, as entries of metadata_codec.hpp.
#include <iterator>

#include "recording/metadata_codec.hpp"

namespace plumb::recording {
namespace {

/// Fields 2 to 6 of a sample.
constexpr std::uint64_t base::ProcessTimes::*process_times[] = {
    &base::ProcessTimes::minor_faults, &base::ProcessTimes::major_faults, &base::ProcessTimes::voluntary_switches,
    &base::ProcessTimes::involuntary_switches, &base::ProcessTimes::stolen_ns};
constexpr std::uint16_t first_process_time = 2, threads_left_out = 7, thread_times = 8;
constexpr std::size_t thread_bytes = 28, most_threads = 4096;

} // namespace

void encode(const OffCpuSample& from, Bytes& to) {
    FieldWriter fields(to);
    fields.number(1, static_cast<std::uint64_t>(from.monotonic_ns));
    for (std::uint16_t i = 0; i < std::size(process_times); ++i) {
        fields.number(static_cast<std::uint16_t>(first_process_time + i), from.process.*process_times[i]);
    }
    fields.number(threads_left_out, from.threads_left_out);
    fields.made(thread_times, [&](Bytes& bytes) {
        for (const ThreadSample& thread : from.threads) {
            append_le(bytes, thread.track);
            for (const std::uint64_t value : {thread.times.run_ns, thread.times.waited_ns, thread.times.migrations}) {
                append_le(bytes, value);
            }
        }
    });
}

bool decode(const std::byte* data, std::size_t size, OffCpuSample& to) {
    bool timed = false;
    FieldReader reader(data, size);
    Field field;
    while (reader.next(field)) {
        if (field.number == 1) {
            to.monotonic_ns = static_cast<std::int64_t>(field.as_number());
            timed = true;
        } else if (field.number >= first_process_time && field.number < first_process_time + std::size(process_times)) {
            to.process.*process_times[field.number - first_process_time] = field.as_number();
        } else if (field.number == threads_left_out) {
            to.threads_left_out = field.as_number();
        } else if (field.number == thread_times) {
            const std::string_view all = field.content;
            for (std::size_t at = 0; at + thread_bytes <= all.size() && to.threads.size() < most_threads;
                 at += thread_bytes) {
                const auto* bytes = reinterpret_cast<const std::byte*>(all.data() + at);
                to.threads.push_back({load_le<std::uint32_t>(bytes),
                                      {load_le<std::uint64_t>(bytes + 4), load_le<std::uint64_t>(bytes + 12),
                                       load_le<std::uint64_t>(bytes + 20)}});
            }
        }
    }
    return reader.intact() && timed;
}

} // namespace plumb::recording
