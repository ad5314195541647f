// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cupti.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "backends/cuda/cupti_types.hpp"
#include "base/dynamic_library.hpp"
#include "clock/host_clock.hpp"

namespace plumb::backends::cuda {
namespace {

using cupti::KernelActivity;

// CUPTI keeps a buffer until all of its kernels have ended. Of a device that is never idle, so many are seen late.
constexpr std::size_t buffer_bytes = std::size_t{1} << 17;
constexpr std::size_t most_buffers = 512; // handed out at a time

struct Calls {
    cupti::CuptiResult (*register_timestamp)(cupti::TimestampFunction) = nullptr;
    cupti::CuptiResult (*register_callbacks)(cupti::BufferRequested, cupti::BufferCompleted) = nullptr;
    cupti::CuptiResult (*enable)(std::uint32_t kind) = nullptr;
    cupti::CuptiResult (*disable)(std::uint32_t kind) = nullptr;
    cupti::CuptiResult (*flush_all)(std::uint32_t flag) = nullptr;
    cupti::CuptiResult (*next_record)(std::uint8_t* buffer, std::size_t valid_bytes, void** record) = nullptr;
    cupti::CuptiResult (*dropped)(Context context, std::uint32_t stream, std::size_t* count) = nullptr;
    cupti::CuptiResult (*subscribe)(void** subscriber, cupti::Callback, void* user) = nullptr;
    cupti::CuptiResult (*unsubscribe)(void* subscriber) = nullptr;
    cupti::CuptiResult (*enable_callback)(std::uint32_t on, void* subscriber, std::uint32_t domain,
                                          std::uint32_t id) = nullptr;
    cupti::CuptiResult (*node_id)(GraphNode node, std::uint64_t* id) = nullptr;
    cupti::CuptiResult (*version)(std::uint32_t* version) = nullptr;
    cupti::CuptiResult (*result_text)(cupti::CuptiResult result, const char** text) = nullptr;
};

/// CUPTI's callbacks carry no pointer of ours, so what they fill belongs to the process.
struct Inbox {
    std::mutex mutex;
    bool reading = false;
    std::uint64_t begun_ns = 0;
    // The clock: once a process: registering again spoils the times of the kernels that follow (pytorch#192021).
    cupti::CuptiResult (*registered)(cupti::TimestampFunction) = nullptr;
    Calls calls;
    KernelTrace trace;
    std::size_t max_kernels = 0;
    std::set<std::uint8_t*> buffers; // handed out; others are another tool's
    std::atomic<const HostClock*> host_clock{nullptr};
    std::atomic<void (*)(std::uint32_t)> launched{nullptr};
};

// Never destroyed: CUPTI may deliver while the process exits.
Inbox& inbox() {
    static Inbox& only = *new Inbox;
    return only;
}

std::uint64_t now_ns() {
    const HostClock* injected = inbox().host_clock.load(std::memory_order_acquire);
    return static_cast<std::uint64_t>(injected != nullptr ? injected->now_ns() : clock::monotonic_ns());
}

void request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
    const std::lock_guard lock(inbox().mutex);
    *most_records = 0; // as many as fit
    *buffer = inbox().buffers.size() < most_buffers ? static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes))
                                                    : nullptr;
    *bytes = *buffer != nullptr ? buffer_bytes : 0; // without one CUPTI drops, and counts it
    if (*buffer != nullptr) {
        inbox().buffers.insert(*buffer);
    }
}

/// Spoiled stamps are off by a day, clocks by microseconds.
constexpr std::uint64_t slack_ns = 1'000'000;

/// Of the counts of kernels that are not to be used, the one that this belongs to; null: it may be used.
std::uint64_t* unusable_count(const Inbox& in, const KernelActivity& kernel, KernelTrace& trace) {
    if (kernel.start == 0 && kernel.end == 0) {
        return &trace.untimed;
    }
    if (kernel.end < kernel.start) {
        return &trace.backwards;
    }
    return kernel.start + slack_ns < in.begun_ns || kernel.end > now_ns() + slack_ns ? &trace.outside : nullptr;
}

