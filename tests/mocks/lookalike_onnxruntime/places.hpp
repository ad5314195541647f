// SPDX-License-Identifier: Apache-2.0
// Where the functions that the look-alike has stand in onnxruntime's table, and their types. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

struct OrtEnv;
struct OrtStatus;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtIoBinding;
struct OrtTensorTypeAndShapeInfo;
using Refusal = OrtStatus*; // null: done
using OrtNames = const char* const*;
using OrtInputs = const OrtValue* const*;
using OrtDone = void (*)(void* user, OrtValue** outputs, std::size_t count, Refusal refusal);

/// LOOKALIKE_ORT(X): X(name, place, result, parameters).
#define LOOKALIKE_ORT(X)                                                                                        \
    X(GetErrorMessage, 2, const char*, (const OrtStatus*))                                                      \
    X(CreateEnv, 3, Refusal, (int, const char*, OrtEnv**))                                                      \
    X(CreateSession, 7, Refusal, (const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**))          \
    X(Run, 9, Refusal,                                                                                          \
      (OrtSession*, const OrtRunOptions*, OrtNames, OrtInputs, std::size_t, OrtNames, std::size_t, OrtValue**)) \
    X(CreateSessionOptions, 10, Refusal, (OrtSessionOptions**))                                                 \
    X(EnableProfiling, 14, Refusal, (OrtSessionOptions*, const char*))                                          \
    X(CreateRunOptions, 39, Refusal, (OrtRunOptions**))                                                         \
    X(RunOptionsSetRunLogVerbosityLevel, 40, Refusal, (OrtRunOptions*, int))                                    \
    X(RunOptionsSetRunLogSeverityLevel, 41, Refusal, (OrtRunOptions*, int))                                     \
    X(RunOptionsSetRunTag, 42, Refusal, (OrtRunOptions*, const char*))                                          \
    X(RunOptionsGetRunLogVerbosityLevel, 43, Refusal, (const OrtRunOptions*, int*))                             \
    X(RunOptionsGetRunLogSeverityLevel, 44, Refusal, (const OrtRunOptions*, int*))                              \
    X(RunOptionsGetRunTag, 45, Refusal, (const OrtRunOptions*, const char**))                                   \
    X(RunOptionsSetTerminate, 46, Refusal, (OrtRunOptions*))                                                    \
    X(RunOptionsUnsetTerminate, 47, Refusal, (OrtRunOptions*))                                                  \
    X(CreateTensorAsOrtValue, 48, Refusal, (void*, const std::int64_t*, std::size_t, int, OrtValue**))          \
    X(GetTensorMutableData, 51, Refusal, (OrtValue*, void**))                                                   \
    X(GetDimensionsCount, 61, Refusal, (const OrtTensorTypeAndShapeInfo*, std::size_t*))                        \
    X(GetDimensions, 62, Refusal, (const OrtTensorTypeAndShapeInfo*, std::int64_t*, std::size_t))               \
    X(GetTensorTypeAndShape, 65, Refusal, (const OrtValue*, OrtTensorTypeAndShapeInfo**))                       \
    X(ReleaseStatus, 93, void, (OrtStatus*))                                                                    \
    X(ReleaseSession, 95, void, (OrtSession*))                                                                  \
    X(ReleaseValue, 96, void, (OrtValue*))                                                                      \
    X(ReleaseRunOptions, 97, void, (OrtRunOptions*))                                                            \
    X(ReleaseTensorTypeAndShapeInfo, 99, void, (OrtTensorTypeAndShapeInfo*))                                    \
    X(RunWithBinding, 133, Refusal, (OrtSession*, const OrtRunOptions*, const OrtIoBinding*))                   \
    X(SessionGetProfilingStartTimeNs, 146, Refusal, (const OrtSession*, std::uint64_t*))                        \
    X(AddRunConfigEntry, 165, Refusal, (OrtRunOptions*, const char*, const char*))                              \
    X(RunAsync, 260, Refusal,                                                                                   \
      (OrtSession*, const OrtRunOptions*, OrtNames, OrtInputs, std::size_t, OrtNames, std::size_t, OrtValue**,  \
       OrtDone, void*))                                                                                         \
    X(RunOptionsAddActiveLoraAdapter, 283, Refusal, (OrtRunOptions*, const void*))                              \
    X(RunOptionsSetSyncStream, 413, void, (OrtRunOptions*, void*))                                              \
    X(RunOptionsEnableProfiling, 415, Refusal, (OrtRunOptions*, const char*))                                   \
    X(RunOptionsDisableProfiling, 416, Refusal, (OrtRunOptions*))

struct LookalikeBase {
    void* const* (*get_api)(std::uint32_t version);
    const char* (*version)();
};

extern "C" {
const LookalikeBase* OrtGetApiBase();
/// How often these options were changed, by whomever.
int lookalike_ort_changes(const OrtRunOptions* options);
}
