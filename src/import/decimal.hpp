// SPDX-License-Identifier: Apache-2.0
// Decimal text to integer nanoseconds, exactly: at today's epoch in microseconds a double resolves 0.25 us.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plumb::imported {

/// "1712195495505582.988" of microseconds is 1712195495505582988; digits beyond the nanosecond are rounded half up. Nothing where the text is no
/// number of JSON, or beyond 63 bits.
[[nodiscard]] std::optional<std::int64_t> microseconds_to_ns(std::string_view text);

/// A whole number of 64 bits, as text or in quotes. Nothing where it is none.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);

} // namespace plumb::imported
