// SPDX-License-Identifier: Apache-2.0
// The statement macros; each is one statement. Arguments are not evaluated while the profiler is off. PLUMB_DISABLE changes these bodies only,
// never a declaration, so that translation units with and without it link together. Include plumb/record.hpp instead.
#pragma once

#define PLUMB_JOIN_TOKENS(a, b) a##b
#define PLUMB_JOIN(a, b) PLUMB_JOIN_TOKENS(a, b)

#if defined(PLUMB_DISABLE)

#define PLUMB_STEP(prof, ...) ((void)sizeof(::plumb::Step((prof), 0u, __VA_ARGS__)))
#define PLUMB_STEP_KERNELS(prof, ...) ((void)sizeof((::plumb::detail::put_step_kernels((prof), __VA_ARGS__), 0)))
#define PLUMB_LAYER(prof, ...) ((void)sizeof(::plumb::Layer((prof), 0u, __VA_ARGS__)))
#define PLUMB_BRICK(prof, ...) ((void)sizeof(::plumb::detail::open_scope((prof), 0u, 0, __VA_ARGS__)))
#define PLUMB_CONTEXT(prof, ...) ((void)sizeof(::plumb::ContextScope((prof), 0u, __VA_ARGS__)))
#define PLUMB_LAP(prof, ...) ((void)sizeof((::plumb::detail::open_lap((prof), 0u, 0, __VA_ARGS__), 0)))
#define PLUMB_LAP_END(prof, ...) ((void)sizeof((::plumb::detail::end_lap((prof), __VA_ARGS__), 0)))

#else

// One declaration, so that every macro is one statement. Elements of an aggregate are initialised in their order, so the
// second may ask the first. A lambda would do too, but clang before 16 lets none capture a structured binding.
// "Unlikely" lays the code of an open scope out of the caller's way; beside two clock reads the jump costs nothing.
#define PLUMB_OPEN(type, bit, make, prof, ...)                                                               \
    const ::plumb::detail::Guard<::plumb::type> PLUMB_JOIN(plumb_scope_, __LINE__) {                         \
        (prof).mode(), PLUMB_UNLIKELY((PLUMB_JOIN(plumb_scope_, __LINE__).mode & ::plumb::detail::bit) != 0) \
                           ? make((prof), PLUMB_JOIN(plumb_scope_, __LINE__).mode, __VA_ARGS__)              \
                           : ::plumb::type()                                                                 \
    }
// Of a type of its own at every place of the source: the key of the name that is interned there.
#define PLUMB_SITE \
    [] {           \
    }

/// PLUMB_STEP(prof, queue, phase, tags…): one forward pass, to the end of the block.
#define PLUMB_STEP(prof, ...) PLUMB_OPEN(Step, mode_on, ::plumb::Step, prof, __VA_ARGS__)
/// PLUMB_STEP_KERNELS(prof, kernels_ns, stretch_ns): of the step that is open on this thread, for programs whose kernels stamp
/// their own times: how long a kernel ran, and how long it was from the begin of the first one to the end of the last.
#define PLUMB_STEP_KERNELS(prof, ...)                               \
    do {                                                            \
        if (PLUMB_UNLIKELY((prof).enabled())) {                     \
            ::plumb::detail::put_step_kernels((prof), __VA_ARGS__); \
        }                                                           \
    } while (false)
/// PLUMB_LAYER(prof, index): one layer, to the end of the block.
#define PLUMB_LAYER(prof, ...) PLUMB_OPEN(Layer, mode_on, ::plumb::Layer, prof, __VA_ARGS__)
/// PLUMB_BRICK(prof, queue, brick, tags…): one brick, to the end of the block. `brick` is a plumb::Brick, a name from
/// intern(), or a string literal, which is interned the first time.
#define PLUMB_BRICK(prof, ...) PLUMB_OPEN(Scope, mode_on, ::plumb::detail::open_scope, prof, PLUMB_SITE, __VA_ARGS__)
/// PLUMB_CONTEXT(prof, context): this thread works for that step and layer, to the end of the block.
#define PLUMB_CONTEXT(prof, ...) PLUMB_OPEN(ContextScope, mode_on, ::plumb::ContextScope, prof, __VA_ARGS__)
/// PLUMB_LAP(prof, queue, brick, tags…): a brick from here to the next lap, PLUMB_LAP_END or the end of the block's scope.
#define PLUMB_LAP(prof, ...)                                                        \
    do {                                                                            \
        const ::std::uint32_t plumb_mode = (prof).mode();                           \
        if (PLUMB_UNLIKELY((plumb_mode & ::plumb::detail::mode_on) != 0)) {         \
            ::plumb::detail::open_lap((prof), plumb_mode, PLUMB_SITE, __VA_ARGS__); \
        }                                                                           \
    } while (false)
/// PLUMB_LAP_END(prof, queue): ends the open lap of this depth.
#define PLUMB_LAP_END(prof, ...)                           \
    do {                                                   \
        if ((prof).enabled()) {                            \
            ::plumb::detail::end_lap((prof), __VA_ARGS__); \
        }                                                  \
    } while (false)

#endif
