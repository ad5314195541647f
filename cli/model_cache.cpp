// SPDX-License-Identifier: Apache-2.0
#include "cli/model_cache.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/interrupt.hpp"
#include "decoder/gguf/reader.hpp"
#include "decoder/model_maker/maker.hpp"

namespace plumb::cli {
namespace {

namespace fs = std::filesystem;

/// The folder, created; empty where that is not possible.
fs::path usable(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    return !error && ::access(folder.c_str(), W_OK | X_OK) == 0 ? folder : fs::path();
}

fs::path cache_folder() {
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/') {
        if (const fs::path folder = usable(fs::path(cache) / "plumb"); !folder.empty()) {
            return folder;
        }
    }
    if (const char* home = std::getenv("HOME"); home && *home == '/') {
        if (const fs::path folder = usable(fs::path(home) / ".cache" / "plumb"); !folder.empty()) {
            return folder;
        }
    }
    std::error_code error;
    return usable(fs::temp_directory_path(error) / ("plumb-" + std::to_string(::getuid())));
}

} // namespace

Result<std::string> cached_model() {
    const fs::path folder = cache_folder();
    if (folder.empty()) {
        return Error{
            ErrorCode::permission,
            "there is no folder to keep a small model in; set XDG_CACHE_HOME or give the path of a .gguf file"};
    }
    const std::string path = (folder / "tiny-llama-bf16.gguf").string();
    const Result<decoder::gguf::File> kept = decoder::gguf::File::open(path);
    // One made before models had a tokenizer is made again, so that a prompt may be text.
    if (kept.ok() && kept->contents().find("tokenizer.ggml.tokens") != nullptr) {
        return path;
    }
    decoder::MakeOptions options;
    options.replace = true;
    options.stop = &interrupted();
    if (Status status = decoder::make_model(*decoder::find_shape("tiny-llama"), path, options); !status) {
        return status.error();
    }
    return path;
}

} // namespace plumb::cli
