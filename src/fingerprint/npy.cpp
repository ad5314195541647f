// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/npy.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "base/os.hpp"

namespace plumb::fingerprint {
namespace {

// NumPy knows no bf16.
const char* descr_of(DType type) {
    switch (type) {
    case DType::f64:
        return "<f8";
    case DType::f16:
        return "<f2";
    case DType::i8:
        return "|i1";
    case DType::i32:
        return "<i4";
    case DType::f32:
    case DType::bf16:
        break;
    }
    return "<f4";
}

/// Magic, version, length of the header, and the header padded so that the data begins at a multiple of 64.
std::string header_of(const Tensor& tensor) {
    std::string text = std::string("{'descr': '") + descr_of(tensor.dtype) + "', 'fortran_order': False, 'shape': (";
    for (unsigned i = 0; i < tensor.rank; ++i) {
        text += std::to_string(tensor.shape[i]) + ",";
    }
    text += tensor.rank == 0 ? "0,), }" : "), }"; // ours without dimensions holds nothing, NumPy's one element
    constexpr std::size_t fixed = 10;             // what comes before the text
    while ((fixed + text.size() + 1) % 64 != 0) {
        text += ' ';
    }
    text += '\n';
    std::string header("\x93NUMPY\x01\x00", 8);
    header += static_cast<char>(text.size() & 255);
    header += static_cast<char>(text.size() >> 8);
    return header + text;
}

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

Error failure(const std::string& path, int code) {
    const std::string why = std::strerror(code);
    if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
        return {ErrorCode::no_space, "cannot write " + path + ": no space is left; make room, or check fewer tensors"};
    }
    if (code == EACCES || code == EPERM || code == EROFS) {
        return {ErrorCode::permission, "cannot write " + path + " (" + why + "); name a folder that is yours"};
    }
    if (code == ENOENT || code == ENOTDIR) {
        return {ErrorCode::not_found, "cannot write " + path + " (" + why + "); make its folder first"};
    }
    return {ErrorCode::failed, "cannot write " + path + " (" + why + "); choose another folder"};
}

/// Appends element `at` (an offset in elements) as it is to be written.
void append(const Tensor& tensor, std::ptrdiff_t at, std::vector<char>& out) {
    const std::size_t size = size_of(tensor.dtype);
    const char* element = static_cast<const char*>(tensor.data) + at * static_cast<std::ptrdiff_t>(size);
    if (tensor.dtype == DType::bf16) {
        out.insert(out.end(), 2, 0); // the upper half of an f32
    }
    out.insert(out.end(), element, element + size);
}

} // namespace

Status write_npy(const std::string& path, const Tensor& tensor) {
    const std::string header = header_of(tensor);
    const std::size_t element = tensor.dtype == DType::bf16 ? size_of(DType::f32) : size_of(tensor.dtype);
    if (!base::file_may_grow_to(header.size() + tensor.count() * element)) {
        return failure(path, EFBIG);
    }
    const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "wb"));
    if (!file) {
        return failure(path, errno);
    }
    bool good = std::fwrite(header.data(), 1, header.size(), file.get()) == header.size();
    std::size_t place[max_rank] = {};
    const std::size_t rows = tensor.count() == 0 ? 0 : tensor.count() / tensor.shape[tensor.rank - 1];
    std::vector<char> bytes;
    for (std::size_t row = 0; row < rows && good; ++row) {
        std::ptrdiff_t start = 0;
        for (unsigned i = 0; i + 1 < tensor.rank; ++i) {
            start += static_cast<std::ptrdiff_t>(place[i]) * tensor.strides[i];
        }
        bytes.clear();
        for (std::size_t i = 0; i < tensor.shape[tensor.rank - 1]; ++i) {
            append(tensor, start + static_cast<std::ptrdiff_t>(i) * tensor.strides[tensor.rank - 1], bytes);
        }
        good = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
        for (unsigned i = tensor.rank - 1; i-- > 0;) { // the next row
            if (++place[i] < tensor.shape[i]) {
                break;
            }
            place[i] = 0;
        }
    }
    if (!good || std::fflush(file.get()) != 0) {
        return failure(path, errno);
    }
    return {};
}

} // namespace plumb::fingerprint
