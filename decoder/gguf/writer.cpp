// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace plumb::decoder::gguf {
namespace {

// A huge page: what is written in such pieces is kept in such pages, and read through them where the file system can.
constexpr std::size_t buffer_size = std::size_t{2} << 20;
constexpr std::uint64_t fixed_header = 4 + 4 + 8 + 8;

template <class T>
void append(std::string& out, T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    out.append(raw, sizeof(T));
}

void append_string(std::string& out, std::string_view text) {
    append(out, static_cast<std::uint64_t>(text.size()));
    out.append(text);
}

constexpr std::uint64_t padded(std::uint64_t bytes) noexcept {
    return (bytes + GgufWriter::alignment - 1) / GgufWriter::alignment * GgufWriter::alignment;
}

} // namespace

GgufWriter::~GgufWriter() { discard(); }

void GgufWriter::discard() noexcept {
    if (descriptor_ < 0) {
        return;
    }
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
    descriptor_ = -1;
}

void GgufWriter::add(std::string_view key, std::string_view text) {
    append_string(metadata_, key);
    append(metadata_, static_cast<std::uint32_t>(ValueType::string));
    append_string(metadata_, text);
    ++entries_;
}

void GgufWriter::add(std::string_view key, std::uint32_t value) {
    append_string(metadata_, key);
    append(metadata_, static_cast<std::uint32_t>(ValueType::u32));
    append(metadata_, value);
    ++entries_;
}

void GgufWriter::add(std::string_view key, float value) {
    append_string(metadata_, key);
    append(metadata_, static_cast<std::uint32_t>(ValueType::f32));
    append(metadata_, value);
    ++entries_;
}

void GgufWriter::add(std::string_view key, bool value) {
    append_string(metadata_, key);
    append(metadata_, static_cast<std::uint32_t>(ValueType::boolean));
    append(metadata_, static_cast<std::uint8_t>(value));
    ++entries_;
}

void GgufWriter::add(std::string_view key, std::span<const std::string> texts) {
    append_string(metadata_, key);
    append(metadata_, static_cast<std::uint32_t>(ValueType::array));
    append(metadata_, static_cast<std::uint32_t>(ValueType::string));
    append(metadata_, static_cast<std::uint64_t>(texts.size()));
    for (const std::string& text : texts) {
        append_string(metadata_, text);
    }
    ++entries_;
}

void GgufWriter::add(std::string_view key, std::span<const std::int32_t> values) {
    append_string(metadata_, key);
    append(metadata_, static_cast<std::uint32_t>(ValueType::array));
    append(metadata_, static_cast<std::uint32_t>(ValueType::i32));
    append(metadata_, static_cast<std::uint64_t>(values.size()));
    for (const std::int32_t value : values) {
        append(metadata_, value);
    }
    ++entries_;
}

void GgufWriter::add_tensor(std::string_view name, std::span<const std::uint64_t> size, std::uint32_t type) {
    const TypeTraits traits = type_traits(type).value_or(TypeTraits{"", 1, 1});
    std::uint64_t elements = 1;
    append_string(table_, name);
    append(table_, static_cast<std::uint32_t>(size.size()));
    for (const std::uint64_t dimension : size) {
        append(table_, dimension);
        elements *= dimension;
    }
    append(table_, type);
    append(table_, data_bytes_);
    extents_.push_back({data_bytes_, elements / traits.block * traits.bytes});
    data_bytes_ += padded(extents_.back().bytes);
}

std::uint64_t GgufWriter::header_size() const noexcept {
    return padded(fixed_header + metadata_.size() + table_.size());
}

Error GgufWriter::io_error(int code) const {
    if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
        return {ErrorCode::no_space, path_ + ": the disk is full (" +
                                         std::to_string((file_bytes() + 999999) / 1000000) +
                                         " MB are needed); free some space or choose another folder with -o"};
    }
    if (code == EACCES || code == EPERM || code == EROFS) {
        return {ErrorCode::permission, path_ + ": you may not write there; choose another folder with -o"};
    }
    if (code == ENOENT || code == ENOTDIR) {
        return {ErrorCode::not_found, path_ + ": the folder does not exist; create it or choose another with -o"};
    }
    return {ErrorCode::failed,
            path_ + ": cannot be written (" + std::strerror(code) + "); choose another folder with -o"};
}

