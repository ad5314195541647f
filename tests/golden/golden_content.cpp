// SPDX-License-Identifier: Apache-2.0
#include "golden_content.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "planted/tape.hpp"

namespace plumb::golden {
namespace {

/// A generator of our own: the standard's are exact too, but this one any reader can follow.
class Noise {
  public:
    explicit Noise(std::uint64_t seed) : state_(seed) {}
    std::uint64_t below(std::uint64_t most) { return next() % most; }
    std::uint64_t next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return state_ >> 16;
    }

  private:
    std::uint64_t state_;
};

void append_extremes(std::vector<Record>& records, std::uint64_t now) {
    for (std::uint64_t kind = 0; kind < 64; ++kind) {
        records.push_back({now, (kind << kind_shift) | flag_lap | (300u * kind << id_shift) | (7 * kind)});
    }
    records.push_back({std::uint64_t{1} << 50, pack(RecordKind::long_value)});
    records.push_back({now - 5, pack(RecordKind::scope, 9, payload_mask)});
    records.push_back({~std::uint64_t{0}, ~std::uint64_t{0}});
    records.push_back({0, 0});
    records.push_back({0x8000000000000000u, pack(RecordKind::span, 0xffff, payload_mask - 1)});
}

} // namespace

recording::Metadata metadata() {
    recording::Metadata m;
    m.recording_id[0] = 0x0123456789abcdef;
    m.recording_id[1] = 0xfedcba9876543210;
    m.start_realtime_ns = 1'700'000'000'123'456'789;
    m.host = "golden-host";
    m.pid = 4242;
    m.process_start = 98765;
    m.boot_id = "11111111-2222-3333-4444-555555555555";
    m.rank = "0";
    m.ring_reason = "anonymous memory in this example";
    m.config = "on,out=v1.plumb";
    m.sync_mode = "deferred";
    m.warmup_steps = 8;
    m.identity = {{"commit", "0000000"}, {"command_line", "golden \"quoted\" \xc3\xa9"}};
    m.comparability = {{"cpu", "golden cpu"}, {"layers", "2"}};
    m.costs = {{"scope", 17.25}, {"lap", -0.5}};
    m.clocks = {{0, "tsc"}, {1, "cuda:0"}};
    return m;
}

std::vector<recording::TrackInfo> tracks() {
    return {{1, recording::TrackKind::host_thread, 0, 4242, "main", "cpu_tsc"},
            {2, recording::TrackKind::device_queue, 1, 0, "stream 0", "cuda_event"}};
}

std::vector<recording::NameInfo> names() {
    return {
        {1, Category::norm, "rms_norm"}, {3, Category::attention, "qkv_projection"}, {300, Category::moe, "router"}};
}

