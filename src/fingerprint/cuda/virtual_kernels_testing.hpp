// SPDX-License-Identifier: Apache-2.0
// The fingerprint kernels on the virtual GPU: what they do to its memory, computed from the definition, or by the
// kernel's own text on fibres. Test-only; made after each reset() of the virtual GPU, and alive as long as it runs.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

#include "fingerprint/cuda/host_machine_testing.hpp"
#include "fingerprint/cuda/naive_kernel_testing.hpp"
#include "fingerprint/cuda/row_math.hpp"
#include "fingerprint/cuda/tensor_device.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::fingerprint {

class VirtualKernels {
  public:
    enum class How { definition, own_text };

    explicit VirtualKernels(How how = How::definition) {
        vgpu::KernelModel check;
        check.param_bytes = {sizeof(KernelParameters)};
        auto state = state_;
        if (how == How::own_text) {
            state->machine = std::make_unique<HostMachine>(
                [](std::uint64_t address, std::size_t bytes) { return vgpu::memory(address, bytes); });
        }
        check.function = [state](const vgpu::KernelRun& run) {
            const auto& parameters = run.param<KernelParameters>(0);
            ++state->runs;
            if (state->machine != nullptr) {
                state->machine->launch(parameters, run.grid[0]);
            } else {
                run_definition(*state, parameters);
            }
        };
        vgpu::kernel(kernel_name, check);
        vgpu::KernelModel tag;
        tag.param_bytes = {4, 8};
        tag.function = [state](const vgpu::KernelRun& run) {
            state->tags[run.param<std::uint32_t>(0)] = run.param<std::uint64_t>(1);
            if (state->machine != nullptr) {
                state->machine->set_tag(run.param<std::uint32_t>(0), run.param<std::uint64_t>(1));
            }
        };
        vgpu::kernel(tag_kernel_name, tag);
    }
    [[nodiscard]] std::uint64_t runs() const { return state_->runs; }

  private:
    struct State {
        std::uint64_t runs = 0;
        std::map<std::uint32_t, SiteState> sites;
        std::map<std::uint32_t, std::uint64_t> tags;
        std::unique_ptr<HostMachine> machine;
    };

    static void run_definition(State& state, const KernelParameters& parameters) {
        const KernelTensor& tensor = parameters.tensor;
        const KernelSite& site = parameters.site;
        const auto type = static_cast<DType>(tensor.dtype);
        const void* const data = tensor.count == 0 ? nullptr : vgpu::memory(tensor.data, size_of(type));
        const auto offset = [&](std::uint64_t index) {
            return offset_of(tensor, index);
        };
        const Fingerprint made = naive_fingerprint(data, type, tensor.count, tensor.first_index, site.buckets, offset);
        Seen seen;
        for (std::uint64_t i = tensor.logits_begin; i < tensor.count; ++i) {
            const double x = element_value(data, type, offset(i));
            if (is_finite(x)) {
                see_logit(seen, x, i - tensor.logits_begin);
            }
        }
        seen.nans = made.nans;
        seen.positive_infs = made.positive_infs;
        seen.negative_infs = made.negative_infs;
        seen.first_nonfinite = made.first_nonfinite;
        seen.largest = made.largest;
        seen.hash = made.hash;
        seen.min = made.min;
        seen.max = made.max;
        seen.sum = made.sum;
        seen.squares = made.sum_of_squares;
        SiteState& kept = state.sites[site.site];
        std::uint64_t number = site.token;
        std::uint64_t tag = 0;
        if (site.group_plus_one != 0) {
            number = kept.replays++;
            tag = state.tags[site.group_plus_one - 1];
            tag = std::exchange(kept.last_tag, tag) == tag ? 0 : tag;
        }
        const std::uint32_t words = words_of_slot(site.buckets);
        auto* const slot = static_cast<std::uint64_t*>(
            vgpu::memory(site.slots + number % site.slot_count * words * sizeof(std::uint64_t), words * 8));
        const auto put = [&](unsigned word, std::uint64_t value) {
            __atomic_store_n(slot + word, value, __ATOMIC_RELEASE);
        };
        put(word_sequence, 2 * number + 1);
        put(word_tag, tag);
        store_seen(seen, put);
        for (std::uint32_t i = 0; i < site.buckets; ++i) {
            put(words_before_buckets + i, same_bits<std::uint64_t>(made.sketch[i]));
        }
        put(word_sequence, 2 * number + 2);
    }

    std::shared_ptr<State> state_ = std::make_shared<State>();
};

} // namespace plumb::fingerprint