std::string GgufWriter::header() const {
    std::string out("GGUF");
    append(out, std::uint32_t{3});
    append(out, static_cast<std::uint64_t>(extents_.size()));
    append(out, entries_);
    out += metadata_;
    out += table_;
    out.resize(header_size());
    return out;
}

Status GgufWriter::begin(bool replace) {
    struct stat info {};
    if (::stat(path_.c_str(), &info) == 0) {
        if (!S_ISREG(info.st_mode)) {
            return Error{ErrorCode::invalid_argument, path_ + ": is not a regular file; choose another name with -o"};
        }
        if (!replace) {
            return Error{ErrorCode::already_exists,
                         path_ + ": exists already; add --force to replace it or choose another name with -o"};
        }
    }
    std::error_code none;
    std::filesystem::path target = path_;
    constexpr int most_links = 40; // as the kernel has it
    for (int links = 0; links < most_links && std::filesystem::is_symlink(target, none); ++links) {
        target = target.parent_path() / std::filesystem::read_symlink(target, none);
    }
    target_ = target.string();
    temporary_ = target_ + ".part-" + std::to_string(::getpid());
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) {
        return io_error(errno);
    }
    // Taking the room now tells of a full disk in a millisecond instead of after a minute of writing.
    if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(file_bytes())) != 0 && errno != EOPNOTSUPP &&
        errno != ENOSYS && errno != EINTR) {
        return io_error(errno);
    }
    buffer_.reserve(buffer_size);
    const std::string begin = header();
    return put(std::as_bytes(std::span(begin)));
}

Status GgufWriter::put(std::span<const std::byte> data) {
    while (!data.empty()) {
        const std::size_t part = std::min(data.size(), buffer_size - buffer_.size());
        buffer_.insert(buffer_.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(part));
        data = data.subspan(part);
        if (buffer_.size() == buffer_size) {
            if (Status status = flush(); !status) {
                return status;
            }
        }
    }
    return {};
}

Status GgufWriter::flush() {
    std::span<const std::byte> rest(buffer_);
    while (!rest.empty()) {
        const ssize_t done = ::write(descriptor_, rest.data(), rest.size());
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return io_error(errno);
        }
        rest = rest.subspan(static_cast<std::size_t>(done));
    }
    buffer_.clear();
    return {};
}

Status GgufWriter::write(std::span<const std::byte> data) {
    while (!data.empty()) {
        if (current_ == extents_.size()) {
            return Error{ErrorCode::invalid_argument,
                         path_ + ": more data than its tensors have; add the tensor first"};
        }
        const Extent& extent = extents_[current_];
        const std::uint64_t part = std::min<std::uint64_t>(data.size(), extent.bytes - written_);
        if (Status status = put(data.first(part)); !status) {
            return status;
        }
        data = data.subspan(part);
        written_ += part;
        if (written_ < extent.bytes) {
            return {};
        }
        constexpr std::byte zeros[alignment]{};
        if (Status status = put(std::span(zeros).first(padded(extent.bytes) - extent.bytes)); !status) {
            return status;
        }
        ++current_;
        written_ = 0;
    }
    return {};
}

Status GgufWriter::finish() {
    if (current_ != extents_.size()) {
        return Error{ErrorCode::invalid_argument, path_ + ": the data of some tensors is missing; write all of them"};
    }
    if (Status status = flush(); !status) {
        return status;
    }
    if (::close(std::exchange(descriptor_, -1)) != 0 || std::rename(temporary_.c_str(), target_.c_str()) != 0) {
        const int code = errno;
        ::unlink(temporary_.c_str());
        return io_error(code);
    }
    return {};
}

} // namespace plumb::decoder::gguf
