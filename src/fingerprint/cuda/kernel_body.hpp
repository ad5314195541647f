// SPDX-License-Identifier: Apache-2.0
// One thread of the fingerprint kernel, on any machine that has warps, blocks and a ticket: nvcc compiles it for the GPU,
// the tests for a machine of fibres. Lane l of a warp holds the elements at lane l of its rows, eight rows at a time.
// The last block of the grid to arrive adds the blocks' results in their order, and writes the slot.
//
// A Machine has: thread(), block(), blocks(); exchange(value, mask): the value of lane (own ^ mask); sync_block();
// shared<double>(): most_shared doubles of the block; arrive(site, blocks): true in the thread of the block that came last;
// load<T>(address, index), scratch(word), word_of(address): memory; release() before others may see what was written.
#pragma once

#include "fingerprint/cuda/row_math.hpp"

#if defined(__CUDACC__)
#define PLUMB_DEVICE __device__ inline
#else
#define PLUMB_DEVICE inline
#endif

namespace plumb::fingerprint {

inline constexpr unsigned shared_of_warp = words_before_buckets + kernel_buckets;

template <class Machine>
struct FingerprintKernel {
    Machine& machine;
    const KernelParameters& parameters;

    PLUMB_DEVICE unsigned lane() const { return machine.thread() % 32; }
    PLUMB_DEVICE unsigned warp() const { return machine.thread() / 32; }
    PLUMB_DEVICE double* buckets_of_warp() const {
        return machine.shared() + std::size_t{warp()} * shared_of_warp + words_before_buckets;
    }

    /// Sums each of eight values over the lanes of a warp: afterwards values[0] is the sum of value `row_of_lane()`.
    PLUMB_DEVICE void sum_rows(std::uint64_t (&values)[rows_of_turn]) const {
        unsigned half = rows_of_turn / 2;
        for (unsigned mask = 16; half > 0; half /= 2, mask /= 2) {
            const bool upper = (lane() & mask) != 0;
            for (unsigned i = 0; i < rows_of_turn / 2; ++i) {
                if (i < half) {
                    const std::uint64_t sent = upper ? values[i] : values[i + half];
                    const std::uint64_t kept = upper ? values[i + half] : values[i];
                    values[i] = kept + machine.exchange(sent, mask);
                }
            }
        }
        values[0] += machine.exchange(values[0], 2);
        values[0] += machine.exchange(values[0], 1);
    }
    PLUMB_DEVICE unsigned row_of_lane() const {
        return (lane() >> 4 & 1u) * 4 + (lane() >> 3 & 1u) * 2 + (lane() >> 2 & 1u);
    }

    template <std::uint32_t type>
    PLUMB_DEVICE void see_rows(std::uint64_t row, std::uint64_t last_row, Seen& seen, double& bucket) const {
        using Element = ElementOf<type>;
        const KernelTensor& tensor = parameters.tensor;
        typename Element::Bits bits[rows_of_turn];
        bool present[rows_of_turn];
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (unsigned i = 0; i < rows_of_turn; ++i) { // all loads first: they are waited for once
            const std::uint64_t index = (row + i) * 32 + lane() - tensor.first_index;
            present[i] = index < tensor.count; // one before the first wraps round
            bits[i] = 0;
            if (present[i] && tensor.rank == 1) {
                bits[i] = machine.template load<typename Element::Bits>(tensor.data, static_cast<std::int64_t>(index) *
                                                                                         tensor.strides[0]);
            }
        }
        if (tensor.rank > 1) {
#if defined(__CUDACC__)
#pragma unroll
#endif
            for (unsigned i = 0; i < rows_of_turn; ++i) {
                if (present[i]) {
                    bits[i] = machine.template load<typename Element::Bits>(
                        tensor.data, offset_of(tensor, (row + i) * 32 + lane() - tensor.first_index));
                }
            }
        }
        std::uint64_t sums[rows_of_turn];
        const std::uint64_t factor = lane_factor(lane());
        const unsigned groups = parameters.site.buckets / 32;
        double* const buckets = buckets_of_warp();
#if defined(__CUDACC__)
#pragma unroll
#endif
        for (unsigned i = 0; i < rows_of_turn; ++i) {
            const std::uint64_t key = row_key(row + i);
            const std::uint64_t place = (row + i) * 32 + lane();
            double counted = 0;
            sums[i] = 0;
            if (present[i]) {
                const double x = Element::value(bits[i]);
                sums[i] = factor * fold(bits[i]);
                if (see(seen, x, place)) {
                    counted = is_negative(key, lane()) ? -x : x;
                    const std::uint64_t index = place - tensor.first_index;
                    if (index >= tensor.logits_begin) {
                        see_logit(seen, x, index - tensor.logits_begin);
                    }
                }
            }
            const double moved = machine.exchange(counted, lane_turn(key));
            if (groups == 1) {
                bucket += moved;
            } else {
                buckets[group_of(key, groups) * 32 + lane()] += moved; // no other lane's
            }
        }
        sum_rows(sums);
        const std::uint64_t own = row + row_of_lane();
        if (lane() % 4 == 0 && own <= last_row) {
            seen.hash += row_hash(sums[0], row_key(own));
        }
    }

