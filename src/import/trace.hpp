// SPDX-License-Identifier: Apache-2.0
// One trace as read: canonical operations (device_op.hpp) with what their numbers stand for, and what was wrong with it. A format
// fills a TraceBuilder, from one thread at a time; finish() makes the trace, sorted and numbered the same whatever the order of
// arrival.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "import/device_op.hpp"
#include "import/names.hpp"

namespace plumb::imported {

/// What traces have that they should not; each is counted and said.
enum class Anomaly : std::uint8_t {
    damaged,           // refused: no JSON
    no_time,           // refused: without a begin
    bad_number,        // refused: begin or duration is no number
    negative_duration, // refused
    absurd_time,       // refused: longer than, or farther from the others than, absurd_ns
    duplicate,         // refused: the same operation again
    zero_duration,
    overlap,       // begins before the one before it on its stream ends
    clipped,       // an end seconds beyond operations that ran after it: cut at the begin of the next
    unsorted,      // stands behind a later one of its stream
    text_number,   // a number in quotes
    large_id,      // beyond 63 bits: kept as its text, interned
    no_launch,     // its launch is not in the trace
    shared_id,     // a correlation id that several processes use
    before_launch, // begins before the call that launched it
};
inline constexpr std::size_t anomalies = 15;
/// In plain words, for "7 operations: " and for "1 operation: ".
const char* anomaly_words(Anomaly anomaly);

inline constexpr std::int64_t abut_ns = 2; // between operations: none
inline constexpr std::int64_t absurd_ns = std::int64_t{7} * 24 * 3600 * 1'000'000'000;

/// Ranks that wait for each other in collectives.
struct TraceGroup {
    std::string word; // "tp"; empty: the tool has none that says anything
    std::vector<std::uint32_t> ranks;
};

/// Of the machine and the run, as far as the tool wrote it.
struct TraceFacts {
    std::string tool; // "kineto": the source of the recording's times is imported:<tool>
    std::string version;
    std::string rank;
    std::string world_size;
    std::map<std::string, TraceGroup> groups; // of ranks, by what the operations call them
    std::string host;
    std::int64_t base_realtime_ns = 0;            // added to a time it is ns since 1970; 0: not known
    std::map<std::uint32_t, std::string> devices; // names
    std::map<std::uint16_t, std::uint64_t> pids;  // by DeviceOp::process
    bool cut = false;                             // the file ends before it is complete
    std::vector<std::string> notes;               // of the whole file
};

using AnomalyCounts = std::array<std::uint64_t, anomalies>;

/// Of the operations of one process.
struct ProcessQuality {
    AnomalyCounts counts{};
    double abutting = 0; // of operations that follow another on their stream, how many begin where that one ended
};

struct Trace {
    TraceFacts facts;
    std::vector<DeviceOp> ops; // by (start, stream, correlation, node, end)
    std::vector<HostOp> host;  // by (start, longest first)
    Names names;
    std::vector<Stream> streams;
    std::vector<Thread> threads;
    std::int64_t tick_ns = 1;                           // all times are multiples of it
    AnomalyCounts counts{};                             // of no process that is known, or of one without operations
    std::map<std::uint16_t, ProcessQuality> of_process; // of each that has operations

    static constexpr std::uint32_t no_launch = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> launch_of;         // of each op: the api call in `host` that launched it, or no_launch
    std::vector<std::uint32_t> number_in_process; // of each of `host`; empty: all are of one process
    std::set<std::uint16_t> unordered_ids;        // processes whose ids do not follow the order of their calls
    std::set<std::uint16_t> processes;            // that have operations

    /// Of an op: numbers launches of its process in the order of their calls, with gaps; 0: not known.
    [[nodiscard]] std::uint64_t launch_number(std::uint32_t op) const;
};

/// As a format meets them: numbers are the tool's own.
struct RawDeviceOp {
    DeviceOp op;      // stream and process are set by the builder
    std::string name; // empty: op.name is what intern() gave
    std::string module, group;
    std::uint64_t device = 0, stream = 0, process = 0;
    std::uint64_t numbering = 0; // of streams: the same number in another one is another stream
};
struct RawHostOp {
    HostOp op;
    std::string name, target;
    std::uint64_t thread = 0, process = 0;
};

class TraceBuilder {
  public:
    TraceFacts facts; // of one thread

    /// Takes them.
    void add(std::vector<RawDeviceOp>& ops, std::vector<RawHostOp>& host);
    /// With names that intern() gave; streams and processes are the tool's own.
    void add(const DeviceOp& op, std::uint64_t device, std::uint64_t stream, std::uint64_t process,
             std::uint64_t numbering = 0);
    void add(const HostOp& op, std::uint64_t thread, std::uint64_t process);
    void expect(std::uint64_t ops) { trace_.ops.reserve(trace_.ops.size() + ops); }
    /// Of what process is not known.
    void count(Anomaly anomaly, std::uint64_t times = 1);
    std::uint32_t intern(std::string_view name);

    /// Of a format whose operations of a device do not say their process: a process until settle_processes(), with the file's own number.
    static std::uint64_t unsettled(std::uint64_t number) { return number | unsettled_bit; }
    /// one_process: 0, as one or none calls. several: operations of a device are of the one that must have launched them. not_known:
    /// several call, and which of them launched what is not known; then all is of process 0, and no operation has a launch.
    enum class Settled : std::uint8_t { one_process, several, not_known };
    Settled settle_processes();

    Trace finish();

  private:
    static constexpr std::uint64_t unsettled_bit = std::uint64_t{1} << 63;
    static bool is_unsettled(std::uint64_t process) { return (process & unsettled_bit) != 0; }
    static std::uint64_t settled(std::uint64_t process) { return process & ~unsettled_bit; }
    void move_processes(const std::function<std::uint64_t(std::uint64_t)>& to,
                        const std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>& launched_by);
    std::uint32_t stream(std::uint64_t device, std::uint64_t stream, std::uint64_t process, std::uint64_t numbering);
    std::uint32_t thread(std::uint64_t thread, std::uint64_t process);
    std::uint16_t process(std::uint64_t id);
    void count_of(std::uint64_t process, Anomaly anomaly);
    bool acceptable(const DeviceOp& op, std::uint64_t process);
    static bool acceptable(const HostOp& op);
    void put(const DeviceOp& op, std::uint64_t device, std::uint64_t stream, std::uint64_t process,
             std::uint64_t numbering);
    void put(const HostOp& op, std::uint64_t thread, std::uint64_t process);

    Trace trace_;
    std::map<std::array<std::uint64_t, 4>, std::uint32_t> streams_; // by process, device, stream, numbering
    decltype(streams_)::const_iterator last_stream_; // most operations are of the stream of the one before
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> threads_;
    std::map<std::uint64_t, std::uint16_t> processes_;
    std::map<std::uint64_t, AnomalyCounts> counts_;   // by process
    std::vector<std::array<std::int64_t, 4>> latest_; // begin so far, by stream and kind: some tools keep kinds apart
    std::int64_t first_ = std::numeric_limits<std::int64_t>::max(); // begin of any, of the host too
    std::int64_t last_ = std::numeric_limits<std::int64_t>::min();
};

} // namespace plumb::imported
