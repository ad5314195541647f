// SPDX-License-Identifier: Apache-2.0
// What onnxruntime writes about one run that it profiled itself: a line for each node that ran, in whole microseconds. It writes names as
// they are, whatever is in them, so that the text need not be JSON. Pure functions; views into the text given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::attach::onnxruntime {

struct ProfiledNode {
    std::string_view name, operation, provider;
    std::int64_t begin_us = 0, end_us = 0;                                 // from the begin of the run
    std::int64_t thread = 0;                                               // of the system
    double activation_bytes = -1, parameter_bytes = -1, output_bytes = -1; // -1: not told
    std::string_view inputs, outputs;                                      // shapes: [{"float":[1,64]},…]
};

struct RunProfile {
    std::vector<ProfiledNode> nodes; // by their begin, what holds others before them
};

/// Error corrupt: the text ends too early, or is not what onnxruntime writes.
[[nodiscard]] Result<RunProfile> read_profile(std::string_view text);

/// Why the times of these nodes are none of bricks; empty: they are.
[[nodiscard]] std::string why_no_bricks(const RunProfile& profile);

/// The sizes of the shape at that place of such a list; empty: there is none, or one of no dimensions.
[[nodiscard]] std::vector<std::int64_t> shape_at(std::string_view shapes, std::size_t place);
[[nodiscard]] std::size_t shape_count(std::string_view shapes);
/// Bytes of an element of the shape at that place; 0: not known.
[[nodiscard]] std::size_t element_bytes(std::string_view shapes, std::size_t place);

} // namespace plumb::attach::onnxruntime
