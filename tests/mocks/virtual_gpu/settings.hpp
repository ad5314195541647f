// SPDX-License-Identifier: Apache-2.0
// Every setting by its name, for programs that know the virtual GPU only through their environment.
#pragma once

#define PLUMB_VGPU_SETTINGS(X)   \
    X(devices)                   \
    X(driver_version)            \
    X(seed)                      \
    X(clock_offset_ns)           \
    X(clock_offset_step_ns)      \
    X(clock_drift_ppm)           \
    X(event_tick_ns)             \
    X(globaltimer_tick_ns)       \
    X(globaltimer_change_ns)     \
    X(globaltimer_tick_later_ns) \
    X(call_ns)                   \
    X(launch_ns)                 \
    X(graph_launch_ns)           \
    X(graph_launch_node_ns)      \
    X(instantiate_ns)            \
    X(instantiate_node_ns)       \
    X(upload_node_ns)            \
    X(wake_ns)                   \
    X(submit_ns)                 \
    X(gap_ns)                    \
    X(event_ns)                  \
    X(kernel_min_ns)             \
    X(kernel_max_ns)             \
    X(copy_ns)                   \
    X(copy_bytes_per_us)         \
    X(host_function_ns)          \
    X(graph_start_ns)            \
    X(graph_gap_ns)              \
    X(event_node_ns)             \
    X(stamp_node_ns)             \
    X(stamp_read_ns)             \
    X(disabled_node_ns)          \
    X(mapped_access_ns)          \
    X(sm_slots)                  \
    X(idle_slowdown)             \
    X(idle_after_ns)             \
    X(boost_after_ns)            \
    X(graph_start_node_ns)       \
    X(branch_launch_node_ns)     \
    X(stamp_before_work_ns)      \
    X(memset_apart_ns)           \
    X(programmatic_overlap_ns)   \
    X(launch_queue_depth)        \
    X(exec_limit)                \
    X(memory_bytes)              \
    X(node_bytes)                \
    X(reuse_handles)             \
    X(shuffle_nodes)             \
    X(keep_operations)           \
    X(programmatic_holds_slots)  \
    X(streams_alias)             \
    X(mig)                       \
    X(loading_synchronises)
