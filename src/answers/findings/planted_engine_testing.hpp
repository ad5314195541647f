// SPDX-License-Identifier: Apache-2.0
// For tests: decodes in virtual time with planted faults. Everything is drawn from a seed, by place and not by order, so that a run
// without one of its faults is the same run in all else: the difference of their periods is what that fault costs. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers/findings/findings.hpp"
#include "planted/tape.hpp"

namespace plumb::findings::planted_engine {

/// Where bricks run: on the host; on a device, launched one by one; on a device, in captured graphs.
enum class EngineMode : std::uint8_t { host, eager, graph };

/// Whether an engine of that mode can have that fault.
[[nodiscard]] bool can_have(EngineMode mode, FindingKind kind);

struct PlantedFault {
    FindingKind kind = FindingKind::host_bound;
    double share = 0;        // of a step without faults
    std::uint32_t place = 0; // a number that the fault draws its place from
};

struct VirtualRun {
    planted::Tape tape;
    double mean_counted_ns = 0; // period of the counted steps
    double mean_ns = 0;         // of all
};

class VirtualEngine {
  public:
    static constexpr std::uint64_t warmup_steps = 8;

    VirtualEngine(std::uint64_t seed, EngineMode mode);
    [[nodiscard]] VirtualRun run(const std::vector<PlantedFault>& faults) const;
    /// What a step takes longer for the fault of that index, beside the others.
    [[nodiscard]] double cost_ns(const std::vector<PlantedFault>& faults, std::size_t index) const;
    /// The brick of a slow brick, or of an odd layer; empty: the fault has none.
    [[nodiscard]] std::string brick_of(const PlantedFault& fault) const;
    [[nodiscard]] std::uint32_t layer_of(const PlantedFault& fault) const { return fault.place % layers_; }
    [[nodiscard]] EngineMode mode() const noexcept { return mode_; }

  private:
    friend class VirtualDecode;
    struct EnginePart {
        Brick brick = Brick::attention;
        const char* name = "";
        double weight = 0;     // of a layer
        double efficiency = 0; // of its roofline
    };
    [[nodiscard]] double call_ns(std::size_t part) const { return parts_[part].weight * layer_ns_; }
    [[nodiscard]] double head_ns() const { return 0.08 * base_ns_; }

    std::uint64_t seed_;
    EngineMode mode_;
    std::uint32_t layers_ = 0;
    std::uint64_t steps_ = 0; // with those of warm-up
    double base_ns_ = 0;      // all bricks of a step
    double layer_ns_ = 0;
    std::vector<EnginePart> parts_;
    double head_efficiency_ = 0;
};

/// 0..1, the same for the same numbers.
[[nodiscard]] double drawn(std::uint64_t seed, std::uint64_t what, std::uint64_t a = 0, std::uint64_t b = 0);

} // namespace plumb::findings::planted_engine
