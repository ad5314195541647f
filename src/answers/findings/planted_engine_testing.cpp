// SPDX-License-Identifier: Apache-2.0
#include "answers/findings/planted_engine_testing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace plumb::findings::planted_engine {
namespace {

constexpr double us = 1'000;
constexpr std::uint32_t host = 1, queue = 0x80000001;
constexpr std::uint16_t prepare = 500, inner = 501, stage = 502;
constexpr double bandwidth = 1'000; // bytes per ns of the place, whatever it is
constexpr std::array<std::uint64_t, 2> graph_rows = {800, 1600};
constexpr double row_share = 0.4; // of a replay of the larger graph, all rows together
constexpr int inner_scopes = 6;   // in each brick, with an own cost that is too high

std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// About normal, of deviation 1, within 3.5.
double spread(std::uint64_t seed, std::uint64_t what, std::uint64_t a, std::uint64_t b) {
    double sum = 0;
    for (std::uint64_t i = 0; i < 4; ++i) {
        sum += drawn(seed, what * 4 + i + 1'000, a, b);
    }
    return (sum - 2) * std::sqrt(3.0);
}

enum Draw : std::uint64_t {
    of_layers,
    of_steps,
    of_length,
    of_efficiency,
    of_call,
    of_step,
    of_outlier,
    of_launch,
    of_sampling,
    of_graph
};

} // namespace

double drawn(std::uint64_t seed, std::uint64_t what, std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(mixed(mixed(mixed(mixed(seed) ^ what) ^ a) ^ b) >> 11) * 0x1p-53;
}

bool can_have(EngineMode mode, FindingKind kind) {
    switch (kind) {
    case FindingKind::host_bound:
    case FindingKind::launch_gaps:
    case FindingKind::ping_pong:
        return mode == EngineMode::eager;
    case FindingKind::padding:
    case FindingKind::eager_steps:
        return mode == EngineMode::graph;
    case FindingKind::own_cost:
        return mode == EngineMode::host;
    case FindingKind::off_cpu:
    case FindingKind::odd_layer:
    case FindingKind::far_from_roofline:
        return mode != EngineMode::graph;
    case FindingKind::slow_warm_up:
        return true;
    case FindingKind::steal:
    case FindingKind::straggler: // of several engines
        break;
    }
    return false;
}

VirtualEngine::VirtualEngine(std::uint64_t seed, EngineMode mode) : seed_(seed), mode_(mode) {
    layers_ = 6 + static_cast<std::uint32_t>(drawn(seed, of_layers) * 8);
    steps_ = warmup_steps + 36 + static_cast<std::uint64_t>(drawn(seed, of_steps) * 20);
    base_ns_ =
        (mode == EngineMode::host ? 15'000 + drawn(seed, of_length) * 25'000 : 5'000 + drawn(seed, of_length) * 6'000) *
        us;
    layer_ns_ = (base_ns_ - head_ns()) / layers_;
    parts_ = {{Brick::rms_norm, "rms_norm", 0.02, 0},
              {Brick::qkv_projection, "qkv_projection", 0.16, 0},
              {Brick::attention, "attention", 0.14, 0},
              {Brick::output_projection, "output_projection", 0.10, 0},
              {Brick::gate_projection, "gate_projection", 0.19, 0},
              {Brick::up_projection, "up_projection", 0.19, 0},
              {Brick::down_projection, "down_projection", 0.20, 0}};
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        parts_[i].efficiency = 0.80 + 0.10 * drawn(seed, of_efficiency, i);
    }
    head_efficiency_ = 0.80 + 0.10 * drawn(seed, of_efficiency, 99);
}

std::string VirtualEngine::brick_of(const PlantedFault& fault) const {
    if (fault.kind != FindingKind::odd_layer && fault.kind != FindingKind::far_from_roofline) {
        return {};
    }
    return parts_[1 + fault.place / 64 % (parts_.size() - 1)].name; // a norm has too few bytes to be far from anything
}

