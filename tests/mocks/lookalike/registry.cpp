// SPDX-License-Identifier: Apache-2.0
// libggml: finds backends. Every libggml-cpu-*.so of a directory is opened for its score and closed; the best one is opened
// again. Last comes the file that GGML_BACKEND_PATH names.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

#include "lookalike/ggml.h"

namespace {

constexpr int api_version = 2;

struct Loaded {
    ggml_backend_reg_t reg;
    void* library;
};
std::vector<Loaded>& loaded() {
#ifdef LOOKALIKE_STATIC
    static std::vector<Loaded> all{{ggml_backend_init(), nullptr}};
#else
    static std::vector<Loaded> all;
#endif
    return all;
}

template <class Function>
Function find(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
}

int score_of(const std::filesystem::path& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return 0;
    }
    const auto score = find<int (*)()>(library, "ggml_backend_score");
    const int result = score != nullptr ? score() : 1;
    dlclose(library);
    return result;
}

} // namespace

ggml_backend_reg_t ggml_backend_load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return nullptr;
    }
    const auto score = find<int (*)()>(library, "ggml_backend_score");
    const auto init = find<ggml_backend_reg_t (*)()>(library, "ggml_backend_init");
    const bool supported = score == nullptr || score() != 0;
    ggml_backend_reg_t reg = supported && init != nullptr ? init() : nullptr;
    if (reg == nullptr || reg->api_version != api_version) {
        dlclose(library);
        return nullptr;
    }
    loaded().push_back({reg, library});
    return reg;
}

void ggml_backend_unload(ggml_backend_reg_t reg) {
    const auto at = std::find_if(loaded().begin(), loaded().end(), [&](const Loaded& one) { return one.reg == reg; });
    if (at != loaded().end()) {
        void* library = at->library;
        loaded().erase(at);
        if (library != nullptr) {
            dlclose(library);
        }
    }
}

void ggml_backend_load_all_from_path(const char* directory) {
    std::filesystem::path best;
    int best_score = 0;
    std::error_code unreadable;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
        if (entry.path().filename().string().starts_with("libggml-cpu-")) {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    for (const auto& path : files) {
        if (const int score = score_of(path); score > best_score) {
            best_score = score;
            best = path;
        }
    }
    if (!best.empty()) {
        ggml_backend_load(best.c_str());
    }
    if (const char* path = std::getenv("GGML_BACKEND_PATH"); path != nullptr) {
        ggml_backend_load(path);
    }
}
void ggml_backend_load_all() { ggml_backend_load_all_from_path("."); }

std::size_t ggml_backend_reg_count() { return loaded().size(); }
ggml_backend_reg_t ggml_backend_reg_get(std::size_t i) { return loaded()[i].reg; }
ggml_backend_reg_t ggml_backend_reg_by_name(const char* name) {
    const auto at = std::find_if(loaded().begin(), loaded().end(),
                                 [&](const Loaded& one) { return std::strcmp(one.reg->name, name) == 0; });
    return at != loaded().end() ? at->reg : nullptr;
}
