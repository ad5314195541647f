// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/cuda/cuda_tensors.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "backends/absent_timer.hpp"
#include "backends/cuda/queue_timer.hpp"
#include "fingerprint/cuda/captured_tensors.hpp"
#include "fingerprint/cuda/tensor_device.hpp"
#include "record/recorder_access.hpp"

namespace plumb::fingerprint {

using namespace backends::cuda;

struct TensorTap::Shared {
    std::mutex mutex; // guards what follows
    std::vector<recording::TensorCheck> done;
    std::size_t missing = 0;
};

namespace {

/// The tap of this thread, if it has one: its shared part, by address of the pointer that holds it. Plain, so that a thread's
/// first touch calls nothing.
#if defined(__GNUC__)
__thread const std::shared_ptr<TensorTap::Shared>* tap_of_thread PLUMB_TLS_MODEL;
#else
thread_local const std::shared_ptr<TensorTap::Shared>* tap_of_thread;
#endif

class CudaTensors;

/// Who has checks now, for taps and for graphs that get their key.
struct CudaTensorsRegistry {
    std::mutex mutex;
    std::list<CudaTensors*> checks;
};

// Never destroyed: threads may still ask while the process exits.
CudaTensorsRegistry& registry() {
    static CudaTensorsRegistry& only = *new CudaTensorsRegistry;
    return only;
}

class CudaTensors final : public DeviceTensors {
  public:
    explicit CudaTensors(const CudaTensorsOptions& options) : options_(options) {
        const std::lock_guard lock(registry().mutex);
        registry().checks.push_back(this);
    }
    ~CudaTensors() override;

    [[nodiscard]] bool takes(const record::TensorCall& call) const noexcept override {
        const auto* absent = dynamic_cast<const backends::AbsentTimer*>(call.queue.timer);
        return dynamic_cast<const CudaQueueTimer*>(call.queue.timer) != nullptr ||
               (absent != nullptr && std::strcmp(absent->source(), "cuda_event") == 0);
    }
    Status enqueue(const record::TensorCall& call, recording::TensorCheck label) noexcept override;
    void collect(std::vector<recording::TensorCheck>& done) override;
    [[nodiscard]] std::uint64_t pending() const noexcept override;
    [[nodiscard]] std::uint64_t dropped() const noexcept override;

    /// Looks for what has finished, and keeps it for collect().
    void harvest();
    std::shared_ptr<CapturedTensors> find(const Recorder* recorder, Graph graph);
    void discard(unsigned long long capture) noexcept;

  private:
    struct Pending {
        std::uint64_t token = 0;
        std::uint64_t slot = 0;
        recording::TensorCheck label;
        std::shared_ptr<TensorTap::Shared> tap;
    };
    /// The eager half of one context.
    struct Eager {
        explicit Eager(TensorDevice& of) : device(of) {}
        TensorDevice& device;
        SlotBlock slots;
        std::vector<std::uint64_t> free;
        std::vector<Pending> pending;
        std::map<const QueueTimer*, DeviceSite> sites; // of streams
        bool gone = false;                             // the context, and the slots with it
    };

    Status enqueue_on(const Driver& driver, Stream stream, const record::TensorCall& call,
                      recording::TensorCheck&& label);
    Status enqueue_eager(TensorDevice& device, Stream stream, const QueueTimer* timer, const KernelTensor& tensor,
                         recording::TensorCheck&& label);
    Result<std::shared_ptr<CapturedTensors>> group_of(TensorDevice& device, const Recorder* recorder,
                                                      unsigned long long capture, Graph graph);
    Result<Eager*> eager_of(TensorDevice& device);
    void harvest_eager(Eager& eager);
    void give_up(Eager& eager);

    const CudaTensorsOptions options_;
    std::atomic<std::uint64_t> lost_{0}; // given up with their context
    std::atomic<bool> dead_{false};      // after a sticky error: no call is made any more

