// SPDX-License-Identifier: Apache-2.0
#include "recording/redact.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace plumb::recording {
namespace {

constexpr char redacted[] = "redacted";

bool tells_who(std::string_view key) {
    for (const char* secret : {"command", "host", "user", "path", "cwd", "folder", "directory"}) {
        if (key.find(secret) != std::string_view::npos) {
            return true;
        }
    }
    return false;
}

void redact_identity(std::vector<std::pair<std::string, std::string>>& pairs) {
    for (auto& [key, value] : pairs) {
        if (tells_who(key) || value.find('/') != std::string::npos) {
            value = redacted;
        }
    }
}

/// Two runs must not seem comparable because both were redacted: of a path its last part stays.
void redact_comparability(std::vector<std::pair<std::string, std::string>>& pairs) {
    for (auto& [key, value] : pairs) {
        value = redacted_description(value);
    }
}

} // namespace

void redact(Metadata& metadata) {
    metadata.host = redacted;
    metadata.ring_path = last_part(metadata.ring_path);
    if (!metadata.ring_reason.empty()) {
        metadata.ring_reason = redacted;
    }
    for (Peaks& peaks : metadata.peaks) {
        peaks.uuid = peaks.uuid.empty() ? "" : redacted;
    }
    redact_identity(metadata.identity);
    redact_comparability(metadata.comparability);
}

void redact(KernelInfo& kernel) {
    kernel.file = last_part(kernel.file);
    kernel.source.clear();
    kernel.source_bytes = 0;
}

std::string redacted_description(std::string_view value) {
    const bool is_path = !value.empty() && (value[0] == '/' || value[0] == '.' || value[0] == '~');
    return std::string(is_path ? last_part(value) : value);
}

} // namespace plumb::recording
