// SPDX-License-Identifier: Apache-2.0
#include "recording/byte_source.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace plumb::recording {
namespace {

constexpr std::size_t least_window = std::size_t{256} << 10;

} // namespace

void ByteSource::measure() {
    struct stat facts = {};
    if (memory_ == nullptr && fstat(file(), &facts) == 0) {
        size_ = static_cast<std::uint64_t>(facts.st_size);
    }
}

const std::byte* ByteSource::view(std::uint64_t offset, std::size_t size) {
    if (offset > size_ || size > size_ - offset) {
        return nullptr;
    }
    if (memory_ != nullptr) {
        return memory_->data() + offset;
    }
    const bool inside = offset >= window_offset_ && offset - window_offset_ <= window_size_ &&
                        size <= window_size_ - (offset - window_offset_);
    if (!inside && !fill(offset, size)) {
        return nullptr;
    }
    return window_.data() + (offset - window_offset_);
}

bool ByteSource::fill(std::uint64_t offset, std::size_t size) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(std::max(size, least_window), size_ - offset));
    if (window_.size() < want) {
        window_.resize(want);
    }
    window_offset_ = offset;
    window_size_ = 0;
    while (window_size_ < want) {
        const std::int64_t got = pread(file(), window_.data() + window_size_, want - window_size_,
                                       static_cast<off_t>(offset + window_size_));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        window_size_ += static_cast<std::size_t>(got);
    }
    return window_size_ >= size;
}

} // namespace plumb::recording