void add_kernel(Inbox& in, const KernelActivity& kernel) {
    KernelTrace& trace = in.trace;
    if (std::uint64_t* const count = unusable_count(in, kernel, trace); count != nullptr) {
        ++*count;
        if (trace.unusable.size() < in.max_kernels) {
            trace.unusable.push_back(kernel.correlation_id);
        }
    } else if (trace.kernels.size() >= in.max_kernels) {
        ++trace.beyond_bound;
    } else {
        trace.kernels.push_back({kernel.name != nullptr ? kernel.name : "", kernel.start, kernel.end, kernel.device_id,
                                 kernel.stream_id, kernel.correlation_id, kernel.graph_id, kernel.graph_node_id});
    }
}

void complete_buffer(Context context, std::uint32_t stream, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    const std::lock_guard lock(inbox().mutex);
    Inbox& in = inbox();
    const bool ours = in.buffers.erase(buffer) != 0;
    void* record = nullptr;
    while (ours && valid > 0 && in.calls.next_record(buffer, valid, &record) == cupti::CuptiResult::success) {
        const auto& kernel = *static_cast<const KernelActivity*>(record);
        if (kernel.kind == cupti::kind_concurrent_kernel) {
            add_kernel(in, kernel);
        }
    }
    std::size_t dropped = 0;
    if (in.calls.dropped(context, stream, &dropped) == cupti::CuptiResult::success) {
        in.trace.dropped += dropped;
    }
    if (ours) {
        std::free(buffer);
    }
}

void see_launch(const cupti::CallData& call) {
    // Acquire: what its owner made before it.
    if (const auto launched = inbox().launched.load(std::memory_order_acquire); launched != nullptr && call.site == 0) {
        launched(call.correlation_id);
    }
}

void see(void*, std::uint32_t domain, std::uint32_t id, const void* data) {
    if (data != nullptr && (domain == cupti::domain_driver || domain == cupti::domain_runtime)) {
        see_launch(*static_cast<const cupti::CallData*>(data));
        return;
    }
    if (domain != cupti::domain_resource || id != cupti::resource_node_cloned || data == nullptr) {
        return;
    }
    const auto& graph =
        *static_cast<const cupti::GraphData*>(static_cast<const cupti::ResourceData*>(data)->descriptor);
    std::uint64_t node = 0;
    if (inbox().calls.node_id(graph.node, &node) != cupti::CuptiResult::success) {
        return;
    }
    const std::lock_guard lock(inbox().mutex);
    if (inbox().trace.origins.size() < inbox().max_kernels) {
        inbox().trace.origins[node] = graph.original_node;
    }
}

constexpr const char* held_by_another =
    "another tool traces this process already (the PyTorch profiler or Nsight Systems, for example), and CUPTI serves one at "
    "a time; stop that first";

Error cupti_error(const Calls& calls, cupti::CuptiResult result, const char* call) {
    const char* text = nullptr;
    if (calls.result_text == nullptr || calls.result_text(result, &text) != cupti::CuptiResult::success) {
        text = nullptr;
    }
    const std::string what = std::string(call) + ": " + (text != nullptr ? text : "an error without a name") + " (" +
                             std::to_string(static_cast<int>(result)) + "); ";
    if (result == cupti::CuptiResult::insufficient_privileges) {
        return {ErrorCode::permission, what + "let users read GPU counters (NVreg_RestrictProfilingToAdminUsers=0), or "
                                              "run as administrator"};
    }
    return {ErrorCode::unavailable, what + "see that no other profiler runs and that CUPTI fits the driver"};
}

template <class Function>
Status find(const base::DynamicLibrary& library, const char* name, Function*& member) {
    Result<Function*> found = library.function<Function>(name);
    if (!found) {
        return found.error();
    }
    member = *found;
    return {};
}