    mutable std::mutex mutex_; // guards what follows; launches are made outside of it
    std::list<Eager> eager_;
    std::vector<std::shared_ptr<CapturedTensors>> groups_;
    std::vector<recording::TensorCheck> ready_;
    std::uint64_t next_token_ = 0;
    Error why_dead_;
};

CudaTensors::~CudaTensors() {
    {
        const std::lock_guard lock(registry().mutex);
        registry().checks.remove(this);
    }
    harvest();
    for (const auto& group : groups_) {
        group->close();
    }
    for (Eager& eager : eager_) {
        // What is still on its way may write there: such a context's slots are used no more.
        if (!eager.gone && eager.pending.empty()) {
            eager.device.return_slots(eager.slots);
            for (const auto& [timer, site] : eager.sites) {
                eager.device.return_site(site);
            }
        }
    }
}

Status CudaTensors::enqueue(const record::TensorCall& call, recording::TensorCheck label) noexcept {
    try {
        const auto* const timer = dynamic_cast<const CudaQueueTimer*>(call.queue.timer);
        const Result<Driver>& driver = backends::cuda::driver();
        if (timer == nullptr || !driver) {
            return Error{ErrorCode::unavailable, "this CUDA stream cannot be reached, so that its tensors are not "
                                                 "checked; see plumb selftest"};
        }
        if (dead_.load(std::memory_order_acquire)) { // pairs with enqueue_eager(): the error is there
            const std::lock_guard lock(mutex_);
            return why_dead_;
        }
        Status done = enqueue_on(*driver, timer->stream(), call, std::move(label));
        if (!done && tap_of_thread != nullptr) {
            TensorTap::Shared& tap = **tap_of_thread;
            const std::lock_guard lock(tap.mutex);
            ++tap.missing;
        }
        return done;
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory, "there is no memory to check a tensor"};
    }
}

Status CudaTensors::enqueue_on(const Driver& driver, Stream stream, const record::TensorCall& call,
                               recording::TensorCheck&& label) {
    const Result<KernelTensor> tensor = kernel_tensor_of(*call.tensor, label.first_index, call.tags.logits);
    if (!tensor) {
        return tensor.error();
    }
    const RelaxedCapture relaxed(driver);
    CaptureStatus status = CaptureStatus::none;
    unsigned long long capture = 0;
    Graph graph = nullptr;
    const CuResult asked = driver.capture_info(stream, &status, &capture, &graph, nullptr, nullptr, nullptr);
    if (asked != CuResult::success || status == CaptureStatus::invalidated) {
        return asked != CuResult::success
                   ? Status(error_of(driver, asked, "cuStreamGetCaptureInfo", "this tensor is not checked"))
                   : Status(Error{ErrorCode::unsupported,
                                  "this stream's capture was invalidated before this check; end "
                                  "the capture and see its error"});
    }
    Result<TensorDevice*> device = TensorDevice::of(driver, stream, options_.image);
    if (!device) {
        return device.error();
    }
    if (status == CaptureStatus::none) {
        return enqueue_eager(**device, stream, call.queue.timer, *tensor, std::move(label));
    }
    const Result<std::shared_ptr<CapturedTensors>> group = group_of(**device, call.recorder, capture, graph);
    if (!group) {
        return group.error();
    }
    const RunningStep facts = RecorderAccess::step_facts(*call.recorder, call.step_plus_one);
    return (*group)->add(stream, *tensor, std::move(label), facts.position);
}

Result<CudaTensors::Eager*> CudaTensors::eager_of(TensorDevice& device) {
    for (Eager& known : eager_) {
        if (&known.device == &device) {
            return &known;
        }
    }
    Result<SlotBlock> slots = device.take_slots(options_.eager_slots, default_buckets);
    if (!slots) {
        return slots.error();
    }
    Eager& made = eager_.emplace_back(device);
    made.slots = *slots;
    for (std::uint64_t i = slots->count; i-- > 0;) {
        made.free.push_back(i);
    }
    return &made;
}

Status CudaTensors::enqueue_eager(TensorDevice& device, Stream stream, const QueueTimer* timer,
                                  const KernelTensor& tensor, recording::TensorCheck&& label) {
    KernelParameters parameters;
    parameters.tensor = tensor;
    Pending pending;
    pending.label = std::move(label);
    pending.tap = tap_of_thread != nullptr ? *tap_of_thread : nullptr;
    std::uint32_t blocks = blocks_for(tensor);
    Eager* eager = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const Result<Eager*> found = eager_of(device);
        if (!found) {
            return found.error();
        }
        eager = *found;
        if (eager->free.empty()) {
            harvest_eager(*eager);
        }
        if (eager->free.empty()) {
            return Error{ErrorCode::out_of_memory, "more than " + std::to_string(options_.eager_slots) +
                                                       " checks are in flight on one device; check fewer bricks"};
        }
        auto site = eager->sites.find(timer);
        if (site == eager->sites.end()) {
            Result<DeviceSite> taken = device.take_site(most_blocks, default_buckets);
            if (!taken) {
                return taken.error();
            }
            site = eager->sites.emplace(timer, *taken).first;
        }
        blocks = std::min(blocks, site->second.blocks);
        parameters.site.site = site->second.number;
        parameters.site.scratch = site->second.scratch;
        pending.slot = eager->free.back();
        pending.token = next_token_++;
        eager->free.pop_back();
        parameters.site.slots =
            eager->slots.device + pending.slot * words_of_slot(default_buckets) * sizeof(std::uint64_t);
        parameters.site.token = pending.token;
        parameters.site.buckets = default_buckets;
        if (pending.tap != nullptr) {
            const std::lock_guard tap(pending.tap->mutex);
            ++pending.tap->missing;
        }
        eager->pending.push_back(pending);
    }
    const CuResult launched = device.launch(stream, parameters, blocks);
    if (launched == CuResult::success) {
        return {};
    }
    const Error error = error_of(device.driver(), launched, "cuLaunchKernel", "this tensor is not checked");
    const std::lock_guard lock(mutex_);
    if (is_sticky(launched) && !dead_.load(std::memory_order_relaxed)) {
        why_dead_ = error;
        dead_.store(true, std::memory_order_release);
    }
    const auto at = std::find_if(eager->pending.begin(), eager->pending.end(),
                                 [&](const Pending& one) { return one.token == pending.token; });
    if (at != eager->pending.end()) {
        eager->pending.erase(at);
        eager->free.push_back(pending.slot);
    }
    if (pending.tap != nullptr) {
        const std::lock_guard tap(pending.tap->mutex);
        --pending.tap->missing;
    }
    return error;
}

