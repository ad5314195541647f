// SPDX-License-Identifier: Apache-2.0
// What every entry point does first and last: count, fail on demand, hold, cost host time, obey captures, notice two
// threads in one graph object. Lives on the stack of one entry point and holds the Gpu's lock.
#pragma once

#include <initializer_list>

#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

class Call {
  public:
    /// `objects`: graphs and executables that this call uses; no other thread may be in them.
    explicit Call(CallId id, std::initializer_list<const void*> objects = {}, std::int64_t extra_cost_ns = 0);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    /// It failed before it began.
    [[nodiscard]] bool stopped() const { return stopped_; }
    [[nodiscard]] CuResult result() const { return result_; }
    /// The answer of a call that did its work.
    [[nodiscard]] CuResult done(CuResult result = CuResult::success) const {
        return result == CuResult::success ? result_ : result;
    }
    [[nodiscard]] const char* symbol() const { return info(id_).symbol; }
    [[nodiscard]] std::int64_t began_ns() const { return began_ns_; }

    /// Costs the host more.
    void spend(std::int64_t ns);
    /// Waits until a true time, without more.
    void wait_until(std::int64_t time_ns);
    /// A synchronising call: waits, wakes, and is in the ledger.
    void synchronise(std::int64_t time_ns);

    /// Something is loaded or allocated: waits, unsaid, for the context's work if so configured.
    void load(Context context);
    /// The same for a kernel, the first time it is used.
    void load(FunctionObject& function);

    /// The stream of a handle, legacy and per-thread ones too; null: there is none, and result() says why. Frontier
    /// arrays given out for it go stale.
    std::shared_ptr<StreamObject> stream(Stream handle);
    /// The same for a call that does something: an invalidated capture, or one that the legacy stream would disturb,
    /// refuses it.
    std::shared_ptr<StreamObject> working_stream(Stream handle);
    std::shared_ptr<EventObject> event(Event handle);
    std::shared_ptr<GraphObject> graph(Graph handle);
    std::shared_ptr<NodeObject> node(GraphNode handle);
    std::shared_ptr<ExecObject> exec(GraphExec handle);

    /// Remembers the error and returns it.
    CuResult refuse(CuResult error);
    /// Refuses, and ends the capture's life.
    CuResult break_capture(CaptureObject& capture, CuResult error);

  private:
    void obey_rules();
    void obey_captures();
    void enter(std::initializer_list<const void*> objects, std::int64_t cost_ns);
    template <class T, class Handle>
    std::shared_ptr<T> look_up(const Handles<T, Handle>& table, Handle handle, const char* kind);

    CallId id_;
    std::unique_lock<std::recursive_mutex> lock_;
    std::vector<const void*> objects_;
    std::shared_ptr<HoldState> hold_;
    std::int64_t slow_ns_ = 0;
    std::int64_t began_ns_ = 0;
    CuResult result_ = CuResult::success;
    bool stopped_ = false;
};

template <class T, class Handle>
std::shared_ptr<T> Call::look_up(const Handles<T, Handle>& table, Handle handle, const char* kind) {
    auto object = table.find(handle);
    if (!object) {
        if (table.was_destroyed(handle)) {
            ledger_error(std::string(symbol()) + " got " + kind + " that was destroyed before.");
        }
        refuse(handle == nullptr ? CuResult::invalid_value : CuResult::invalid_handle);
    }
    return object;
}

} // namespace plumb::vgpu

#define PLUMB_VGPU_ENTER(member, ...)                     \
    Call call(CallId::member __VA_OPT__(, ) __VA_ARGS__); \
    if (call.stopped())                                   \
    return call.result()
