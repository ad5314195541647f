// SPDX-License-Identifier: Apache-2.0
#include "session/recording_path.hpp"

#include <filesystem>

#include "base/os.hpp"

namespace plumb::session {

std::string expand_words(const std::string& pattern, const std::string& rank) {
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
            path += rank.empty() ? "0" : rank;
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

std::string expand_path(const std::string& pattern, const std::string& rank) {
    const std::string path = expand_words(pattern, rank);
    std::error_code failed;
    const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
    return failed ? path : absolute.lexically_normal().string();
}

} // namespace plumb::session