Result<std::shared_ptr<CapturedTensors>> CudaTensors::group_of(TensorDevice& device, const Recorder* recorder,
                                                               unsigned long long capture, Graph graph) {
    const std::lock_guard lock(mutex_);
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
        if ((*group)->capture == capture && (*group)->recorder == recorder && &(*group)->device() == &device) {
            return *group;
        }
    }
    const Result<std::uint32_t> number = device.take_group();
    if (!number) {
        return number.error();
    }
    groups_.push_back(std::make_shared<CapturedTensors>(device, recorder, capture, graph, *number));
    return groups_.back();
}

void CudaTensors::give_up(Eager& eager) {
    eager.gone = true;
    lost_.fetch_add(eager.pending.size(), std::memory_order_relaxed);
    for (const Pending& pending : eager.pending) {
        if (pending.tap != nullptr) {
            const std::lock_guard tap(pending.tap->mutex);
            --pending.tap->missing;
        }
    }
    eager.pending.clear();
}

void CudaTensors::harvest_eager(Eager& eager) {
    SlotResult result;
    const auto still_pending = [&](Pending& pending) {
        if (read_slot(eager.slots, pending.slot, result) != SlotState::complete || result.number != pending.token) {
            return true;
        }
        recording::TensorCheck& check = pending.label;
        check.fingerprint = std::move(result.fingerprint);
        check.fingerprint.count = 1;
        for (const std::uint64_t size : check.shape) {
            check.fingerprint.count *= size;
        }
        check.fingerprint.count = check.shape.empty() ? 0 : check.fingerprint.count;
        check.argmax = result.argmax;
        check.margin = result.margin;
        if (pending.tap != nullptr) {
            const std::lock_guard tap(pending.tap->mutex);
            pending.tap->done.push_back(check);
            --pending.tap->missing;
        }
        ready_.push_back(std::move(check));
        eager.free.push_back(pending.slot);
        return false;
    };
    const auto end = std::stable_partition(eager.pending.begin(), eager.pending.end(), still_pending);
    eager.pending.erase(end, eager.pending.end());
}