    PLUMB_DEVICE void merge_warp(Seen& seen) const {
        for (unsigned mask = 16; mask > 0; mask /= 2) {
            Seen other;
            other.nans = machine.exchange(seen.nans, mask);
            other.positive_infs = machine.exchange(seen.positive_infs, mask);
            other.negative_infs = machine.exchange(seen.negative_infs, mask);
            other.first_nonfinite = machine.exchange(seen.first_nonfinite, mask);
            other.largest = machine.exchange(seen.largest, mask);
            other.hash = machine.exchange(seen.hash, mask);
            other.min = machine.exchange(seen.min, mask);
            other.max = machine.exchange(seen.max, mask);
            other.magnitude = machine.exchange(seen.magnitude, mask);
            other.sum = machine.exchange(seen.sum, mask);
            other.squares = machine.exchange(seen.squares, mask);
            other.logit = machine.exchange(seen.logit, mask);
            other.logit_value = machine.exchange(seen.logit_value, mask);
            other.logit_second = machine.exchange(seen.logit_second, mask);
            merge(seen, other);
        }
    }

    template <std::uint32_t type>
    PLUMB_DEVICE void see_tensor(Seen& seen, double& bucket) const {
        const KernelTensor& tensor = parameters.tensor;
        if (tensor.count == 0) {
            return;
        }
        const std::uint64_t first_row = tensor.first_index / 32;
        const std::uint64_t last_row = (tensor.first_index + tensor.count - 1) / 32;
        const std::uint64_t stride = std::uint64_t{machine.blocks()} * kernel_warps * rows_of_turn;
        std::uint64_t row = first_row + (std::uint64_t{machine.block()} * kernel_warps + warp()) * rows_of_turn;
        for (; row <= last_row; row += stride) {
            see_rows<type>(row, last_row, seen, bucket);
        }
    }

    /// What the block has seen, in the words of warp 0's part of the shared memory; every thread sees it.
    PLUMB_DEVICE void merge_block(Seen& seen, double bucket_of_lane) const {
        double* const all = machine.shared();
        double* const own = all + std::size_t{warp()} * shared_of_warp;
        merge_warp(seen);
        if (parameters.site.buckets == 32) {
            buckets_of_warp()[lane()] = bucket_of_lane;
        }
        if (lane() == 0) {
            store_seen(seen, [&](unsigned word, std::uint64_t value) { own[word] = same_bits<double>(value); });
        }
        machine.sync_block();
        if (machine.thread() == 0) {
            for (unsigned w = 1; w < kernel_warps; ++w) {
                const double* const other = all + std::size_t{w} * shared_of_warp;
                merge(seen, load_seen([&](unsigned word) { return same_bits<std::uint64_t>(other[word]); }));
            }
            store_seen(seen, [&](unsigned word, std::uint64_t value) { own[word] = same_bits<double>(value); });
        }
        machine.sync_block();
        const unsigned bucket = machine.thread();
        if (bucket < parameters.site.buckets) {
            double sum = 0;
            for (unsigned w = 0; w < kernel_warps; ++w) {
                sum += all[std::size_t{w} * shared_of_warp + words_before_buckets + bucket];
            }
            all[words_before_buckets + bucket] = sum;
        }
        machine.sync_block();
    }

