// SPDX-License-Identifier: Apache-2.0
#include "import/formats.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace plumb::imported {
namespace {

constexpr std::size_t head_size = 4096;
constexpr std::size_t block_size = std::size_t{1} << 20;

constexpr const char* what_is_known =
    "PyTorch profiler (Kineto) and XProf JSON, rocprofv3 JSON, and the SQLite exports of Nsight Systems and rpd";

Result<SqliteFile> open_database(Input& input, const std::string& path, const InputLimits& limits) {
    if (!input.packed()) {
        return SqliteFile::open(path, limits);
    }
    std::vector<char> content;
    while (true) {
        const std::size_t before = content.size();
        content.resize(before + block_size);
        const Result<std::size_t> got = input.read(content.data() + before, block_size);
        if (!got) {
            return got.error();
        }
        content.resize(before + *got);
        if (*got < block_size) {
            return SqliteFile::of_content(std::move(content), path, limits);
        }
    }
}

Status read_database(Input& input, const std::string& path, const InputLimits& limits, TraceBuilder& to) {
    Result<SqliteFile> file = open_database(input, path, limits);
    if (!file) {
        return file.error();
    }
    if (file->has("rocpd_op")) {
        return read_rpd(*file, to);
    }
    if (file->has("StringIds")) {
        return read_nsys(*file, to);
    }
    return Error{ErrorCode::unsupported, path + " is a database, but none that plumb knows: " + what_is_known};
}

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
    if (head.empty()) {
        return Error{ErrorCode::unsupported, path + " is empty"};
    }
    if (const Status again = input->rewind(); !again.ok()) {
        return again.error();
    }
    const std::string_view text = without_space(head);
    TraceBuilder builder;
    Status read = Error{ErrorCode::unsupported, path + " is no trace that plumb knows: " + what_is_known};
    if (head.starts_with("SQLite format 3")) {
        read = read_database(*input, path, limits, builder);
    } else if (text.starts_with('{') && head.find("\"rocprofiler-sdk-tool\"") != head.npos) {
        read = read_rocprofv3(*input, builder);
    } else if (text.starts_with('{') || text.starts_with('[')) {
        read = read_kineto(*input, builder);
    }
    if (!read.ok()) {
        return read.error();
    }
    return builder.finish();
}

} // namespace plumb::imported
