// SPDX-License-Identifier: Apache-2.0
// Whether the sanitizer of this build, if any, can follow what a real driver does. Test-only; constant.
#pragma once

namespace plumb {

/// The thread sanitizer sees no synchronisation inside a driver that was built without it.
inline constexpr bool sees_inside_drivers =
#if defined(__SANITIZE_THREAD__)
    false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    false;
#else
    true;
#endif
#else
    true;
#endif

} // namespace plumb
