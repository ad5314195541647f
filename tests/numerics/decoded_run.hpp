// SPDX-License-Identifier: Apache-2.0
// Runs of the reference decoder on a small random model, each into a recording of its own, with any backend.
// Owned by a test; one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answers/diverge/diverge.hpp"
#include "decoder/test_support.hpp"
#include "numerics/faulty_backend.hpp"

namespace plumb::numerics_test {

using Folder = decoder::TestFolder;

struct RunOptions {
    std::string shape = "test"; // of the model
    decoder::Type type = decoder::Type::f32;
    int threads = 1;
    std::size_t chunk = 16;
    std::size_t prompt = 24;
    std::size_t steps = 6; // of decoding
    std::string check = "all";
    std::optional<Fault> fault;
};

struct DecodedRun {
    std::string path; // of the recording
    std::vector<std::int32_t> tokens;
    std::vector<std::string> said; // by the profiler, while it ran
    int planted = 0;
    std::optional<std::uint64_t> bad_index;
};

/// Runs one model of `options` into `folder`; the same options but for the fault give the same bits.
[[nodiscard]] DecodedRun run(const Folder& folder, const std::string& name, const RunOptions& options);
[[nodiscard]] std::vector<StepShape> steps_of(const RunOptions& options);
inline constexpr std::size_t layers_of_test_model = 2;

/// As `plumb diverge` prints it.
[[nodiscard]] std::string render_text(const DivergeReport& report);

} // namespace plumb::numerics_test
