// SPDX-License-Identifier: Apache-2.0
#include "import/formats.hpp"

#include <string_view>

namespace plumb::imported {
namespace {

constexpr std::size_t head_size = 4096;

constexpr const char* what_is_known =
    "PyTorch profiler (Kineto) JSON, rocprofv3 JSON, and the SQLite exports of Nsight Systems and rpd";

std::string_view without_space(std::string_view text) {
    const std::size_t at = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    return at == text.npos ? std::string_view() : text.substr(at);
}

} // namespace

Result<Trace> read_trace(const std::string& path, const InputLimits& limits) {
    Result<Input> input = Input::open(path, limits);
    if (!input) {
        return input.error();
    }
    std::string head(head_size, '\0');
    const Result<std::size_t> got = input->read(head.data(), head.size());
    if (!got) {
        return got.error();
    }
    head.resize(*got);
    if (const Status again = input->rewind(); !again.ok()) {
        return again.error();
    }
    const std::string_view text = without_space(head);
    TraceBuilder builder;
    Status read = Error{ErrorCode::corrupt, path + " is no trace that plumb knows: " + what_is_known};
    if (text.starts_with('{') || text.starts_with('[')) {
        read = read_kineto(*input, builder);
    }
    if (!read.ok()) {
        return read.error();
    }
    return builder.finish();
}

} // namespace plumb::imported
