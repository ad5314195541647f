// SPDX-License-Identifier: Apache-2.0
// The bytes that a recording thread writes: 16-byte records, and the ring file they lie in (docs/reference/plumb_format.md).
// This is ABI between inlined user code and the library, and the input format of recovery: change layout_version with it.
// A ring file read by another process is hostile input: whoever reads one validates every field first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plumb {
inline namespace v1 {

inline constexpr std::uint32_t layout_version = 1;

namespace detail {

/// One record. `second` = kind (6 bits) | flags (2) | id (16) | payload (40), from the top.
struct alignas(16) Record {
    std::uint64_t first;
    std::uint64_t second;
};
static_assert(sizeof(Record) == 16, "a record is 16 bytes");

enum class RecordKind : std::uint8_t {
    empty = 0,       // never written: an unwritten or foreign slot
    scope = 1,       // first = begin ticks, id = name, payload = duration in ticks; a child precedes its parent
    long_value = 2,  // first = the full 64-bit duration of the next record, whose payload is payload_mask
    step_begin = 3,  // first = begin ticks, id = phase, payload = step id
    step_value = 4,  // first = value, id = StepValue: belongs to the innermost open step of this track
    step_end = 5,    // first = begin ticks, id = phase, payload = duration
    layer_begin = 6, // first = begin ticks, id = layer
    layer_end = 7,   // first = begin ticks, id = layer, payload = duration
    context = 8,     // first = step id + 1 (0: none), id = layer + 1 (0: none): what follows belongs there
    context_end = 9, // the innermost `context` of this track ends
    work = 10,     // first = bits of a double, id = name, payload = WorkQuantity: for scopes of that name from here on
    span = 11,     // as scope, but timed elsewhere or across threads: outside the nesting of the track
    origin = 12,   // first = track the next span began on
    label = 13,    // first = nanoseconds, id = name: feeds label totals only
    cpu_time = 14, // first = ticks, low 56 bits of second = CPU time of this thread in ns at that moment
    mark = 15,     // first = ticks, id = Mark
    device_scope = 16,  // first = token of the queue's timer, id = name, payload = track of the queue
    device_submit = 17, // first = host ticks at begin, payload = host duration of the next device_scope or graph_launch
    graph_launch = 18,  // first = graph key, id = GraphLaunchFlag bits, payload = track of the queue
    span_quality = 19,  // id = flags of a DeviceSpan: of the next scope of this (device) track
    // Nodes: kernels, transfers, tasks. Their parts stand directly before them; Record::second may have flag_moment.
    kernel_code = 20,   // first = hash of the code, id = name, payload = bytes of shared memory: of the next kernel
    kernel_extent = 21, // first = x | y << 32, id = 0 grid, 1 block, payload = z: of the next kernel
    kernel = 22,        // first = begin ticks, id = name, payload = duration in ticks
    transfer_part = 23, // first = value, id = TransferPart: of the next transfer
    transfer = 24,      // first = begin ticks, id = TransferDirection, payload = duration in ticks
    task_part = 25,     // first = value, id = TaskPart: of the next task
    task = 26,          // first = ticks at which it was told, id = name
    dependency = 27,    // first = sequence of a node, payload = its track; id = 0 earlier, 1 later: ends the pair
    span_lead = 28,     // first = ticks from queued to begin (no_ticks: not known), payload = from submitted to begin
                        // (payload_mask: not known): of the next scope of this (device) track
    cause =
        29, // first = sequence of the device_scope that submitted the next scope of this (device) track, payload = its
            // (host) track; it stands before this record in the recording
    barrier_wait =
        30, // first = ticks that the thread waited for others of its team inside the next scope of this track
    collective =
        31, // first = number of it in its group + 1 (0: not said), id = name of the group (0: not said), payload
            // = name of the scope: of the next scope of that name on this track
    request_part = 32, // first = value, id = RequestPart: of the next request of this track
    request = 33,      // first = the caller's id of a request, id = RequestMark
};

inline constexpr std::uint64_t flag_work = std::uint64_t{1} << 56; // the last `work` records of this name apply
inline constexpr std::uint64_t flag_lap = std::uint64_t{1} << 57; // made by a lap: the gap to the next border is inside
inline constexpr std::uint64_t flag_moment = flag_lap; // of a node: it has no duration, first is when it was told
inline constexpr unsigned kind_shift = 58;
inline constexpr unsigned id_shift = 40;
inline constexpr std::uint64_t payload_mask = (std::uint64_t{1} << 40) - 1;
inline constexpr std::uint64_t cpu_time_mask = (std::uint64_t{1} << 56) - 1;

enum class WorkQuantity : std::uint8_t { bytes = 0, flops = 1, elements = 2, bytes_per_kv = 3 };
inline constexpr std::size_t work_quantities = 4;

enum class StepValue : std::uint16_t {
    prefill_tokens = 1,
    decode_tokens = 2,
    sequences = 3,
    kv_length = 4,
    kernels = 5,        // ns in which a kernel of the step ran, by stamps that the kernels wrote
    kernel_stretch = 6, // ns from the begin of its first kernel to the end of its last, by the same
};
enum class Mark : std::uint16_t {
    reset = 1,       // totals start anew here
    cut_step = 2,    // the innermost open step of this track ended without a usable time
    cut_layer = 3,   // the same for its innermost open layer
    resumed = 4,     // recording was off until here
    slowed_step = 5, // tracing slowed the step of the innermost open step or context: it is not counted
};

enum class TransferPart : std::uint16_t { source = 0, target = 1, bytes = 2 };
enum class TaskPart : std::uint16_t { polls = 0, yields = 1, nanoseconds = 2 };

/// in_step: the request is in the batch of the innermost open step of this track; it has no parts. The others begin a phase
/// of the request, and have at least the part `ticks`.
enum class RequestMark : std::uint16_t { in_step = 0, queue = 1, prefill = 2, kv_transfer = 3, decode = 4, end = 5 };
enum class RequestPart : std::uint16_t {
    ticks = 0,  // when it was marked
    tokens = 1, // that the request has given
    trace_high =
        2, // the upper half of its W3C trace id; payload = the flags of its header. A trace id of 0 could not be read
    trace_low = 3,
    parent_span = 4, // of that trace: the caller's span that the request is part of
};

/// Bits of a graph_launch record.
inline constexpr std::uint16_t launch_instrumented = 1; // the twin with stamps ran: the step is not a plain one
inline constexpr std::uint16_t launch_first = 2;        // first of this executable: upload and warm-up are inside
inline constexpr std::uint16_t launch_unread = 4;       // was due to be sampled, but the last sample was still unread
inline constexpr std::uint16_t launch_linked = 8;   // its operations are scopes of queues, which name it as their cause
inline constexpr std::uint16_t launch_gapless = 16; // their durations hold the gaps between them
inline constexpr std::uint16_t launch_beside_build = 32; // a twin was built or destroyed since the launch before

/// A gap at least this long is followed by a CPU-time sample, so that off-CPU time can be placed; so is a scope or lap,
/// unless the last sample is younger than sample_ticks. 2^18 and 2^20 ticks are about 0.1 and 0.4 ms on a TSC. A sample
/// takes 0.2 us, 0.7 us where caches are cold: a decode step of 20 ms may have 70 scopes of 0.14 ms.
inline constexpr std::uint64_t long_ticks = std::uint64_t{1} << 18;
inline constexpr std::uint64_t sample_ticks = std::uint64_t{1} << 20;

constexpr std::uint64_t pack(RecordKind kind, std::uint16_t id = 0, std::uint64_t payload = 0) noexcept {
    return (static_cast<std::uint64_t>(kind) << kind_shift) | (static_cast<std::uint64_t>(id) << id_shift) |
           (payload & payload_mask);
}
constexpr RecordKind kind_of(const Record& r) noexcept { return static_cast<RecordKind>(r.second >> kind_shift); }
constexpr std::uint16_t id_of(const Record& r) noexcept { return static_cast<std::uint16_t>(r.second >> id_shift); }
constexpr std::uint64_t payload_of(const Record& r) noexcept { return r.second & payload_mask; }

/// Why a record was not kept. Counted per ring (drops_of).
enum class Drop : std::uint8_t {
    ring_full = 0,         // the drain did not keep up
    across_toggle = 1,     // a scope or lap open across enable()/disable()
    lap_outside_scope = 2, // a lap with no open scope
    too_deep = 3,          // more than max_depth scopes open on one thread
    thread_exit = 4,       // open when its thread ended, or recorded from its last destructors
    bad_token = 5,         // end of what is not open
    device_failed = 6,     // the queue's timer refused begin or end
    negative_span = 7,     // record_span with end before begin
    unrecorded_node = 8,   // dependency of what was not recorded
    layer_beyond = 9,      // of an index that no record can hold
};
inline constexpr std::size_t drop_reasons = 10;

inline constexpr std::size_t drop_slots = 8; // of RingHeader::drops, and of RingHeader::later_drops

enum class RingState : std::uint32_t { free = 0, live = 1, retired = 2 };

/// One thread's ring: this header (one page), then `capacity` records. Record n lies at index n mod capacity.
struct RingHeader {
    alignas(64) std::atomic<std::uint64_t> head; // records ever written; producer stores, release
    alignas(64) std::atomic<std::uint64_t> tail; // records safely in the recording; consumer stores, release
    alignas(64) std::atomic<std::uint64_t> drops[drop_slots]; // producer adds, relaxed
    alignas(64) std::atomic<std::uint32_t> state;             // RingState
    std::uint32_t track;                                      // id of the track while live or retired
    std::uint64_t os_thread;
    char thread_name[32]; // zero-terminated
    // Reasons that were thought of later. Behind what older readers know, and seldom: it may share a cache line.
    std::atomic<std::uint64_t> later_drops[drop_slots];
};

/// How many records of this ring were not kept for that reason. REQUIRES: reason < drop_reasons.
inline std::atomic<std::uint64_t>& drops_of(RingHeader& header, std::size_t reason) noexcept {
    return reason < drop_slots ? header.drops[reason] : header.later_drops[reason - drop_slots];
}

inline constexpr std::size_t ring_page = 4096;
inline constexpr char ring_magic[8] = {'P', 'L', 'M', 'B', 'R', 'I', 'N', 'G'};

/// First page of a ring file. Behind it lie names, then rings of ring_page + capacity * sizeof(Record) bytes each.
struct RingFileHeader {
    char magic[8];
    std::uint32_t version; // of ring files, which count their own (src/base/ring_names.hpp)
    std::uint32_t reserved;
    std::uint64_t capacity;                // records per ring, a power of two
    std::atomic<std::uint32_t> ring_count; // rings that follow
    std::uint32_t pid;
    std::uint64_t process_start;   // field 22 of /proc/<pid>/stat, clock ticks after boot
    char boot_id[40];              // /proc/sys/kernel/random/boot_id, zero-terminated
    std::uint64_t recording_id[2]; // the same 128 random bits as in the recording's header
    char recording[2048];          // absolute path of the recording, zero-terminated
};

static_assert(sizeof(RingHeader) <= ring_page && sizeof(RingFileHeader) <= ring_page, "headers fit their page");

} // namespace detail

} // namespace v1
} // namespace plumb
