// SPDX-License-Identifier: Apache-2.0
// The part of HTTP that a scrape needs: one request, one answer, then the connection ends. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace plumb::metrics {

inline constexpr std::size_t longest_request = 8192; // bytes; Prometheus sends about 300

/// What to send to who sent `received` so far; empty: the request is not complete. `metrics` is called for GET /metrics alone.
[[nodiscard]] std::string answer_to(std::string_view received, const std::function<std::string()>& metrics);

} // namespace plumb::metrics