/// One decode: time goes on, and what happens is written on the tape.
class VirtualDecode {
  public:
    VirtualDecode(const VirtualEngine& engine, const std::vector<PlantedFault>& faults)
        : engine_(engine), faults_(faults) {}
    VirtualRun run();

  private:
    [[nodiscard]] double share_of(FindingKind kind) const;
    [[nodiscard]] const PlantedFault* fault(FindingKind kind) const;
    [[nodiscard]] double extra_ns(FindingKind kind) const { return share_of(kind) * engine_.base_ns_; }
    [[nodiscard]] double warm_up_factor(std::uint64_t step) const;
    [[nodiscard]] double call_ns(std::uint64_t step, std::uint32_t layer, std::size_t part) const;
    [[nodiscard]] double head_ns(std::uint64_t step) const;

    void prepare_tape();
    void describe_graphs();
    void cpu() { tape_.cpu_time(host, at(now_), at(now_ - off_)); }
    void off_cpu(double until) {
        cpu();
        off_ += std::max(0.0, until - now_);
        now_ = std::max(now_, until);
        cpu();
    }
    static std::int64_t at(double ns) { return static_cast<std::int64_t>(ns / 2) * 2; }

    void step(std::uint64_t number);
    void layers(std::uint64_t number);
    void brick(std::uint64_t number, std::uint32_t layer, std::size_t part);
    void on_host(Brick brick, double length, bool stalls);
    void on_device(Name name, std::uint64_t number, int layer, double length, double launch);
    void copies(std::uint64_t number, std::uint32_t layer);
    void replay(std::uint64_t number);

    const VirtualEngine& engine_;
    const std::vector<PlantedFault>& faults_;
    planted::Tape tape_;
    double now_ = 0, off_ = 0, device_free_ = 0;
    double slow_launch_ns_ = 0, scope_ns_ = 0;
    std::uint64_t eager_steps_ = 0;
    std::array<std::uint64_t, 2> replays_{};
};

const PlantedFault* VirtualDecode::fault(FindingKind kind) const {
    for (const PlantedFault& one : faults_) {
        if (one.kind == kind) {
            return &one;
        }
    }
    return nullptr;
}

double VirtualDecode::share_of(FindingKind kind) const {
    const PlantedFault* one = fault(kind);
    return one == nullptr ? 0 : one->share;
}

/// The first steps lose, all together, the planted share of the run.
double VirtualDecode::warm_up_factor(std::uint64_t step) const {
    const PlantedFault* slow = fault(FindingKind::slow_warm_up);
    const std::uint64_t slow_steps = slow == nullptr ? 0 : 4 + slow->place % 11;
    if (step >= slow_steps) {
        return 1;
    }
    const auto count = static_cast<double>(slow_steps);
    return 1 + slow->share * static_cast<double>(engine_.steps_) * (count - static_cast<double>(step)) /
                   (count * (count + 1) / 2);
}

double VirtualDecode::call_ns(std::uint64_t step, std::uint32_t layer, std::size_t part) const {
    double ns = engine_.call_ns(part);
    const std::string brick = engine_.parts_[part].name;
    if (const PlantedFault* odd = fault(FindingKind::odd_layer);
        odd != nullptr && engine_.layer_of(*odd) == layer && engine_.brick_of(*odd) == brick) {
        ns += extra_ns(FindingKind::odd_layer);
    }
    if (const PlantedFault* slow = fault(FindingKind::far_from_roofline);
        slow != nullptr && engine_.brick_of(*slow) == brick) {
        ns += extra_ns(FindingKind::far_from_roofline) / engine_.layers_;
    }
    const double outlier = drawn(engine_.seed_, of_outlier, step) < 0.03 ? 1.05 : 1;
    return ns * outlier * warm_up_factor(step) * (1 + 0.01 * spread(engine_.seed_, of_step, step, 0)) *
           (1 + 0.02 * spread(engine_.seed_, of_call, step, layer * 16 + part));
}