    /// The blocks' results, in their order, in the shared memory.
    PLUMB_DEVICE void merge_grid() const {
        const std::uint32_t words = words_of_slot(parameters.site.buckets);
        double* const all = machine.shared();
        const unsigned bucket = machine.thread();
        machine.sync_block(); // what this block had there itself is in the scratch too
        if (bucket < parameters.site.buckets) {
            double sum = 0;
            for (unsigned b = 0; b < machine.blocks(); ++b) {
                sum += same_bits<double>(
                    machine.scratch(parameters.site.scratch + b * words + words_before_buckets + bucket));
            }
            all[words_before_buckets + bucket] = sum;
        }
        if (machine.thread() == 0) {
            Seen seen;
            for (unsigned b = 0; b < machine.blocks(); ++b) {
                merge(seen, load_seen([&](unsigned word) {
                          return machine.scratch(parameters.site.scratch + b * words + word);
                      }));
            }
            store_seen(seen, [&](unsigned word, std::uint64_t value) { all[word] = same_bits<double>(value); });
        }
        machine.sync_block();
    }

    PLUMB_DEVICE void put_scratch() const {
        const std::uint32_t words = words_of_slot(parameters.site.buckets);
        const double* const all = machine.shared();
        for (unsigned word = machine.thread(); word < words; word += kernel_threads) {
            machine.put_scratch(parameters.site.scratch + machine.block() * words + word,
                                word < word_nans ? 0 : same_bits<std::uint64_t>(all[word]));
        }
        machine.release();
        machine.sync_block();
    }

    /// One block; its first thread numbers the result.
    PLUMB_DEVICE void publish() const {
        const KernelSite& site = parameters.site;
        const std::uint32_t words = words_of_slot(site.buckets);
        double* const all = machine.shared();
        if (machine.thread() == 0) {
            std::uint64_t number = site.token;
            std::uint64_t tag = 0;
            if (site.group_plus_one != 0) {
                SiteState& state = machine.state(site.site);
                number = state.replays++;
                tag = machine.tag(site.group_plus_one - 1);
                const bool stale = tag == state.last_tag; // nobody announced this launch
                state.last_tag = tag;
                tag = stale ? 0 : tag;
            }
            all[word_sequence] = same_bits<double>(number);
            all[word_tag] = same_bits<double>(tag);
        }
        machine.sync_block();
        const auto number = same_bits<std::uint64_t>(all[word_sequence]);
        const std::uint64_t slot = site.slots + number % site.slot_count * words * sizeof(std::uint64_t);
        if (machine.thread() == 0) {
            machine.put(slot, 2 * number + 1);
        }
        machine.release_to_host();
        machine.sync_block();
        for (unsigned word = machine.thread() + 1; word < words; word += kernel_threads) {
            machine.put(slot + word * sizeof(std::uint64_t), same_bits<std::uint64_t>(all[word]));
        }
        machine.release_to_host();
        machine.sync_block();
        if (machine.thread() == 0) {
            machine.put(slot, 2 * number + 2);
        }
    }

    PLUMB_DEVICE void run() const {
        Seen seen;
        double bucket = 0; // where there are 32; more lie in the shared memory
        for (unsigned i = lane(); i < parameters.site.buckets; i += 32) {
            buckets_of_warp()[i] = 0;
        }
        switch (parameters.tensor.dtype) {
        case kernel_f32:
            see_tensor<kernel_f32>(seen, bucket);
            break;
        case kernel_f64:
            see_tensor<kernel_f64>(seen, bucket);
            break;
        case kernel_f16:
            see_tensor<kernel_f16>(seen, bucket);
            break;
        case kernel_bf16:
            see_tensor<kernel_bf16>(seen, bucket);
            break;
        case kernel_i8:
            see_tensor<kernel_i8>(seen, bucket);
            break;
        default:
            see_tensor<kernel_i32>(seen, bucket);
            break;
        }
        merge_block(seen, bucket);
        if (machine.blocks() > 1) {
            put_scratch();
            if (!machine.arrive_last(parameters.site.site)) {
                return;
            }
            merge_grid();
        }
        publish();
    }
};

} // namespace plumb::fingerprint
