// SPDX-License-Identifier: Apache-2.0
// The public face of the graph cache; its constructor stands where profilers are known (src/session).
#include "cudagraph/graph_cache.hpp"

namespace plumb {

CudaGraphCache::CudaGraphCache(cudagraph::Cache* cache) noexcept : cache_(cache) {}
CudaGraphCache::~CudaGraphCache() { delete cache_; }

Status CudaGraphCache::begin_capture(CUstream_st* stream) { return cache_->begin_capture(stream); }
Status CudaGraphCache::end_capture(std::uint64_t key) { return cache_->end_capture(key); }
Status CudaGraphCache::abort_capture() { return cache_->abort_capture(); }
Result<bool> CudaGraphCache::replay(std::uint64_t key, CUstream_st* stream) { return cache_->replay(key, stream); }
bool CudaGraphCache::invalidate(std::uint64_t key) { return cache_->invalidate(key); }
void CudaGraphCache::invalidate_all() { cache_->invalidate_all(); }

Result<CudaDecodeState> CudaGraphCache::decode_state(CUstream_st* stream) {
    cudagraph::DecodeStates& states = cache_->decode_states();
    return states.arrays(states.owner_of(stream), stream);
}

Result<CudaDecodeState> CudaGraphCache::decode_state_of(std::uint64_t key, CUstream_st* stream) {
    return cache_->decode_states().arrays(cudagraph::DecodeStates::owner_of(key), stream);
}

Status CudaGraphCache::set_decode_state(std::int32_t token, std::int32_t position, CUstream_st* stream) {
    if (!uses_device_state()) {
        return {};
    }
    cudagraph::DecodeStates& states = cache_->decode_states();
    return states.set(states.owner_of(stream), token, position, stream);
}

Status CudaGraphCache::set_decode_state(const std::int32_t* tokens, const std::int32_t* positions, std::size_t count,
                                        CUstream_st* stream) {
    if (!uses_device_state()) {
        return {};
    }
    cudagraph::DecodeStates& states = cache_->decode_states();
    return states.set(states.owner_of(stream), tokens, positions, count, stream);
}

Status CudaGraphCache::set_decode_state_of(std::uint64_t key, std::int32_t token, std::int32_t position,
                                           CUstream_st* stream) {
    if (!uses_device_state()) {
        return {};
    }
    return cache_->decode_states().set(cudagraph::DecodeStates::owner_of(key), token, position, stream);
}

Status CudaGraphCache::set_decode_state_of(std::uint64_t key, const std::int32_t* tokens, const std::int32_t* positions,
                                           std::size_t count, CUstream_st* stream) {
    if (!uses_device_state()) {
        return {};
    }
    return cache_->decode_states().set(cudagraph::DecodeStates::owner_of(key), tokens, positions, count, stream);
}

void CudaGraphCache::use_device_state(bool use) noexcept {
    cache_->use_device_state.store(use, std::memory_order_relaxed);
}
bool CudaGraphCache::uses_device_state() const noexcept {
    return cache_->use_device_state.load(std::memory_order_relaxed);
}

Result<std::vector<BakedIn>> CudaGraphCache::verify_capture(std::uint64_t key, CUstream_st* stream,
                                                            const Callback<Status(std::int32_t, std::int32_t)>& step,
                                                            const CudaVerifyOptions& options) {
    return cache_->verify_capture(key, stream, step, options);
}

Result<std::vector<StaleInput>> CudaGraphCache::verify_replay(std::uint64_t key, CUstream_st* stream,
                                                              const CudaReplayCheck& check) {
    return cache_->verify_replay(key, stream, check);
}

void CudaGraphCache::note_eager(std::uint64_t key, const std::string& reason) { cache_->note_eager(key, reason); }
void CudaGraphCache::note_padding(std::uint64_t key, std::uint64_t used, std::uint64_t padded) {
    cache_->note_padding(key, used, padded);
}

std::size_t CudaGraphCache::size() const { return cache_->size(); }
std::uint64_t CudaGraphCache::bytes() const { return cache_->bytes(); }
std::vector<CudaGraphRow> CudaGraphCache::rows() const { return cache_->rows(); }
Status CudaGraphCache::flush_profile() { return cache_->flush_profile(); }
bool CudaGraphCache::lost() const noexcept { return cache_->lost(); }
Status CudaGraphCache::status() const { return cache_->status(); }

} // namespace plumb