double VirtualDecode::head_ns(std::uint64_t step) const {
    return engine_.head_ns() * warm_up_factor(step) * (1 + 0.01 * spread(engine_.seed_, of_step, step, 0)) *
           (1 + 0.02 * spread(engine_.seed_, of_call, step, 9'999));
}

void VirtualDecode::prepare_tape() {
    tape_.metadata_.warmup_steps = VirtualEngine::warmup_steps;
    tape_.names_ = {
        {prepare, Category::other, "prepare"}, {inner, Category::other, "inner"}, {stage, Category::transfer, "stage"}};
    tape_.track(host);
    const std::size_t calls = engine_.layers_ * engine_.parts_.size();
    scope_ns_ = fault(FindingKind::own_cost) != nullptr
                    ? extra_ns(FindingKind::own_cost) / static_cast<double>(calls * inner_scopes)
                    : 50;
    tape_.metadata_.costs = {{"scope", scope_ns_}, {"lap", scope_ns_}, {"floor", 20}, {"cpu_time", 0}};
    const bool device = engine_.mode_ != EngineMode::host;
    Peaks peaks;
    peaks.place = device ? "cuda:0" : "host";
    peaks.read_gigabytes_per_second = {bandwidth, {}};
    peaks.f32_teraflops = {1'000, {}};
    tape_.peaks(peaks);
    if (device) {
        recording::TrackInfo info;
        info.id = queue;
        info.kind = recording::TrackKind::device_queue;
        info.name = "stream";
        info.source = "cuda_event";
        tape_.device_track(info);
    }
    const auto work = [&](Brick brick, double ideal_ns) {
        tape_.work(device ? queue : host, brick, WorkQuantity::bytes, ideal_ns * bandwidth);
        tape_.work(device ? queue : host, brick, WorkQuantity::flops, 2 * ideal_ns * bandwidth);
    };
    for (std::size_t i = 0; i < engine_.parts_.size(); ++i) {
        work(engine_.parts_[i].brick, engine_.call_ns(i) * engine_.parts_[i].efficiency);
    }
    work(Brick::lm_head, engine_.head_ns() * engine_.head_efficiency_);
    // The host launches all bricks of a step in as long as the device takes for them, and the planted share more.
    if (const double share = share_of(FindingKind::launch_gaps); share > 0) {
        slow_launch_ns_ = engine_.base_ns_ * (1 + share) / static_cast<double>(calls + 1);
    }
}

void VirtualDecode::on_host(Brick brick, double length, bool stalls) {
    const double begin = now_;
    if (fault(FindingKind::own_cost) != nullptr) {
        for (int i = 0; i < inner_scopes; ++i) {
            const double piece = length / inner_scopes;
            tape_.scope(host, Name{inner}, at(now_), at(now_ + piece));
            now_ += piece + scope_ns_;
        }
    } else {
        now_ += length;
    }
    if (stalls) {
        const double stall = extra_ns(FindingKind::off_cpu);
        off_ += stall;
        now_ += stall;
    }
    tape_.scope(host, brick, at(begin), at(now_), flag_work);
    cpu();
}

void VirtualDecode::on_device(Name name, std::uint64_t number, int layer, double length, double launch) {
    const double begin = now_;
    now_ += launch;
    const planted::Tape::NodeKey submission = tape_.submit_scope(host, name, queue, at(begin), at(now_));
    const double start = std::max(device_free_ + 0.8 * us, now_ + 3 * us);
    device_free_ = start + length;
    tape_.cause(queue, submission);
    tape_.device_scope(queue, name, number, layer, at(start), at(device_free_), name.id == stage ? 0 : flag_work);
    now_ += 0.5 * us;
}

/// Buffers that go to the host and come back behind the attention of every layer.
void VirtualDecode::copies(std::uint64_t number, std::uint32_t layer) {
    const PlantedFault* found = fault(FindingKind::ping_pong);
    if (found == nullptr) {
        return;
    }
    const double length = extra_ns(FindingKind::ping_pong) / (2.0 * engine_.layers_) *
                          (1 + 0.02 * spread(engine_.seed_, of_call, number, 20'000 + layer));
    for (const bool back : {false, true}) {
        tape_.transfer(host, back ? 77 : 100 + layer, back ? 100 + layer : 77, 1 << 20,
                       back ? TransferDirection::host_to_device : TransferDirection::device_to_host, at(now_ + us));
        on_device(Name{stage}, number, static_cast<int>(layer), length, 4 * us);
    }
}

void VirtualDecode::brick(std::uint64_t number, std::uint32_t layer, std::size_t part) {
    const double length = call_ns(number, layer, part);
    const Brick brick = engine_.parts_[part].brick;
    if (engine_.mode_ == EngineMode::host) {
        const PlantedFault* stall = fault(FindingKind::off_cpu);
        on_host(brick, length,
                stall != nullptr && stall->place % engine_.layers_ == layer && part == 1 + stall->place / 64 % 6);
        return;
    }
    const double launch = (3 + 2 * drawn(engine_.seed_, of_launch, number, layer * 16 + part)) * us;
    on_device(brick, number, static_cast<int>(layer), length, std::max(launch, slow_launch_ns_));
    if (brick == Brick::attention) {
        copies(number, layer);
    }
}

void VirtualDecode::layers(std::uint64_t number) {
    for (std::uint32_t layer = 0; layer < engine_.layers_; ++layer) {
        const double begin = now_;
        tape_.layer_begin(host, static_cast<std::uint16_t>(layer), at(begin));
        for (std::size_t part = 0; part < engine_.parts_.size(); ++part) {
            brick(number, layer, part);
        }
        tape_.layer_end(host, static_cast<std::uint16_t>(layer), at(begin), at(now_));
    }
    if (engine_.mode_ == EngineMode::host) {
        on_host(Brick::lm_head, head_ns(number), false);
    } else {
        on_device(Brick::lm_head, number, -1, head_ns(number), std::max(4 * us, slow_launch_ns_));
    }
}

/// Two sizes by turns of chance; each replay computes all rows of its size.
void VirtualDecode::replay(std::uint64_t number) {
    const bool large = drawn(engine_.seed_, of_graph, number) < 0.6;
    const PlantedFault* eager = fault(FindingKind::eager_steps);
    const bool runs_eager =
        eager != nullptr && number >= VirtualEngine::warmup_steps && number % (3 + eager->place % 4) == 0;
    const double rows = static_cast<double>(graph_rows[large ? 1 : 0]) / static_cast<double>(graph_rows[1]);
    const double padding =
        runs_eager ? 0 : extra_ns(FindingKind::padding) * (large ? 1 : 0.5); // in proportion to the rows
    const double length = (engine_.base_ns_ * (1 - row_share + row_share * rows) + padding) * warm_up_factor(number) *
                          (1 + 0.01 * spread(engine_.seed_, of_step, number, 0));
    if (runs_eager) {
        ++eager_steps_;
        // In as many steps as the planted share takes in all.
        now_ += length + extra_ns(FindingKind::eager_steps) * static_cast<double>(3 + eager->place % 4);
        return;
    }
    tape_.launch(host, graph_rows[large ? 1 : 0], 0, queue, at(now_), at(now_ + 6 * us));
    now_ += 6 * us;
    ++replays_[large ? 1 : 0];
    device_free_ = now_ + 3 * us + length;
    off_cpu(device_free_ + 2 * us);
}

void VirtualDecode::step(std::uint64_t number) {
    const double begin = now_;
    cpu();
    tape_.step_begin(host, number, Phase::decode, at(begin));
    tape_.step_value(host, StepValue::decode_tokens, 1);
    const bool waits = engine_.mode_ == EngineMode::eager;
    const PlantedFault* work = fault(FindingKind::host_bound);
    const double host_work = extra_ns(FindingKind::host_bound);
    if (work != nullptr && work->place % 3 != 2) {
        now_ += host_work;
        if (work->place % 3 == 0) {
            tape_.scope(host, Name{prepare}, at(begin), at(now_));
        }
        cpu();
    }
    if (waits && fault(FindingKind::off_cpu) != nullptr) {
        off_cpu(now_ + extra_ns(FindingKind::off_cpu));
    }
    if (engine_.mode_ == EngineMode::graph) {
        replay(number);
    } else {
        layers(number);
    }
    if (waits) {
        off_cpu(device_free_ + 2 * us);
    }
    const double sampling = now_;
    now_ += (20 + 30 * drawn(engine_.seed_, of_sampling, number)) * us +
            (work != nullptr && work->place % 3 == 2 ? host_work : 0);
    tape_.scope(host, Brick::sampling, at(sampling), at(now_));
    cpu();
    tape_.step_end(host, Phase::decode, at(begin), at(now_));
}

void VirtualDecode::describe_graphs() {
    const double padding = extra_ns(FindingKind::padding);
    // Rows that were padding: a row takes row_share of the larger replay, and the planted share is theirs.
    const double row_ns = row_share * engine_.base_ns_ / static_cast<double>(graph_rows[1]);
    for (std::size_t i = 0; i < graph_rows.size(); ++i) {
        const auto rows = static_cast<double>(graph_rows[i]);
        const double wasted = padding * (i == 1 ? 1 : 0.5) / row_ns;
        recording::GraphInfo info;
        info.key = graph_rows[i];
        info.captures = info.instantiations = 1;
        info.replays = replays_[i];
        info.rows_padded = static_cast<std::uint64_t>(std::llround((rows + wasted) * static_cast<double>(replays_[i])));
        info.rows_used = static_cast<std::uint64_t>(std::llround(rows * static_cast<double>(replays_[i])));
        info.plain_span_ns =
            engine_.base_ns_ * (1 - row_share + row_share * rows / static_cast<double>(graph_rows[1])) +
            padding * (i == 1 ? 1 : 0.5);
        if (eager_steps_ != 0 && i == 1) {
            info.eager_steps = {{"no graph of this size", eager_steps_}};
        }
        tape_.graphs_.push_back(info);
    }
}

VirtualRun VirtualDecode::run() {
    prepare_tape();
    double counted_from = 0;
    for (std::uint64_t number = 0; number < engine_.steps_; ++number) {
        counted_from = number == VirtualEngine::warmup_steps ? now_ : counted_from;
        step(number);
    }
    if (engine_.mode_ == EngineMode::graph) {
        describe_graphs();
    }
    tape_.deliver_all();
    tape_.counters_.records = tape_.written(host) + tape_.written(queue);
    tape_.counters_.drain_cpu_ns = static_cast<std::uint64_t>(now_ / 500);
    VirtualRun run;
    run.mean_counted_ns = (now_ - counted_from) / static_cast<double>(engine_.steps_ - VirtualEngine::warmup_steps);
    run.mean_ns = now_ / static_cast<double>(engine_.steps_);
    run.tape = std::move(tape_);
    return run;
}

VirtualRun VirtualEngine::run(const std::vector<PlantedFault>& faults) const {
    return VirtualDecode(*this, faults).run();
}

double VirtualEngine::cost_ns(const std::vector<PlantedFault>& faults, std::size_t index) const {
    std::vector<PlantedFault> others = faults;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
    const VirtualRun with = run(faults), without = run(others);
    return faults[index].kind == FindingKind::slow_warm_up ? with.mean_ns - without.mean_ns
                                                           : with.mean_counted_ns - without.mean_counted_ns;
}

} // namespace plumb::findings::planted_engine
