// SPDX-License-Identifier: Apache-2.0
#include "upload/packed_body.hpp"

#include <cstdint>
#include <cstring>
#include <zstd.h>

namespace plumb::upload {

namespace {

constexpr std::size_t checksum_bytes = 16;
constexpr std::size_t header_bytes = 9; // the method, its own and the packed bytes, the bytes before
constexpr char method_zstd = static_cast<char>(0x90);

void put(char* to, std::size_t value) {
    const auto number = static_cast<std::uint32_t>(value);
    std::memcpy(to, &number, sizeof number);
}

} // namespace

PackedBody::PackedBody() : zstd_(ZSTD_createCCtx()) {
    if (zstd_ != nullptr) {
        (void)ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, 1);
        (void)ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_checksumFlag, 1);
    }
}

void PackedBody::Free::operator()(ZSTD_CCtx_s* zstd) const { ZSTD_freeCCtx(zstd); }

bool PackedBody::add(std::string_view bytes) {
    const std::size_t at = blocks_.size();
    const std::size_t packed_at = at + checksum_bytes + header_bytes;
    blocks_.resize(packed_at + ZSTD_compressBound(bytes.size()));
    const std::size_t packed = zstd_ == nullptr
                                   ? SIZE_MAX
                                   : ZSTD_compress2(zstd_.get(), blocks_.data() + packed_at, blocks_.size() - packed_at,
                                                    bytes.data(), bytes.size());
    if (zstd_ == nullptr || ZSTD_isError(packed) != 0) {
        blocks_.resize(at);
        return false;
    }
    blocks_.resize(packed_at + packed);
    char* const header = blocks_.data() + at + checksum_bytes;
    header[0] = method_zstd;
    put(header + 1, header_bytes + packed);
    put(header + 5, bytes.size());
    return true;
}

} // namespace plumb::upload
