// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/profile_folder.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/os.hpp"

namespace plumb::attach::onnxruntime {

Result<std::string> ProfileFolder::next_prefix() {
    const std::lock_guard lock(mutex_);
    if (path_.empty()) {
        std::error_code error;
        const Result<std::string> memory = base::runtime_dir();
        std::string path =
            (memory.ok() ? *memory : std::filesystem::temp_directory_path(error).string()) + "/plumb-ort-XXXXXX";
        if (mkdtemp(path.data()) == nullptr) {
            return Error{ErrorCode::unavailable, "no folder can be made for onnxruntime's profiles (" + path +
                                                     "); set XDG_RUNTIME_DIR or TMPDIR to one that can be written"};
        }
        path_ = path;
    }
    return path_ + "/" + std::to_string(next_.fetch_add(1, std::memory_order_relaxed));
}

Result<std::string> ProfileFolder::take(const std::string& prefix) {
    const std::filesystem::path begin = prefix;
    const std::string wanted = begin.filename().string() + "_";
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(begin.parent_path(), error)) {
        if (!entry.path().filename().string().starts_with(wanted)) {
            continue;
        }
        std::string text;
        const auto size = std::filesystem::file_size(entry.path(), error);
        if (!error && size <= largest) {
            std::ifstream in(entry.path(), std::ios::binary);
            text.assign(std::istreambuf_iterator<char>(in), {});
        }
        std::filesystem::remove(entry.path(), error);
        return size <= largest ? Result<std::string>(std::move(text))
                               : Error{ErrorCode::unsupported, "onnxruntime's profile of one run has more than 64 MiB"};
    }
    return Error{ErrorCode::not_found, "onnxruntime wrote no profile of a run"};
}

void ProfileFolder::remove() noexcept {
    const std::lock_guard lock(mutex_);
    std::error_code error;
    if (!path_.empty()) {
        std::filesystem::remove_all(path_, error);
    }
}

} // namespace plumb::attach::onnxruntime
