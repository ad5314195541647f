// SPDX-License-Identifier: Apache-2.0
// Bytes as ClickHouse reads them under decompress=1: blocks of a checksum, a header of 9 bytes, and zstd. The checksum is left empty, which
// http_native_compression_disable_checksumming_on_decompress=1 allows; zstd has one of its own. Owned by one upload; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;

namespace plumb::upload {

class PackedBody {
  public:
    PackedBody();
    /// One block. False: out of memory.
    [[nodiscard]] bool add(std::string_view bytes);
    [[nodiscard]] const std::string& blocks() const { return blocks_; }
    void clear() { blocks_.clear(); }

  private:
    struct Free {
        void operator()(ZSTD_CCtx_s* zstd) const;
    };
    std::unique_ptr<ZSTD_CCtx_s, Free> zstd_;
    std::string blocks_;
};

} // namespace plumb::upload