void CudaTensors::harvest() {
    using Presence = TensorDevice::Presence;
    std::vector<std::shared_ptr<CapturedTensors>> groups;
    std::map<TensorDevice*, Presence> presence;
    {
        const std::lock_guard lock(mutex_);
        groups = groups_;
        for (const Eager& eager : eager_) {
            presence[&eager.device] = eager.gone ? Presence::gone : Presence::there;
        }
    }
    for (const auto& group : groups) {
        presence.emplace(&group->device(), Presence::there);
    }
    const bool dead = dead_.load(std::memory_order_acquire); // pairs with enqueue_eager()
    for (auto& [device, is] : presence) {
        if (is == Presence::there) {
            is = dead ? Presence::gone : device->presence();
        }
    }
    std::vector<recording::TensorCheck> done;
    for (const auto& group : groups) {
        const Presence is = presence[&group->device()];
        if (is == Presence::there) {
            group->harvest(done);
        } else if (is == Presence::gone) {
            group->close();
        }
    }
    const std::lock_guard lock(mutex_);
    ready_.insert(ready_.end(), std::make_move_iterator(done.begin()), std::make_move_iterator(done.end()));
    for (Eager& eager : eager_) {
        const auto known = presence.find(&eager.device);
        if (known == presence.end() || eager.gone) {
            continue; // made meanwhile: the next look
        }
        if (known->second == Presence::there) {
            harvest_eager(eager);
        } else if (known->second == Presence::gone) {
            give_up(eager);
        }
    }
}

void CudaTensors::collect(std::vector<recording::TensorCheck>& done) {
    harvest();
    const std::lock_guard lock(mutex_);
    done.insert(done.end(), std::make_move_iterator(ready_.begin()), std::make_move_iterator(ready_.end()));
    ready_.clear();
}

std::uint64_t CudaTensors::pending() const noexcept {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = ready_.size();
    for (const Eager& eager : eager_) {
        count += eager.pending.size();
    }
    for (const auto& group : groups_) {
        count += group->counts().pending;
    }
    return count;
}

std::uint64_t CudaTensors::dropped() const noexcept {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = lost_.load(std::memory_order_relaxed);
    for (const auto& group : groups_) {
        count += group->counts().unread;
    }
    return count;
}

std::shared_ptr<CapturedTensors> CudaTensors::find(const Recorder* recorder, Graph graph) {
    const std::lock_guard lock(mutex_);
    // The newest: a graph's handle may have been given out before.
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
        if ((recorder == nullptr || (*group)->recorder == recorder) && (*group)->graph == graph) {
            return *group;
        }
    }
    return nullptr;
}

void CudaTensors::discard(unsigned long long capture) noexcept {
    const std::lock_guard lock(mutex_);
    const auto gone = std::remove_if(groups_.begin(), groups_.end(), [&](const auto& group) {
        if (group->capture != capture) {
            return false;
        }
        group->discard();
        return true;
    });
    groups_.erase(gone, groups_.end());
}

} // namespace

std::unique_ptr<DeviceTensors> make_cuda_tensors(const CudaTensorsOptions& options) {
    return std::make_unique<CudaTensors>(options);
}

std::shared_ptr<CapturedTensors> find_captured_tensors(const Recorder* recorder, Graph graph) {
    const std::lock_guard lock(registry().mutex);
    for (CudaTensors* const checks : registry().checks) {
        if (std::shared_ptr<CapturedTensors> found = checks->find(recorder, graph)) {
            return found;
        }
    }
    return nullptr;
}

void discard_captured_tensors(unsigned long long capture) noexcept {
    const std::lock_guard lock(registry().mutex);
    for (CudaTensors* const checks : registry().checks) {
        checks->discard(capture);
    }
}

TensorTap::TensorTap() : shared_(std::make_shared<Shared>()) { tap_of_thread = &shared_; }
TensorTap::~TensorTap() { tap_of_thread = nullptr; }

std::vector<recording::TensorCheck> TensorTap::harvest() {
    {
        const std::lock_guard lock(registry().mutex);
        for (CudaTensors* const checks : registry().checks) {
            checks->harvest();
        }
    }
    const std::lock_guard lock(shared_->mutex);
    std::stable_sort(shared_->done.begin(), shared_->done.end(),
                     [](const auto& a, const auto& b) { return a.order < b.order; });
    return shared_->done;
}

std::size_t TensorTap::missing() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->missing;
}

} // namespace plumb::fingerprint