Result<Calls> calls_of(const base::DynamicLibrary& library) {
    Calls calls;
    const Status all[] = {
        find(library, "cuptiActivityRegisterTimestampCallback", calls.register_timestamp),
        find(library, "cuptiActivityRegisterCallbacks", calls.register_callbacks),
        find(library, "cuptiActivityEnable", calls.enable),
        find(library, "cuptiActivityDisable", calls.disable),
        find(library, "cuptiActivityFlushAll", calls.flush_all),
        find(library, "cuptiActivityGetNextRecord", calls.next_record),
        find(library, "cuptiActivityGetNumDroppedRecords", calls.dropped),
        find(library, "cuptiSubscribe", calls.subscribe),
        find(library, "cuptiUnsubscribe", calls.unsubscribe),
        find(library, "cuptiEnableCallback", calls.enable_callback),
        find(library, "cuptiGetGraphNodeId", calls.node_id),
        find(library, "cuptiGetVersion", calls.version),
        find(library, "cuptiGetResultString", calls.result_text),
    };
    for (const Status& one : all) {
        if (!one) {
            return one.error();
        }
    }
    return calls;
}

Result<base::DynamicLibrary> open_library(const std::vector<std::string>& first) {
    std::vector<std::string> names = first;
    for (const char* known : {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so",
                              "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda/lib64/libcupti.so"}) {
        names.emplace_back(known);
    }
    return base::DynamicLibrary::open(names,
                                      "install the CUDA toolkit's CUPTI, or pip's nvidia-cuda-cupti, and put its "
                                      "folder into LD_LIBRARY_PATH");
}

} // namespace

struct CuptiReader::Session {
    Calls calls;
    void* subscriber = nullptr;
    bool enabled = false;

    /// Where another tool holds CUPTI there is no reading: its records would come to us, or ours to it. Without a subscriber for another
    /// reason there are no `origins`: why.
    Result<std::string> subscribe(bool origins) {
        cupti::CuptiResult done = calls.subscribe(&subscriber, see, nullptr);
        if (done == cupti::CuptiResult::multiple_subscribers) {
            subscriber = nullptr;
            return Error{ErrorCode::already_exists, held_by_another};
        }
        if (done != cupti::CuptiResult::success) {
            subscriber = nullptr;
            return cupti_error(calls, done, "cuptiSubscribe").message;
        }
        if (!origins) {
            return std::string();
        }
        // Which node of an executable came from where.
        done = calls.enable_callback(1, subscriber, cupti::domain_resource, cupti::resource_node_cloned);
        return done == cupti::CuptiResult::success ? std::string()
                                                   : cupti_error(calls, done, "cuptiEnableCallback").message;
    }

    // Our clock comes before any kind: records made before it are on another one.
    Status switch_on() {
        if (inbox().registered != calls.register_timestamp) {
            if (const cupti::CuptiResult done = calls.register_timestamp(&now_ns);
                done != cupti::CuptiResult::success) {
                return cupti_error(calls, done, "cuptiActivityRegisterTimestampCallback");
            }
            inbox().registered = calls.register_timestamp;
        }
        // Each time: another tool may have put its own in their place.
        cupti::CuptiResult done = calls.register_callbacks(&request_buffer, &complete_buffer);
        if (done != cupti::CuptiResult::success) {
            return cupti_error(calls, done, "cuptiActivityRegisterCallbacks");
        }
        done = calls.enable(cupti::kind_concurrent_kernel);
        enabled = done == cupti::CuptiResult::success;
        return enabled ? Status() : cupti_error(calls, done, "cuptiActivityEnable");
    }

    Status watch_launches() {
        if (subscriber == nullptr) {
            return Error{ErrorCode::unavailable, "CUPTI takes no subscriber, so launches cannot be seen"};
        }
        for (const cupti::LaunchCall& call : cupti::launch_calls) {
            const cupti::CuptiResult done = calls.enable_callback(1, subscriber, call.domain, call.id);
            // A CUPTI that is older than a call refuses its number.
            if (done != cupti::CuptiResult::success && done != cupti::CuptiResult::invalid_parameter) {
                return cupti_error(calls, done, "cuptiEnableCallback");
            }
        }
        return {};
    }

