// SPDX-License-Identifier: Apache-2.0
#include "top/running.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/os.hpp"
#include "recording/ring_file.hpp"

namespace plumb::top {
namespace {

std::vector<std::string> ring_folders() {
    const char* runtime = base::environment("XDG_RUNTIME_DIR");
    std::vector<std::string> folders = {"/dev/shm"};
    if (runtime != nullptr && *runtime != '\0') {
        folders.emplace_back(runtime);
    }
    return folders;
}

bool is_ours(const std::string& path) {
    struct stat facts = {};
    return lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid();
}

} // namespace

std::vector<Running> running_recordings(const std::vector<std::string>& folders) {
    std::vector<Running> found;
    for (const std::string& folder : folders.empty() ? ring_folders() : folders) {
        std::error_code error;
        for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
            const std::string path = at->path().string();
            if (!recording::is_ring_name(path) || !is_ours(path)) {
                continue;
            }
            const Result<recording::RingFile> ring = recording::read_ring_header(path);
            // A ring that is being made has no name of its recording yet.
            if (ring && !ring->recording.empty() &&
                base::process_alive(ring->pid, ring->process_start, ring->boot_id)) {
                found.push_back({ring->pid, ring->recording});
            }
        }
    }
    const auto key = [](const Running& one) {
        return std::pair(one.pid, one.recording);
    };
    std::sort(found.begin(), found.end(), [&](const Running& a, const Running& b) { return key(a) < key(b); });
    found.erase(
        std::unique(found.begin(), found.end(), [&](const Running& a, const Running& b) { return key(a) == key(b); }),
        found.end());
    return found;
}

} // namespace plumb::top
