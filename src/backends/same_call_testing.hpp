// SPDX-License-Identifier: Apache-2.0
// For the tests that compare our statement of a driver's calls with its real header: two function types that the calling
// convention cannot tell apart. Compile time only.
#pragma once

#include <type_traits>

namespace plumb::backends {

/// Where handles are numbers in one header and pointers in the other, pointers may stand for numbers of their size.
enum class Handles { pointers, numbers };

template <Handles handles, class Ours, class Theirs>
constexpr bool passed_alike() {
    constexpr bool nothing = std::is_void_v<Ours>;
    if constexpr (nothing || std::is_void_v<Theirs>) {
        return nothing == std::is_void_v<Theirs>;
    } else {
        constexpr bool pointers = std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
        return sizeof(Ours) == sizeof(Theirs) && (pointers || handles == Handles::numbers) &&
               std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
    }
}

template <class Ours, class Theirs, Handles handles = Handles::pointers>
struct SameCall : std::false_type {};
template <class R, class... Ours, class S, class... Theirs, Handles handles>
    requires(sizeof...(Ours) == sizeof...(Theirs))
struct SameCall<R (*)(Ours...), S (*)(Theirs...), handles>
    : std::bool_constant<(passed_alike<handles, R, S>() && (passed_alike<handles, Ours, Theirs>() && ...))> {};

} // namespace plumb::backends
