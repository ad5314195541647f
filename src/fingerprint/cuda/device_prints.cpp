// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/cuda/device_prints.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace plumb::fingerprint {

using namespace backends::cuda;

Result<DevicePrints> DevicePrints::create(const Driver& driver, Stream stream, std::size_t most, KernelText image) {
    const Result<TensorDevice*> device = TensorDevice::of(driver, stream, image);
    if (!device) {
        return device.error();
    }
    Result<DeviceSite> site = (*device)->take_site(most_blocks, default_buckets);
    if (!site) {
        return site.error();
    }
    Result<SlotBlock> slots =
        (*device)->take_slots(static_cast<std::uint32_t>(std::max<std::size_t>(most, 1)), default_buckets);
    if (!slots) {
        (*device)->return_site(*site);
        return slots.error();
    }
    DevicePrints made(**device, stream);
    made.site_ = *site;
    made.slots_ = *slots;
    return made;
}

DevicePrints::DevicePrints(DevicePrints&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), stream_(other.stream_), site_(other.site_), slots_(other.slots_),
      next_(other.next_), counts_(std::move(other.counts_)) {}

DevicePrints::~DevicePrints() {
    if (device_ != nullptr) {
        device_->return_site(site_);
        device_->return_slots(slots_);
    }
}

Status DevicePrints::enqueue(const std::vector<Tensor>& tensors) {
    counts_.clear();
    for (const Tensor& tensor : tensors) {
        const Result<KernelTensor> of = kernel_tensor_of(tensor, 0, false);
        if (!of) {
            return of.error();
        }
        KernelParameters parameters;
        parameters.tensor = *of;
        parameters.site.slots = slots_.device;
        parameters.site.slot_count = slots_.count;
        parameters.site.site = site_.number;
        parameters.site.scratch = site_.scratch;
        parameters.site.token = next_;
        const CuResult launched = device_->launch(stream_, parameters, std::min(blocks_for(*of), site_.blocks));
        if (launched != CuResult::success) {
            return error_of(device_->driver(), launched, "cuLaunchKernel", "this tensor was not compared");
        }
        counts_.push_back(of->count);
        ++next_;
    }
    return {};
}

Result<std::vector<Fingerprint>> DevicePrints::read() {
    std::vector<Fingerprint> prints;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const std::uint64_t number = next_ - counts_.size() + i;
        SlotResult result;
        if (read_slot(slots_, number, result) != SlotState::complete || result.number != number) {
            return Error{ErrorCode::pending, "the device has not finished the fingerprint of a tensor; wait for its "
                                             "stream first"};
        }
        result.fingerprint.count = counts_[i];
        prints.push_back(std::move(result.fingerprint));
    }
    return prints;
}

} // namespace plumb::fingerprint
