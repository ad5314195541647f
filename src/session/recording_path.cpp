// SPDX-License-Identifier: Apache-2.0
#include "session/recording_path.hpp"

#include <cstdlib>
#include <filesystem>

#include "base/os.hpp"

namespace plumb::session {

const char* rank_variable() {
    for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
        if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
            return value;
        }
    }
    return nullptr;
}

std::string expand_words(const std::string& pattern) {
    std::string path;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        switch (next) {
        case 'p':
            path += std::to_string(base::process_id());
            break;
        case 'h':
            path += base::host_name();
            break;
        case 'r':
            path += rank_variable() != nullptr ? rank_variable() : "0";
            break;
        case '%':
            path += '%';
            break;
        default:
            path += pattern[i];
            continue;
        }
        ++i;
    }
    return path;
}

std::string expand_path(const std::string& pattern) {
    const std::string path = expand_words(pattern);
    std::error_code failed;
    const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
    return failed ? path : absolute.lexically_normal().string();
}

} // namespace plumb::session
