// SPDX-License-Identifier: Apache-2.0
// Checks of tensors to and from bytes (docs/reference/plumb_format.md). An entry leaves out what has its default, and several make
// one chunk, which is one zstd frame where that is shorter. Encoder and decoder are owned by one writer or reader; one
// thread at a time. Decoding takes hostile input: a chunk unfolds to at most check_unfolding times its payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "recording/bytes.hpp"
#include "recording/format.hpp"
#include "recording/recording.hpp"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace plumb::recording {

/// No entry is shorter, so a header cannot claim more of them than its payload holds.
inline constexpr std::size_t least_check_entry = 48;
inline constexpr std::size_t check_unfolding = 32;
/// Entries of one chunk together, before compression: what a reader holds at a time.
inline constexpr std::size_t most_check_bytes = std::size_t{256} << 10;

/// The check with what no reader takes cut off: dimensions beyond max_rank, and a sketch of any number of buckets but
/// 32, 64, 128 and 256.
[[nodiscard]] TensorCheck bounded(TensorCheck check);

/// REQUIRES: the check is bounded.
void encode(const TensorCheck& from, Bytes& to);
/// False as well when it needs a later version: an element type, role or level that is not known here.
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, TensorCheck& to);

class CheckEncoder {
  public:
    explicit CheckEncoder(bool compress);
    ~CheckEncoder();
    CheckEncoder(const CheckEncoder&) = delete;
    CheckEncoder& operator=(const CheckEncoder&) = delete;

    /// Appends the payload made of `entries`; tells how it is packed.
    [[nodiscard]] Codec pack(const Bytes& entries, Bytes& to);

  private:
    ZSTD_CCtx_s* zstd_;
};

/// How many bytes of entries the payload says it holds; 0 when that cannot be, or is none.
[[nodiscard]] std::size_t unfolded_size(Codec codec, const std::byte* payload, std::size_t size);

class CheckDecoder {
  public:
    /// Calls `take` with each entry, in order; false: it wants no more. What cannot be read counts as lost: the difference
    /// of `count`, the header's, and the result.
    struct Outcome {
        std::uint64_t read = 0;
        bool stopped = false;
    };
    using Take = std::function<bool(TensorCheck&&)>;
    [[nodiscard]] Outcome decode(Codec codec, const std::byte* payload, std::size_t size, std::uint32_t count,
                                 std::uint32_t skip, const Take& take);

  private:
    [[nodiscard]] bool unfold(Codec codec, const std::byte*& payload, std::size_t& size);

    struct Free {
        void operator()(ZSTD_DCtx_s* zstd) const;
    };
    std::unique_ptr<ZSTD_DCtx_s, Free> zstd_; // made when the first chunk needs it
    Bytes plain_;
};

} // namespace plumb::recording
