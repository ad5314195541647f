// SPDX-License-Identifier: Apache-2.0
// CudaGraphCache: how a captured graph becomes the live one of its key.
#include <optional>

#include "cudagraph/graph_cache.hpp"

namespace plumb::cudagraph {

using cuda::CuResult;

namespace {

const char* const as_before =
    "the cache is as it was; lower CudaGraphOptions::max_graphs where memory is short, or run "
    "the step eagerly";

} // namespace

Status Cache::admit(std::uint64_t key, GraphHolder graph, const Capture& capture, double capture_ns) {
    const cuda::CurrentContext current(driver_.calls(), capture.context);
    const Result<GraphShape> shape = read_shape(driver_.calls(), graph.get());
    if (!shape) {
        driver_.look();
        return shape.error();
    }
    if (shape->nodes.empty()) {
        return Error{ErrorCode::invalid_argument, "the graph of key " + std::to_string(key) +
                                                      " is empty: enqueue the step between begin_capture() and "
                                                      "end_capture(), on the stream that is captured."};
    }
    const std::uint64_t bytes = estimate_.bytes(shape->nodes_by_type);
    if (options_.max_bytes != 0 && bytes > options_.max_bytes) {
        return Error{ErrorCode::out_of_memory,
                     "the graph of key " + std::to_string(key) + " takes about " + std::to_string(bytes) +
                         " bytes: raise CudaGraphOptions::max_bytes, or run the step eagerly."};
    }
    Arrival arrival{std::move(graph), *shape, capture.stream, capture.context, bytes, capture_ns};
    const std::shared_ptr<CacheEntry> entry = find_or_make(key);
    std::lock_guard life(entry->life);
    return settle(entry, arrival);
}

Status Cache::settle(const std::shared_ptr<CacheEntry>& entry, Arrival& arrival) {
    std::shared_ptr<Executable> live;
    {
        std::unique_lock lock(map_);
        live = entry->live;
        entry->pinned = live != nullptr;
    }
    Result<bool> updated = live != nullptr ? update_in_place(*entry, *live, arrival) : Result<bool>(false);
    std::shared_ptr<Executable> exec = live;
    Status status = updated ? Status() : Status(updated.error());
    if (updated && !*updated) {
        Result<std::shared_ptr<Executable>> made = instantiate(arrival);
        status = made ? Status() : Status(made.error());
        exec = made ? std::move(*made) : nullptr;
    }
    if (status) {
        tell_captured(*entry, exec, arrival.shape);
        count_arrival(*entry, arrival);
        publish(entry, std::move(exec), arrival.bytes);
    } else {
        unpin(*entry);
    }
    return status;
}

Result<std::shared_ptr<Executable>> Cache::instantiate(Arrival& arrival) {
    const cuda::Driver& calls = driver_.calls();
    std::size_t free_before = 0;
    std::size_t free_after = 0;
    std::size_t total = 0;
    const bool alone =
        instantiating_.fetch_add(1) == 0 && calls.mem_get_info(&free_before, &total) == CuResult::success;
    const std::int64_t begin = now_ns();
    cuda::GraphExec made = nullptr;
    Status status =
        driver_.check(calls.graph_instantiate(&made, arrival.graph.get(), 0), "cuGraphInstantiateWithFlags", as_before);
    arrival.instantiate_ns += static_cast<double>(now_ns() - begin);
    ExecHolder exec(driver_, status ? made : nullptr, arrival.context);
    if (status && !options_.upload_each) {
        status = upload(exec.get(), arrival);
    }
    const bool still_alone = instantiating_.fetch_sub(1) == 1;
    if (!status) {
        return status.error();
    }
    if (alone && still_alone && calls.mem_get_info(&free_after, &total) == CuResult::success) {
        estimate_.watched(arrival.shape.nodes_by_type, free_before, free_after);
    }
    arrival.instantiated = true;
    return std::make_shared<Executable>(std::move(arrival.graph), std::move(exec), arrival.context);
}

Status Cache::upload(cuda::GraphExec exec, Arrival& arrival) {
    const std::int64_t begin = now_ns();
    Status status = driver_.check(driver_.calls().graph_upload(exec, arrival.stream), "cuGraphUpload", as_before);
    arrival.upload_ns += static_cast<double>(now_ns() - begin);
    arrival.uploaded = status.ok();
    return status;
}

/// False: it cannot be, and the live graph is as it was. Error: the same, or, where that failed, the key was dropped.
Result<bool> Cache::update_in_place(CacheEntry& entry, Executable& live, Arrival& arrival) {
    Status failed;
    bool restored = true;
    {
        std::lock_guard lock(live.mutex);
        cuda::ExecUpdateInfo info{};
        const std::int64_t begin = now_ns();
        const CuResult result = driver_.calls().exec_update(live.exec.get(), arrival.graph.get(), &info);
        arrival.instantiate_ns += static_cast<double>(now_ns() - begin);
        if (result == CuResult::graph_exec_update_failure) {
            return false; // another topology: the driver changed nothing
        }
        failed = driver_.check(result, "cuGraphExecUpdate", as_before);
        if (failed) {
            live.probe = GraphProbe();
            live.probed = false; // its twin would replay the old graph
            if (!options_.upload_each) {
                failed = upload(live.exec.get(), arrival);
            }
        }
        if (failed) {
            std::swap(live.graph, arrival.graph);
            arrival.updated = true;
            return true;
        }
        if (driver_.usable()) {
            restored = driver_.calls().exec_update(live.exec.get(), live.graph.get(), &info) == CuResult::success;
        }
    }
    if (driver_.usable() && !restored) {
        (void)drop(entry, Absence::invalidated);
    }
    return failed.error();
}

void Cache::tell_captured(CacheEntry& entry, const std::shared_ptr<Executable>& exec, const GraphShape& shape) {
    std::string reason = "no profiler";
    Result<GraphProbe> probe{GraphProbe()};
    if (host_ != nullptr) {
        std::lock_guard tell(entry.tell);
        probe = host_->graph_captured(entry.key, exec->graph.get());
        entry.told = probe ? exec.get() : nullptr;
        reason = probe ? "" : probe.error().message;
    }
    const bool probed = host_ != nullptr && probe.ok();
    {
        std::lock_guard lock(exec->mutex);
        exec->probed = probed;
        exec->probe = probed ? std::move(*probe) : GraphProbe();
    }
    if (!probed) {
        const std::uint64_t capture = entry.account->captured(shape, {}); // else the probe has counted it
        entry.account->change_of(capture, [&](recording::GraphInfo& info) { info.twin_reason = "n/a: " + reason; });
    }
    entry.account->look_into(shape); // the probe did not where recording is off
    entry.account->probed(reason);
}

void Cache::count_arrival(CacheEntry& entry, const Arrival& arrival) {
    entry.account->measure([&arrival](recording::GraphInfo& row) {
        row.instantiations += arrival.instantiated ? 1 : 0;
        row.updates += arrival.updated ? 1 : 0;
        row.uploads += arrival.uploaded ? 1 : 0;
        add(row.capture_ns, arrival.capture_ns);
        add(row.instantiate_ns, arrival.instantiate_ns);
        if (arrival.uploaded) {
            add(row.upload_ns, arrival.upload_ns);
        }
        row.bytes = static_cast<double>(arrival.bytes);
    });
}

} // namespace plumb::cudagraph
