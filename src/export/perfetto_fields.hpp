// SPDX-License-Identifier: Apache-2.0
// Field numbers of the Perfetto trace format, message by message under the names of its .proto files: those that perfetto.cpp
// writes and no others. tools/check_perfetto_fields.py holds them against the published text (docs/reference/trace.md).
#pragma once

namespace plumb::exporting::perfetto {

namespace Trace {
inline constexpr unsigned packet = 1;
}
namespace TracePacket {
inline constexpr unsigned clock_snapshot = 6;
inline constexpr unsigned timestamp = 8;
inline constexpr unsigned trusted_packet_sequence_id = 10;
inline constexpr unsigned track_event = 11;
inline constexpr unsigned interned_data = 12;
inline constexpr unsigned sequence_flags = 13;
inline constexpr unsigned gpu_render_stage_event = 53;
inline constexpr unsigned timestamp_clock_id = 58;
inline constexpr unsigned trace_packet_defaults = 59;
inline constexpr unsigned track_descriptor = 60;
} // namespace TracePacket
namespace SequenceFlags {
inline constexpr unsigned SEQ_INCREMENTAL_STATE_CLEARED = 1;
inline constexpr unsigned SEQ_NEEDS_INCREMENTAL_STATE = 2;
} // namespace SequenceFlags
namespace TracePacketDefaults {
inline constexpr unsigned track_event_defaults = 11;
inline constexpr unsigned timestamp_clock_id = 58;
} // namespace TracePacketDefaults
namespace TrackEventDefaults {
inline constexpr unsigned track_uuid = 11;
}
namespace ClockSnapshot {
inline constexpr unsigned clocks = 1;
inline constexpr unsigned primary_trace_clock = 2;
} // namespace ClockSnapshot
namespace Clock {
inline constexpr unsigned clock_id = 1;
inline constexpr unsigned timestamp = 2;
inline constexpr unsigned is_incremental = 3;
} // namespace Clock
namespace BuiltinClock {
inline constexpr unsigned BUILTIN_CLOCK_REALTIME = 1;
inline constexpr unsigned BUILTIN_CLOCK_MONOTONIC = 3;
} // namespace BuiltinClock
namespace TrackDescriptor {
inline constexpr unsigned uuid = 1;
inline constexpr unsigned name = 2;
inline constexpr unsigned process = 3;
inline constexpr unsigned thread = 4;
inline constexpr unsigned parent_uuid = 5;
inline constexpr unsigned counter = 8;
} // namespace TrackDescriptor
namespace ProcessDescriptor {
inline constexpr unsigned pid = 1;
inline constexpr unsigned process_name = 6;
} // namespace ProcessDescriptor
namespace ThreadDescriptor {
inline constexpr unsigned pid = 1;
inline constexpr unsigned tid = 2;
inline constexpr unsigned thread_name = 5;
} // namespace ThreadDescriptor
namespace CounterDescriptor {
inline constexpr unsigned unit_name = 6;
}
namespace TrackEvent {
inline constexpr unsigned category_iids = 3;
inline constexpr unsigned debug_annotations = 4;
inline constexpr unsigned type = 9;
inline constexpr unsigned name_iid = 10;
inline constexpr unsigned track_uuid = 11;
inline constexpr unsigned name = 23;
inline constexpr unsigned double_counter_value = 44;
inline constexpr unsigned correlation_id = 52;
inline constexpr unsigned gpu_correlation = 3000; // an extension, in gpu_track_event.proto
} // namespace TrackEvent
namespace TrackEventType {
inline constexpr unsigned TYPE_SLICE_BEGIN = 1;
inline constexpr unsigned TYPE_SLICE_END = 2;
inline constexpr unsigned TYPE_INSTANT = 3;
inline constexpr unsigned TYPE_COUNTER = 4;
} // namespace TrackEventType
namespace GpuCorrelation {
inline constexpr unsigned render_stage_submission_event_ids = 1;
}
namespace DebugAnnotation {
inline constexpr unsigned name_iid = 1;
inline constexpr unsigned bool_value = 2;
inline constexpr unsigned uint_value = 3;
inline constexpr unsigned double_value = 5;
inline constexpr unsigned string_value = 6;
} // namespace DebugAnnotation
namespace InternedData {
inline constexpr unsigned event_categories = 1;
inline constexpr unsigned event_names = 2;
inline constexpr unsigned debug_annotation_names = 3;
inline constexpr unsigned graphics_contexts = 23;
inline constexpr unsigned gpu_specifications = 24;
} // namespace InternedData
namespace EventName { // EventCategory and DebugAnnotationName are alike
inline constexpr unsigned iid = 1;
inline constexpr unsigned name = 2;
} // namespace EventName
namespace GpuRenderStageEvent {
inline constexpr unsigned event_id = 1;
inline constexpr unsigned duration = 2;
inline constexpr unsigned context = 5;
inline constexpr unsigned extra_data = 6;
inline constexpr unsigned gpu_id = 11;
inline constexpr unsigned hw_queue_iid = 13;
inline constexpr unsigned stage_iid = 14;
inline constexpr unsigned render_pass_instance_id = 16;
inline constexpr unsigned launch = 21;
} // namespace GpuRenderStageEvent
namespace ExtraData {
inline constexpr unsigned name = 1;
inline constexpr unsigned value = 2;
} // namespace ExtraData
namespace ComputeKernelLaunch {
inline constexpr unsigned grid_size = 1;
inline constexpr unsigned workgroup_size = 2;
} // namespace ComputeKernelLaunch
namespace Dim3 {
inline constexpr unsigned x = 1;
inline constexpr unsigned y = 2;
inline constexpr unsigned z = 3;
} // namespace Dim3
namespace InternedGraphicsContext {
inline constexpr unsigned iid = 1;
inline constexpr unsigned pid = 2;
inline constexpr unsigned api = 3;
} // namespace InternedGraphicsContext
namespace Api {
inline constexpr unsigned UNDEFINED = 0;
inline constexpr unsigned VULKAN = 2;
inline constexpr unsigned OPEN_CL = 3;
inline constexpr unsigned CUDA = 4;
inline constexpr unsigned HIP = 5;
} // namespace Api
namespace InternedGpuRenderStageSpecification {
inline constexpr unsigned iid = 1;
inline constexpr unsigned name = 2;
inline constexpr unsigned description = 3;
inline constexpr unsigned category = 4;
} // namespace InternedGpuRenderStageSpecification
namespace RenderStageCategory {
inline constexpr unsigned OTHER = 0;
inline constexpr unsigned COMPUTE = 2;
} // namespace RenderStageCategory

} // namespace plumb::exporting::perfetto