    /// `forced`: with kernels that still run, which then never have a time.
    Status flush(bool forced) {
        const cupti::CuptiResult flushed = calls.flush_all(forced ? cupti::flush_forced : 0);
        return flushed == cupti::CuptiResult::success ? Status() : cupti_error(calls, flushed, "cuptiActivityFlushAll");
    }

    Status switch_off() {
        Status flushed;
        if (std::exchange(enabled, false)) {
            flushed = flush(true); // first: what is disabled with records in it may be lost
            static_cast<void>(calls.disable(cupti::kind_concurrent_kernel));
            static_cast<void>(flush(true)); // what was launched in between
        }
        if (subscriber != nullptr) {
            static_cast<void>(calls.unsubscribe(std::exchange(subscriber, nullptr)));
        }
        return flushed;
    }
};

CuptiReader::CuptiReader(std::unique_ptr<Session> session) : session_(std::move(session)) {}

Result<std::unique_ptr<CuptiReader>> CuptiReader::start(const CuptiOptions& options) {
    Result<base::DynamicLibrary> library = open_library(options.libraries);
    if (!library) {
        return library.error();
    }
    const Result<Calls> calls = calls_of(*library);
    if (!calls) {
        return calls.error();
    }
    {
        const std::lock_guard lock(inbox().mutex);
        if (inbox().reading) {
            return Error{ErrorCode::already_exists,
                         "kernels are being traced in this process already; stop that first"};
        }
        inbox().reading = true;
        inbox().calls = *calls;
        inbox().max_kernels = options.max_kernels;
        inbox().trace = {};
        inbox().trace.library = library->name();
        static_cast<void>(calls->version(&inbox().trace.version));
        inbox().host_clock.store(options.host_clock, std::memory_order_release);
        inbox().launched.store(options.launched, std::memory_order_release);
    }
    if (inbox().registered != calls->register_timestamp) {
        static_cast<void>(base::keep_for_good(std::move(*library))); // its threads live on
    }
    if (options.loaded != nullptr) {
        options.loaded();
    }
    std::unique_ptr<CuptiReader> reader(new CuptiReader(std::make_unique<Session>()));
    reader->session_->calls = *calls;
    Result<std::string> missing = reader->session_->subscribe(options.origins);
    if (!missing) {
        return missing.error();
    }
    {
        const std::lock_guard lock(inbox().mutex);
        inbox().trace.missing_origins = std::move(*missing);
        inbox().begun_ns = now_ns();
    }
    Status on = options.launched != nullptr ? reader->session_->watch_launches() : Status();
    if (on) {
        on = reader->session_->switch_on();
    }
    return on ? Result<std::unique_ptr<CuptiReader>>(std::move(reader)) : on.error();
}

Result<KernelTrace> CuptiReader::take() {
    if (Status flushed = session_->flush(false); !flushed) {
        return flushed.error();
    }
    const std::lock_guard lock(inbox().mutex);
    KernelTrace& now = inbox().trace;
    KernelTrace taken;
    taken.kernels.swap(now.kernels);
    taken.unusable.swap(now.unusable);
    for (std::uint64_t KernelTrace::*count :
         {&KernelTrace::untimed, &KernelTrace::backwards, &KernelTrace::beyond_bound, &KernelTrace::outside,
          &KernelTrace::dropped}) {
        taken.*count = std::exchange(now.*count, 0);
    }
    return taken;
}

Result<KernelTrace> CuptiReader::stop() {
    const Status off = session_->switch_off();
    const std::lock_guard lock(inbox().mutex);
    KernelTrace trace = std::exchange(inbox().trace, {});
    return off ? Result<KernelTrace>(std::move(trace)) : off.error();
}

CuptiReader::~CuptiReader() {
    static_cast<void>(session_->switch_off());
    const std::lock_guard lock(inbox().mutex);
    inbox().reading = false;
}

} // namespace plumb::backends::cuda
