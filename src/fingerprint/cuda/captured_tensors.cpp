// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/cuda/captured_tensors.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "fingerprint/tensor_order.hpp"

namespace plumb::fingerprint {

using namespace backends::cuda;

namespace {

/// Never twice in a process, so that a tag tells launches of all graphs apart. Relaxed: only a number.
std::uint64_t next_tag() noexcept {
    static std::atomic<std::uint64_t> tags{0};
    return tags.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// The node that the capture's next one would wait for; null where that is not one node.
GraphNode last_node(const Driver& driver, Stream stream) noexcept {
    CaptureStatus status = CaptureStatus::none;
    unsigned long long id = 0;
    Graph graph = nullptr;
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    const CuResult asked = driver.capture_info(stream, &status, &id, &graph, &nodes, &edges, &count);
    return asked == CuResult::success && status == CaptureStatus::active && count == 1 ? nodes[0] : nullptr;
}

} // namespace

void CapturedTensors::set_key(std::uint64_t key) noexcept {
    const std::lock_guard lock(mutex_);
    key_ = key;
}

void CapturedTensors::announce(Stream stream, const AnnouncedLaunch& launch) noexcept {
    const Driver& driver = device_.driver();
    Launch made;
    {
        const std::lock_guard lock(mutex_);
        // A replay on another stream may still be running there, and would see the new number.
        const bool moved = launched_ && stream != stream_;
        withdrawable_ = false;
        stream_ = stream;
        launched_ = true;
        if (closed_ || moved) {
            return;
        }
        made.tag = next_tag();
        made.order = take_tensor_orders(sites_.size());
    }
    made.what = launch;
    CaptureStatus status = CaptureStatus::none;
    if (driver.stream_is_capturing(stream, &status) != CuResult::success || status != CaptureStatus::none ||
        device_.launch_tag(stream, group_, made.tag) != CuResult::success) {
        return;
    }
    const std::lock_guard lock(mutex_);
    launches_.push_back(made);
    if (launches_.size() > most_launches) {
        launches_.pop_front();
    }
    ++announced_;
    withdrawable_ = true;
}

void CapturedTensors::withdraw() noexcept {
    const std::lock_guard lock(mutex_);
    if (withdrawable_) {
        launches_.pop_back();
        --announced_;
        withdrawable_ = false;
    }
}

Status CapturedTensors::add(Stream stream, const KernelTensor& tensor, recording::TensorCheck label,
                            std::int64_t position_of_step) {
    Status added = try_add(stream, tensor, std::move(label), position_of_step);
    if (!added) {
        const std::lock_guard lock(mutex_);
        ++refused_;
    }
    return added;
}

Status CapturedTensors::try_add(Stream stream, const KernelTensor& tensor, recording::TensorCheck&& label,
                                std::int64_t position_of_step) {
    constexpr std::uint32_t buckets = default_buckets;
    Result<DeviceSite> site = device_.take_site(blocks_for(tensor), buckets);
    if (!site) {
        return site.error();
    }
    Result<SlotBlock> slots = device_.take_slots(slots_of_site, buckets);
    if (!slots) {
        device_.return_site(*site);
        return slots.error();
    }
    KernelParameters parameters;
    parameters.tensor = tensor;
    parameters.site.slots = slots->device;
    parameters.site.slot_count = slots->count;
    parameters.site.site = site->number;
    parameters.site.group_plus_one = group_ + 1;
    parameters.site.scratch = site->scratch;
    parameters.site.buckets = buckets;
    const CuResult launched = device_.launch(stream, parameters, std::min(blocks_for(tensor), site->blocks));
    if (launched != CuResult::success) { // no node was made
        device_.return_site(*site);
        device_.return_slots(*slots);
        return error_of(device_.driver(), launched, "cuLaunchKernel", "this tensor is not checked in replays");
    }
    Site made;
    made.node = last_node(device_.driver(), stream);
    made.has_position = label.position >= 0;
    made.position_offset = position_of_step >= 0 && made.has_position ? label.position - position_of_step : 0;
    made.slots = *slots;
    made.site = *site;
    const std::lock_guard lock(mutex_);
    label.in_graph = true;
    label.occurrence = occurrences_[Place{label.sequence, label.layer_plus_one, label.name, label.role}]++;
    made.label = std::move(label);
    sites_.push_back(std::move(made));
    return {};
}

recording::TensorCheck CapturedTensors::check_of(const Site& site, SlotResult&& result) const {
    recording::TensorCheck check = site.label;
    const std::uint64_t count = [&] {
        std::uint64_t product = check.shape.empty() ? 0 : 1;
        for (const std::uint64_t size : check.shape) {
            product *= size;
        }
        return product;
    }();
    check.fingerprint = std::move(result.fingerprint);
    check.fingerprint.count = count;
    check.argmax = result.argmax;
    check.margin = result.margin;
    check.graph_key = key_;
    check.replay = result.number + 1;
    check.step_plus_one = 0;
    check.phase = Phase::none;
    check.position = -1;
    const auto launch = std::lower_bound(launches_.begin(), launches_.end(), result.tag,
                                         [](const Launch& one, std::uint64_t tag) { return one.tag < tag; });
    if (result.tag != 0 && launch != launches_.end() && launch->tag == result.tag) {
        check.order = launch->order + static_cast<std::uint64_t>(&site - sites_.data());
        check.step_plus_one = launch->what.step_plus_one;
        check.phase = launch->what.phase;
        check.position =
            launch->what.position >= 0 && site.has_position ? launch->what.position + site.position_offset : -1;
    }
    return check;
}

/// A slot that holds a later result than the one looked for has lost that one, and all that are a round behind.
void CapturedTensors::harvest_site(Site& site, std::vector<recording::TensorCheck>& done) {
    SlotResult result;
    while (true) {
        const SlotState state = read_slot(site.slots, site.next, result);
        if (state == SlotState::empty || result.number < site.next) {
            return; // not there yet
        }
        if (result.number > site.next) {
            const std::uint64_t behind = result.number < site.slots.count ? 0 : result.number - site.slots.count + 1;
            const std::uint64_t next = std::max(site.next + 1, behind);
            site.unread += next - site.next;
            site.next = next;
            continue;
        }
        if (state == SlotState::torn) {
            return; // it is being written now
        }
        ++site.next;
        ++site.read;
        site.newest = check_of(site, std::move(result));
        site.seen = true;
        done.push_back(site.newest);
    }
}

void CapturedTensors::harvest(std::vector<recording::TensorCheck>& done) {
    const std::lock_guard lock(mutex_);
    if (closed_) {
        return;
    }
    for (Site& site : sites_) {
        harvest_site(site, done);
    }
}

std::vector<CapturedTensors::Latest> CapturedTensors::latest() const {
    const std::lock_guard lock(mutex_);
    std::vector<Latest> all;
    for (const Site& site : sites_) {
        if (site.seen) {
            all.push_back({site.newest, site.node});
        }
    }
    return all;
}

std::vector<GraphNode> CapturedTensors::nodes() const {
    const std::lock_guard lock(mutex_);
    std::vector<GraphNode> known;
    for (const Site& site : sites_) {
        if (site.node != nullptr) {
            known.push_back(site.node);
        }
    }
    return known;
}

CapturedTensors::Counts CapturedTensors::counts() const noexcept {
    const std::lock_guard lock(mutex_);
    Counts counts;
    counts.sites = sites_.size();
    counts.refused = refused_;
    for (const Site& site : sites_) {
        counts.read += site.read;
        counts.unread += site.unread;
        const std::uint64_t seen = site.read + site.unread;
        counts.pending += !closed_ && announced_ > seen ? announced_ - seen : 0;
    }
    return counts;
}

void CapturedTensors::discard() noexcept {
    std::vector<Site> sites;
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        sites.swap(sites_);
    }
    for (const Site& site : sites) {
        device_.return_site(site.site);
        device_.return_slots(site.slots);
    }
}

void CapturedTensors::close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

} // namespace plumb::fingerprint
