// SPDX-License-Identifier: Apache-2.0
#include "session/kernel_registry.hpp"

#include <algorithm>

#include "recording/kernel_codec.hpp"

namespace plumb::session {

KernelRegistry::Added KernelRegistry::add(recording::KernelInfo given) {
    recording::KernelInfo kernel = recording::bounded(std::move(given));
    Added added;
    added.code_hash = kernel.code_hash;
    std::vector<std::size_t>& same_hash = by_hash_[kernel.code_hash];
    const recording::KernelInfo* other = nullptr;
    for (const std::size_t known : same_hash) {
        if (recording::collide(kernels_[known], kernel)) {
            other = &kernels_[known];
        } else if (kernels_[known].name == kernel.name) {
            return added; // the same once more
        }
    }
    if (other != nullptr) {
        added.status = Error{ErrorCode::already_exists, recording::collision_text(*other, kernel) +
                                                            "; change one of them by a byte, such as a comment"};
    }
    if (kernels_.size() >= most_kernels) {
        if (same_hash.empty()) {
            by_hash_.erase(kernel.code_hash);
        }
        added.status = Error{ErrorCode::out_of_memory,
                             "4096 kernels are registered, which is all that is kept: register those that matter"};
        return added;
    }
    if (source_bytes_ + kernel.source.size() > most_source_bytes) {
        kernel.source.clear();
    }
    source_bytes_ += kernel.source.size();
    same_hash.push_back(kernels_.size());
    kernels_.push_back(std::move(kernel));
    added.fresh = &kernels_.back();
    return added;
}

} // namespace plumb::session
