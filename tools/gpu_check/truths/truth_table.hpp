// SPDX-License-Identifier: Apache-2.0
// What we hold for true of a CUDA driver and device: one list for the virtual GPU, which models it (test Truth.<id>),
// and for tools/gpu_check, which asserts it on hardware. X(id, source, sentence); a source is a line of cuda.h 13.0
// ("h15464"), a document, or "belief": then only the first run on hardware can say.
#pragma once

#define PLUMB_GPU_TRUTHS(X)                                                                                            \
    /* events */                                                                                                       \
    X(begin_event_fires_when_stream_drains, "belief",                                                                  \
      "An event recorded in an idle stream fires before the kernel enqueued after it was submitted.")                  \
    X(event_ticks_are_whole, "belief", "All elapsed times are multiples of one tick, at most 1,024 ns.")               \
    X(elapsed_is_a_float_of_ms, "h16179", "Elapsed time is a float of milliseconds and loses digits as it grows.")     \
    X(elapsed_not_ready_before_done, "h16152", "Elapsed time of an event that has not happened yet is NOT_READY.")     \
    X(elapsed_of_unrecorded_event_is_invalid_handle, "h16150",                                                         \
      "Elapsed time of an event that was never recorded is INVALID_HANDLE.")                                           \
    X(elapsed_needs_timing, "h16155", "Elapsed time of an event made with DISABLE_TIMING is INVALID_HANDLE.")          \
    X(query_of_unrecorded_event_succeeds, "h15964", "A query of an event that was never recorded succeeds.")           \
    X(event_may_be_destroyed_before_done, "h16109", "An event may be destroyed before it happened; nothing waits.")    \
    X(external_record_outside_capture_is_invalid, "h16013",                                                            \
      "cuEventRecordWithFlags with the external flag outside of a capture is INVALID_VALUE.")                          \
    X(streams_overlap, "document", "Kernels of two non-blocking streams overlap in time.")                             \
    X(legacy_stream_waits_for_blocking_streams, "document",                                                            \
      "The legacy stream and blocking streams wait for each other; non-blocking streams do not.")                      \
    X(copy_reads_its_source_when_it_executes, "document",                                                              \
      "A copy from pinned memory reads it when the copy executes, not when it is enqueued.")                           \
    X(memset_and_value_write_pass_by_value, "document",                                                                \
      "cuMemsetD32Async, cuStreamBatchMemOp and kernel parameters are read at the call.")                              \
    X(full_launch_queue_blocks, "belief", "A launch into a full queue waits in the call until there is room.")         \
    X(mem_free_waits_for_the_device, "document", "cuMemFree waits for the work of its context.")                       \
    /* capture */                                                                                                      \
    X(capture_scope_adds_no_node, "h15555", "Asking for capture information adds no node to the captured graph.")      \
    X(frontier_is_what_the_next_node_waits_for, "h15583",                                                              \
      "The next captured node depends on exactly the nodes that cuStreamGetCaptureInfo returned.")                     \
    X(frontier_array_goes_stale, "h15584", "The frontier array is valid only until the next call on that stream.")     \
    X(capture_ids_are_unique, "h15572", "Two captures have two ids.")                                                  \
    X(event_query_breaks_global_capture, "belief",                                                                     \
      "cuEventQuery by another thread in its default mode invalidates a GLOBAL capture.")                              \
    X(thread_local_capture_ignores_other_threads, "h15461",                                                            \
      "An unsafe call of another thread leaves a THREAD_LOCAL capture alone.")                                         \
    X(relaxed_thread_breaks_no_capture, "h15462",                                                                      \
      "A thread in RELAXED mode may make unsafe calls during a GLOBAL capture of another thread.")                     \
    X(relaxed_thread_may_make_our_calls, "belief",                                                                     \
      "A thread in RELAXED mode may make all calls of the library's own thread during a GLOBAL capture.")              \
    X(own_unsafe_call_breaks_own_capture, "h15455",                                                                    \
      "An unsafe call by the capturing thread invalidates its GLOBAL or THREAD_LOCAL capture, not a RELAXED one.")     \
    X(query_of_captured_event_breaks_any_capture, "h15464",                                                            \
      "cuEventQuery of an event last recorded in a capture fails even in RELAXED mode.")                               \
    X(synchronising_a_capturing_stream_breaks_it, "document",                                                          \
      "Querying or waiting for a capturing stream fails and invalidates the capture.")                                 \
    X(invalidated_capture_leaves_the_stream_usable, "h15521",                                                          \
      "After cuStreamEndCapture on an invalidated capture the graph is null and the stream works as before.")          \
    X(capture_ends_in_its_thread, "h15490",                                                                            \
      "A capture that is not RELAXED can be ended only by the thread that began it.")                                  \
    X(unjoined_stream_fails_the_capture, "h3097", "A forked stream that was not joined makes end of capture fail.")    \
    X(captured_fork_and_join_by_events, "document",                                                                    \
      "An event recorded in a capture and waited for by another stream pulls that stream into the capture.")           \
    X(waiting_for_an_outside_event_breaks_the_capture, "h3104",                                                        \
      "A capturing stream cannot wait for an event recorded outside of the capture.")                                  \
    X(merging_two_captures_breaks_both, "h3083", "Two captures cannot be joined by an event.")                         \
    X(legacy_stream_is_implicit, "h15527",                                                                             \
      "While a blocking stream captures, cuStreamIsCapturing on the legacy stream is STREAM_CAPTURE_IMPLICIT.")        \
    X(legacy_stream_cannot_capture, "h15350", "The legacy stream cannot begin a capture.")                             \
    X(plain_record_in_capture_is_unreadable, "belief",                                                                 \
      "An event recorded in a capture without the external flag has no elapsed time after a replay.")                  \
    X(nodes_may_be_added_during_capture, "h15575",                                                                     \
      "A node added to the capturing graph at the frontier becomes part of it, if the dependencies are updated.")      \
    X(nodes_cannot_be_destroyed_during_capture, "h15575", "cuGraphDestroyNode on a capturing graph fails.")            \
    X(programmatic_edge_makes_v2_info_lossy, "h15568",                                                                 \
      "cuStreamGetCaptureInfo without edge data answers LOSSY_QUERY where the frontier has edge data.")                \
    X(edges_without_data_are_lossy, "belief",                                                                          \
      "cuGraphGetEdges without edge data answers LOSSY_QUERY where an edge has data.")                                 \
    X(stream_ids_are_not_reused, "h15123", "A stream with a reused handle has a new id.")                              \
    /* graphs */                                                                                                       \
    X(node_order_is_unspecified, "h20075", "cuGraphGetNodes answers in no order that one may rely on.")                \
    X(only_kernel_memset_memcpy_can_be_disabled, "h20970",                                                             \
      "cuGraphNodeSetEnabled refuses event record nodes and takes kernel, memset and memcpy nodes.")                   \
    X(update_refuses_another_topology, "h21165",                                                                       \
      "cuGraphExecUpdate refuses a graph with another topology and leaves the executable as it was.")                  \
    X(update_takes_new_parameters, "h21125", "cuGraphExecUpdate takes new kernel parameters in place.")                \
    X(destroy_node_does_not_bridge, "h20321", "cuGraphDestroyNode ties nothing together that it cut off.")             \
    X(memory_nodes_cannot_be_cloned, "h19999", "A graph with allocation, free or conditional nodes cannot be cloned.") \
    X(clone_knows_its_original, "h20021", "cuGraphNodeFindInClone finds the copy of each node.")                       \
    X(clone_is_independent, "h19994", "Changing the original leaves its clone as it was.")                             \
    X(memory_nodes_allow_one_executable, "h20371",                                                                     \
      "A graph with allocation nodes cannot be instantiated twice at a time.")                                         \
    X(exec_calls_need_the_source_node, "belief",                                                                       \
      "Calls on an executable take nodes of its source graph, and fail once that is destroyed.")                       \
    X(existing_edge_cannot_be_added, "h20260", "Adding a dependency that is there already is an error.")               \
    X(programmatic_edges_join_kernels_only, "h1943", "A programmatic edge joins two kernel nodes only.")               \
    X(user_objects_live_in_clones_and_executables, "document",                                                         \
      "A clone and an executable hold the user objects of their graph, until they are destroyed themselves.")          \
    X(device_updatable_nodes_allow_one_executable, "h20374",                                                           \
      "A graph with a device-updatable node cannot be instantiated twice at a time.")                                  \
    X(captured_kernel_has_its_streams_priority, "h20366", "A captured kernel node has the priority of its stream.")    \
    X(clone_keeps_node_attributes, "h19990", "The kernel nodes of a clone have the priorities of their originals.")    \
    X(clone_keeps_programmatic_edges, "h19990", "The edges of a clone have the data of their originals.")              \
    X(executable_tells_its_flags, "h20522", "cuGraphExecGetFlags gives the flags of the instantiation.")               \
    /* replays */                                                                                                      \
    X(elapsed_between_event_nodes, "belief", "Elapsed time works between two event record nodes after a replay.")      \
    X(event_overwritten_by_replay, "h19191", "Each launch records the events of its event record nodes again.")        \
    X(enqueued_replay_makes_events_not_ready, "belief",                                                                \
      "While a launch that will record an event again is enqueued, its elapsed time is NOT_READY.")                    \
    X(set_event_affects_future_launches, "h20780", "cuGraphExecEventRecordNodeSetEvent changes future launches only.") \
    X(replays_of_one_exec_do_not_overlap, "h21050", "Two launches of one executable run one after the other.")         \
    X(exec_destroyed_in_flight_finishes, "h21082", "An executable destroyed in flight finishes its launch.")           \
    X(disabled_node_does_nothing, "h20950", "A disabled node does nothing, and what waits for it runs.")               \
    X(branches_overlap, "document", "Branches of a graph overlap in time.")                                            \
    X(inline_event_node_costs_time, "belief", "An event record node between two kernels lengthens the replay.")        \
    X(first_launch_uploads, "belief", "The first launch costs the host more, unless the graph was uploaded.")          \
    X(launch_into_capture_is_a_child_node, "belief", "cuGraphLaunch into a capturing stream adds a child graph node.") \
    /* stamps and clocks */                                                                                            \
    X(stamp_kernel_reads_globaltimer, "document",                                                                      \
      "A one-thread kernel writes %globaltimer, in whole ticks of nanoseconds, to memory.")                            \
    X(globaltimer_and_events_share_a_clock, "belief",                                                                  \
      "The difference of two %globaltimer stamps agrees with elapsed time to a few ticks.")                            \
    X(device_clock_drifts, "belief",                                                                                   \
      "The device's clock runs at a rate of its own, parts per million off the host's.")                               \
    /* the driver itself */                                                                                            \
    X(entry_points_are_version_exact, "h24293",                                                                        \
      "cuGetProcAddress gives the signature of the version asked for, and refuses versions newer than itself.")        \
    X(calls_need_init, "document", "Before cuInit calls fail with NOT_INITIALIZED.")                                   \
    X(sticky_error_stays, "h2834", "After an illegal address every call fails with it until the process ends.")        \
    X(kernel_names_and_parameters_can_be_asked, "document",                                                            \
      "From 12.4 on, name, count and sizes of a kernel's parameters can be asked from its node.")                      \
    X(node_memory_is_invisible, "belief", "No call gives an executable's memory: cuMemGetInfo moves by whole pages.")
