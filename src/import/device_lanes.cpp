// SPDX-License-Identifier: Apache-2.0
#include "import/device_lanes.hpp"

#include <algorithm>

#include "import/decimal.hpp"

namespace plumb::imported {
namespace {

/// "13" of "Stream #13(Compute)", where `text` begins with `head`.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view head) {
    if (!text.starts_with(head)) {
        return std::nullopt;
    }
    text.remove_prefix(head.size());
    return whole_number(text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size())));
}

DeviceOpKind kind_of(std::string_view name) {
    return name.starts_with("Memcpy")   ? DeviceOpKind::memcpy
           : name.starts_with("Memset") ? DeviceOpKind::memset
                                        : DeviceOpKind::kernel;
}

} // namespace

void DeviceLanes::add(std::vector<LaneLabel>& labels, std::vector<RawDeviceOp>& ops) {
    for (const LaneLabel& label : labels) {
        if (label.thread) {
            queues_.emplace(std::pair(label.process, *label.thread), number_behind(label.name, "Stream #"));
        } else {
            devices_.emplace(label.process, device_of(label.name));
        }
    }
    std::vector<RawDeviceOp> placed;
    for (RawDeviceOp& op : ops) {
        const Known known = place(op);
        if (known != Known::no_queue) {
            (known == Known::queue ? placed : waiting_).push_back(std::move(op));
        }
    }
    labels.clear();
    ops.clear();
    any_ = any_ || !placed.empty();
    std::vector<RawHostOp> none;
    to_.add(placed, none);
}

void DeviceLanes::finish() {
    std::vector<LaneLabel> none;
    std::vector<RawDeviceOp> waiting = std::move(waiting_);
    waiting_.clear();
    add(none, waiting); // what is still without a name is of nobody's device
    waiting_.clear();
    if (any_) {
        to_.facts.tool = "chrome";
    }
}

std::optional<DeviceLanes::Device> DeviceLanes::device_of(std::string_view name) {
    constexpr unsigned bits_of_pid = 32; // lanes tell none
    const std::size_t at = name.find("/device:GPU:");
    const auto number = at == name.npos ? std::nullopt : number_behind(name.substr(at), "/device:GPU:");
    if (!number) {
        return std::nullopt;
    }
    const auto host = hosts_.try_emplace(std::string(name.substr(0, at)), hosts_.size()).first;
    return Device{*number, host->second << bits_of_pid};
}

DeviceLanes::Known DeviceLanes::place(RawDeviceOp& op) const {
    const auto device = devices_.find(op.process);
    if (device != devices_.end() && !device->second) {
        return Known::no_queue;
    }
    const auto queue = queues_.find({op.process, op.stream});
    if (queue != queues_.end() && !queue->second) {
        return Known::no_queue;
    }
    if (device == devices_.end() || queue == queues_.end()) {
        return Known::not_yet;
    }
    op.op.kind = kind_of(op.name);
    op.numbering = op.process;
    op.device = device->second->number;
    op.stream = *queue->second;
    op.process = device->second->process;
    return Known::queue;
}

} // namespace plumb::imported
