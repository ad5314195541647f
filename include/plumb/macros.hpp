// SPDX-License-Identifier: Apache-2.0
// The statement macros. Arguments are not evaluated while the profiler is off. PLUMB_DISABLE changes these bodies only,
// never a declaration, so that translation units with and without it link together. Include plumb/record.hpp instead.
#pragma once

#define PLUMB_JOIN_TOKENS(a, b) a##b
#define PLUMB_JOIN(a, b) PLUMB_JOIN_TOKENS(a, b)

#if defined(PLUMB_DISABLE)

#define PLUMB_STEP(prof, ...) ((void)sizeof(::plumb::Step((prof), 0u, __VA_ARGS__)))
#define PLUMB_LAYER(prof, ...) ((void)sizeof(::plumb::Layer((prof), 0u, __VA_ARGS__)))
#define PLUMB_BRICK(prof, ...) ((void)sizeof(::plumb::Scope((prof), 0u, __VA_ARGS__)))
#define PLUMB_CONTEXT(prof, ...) ((void)sizeof(::plumb::ContextScope((prof), 0u, __VA_ARGS__)))
#define PLUMB_LAP(prof, ...) ((void)sizeof((::plumb::lap((prof), 0u, __VA_ARGS__), 0)))
#define PLUMB_LAP_END(prof, ...) ((void)sizeof((::plumb::end_lap((prof), __VA_ARGS__), 0)))

#else

// "Unlikely" lays the code of an open scope out of the caller's way; beside two clock reads the jump costs nothing.
#define PLUMB_OPEN(type, prof, ...)                                                 \
    const ::std::uint32_t PLUMB_JOIN(plumb_mode_, __LINE__) = (prof).mode();        \
    const ::plumb::type PLUMB_JOIN(plumb_scope_, __LINE__) =                        \
        PLUMB_UNLIKELY((PLUMB_JOIN(plumb_mode_, __LINE__) & ::plumb::mode_on) != 0) \
            ? ::plumb::type((prof), PLUMB_JOIN(plumb_mode_, __LINE__), __VA_ARGS__) \
            : ::plumb::type()

/// PLUMB_STEP(prof, queue, phase, tags…): one forward pass, to the end of the block.
#define PLUMB_STEP(prof, ...) PLUMB_OPEN(Step, prof, __VA_ARGS__)
/// PLUMB_LAYER(prof, index): one layer, to the end of the block.
#define PLUMB_LAYER(prof, ...) PLUMB_OPEN(Layer, prof, __VA_ARGS__)
/// PLUMB_BRICK(prof, queue, brick, tags…): one brick, to the end of the block.
#define PLUMB_BRICK(prof, ...) PLUMB_OPEN(Scope, prof, __VA_ARGS__)
/// PLUMB_CONTEXT(prof, context): this thread works for that step and layer, to the end of the block.
#define PLUMB_CONTEXT(prof, ...) PLUMB_OPEN(ContextScope, prof, __VA_ARGS__)
/// PLUMB_LAP(prof, queue, brick, tags…): a brick from here to the next lap, PLUMB_LAP_END or the end of the block's scope.
#define PLUMB_LAP(prof, ...)                                        \
    do {                                                            \
        const ::std::uint32_t plumb_mode = (prof).mode();           \
        if (PLUMB_UNLIKELY((plumb_mode & ::plumb::mode_on) != 0)) { \
            ::plumb::lap((prof), plumb_mode, __VA_ARGS__);          \
        }                                                           \
    } while (false)
/// PLUMB_LAP_END(prof, queue): ends the open lap of this depth.
#define PLUMB_LAP_END(prof, ...)                   \
    do {                                           \
        if ((prof).enabled()) {                    \
            ::plumb::end_lap((prof), __VA_ARGS__); \
        }                                          \
    } while (false)

#endif
