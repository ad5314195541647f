// SPDX-License-Identifier: Apache-2.0
// Every function of the system that we use, X(member, symbol, library, need, result, (parameters)), and every message that
// we send, X(member, words). A function that is `optional` is null where the system has none.
#pragma once

// objc_msgSend twice: its result comes in another register where it is a double.
#define PLUMB_METAL_CALLS(X)                                                                         \
    X(get_class, objc_getClass, objc, required, Id, (const char* name))                              \
    X(register_selector, sel_registerName, objc, required, Selector, (const char* words))            \
    X(send, objc_msgSend, objc, required, std::uint64_t,                                             \
      (Id receiver, Selector words, std::uint64_t first, std::uint64_t second, std::uint64_t third)) \
    X(send_double, objc_msgSend, objc, required, double, (Id receiver, Selector words))              \
    X(push_pool, objc_autoreleasePoolPush, objc, required, void*, ())                                \
    X(pop_pool, objc_autoreleasePoolPop, objc, required, void, (void* pool))                         \
    X(copy_all_devices, MTLCopyAllDevices, metal, optional, Id, ())                                  \
    X(default_device, MTLCreateSystemDefaultDevice, metal, required, Id, ())                         \
    X(uptime_ns, clock_gettime_nsec_np, system, required, std::uint64_t, (std::int32_t clock))

#define PLUMB_METAL_MESSAGES(X)                                   \
    X(retain, "retain")                                           \
    X(release, "release")                                         \
    X(alloc, "alloc")                                             \
    X(init, "init")                                               \
    X(responds_to, "respondsToSelector:")                         \
    X(count, "count")                                             \
    X(object_at, "objectAtIndex:")                                \
    X(name, "name")                                               \
    X(utf8, "UTF8String")                                         \
    X(bytes, "bytes")                                             \
    X(length, "length")                                           \
    X(registry_id, "registryID")                                  \
    X(device, "device")                                           \
    X(new_queue, "newCommandQueueWithMaxCommandBufferCount:")     \
    X(new_event, "newEvent")                                      \
    X(command_buffer, "commandBuffer")                            \
    X(signal_event, "encodeSignalEvent:value:")                   \
    X(wait_for_event, "encodeWaitForEvent:value:")                \
    X(add_completed, "addCompletedHandler:")                      \
    X(commit, "commit")                                           \
    X(wait_completed, "waitUntilCompleted")                       \
    X(status, "status")                                           \
    X(gpu_start, "GPUStartTime")                                  \
    X(gpu_end, "GPUEndTime")                                      \
    X(counter_sets, "counterSets")                                \
    X(supports_sampling, "supportsCounterSampling:")              \
    X(new_samples, "newCounterSampleBufferWithDescriptor:error:") \
    X(set_counter_set, "setCounterSet:")                          \
    X(set_storage, "setStorageMode:")                             \
    X(set_sample_count, "setSampleCount:")                        \
    X(resolve, "resolveCounterRange:")                            \
    X(sample_timestamps, "sampleTimestamps:gpuTimestamp:")        \
    X(attachments, "sampleBufferAttachments")                     \
    X(attachment_at, "objectAtIndexedSubscript:")                 \
    X(set_samples, "setSampleBuffer:")                            \
    X(set_first_sample, "setStartOfEncoderSampleIndex:")          \
    X(set_last_sample, "setEndOfEncoderSampleIndex:")             \
    X(sample_now, "sampleCountersInBuffer:atSampleIndex:withBarrier:")
