// SPDX-License-Identifier: Apache-2.0
// The C interface of onnxruntime, which nobody here built: a table of functions that only grows, of which those named here are called or
// stood in for. Plain data; the functions are safe to call where the program itself would call them.
#pragma once

#include <cstddef>
#include <cstdint>

// The engine's own types, of which only addresses are used here.
struct OrtSession;
struct OrtRunOptions;
struct OrtValue;
struct OrtIoBinding;
struct OrtStatus;
struct OrtTensorTypeAndShapeInfo;

namespace plumb::attach::onnxruntime {

using Session = ::OrtSession;
using RunOptions = ::OrtRunOptions;
using Value = ::OrtValue;
using IoBinding = ::OrtIoBinding;
using Failure = ::OrtStatus; // null: the call succeeded
using TensorInfo = ::OrtTensorTypeAndShapeInfo;

/// PLUMB_ORT_FUNCTIONS(X): X(name, place in the table, minor version of onnxruntime 1 that has it, result, parameters).
#define PLUMB_ORT_FUNCTIONS(X)                                                                                \
    X(error_message, 2, 1, const char*, (const Failure*))                                                     \
    X(run, 9, 1, Failure*,                                                                                    \
      (Session*, const RunOptions*, const char* const*, const Value* const*, std::size_t, const char* const*, \
       std::size_t, Value**))                                                                                 \
    X(create_run_options, 39, 1, Failure*, (RunOptions**))                                                    \
    X(set_verbosity, 40, 1, Failure*, (RunOptions*, int))                                                     \
    X(set_severity, 41, 1, Failure*, (RunOptions*, int))                                                      \
    X(set_tag, 42, 1, Failure*, (RunOptions*, const char*))                                                   \
    X(get_verbosity, 43, 1, Failure*, (const RunOptions*, int*))                                              \
    X(get_severity, 44, 1, Failure*, (const RunOptions*, int*))                                               \
    X(get_tag, 45, 1, Failure*, (const RunOptions*, const char**))                                            \
    X(set_terminate, 46, 1, Failure*, (RunOptions*))                                                          \
    X(unset_terminate, 47, 1, Failure*, (RunOptions*))                                                        \
    X(get_dimensions_count, 61, 1, Failure*, (const TensorInfo*, std::size_t*))                               \
    X(get_dimensions, 62, 1, Failure*, (const TensorInfo*, std::int64_t*, std::size_t))                       \
    X(get_tensor_info, 65, 1, Failure*, (const Value*, TensorInfo**))                                         \
    X(release_failure, 93, 1, void, (Failure*))                                                               \
    X(release_session, 95, 1, void, (Session*))                                                               \
    X(release_run_options, 97, 1, void, (RunOptions*))                                                        \
    X(release_tensor_info, 99, 1, void, (TensorInfo*))                                                        \
    X(run_with_binding, 133, 5, Failure*, (Session*, const RunOptions*, const IoBinding*))                    \
    X(profiling_start, 146, 5, Failure*, (const Session*, std::uint64_t*))                                    \
    X(add_config_entry, 165, 8, Failure*, (RunOptions*, const char*, const char*))                            \
    X(run_async, 260, 16, Failure*,                                                                           \
      (Session*, const RunOptions*, const char* const*, const Value* const*, std::size_t, const char* const*, \
       std::size_t, Value**, void (*)(void*, Value**, std::size_t, Failure*), void*))                         \
    X(add_adapter, 283, 20, Failure*, (RunOptions*, const void*))                                             \
    X(set_sync_stream, 413, 24, void, (RunOptions*, void*))                                                   \
    X(enable_profiling, 415, 25, Failure*, (RunOptions*, const char*))                                        \
    X(disable_profiling, 416, 25, Failure*, (RunOptions*))

/// Of a library of that version what it has; the rest is null.
struct OrtApi {
#define PLUMB_ORT_MEMBER(name, place, since, result, parameters) result(*name) parameters = nullptr;
    PLUMB_ORT_FUNCTIONS(PLUMB_ORT_MEMBER)
#undef PLUMB_ORT_MEMBER

    static OrtApi read(void* const* table, unsigned minor);
};

enum class OrtPlace : std::size_t {
#define PLUMB_ORT_PLACE(name, place, since, result, parameters) name = place,
    PLUMB_ORT_FUNCTIONS(PLUMB_ORT_PLACE)
#undef PLUMB_ORT_PLACE
};

/// Where a program's way to the table begins.
struct OrtBase {
    void* const* (*get_api)(std::uint32_t version);
    const char* (*version)();
};

/// "1.30.0" is 30; 0: not a version whose table is known here.
[[nodiscard]] unsigned minor_of(const char* version);

} // namespace plumb::attach::onnxruntime
