// SPDX-License-Identifier: Apache-2.0
// Which sanitizers this build has, for tests whose limits or means they change. Constants; no state.
#pragma once

#include <cstdint>

#ifndef __has_feature
#define PLUMB_HAS_FEATURE(name) 0
#else
#define PLUMB_HAS_FEATURE(name) __has_feature(name)
#endif

namespace plumb {

#if defined(__SANITIZE_ADDRESS__) || PLUMB_HAS_FEATURE(address_sanitizer)
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

/// The thread sanitizer sees no synchronisation inside a driver or library that was built without it.
#if defined(__SANITIZE_THREAD__) || PLUMB_HAS_FEATURE(thread_sanitizer)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif

/// Slower, more memory, and locks of the sanitizer's own that do not survive the fork of a threaded process: a thread
/// that the child starts may hang or be refused.
inline constexpr bool sanitized = address_sanitized || thread_sanitized || PLUMB_HAS_FEATURE(memory_sanitizer);

/// How often a test draws something at random: a tenth with a sanitizer, whose errors the first draws show as well as the last.
constexpr std::uint64_t draws(std::uint64_t whole) { return sanitized ? (whole + 9) / 10 : whole; }

} // namespace plumb

#undef PLUMB_HAS_FEATURE