std::vector<recording::ClockPair> clock_pairs() {
    return {{0, 1'000'000, -5, 1'700'000'000'123'456'789, 40}, {1, 77, 1'000'000'000, 0, 0}};
}

recording::Counters counters() {
    recording::Counters c;
    c.drops = {{"ring full", 3}};
    c.ended_drops[0] = 1;
    c.drain_cpu_ns = 123'456;
    c.unresolved = 2;
    return c;
}

std::vector<Record> records(std::uint32_t track) {
    Noise noise(track);
    std::vector<Record> made;
    std::uint64_t now = 1'000'000'000'000;
    for (std::uint64_t step = 0; step < 6; ++step) {
        const std::uint64_t step_begin = now;
        made.push_back({now, pack(RecordKind::step_begin, 2, step)});
        made.push_back({100 + step, pack(RecordKind::step_value, 4)});
        for (std::uint16_t layer = 0; layer < 2; ++layer) {
            const std::uint64_t layer_begin = now += noise.below(100);
            made.push_back({now, pack(RecordKind::layer_begin, layer)});
            for (std::uint16_t brick = 1; brick <= 12; ++brick) {
                if (step == 0) {
                    made.push_back({0x40f0000000000000u + brick + layer, pack(RecordKind::work, brick, layer)});
                }
                const std::uint64_t begin = now += noise.below(60);
                now += 3000u * brick + noise.below(300);
                made.push_back({begin, pack(RecordKind::scope, brick, now - begin) | flag_work});
            }
            made.push_back({layer_begin, pack(RecordKind::layer_end, layer, now - layer_begin)});
        }
        made.push_back({step_begin, pack(RecordKind::step_end, 2, now - step_begin)});
        made.push_back({now, (static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift) | (now / 3)});
    }
    append_extremes(made, now);
    return made;
}

namespace {

/// With the facts that most of the files share.
planted::Tape tape_of(const std::vector<recording::TrackInfo>& tracks) {
    planted::Tape tape;
    tape.metadata_ = metadata();
    tape.tracks_ = tracks;
    tape.names_ = names();
    tape.clock_pairs_ = clock_pairs();
    tape.counters_ = counters();
    return tape;
}

void append(planted::Tape& tape, const std::vector<recording::TrackInfo>& tracks,
            std::vector<Record> (*records_of)(std::uint32_t track)) {
    for (const auto& track : tracks) {
        tape.lose(track.id, first_sequence);
        tape.raw(track.id, records_of(track.id));
        tape.deliver(track.id);
    }
}

Status save(planted::Tape& tape, const std::string& path, bool compress = false, std::uint64_t max_bytes = 0) {
    recording::WriterOptions options;
    options.path = path;
    options.compress = compress;
    options.max_bytes = max_bytes;
    std::int64_t now = 0;
    options.now_ns = [&now] {
        return ++now;
    };
    return tape.save(options);
}

} // namespace

Status write(const std::string& path, bool compress, std::uint64_t max_bytes) {
    planted::Tape tape = tape_of(tracks());
    tape.descriptions_ = {{"peak.bandwidth", "28.5 GB/s"}};
    constexpr std::ptrdiff_t batch = 100;
    tape.lose(1, first_sequence);
    tape.lose(2, first_sequence);
    for (std::ptrdiff_t i = 0; i < std::ssize(records(1)); i += batch) {
        for (const auto& track : tracks()) {
            const auto all = records(track.id);
            tape.raw(track.id, {all.begin() + i, all.begin() + std::min(i + batch, std::ssize(all))});
            tape.deliver(track.id);
        }
    }
    return save(tape, path, compress, max_bytes);
}

std::vector<recording::TrackInfo> graph_tracks() {
    return {{1, recording::TrackKind::host_thread, 0, 4242, "main", "cpu_tsc"},
            {0x80000001, recording::TrackKind::device_queue, 1, 0, "stream 0", "cuda_event", 8},
            {0x80000002, recording::TrackKind::captured_graph, 1, 0, "graph 64", "cuda_graph_event", 1, 64}};
}

std::vector<recording::GraphInfo> graphs() {
    recording::GraphInfo full;
    full.key = 64;
    full.track = 0x80000002;
    full.captures = 2;
    full.instantiations = 1;
    full.updates = 1;
    full.uploads = 2;
    full.replays = 1000;
    full.instrumented = 15;
    full.unread = 1;
    full.evictions = 1;
    full.eager_steps = {{"no such graph", 3}};
    full.rows_used = 60;
    full.rows_padded = 64;
    full.nodes = {{"kernel", 5}, {"memset", 1}};
    full.unattributed = {{"other \xc3\xa9", 1}};
    full.node_changes = {{"rope_kernel", 2, 0}};
    full.node_checks = 1;
    full.baked_in = {"kernel rope, parameter 2, bytes 0..3"};
    full.sites = {{1, 1, 0, 2, true, false}, {3, 1, 0, 1, false, true}, {300, 0, 7, 0xffffffff, true, true}};
    full.capture_ns = 1.5e6;
    full.instantiate_ns = 2.5e6;
    full.upload_ns = 0.25;
    full.launch_ns = 7e6;
    full.bytes = 1e8;
    full.twin = "event";
    full.twin_reason = "rebuilt once";
    full.twin_build_ns = 3e6;
    full.twin_bytes = 2e8;
    full.every = 64;
    full.site_cost_ns = 900;
    full.plain_span_ns = 4.75e6;
    full.closure_raw = 0.03;
    full.closure = -0.004;
    recording::GraphInfo bare;
    bare.key = 0xffffffffffffffff;
    bare.twin_reason = "n/a (memory nodes)";
    return {full, bare};
}

std::vector<Record> graph_records(std::uint32_t track) {
    std::vector<Record> made;
    const std::uint64_t start = 1'000'000'000'000 + track % 16;
    for (std::uint64_t step = 0; step < 4; ++step) {
        const std::uint64_t begin = start + 100'000 * step;
        if (track == 1) {
            made.push_back({begin, pack(RecordKind::step_begin, 2, step)});
            made.push_back({begin + 100, pack(RecordKind::device_submit, 0, 2000)});
            made.push_back({64, pack(RecordKind::graph_launch, static_cast<std::uint16_t>(step), 0x80000001)});
            made.push_back({begin + 5000, pack(RecordKind::device_submit, 0, 300)});
            made.push_back({step + 1, pack(RecordKind::device_scope, 3, 0x80000001) | flag_work});
            made.push_back({begin, pack(RecordKind::step_end, 2, 90'000)});
        } else {
            made.push_back({step + 1, pack(RecordKind::context, 1)});
            made.push_back({0, pack(RecordKind::span_quality, static_cast<std::uint16_t>(step % 3))});
            made.push_back({begin + 7000, pack(RecordKind::scope, 3, 1024 * step)});
            made.push_back({0, pack(RecordKind::context_end)});
        }
    }
    return made;
}

Status write_graphs(const std::string& path) {
    planted::Tape tape = tape_of(graph_tracks());
    tape.graphs_ = graphs(); // the first one leaves its lists to the row before
    tape.graphs_.insert(tape.graphs_.begin(), graphs()[0]);
    tape.graphs_[0].replays = 10;
    tape.graphs_[0].eager_steps.clear();
    append(tape, graph_tracks(), graph_records);
    return save(tape, path);
}

std::vector<recording::GraphInfo> graphs_with_nodes() {
    recording::GraphContent content;
    content.kinds = {{recording::CapturedKind::kernel, "gemm<128>", true, {8, 4, 2}, {128, 2, 1}, 4096},
                     {recording::CapturedKind::kernel, "rope \xc3\xa9"},
                     {recording::CapturedKind::memcpy, "memcpy"},
                     {4, "child graph"},
                     {0xffffffff, "type -1", true, {0xffffffff, 1, 1}, {1, 1, 1}, 0xffffffff}};
    content.nodes = {{0, 1, 0}, {1, 1, 0}, {2, 0, 0}, {3, 3, 0}, {0, 3, 4}, {4, 0xffffffff, 0}};
    content.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 5}};
    content.nodes_left_out = 7;
    content.edges_left_out = 0x100000000;
    recording::GraphInfo full = graphs()[0];
    full.content = std::make_shared<const recording::GraphContent>(std::move(content));
    recording::GraphInfo empty;
    empty.key = 65;
    empty.content = std::make_shared<const recording::GraphContent>();
    return {full, graphs()[1], empty};
}

Status write_graph_nodes(const std::string& path) {
    planted::Tape tape;
    tape.metadata_ = metadata();
    tape.clock_pairs_.clear();
    tape.counted_ = false;
    recording::GraphInfo earlier = graphs_with_nodes()[0]; // another capture of the key, with a table of its own
    recording::GraphContent other = *earlier.content;
    other.nodes.pop_back();
    other.edges.pop_back();
    earlier.content = std::make_shared<const recording::GraphContent>(std::move(other));
    tape.graphs_.push_back(earlier);
    for (int round = 0; round < 2; ++round) { // the second time a row refers to the table that is there
        for (const auto& row : graphs_with_nodes()) {
            tape.graphs_.push_back(row);
        }
    }
    return save(tape, path);
}

std::vector<recording::KernelInfo> kernels() {
    recording::KernelInfo full{0xaf63dc4c8601ec8c, "gemm", "kernels/gemm \xc3\xa9.cu", "source\nof gemm", 14, 1, 77};
    recording::KernelInfo other = full;
    other.name = "rope"; // of the same module
    recording::KernelInfo collides = full;
    collides.code_checksum = 0xffffffffffffffff;
    collides.source.clear();
    recording::KernelInfo bare;
    return {full, other, collides, bare};
}

std::vector<Record> node_records(std::uint32_t track) {
    std::vector<Record> made;
    const std::uint64_t start = 1'000'000'000'000;
    const auto parts = [&made](RecordKind kind, std::uint64_t first) {
        for (std::uint16_t part = 0; part < 3; ++part) {
            made.push_back({first + part, pack(kind, part)});
        }
    };
    for (std::uint64_t step = 0; step < 3; ++step) {
        const std::uint64_t begin = start + 100'000 * step;
        made.push_back({begin, pack(RecordKind::step_begin, 2, step)});
        made.push_back({0x4090000000000000, pack(RecordKind::work, 300, 1)});
        made.push_back({0xaf63dc4c8601ec8c, pack(RecordKind::kernel_code, 300, 4096 * step)});
        made.push_back({64 | (step << 32), pack(RecordKind::kernel_extent, 0, 1)});
        made.push_back({0xffffffff, pack(RecordKind::kernel_extent, 1, 0xffffffff)});
        made.push_back({begin + 100, pack(RecordKind::kernel, 300, 2000) | flag_work});
        parts(RecordKind::transfer_part, 0x7f0000000000 + step);
        if (step == 1) {
            made.push_back({payload_mask, pack(RecordKind::long_value)});
        }
        made.push_back({begin + 3000,
                        pack(RecordKind::transfer, static_cast<std::uint16_t>(step), step == 1 ? payload_mask : 500)});
        parts(RecordKind::task_part, step == 2 ? 0xfffffffffffffff0 : 5);
        made.push_back(
            {begin + 4000, pack(RecordKind::task, static_cast<std::uint16_t>(300 * (step % 2))) | flag_moment});
        made.push_back({first_sequence + 5, pack(RecordKind::dependency, 0, track)});
        made.push_back({first_sequence + 9, pack(RecordKind::dependency, 1, 0x80000001)});
        made.push_back({begin, pack(RecordKind::step_end, 2, 90'000)});
    }
    return made;
}

Status write_nodes(const std::string& path) {
    planted::Tape tape = tape_of(tracks());
    tape.kernels_ = kernels();
    append(tape, tracks(), node_records);
    return save(tape, path);
}

std::vector<recording::TrackInfo> launch_tracks() {
    return {{1, recording::TrackKind::host_thread, 0, 4242, "main", "cpu_tsc"},
            {3, recording::TrackKind::host_thread, 0, 4243, "worker", "cpu_tsc"},
            {0x80000001, recording::TrackKind::device_queue, 1, 0, "stream 0", "cuda_event"}};
}

std::vector<Record> launch_records(std::uint32_t track, bool tells) {
    std::vector<Record> made;
    const auto launch = [&made](std::uint64_t begin, std::uint64_t token) {
        made.push_back({begin, pack(RecordKind::device_submit, 0, 50)});
        made.push_back({token, pack(RecordKind::device_scope, 3, 0x80000001)});
    };
    const auto ran = [&made, tells](std::uint64_t step, std::uint64_t begin, std::uint32_t cause, std::uint64_t nth) {
        made.push_back({step + 1, pack(RecordKind::context, 1)});
        if (tells) {
            made.push_back({first_sequence + nth, pack(RecordKind::cause, 0, cause)});
        }
        made.push_back({begin, pack(RecordKind::scope, 3, 1000)});
        made.push_back({0, pack(RecordKind::context_end)});
    };
    for (std::uint64_t step = 0; step < 4; ++step) {
        const std::uint64_t begin = 1'000'000'000'000 + 100'000 * step;
        if (track == 1) { // 8 records a step
            made.push_back({begin, pack(RecordKind::step_begin, 2, step)});
            made.push_back({begin, pack(RecordKind::layer_begin, 0)});
            launch(begin + 100, 3 * step + 1);
            launch(begin + 300, 3 * step + 3);
            made.push_back({begin, pack(RecordKind::layer_end, 0, 80'000)});
            made.push_back({begin, pack(RecordKind::step_end, 2, 90'000)});
        } else if (track == 3) { // 4
            made.push_back({step + 1, pack(RecordKind::context, 1)});
            launch(begin + 200, 3 * step + 2);
            made.push_back({0, pack(RecordKind::context_end)});
        } else {
            ran(step, begin + 1000, 1, 8 * step + 3);
            ran(step, begin + 2000, 3, 4 * step + 2);
            ran(step, begin + 3000, 1, 8 * step + 5);
        }
    }
    return made;
}

namespace {

/// A recording of those tracks whose ticks are nanoseconds.
Status write_tracks(const std::string& path, const std::vector<recording::TrackInfo>& tracks,
                    const std::function<std::vector<Record>(std::uint32_t track)>& records_of) {
    recording::WriterOptions options;
    options.path = path;
    options.compress = false;
    std::int64_t now = 0;
    options.now_ns = [&now] {
        return ++now;
    };
    auto writer = recording::Writer::create(options, metadata());
    if (!writer) {
        return writer.error();
    }
    Status status;
    const auto then = [&status](Status next) {
        status = status.ok() ? next : status;
    };
    for (const auto& track : tracks) {
        then((*writer)->add_track(track));
    }
    for (const auto& name : names()) {
        then((*writer)->add_name(name));
    }
    for (const std::uint32_t clock : {0u, 1u}) {
        then((*writer)->add_clock_pair({clock, 1'000'000'000'000, 0, 0, 0}));
        then((*writer)->add_clock_pair({clock, 1'000'001'000'000, 1'000'000, 0, 0}));
    }
    for (const auto& track : tracks) {
        const auto all = records_of(track.id);
        then((*writer)->append({track.id, first_sequence, all.data(), all.size()}));
    }
    then((*writer)->set_counters(counters()));
    then((*writer)->close());
    return status;
}

} // namespace

Status write_launches(const std::string& path, bool tells) {
    return write_tracks(path, launch_tracks(), [tells](std::uint32_t track) { return launch_records(track, tells); });
}

std::vector<Record> request_records() {
    constexpr std::uint64_t largest = 0xffffffffffffffff;
    std::vector<Record> made;
    const auto mark = [&made](std::uint64_t id, std::uint16_t phase, std::uint64_t ticks) {
        made.push_back({ticks, pack(RecordKind::request_part, 0)});
        made.push_back({id, pack(RecordKind::request, phase)});
    };
    const auto trace = [&made](std::uint64_t upper, std::uint64_t lower, std::uint64_t span, std::uint64_t flags) {
        made.push_back({upper, pack(RecordKind::request_part, 2, flags)});
        made.push_back({lower, pack(RecordKind::request_part, 3)});
        made.push_back({span, pack(RecordKind::request_part, 4)});
    };
    const std::uint64_t begin = 1'000'000'000'000;
    trace(0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x00f067aa0ba902b7, 1);
    mark(7, 1, begin + 100);
    trace(0, 0, 0, 0); // a header that could not be read
    mark(largest, 1, begin + 150);
    for (std::uint64_t step = 0; step < 3; ++step) {
        const std::uint64_t at = begin + 100'000 * (step + 1);
        mark(7, step == 0 ? 2 : 4, at);
        if (step == 1) {
            mark(largest, 3, at + 10);
        }
        made.push_back({at + 20, pack(RecordKind::step_begin, step == 0 ? 1 : 2, step)});
        made.push_back({7, pack(RecordKind::request, 0)});
        if (step != 0) {
            made.push_back({largest, pack(RecordKind::request, 0)});
        }
        made.push_back({step + 1, pack(RecordKind::collective, 300, 3)});
        made.push_back({at + 30, pack(RecordKind::scope, 3, 40'000)});
        made.push_back({at + 20, pack(RecordKind::step_end, step == 0 ? 1 : 2, 90'000)});
    }
    made.push_back({3, pack(RecordKind::request_part, 1)});
    mark(7, 5, begin + 400'000);
    mark(largest, 5, begin + 400'010);
    return made;
}

Status write_requests(const std::string& path) {
    return write_tracks(path, {tracks().front()}, [](std::uint32_t) { return request_records(); });
}

std::vector<recording::TensorCheck> checks() {
    constexpr std::size_t buckets[] = {32, 64, 128, 256, 0, 32};
    Noise noise(5);
    std::vector<recording::TensorCheck> made;
    for (std::uint32_t i = 0; i < 6; ++i) {
        recording::TensorCheck c;
        c.order = i;
        c.step_plus_one = i / 2;
        c.layer_plus_one = i % 3;
        c.name = static_cast<std::uint16_t>(1 + i);
        c.phase = static_cast<Phase>(i % 4);
        c.role = static_cast<TensorRole>(i % 2);
        c.level = i == 4 ? recording::CheckLevel::nonfinite : recording::CheckLevel::full;
        c.occurrence = i % 2;
        c.sequence = i;
        c.position = 100 * i;
        c.track = 1;
        c.dtype = static_cast<DType>(i);
        c.shape = {i + 1, 64};
        c.fingerprint.count = 64 * (i + 1);
        c.fingerprint.hash = noise.next();
        c.fingerprint.largest = i;
        c.fingerprint.min = -1.5;
        c.fingerprint.max = 0.25 * i;
        c.fingerprint.sum = -3.0;
        c.fingerprint.sum_of_squares = 1e-300;
        for (std::size_t b = 0; b < buckets[i]; ++b) {
            c.fingerprint.sketch.push_back(static_cast<double>(noise.below(1000)) / 8 - 60);
        }
        made.push_back(std::move(c));
    }
    recording::TensorCheck& full = made[5];
    full.order = 0xffffffffffffffff;
    full.step_plus_one = 0xfffffffffffffffe;
    full.layer_plus_one = 0xfffffffd;
    full.position = -7;
    full.track = 0x80000002;
    full.in_graph = true;
    full.graph_key = 64;
    full.replay = 17;
    full.shape = {1, 2, 3, 4, 5, 6, 7, 8};
    full.first_index = 4096;
    full.fingerprint.nans = 1;
    full.fingerprint.positive_infs = 2;
    full.fingerprint.negative_infs = 3;
    full.fingerprint.first_nonfinite = 9;
    full.argmax = 31999;
    full.margin = 0.125;
    made.emplace_back(); // all defaults
    return made;
}

Status write_checks(const std::string& path, bool compress) {
    planted::Tape tape = tape_of(graph_tracks());
    tape.clock_pairs_.clear();
    const auto all = checks();
    tape.checks_ = {{all.begin(), all.begin() + 4}, {all.begin() + 4, all.end()}};
    return save(tape, path, compress);
}

std::vector<recording::TileTotals> tiles() {
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    const std::uint64_t most = ~std::uint64_t{0};
    return {{tile_key(TileLevel::macro, 9, 0, 0), 12, 120'000, 119'000, 9'000, 12'000, 49152, 98304},
            {tile_key(TileLevel::macro, 9, 0, 1), 1, 0, 0, 0, 0, 0, unknown},
            {tile_overflow_key(TileLevel::macro), 3, 30, 30, 10, 10, unknown, unknown},
            {tile_key(TileLevel::midi, 300, 7, 8'388'607), most, most, most, tile_min_unknown, most, 1e300, 5e-324},
            {tile_key(TileLevel::micro, 0, 8'388'607, 0), 2, 9, 8, 4, 5, 0.5, 3}};
}

Status write_tiles(const std::string& path) {
    planted::Tape tape = tape_of({});
    tape.clock_pairs_.clear();
    recording::TileTotals grows = tiles()[0];
    grows.count = 1;
    tape.tiles_ = {{1, {{tile_key(TileLevel::midi, 1, 1, 1), 5, 50, 50, 10, 10, 5, 5}}}, // cleared by a reset
                   {2, {}},
                   {2, {grows}},
                   {2, tiles()}};
    return save(tape, path);
}

} // namespace plumb::golden
