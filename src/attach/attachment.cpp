// SPDX-License-Identifier: Apache-2.0
#include "attach/attachment.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/os.hpp"
#include "capi/handles.hpp"

namespace plumb::attach {
namespace {

struct Shared {
    std::mutex mutex;
    std::atomic<plumb_profiler*> recording{nullptr};
    std::atomic<pid_t> owner{0}; // who made it
    std::set<std::string> said;
    std::vector<void (*)()> closing;
};

Shared& shared() {
    static auto* instance = new Shared; // threads may be in here until the process has ended
    return *instance;
}

void say_for_profiler(const char* sentence, void*) { say(sentence); }

/// With its number in the file system: a later process of the command may take the name, and this file has another one then.
void tell_recording(const std::string& path) {
    struct stat file {};
    const bool known = stat(path.c_str(), &file) == 0;
    tell("recording", std::to_string(known ? file.st_ino : 0) + '\t' + path);
}

void close_at_exit() {
    Shared& all = shared();
    if (!owns_recording()) { // a forked child's copy: the recording is its parent's
        return;
    }
    std::vector<void (*)()> closing;
    {
        const std::lock_guard lock(all.mutex);
        closing = all.closing;
    }
    for (void (*function)() : closing) {
        function();
    }
    (void)all.recording.load()->profiler.close();
}

} // namespace

bool wanted() {
    static const bool answer = [] {
        const Result<Config> config = Config::from_env();
        if (!config) {
            say(config.error().message);
            return false;
        }
        return config->on;
    }();
    return answer;
}

plumb_profiler* recording() {
    Shared& all = shared();
    const std::lock_guard lock(all.mutex);
    if (all.recording.load(std::memory_order_relaxed) == nullptr) { // written under the lock alone
        Result<Config> config = Config::from_env();
        if (config.ok()) {
            config->diagnostic = say_for_profiler;
        }
        auto* const made = new plumb_profiler{Profiler(std::move(config))};
        all.owner = getpid();
        all.recording.store(made, std::memory_order_release);
        std::atexit(close_at_exit);
        if (made->profiler.enabled()) {
            tell_recording(made->profiler.path());
        }
    }
    return all.recording.load(std::memory_order_relaxed);
}

Profiler* made_profiler() noexcept {
    plumb_profiler* const made = shared().recording.load(std::memory_order_acquire);
    return made != nullptr ? &made->profiler : nullptr;
}

Profiler& profiler() { return recording()->profiler; }

bool owns_recording() { return shared().owner == getpid(); }

namespace {
std::atomic<bool> queues_are_used{false};
} // namespace

void use_queues() noexcept { queues_are_used.store(true, std::memory_order_relaxed); } // alone
bool uses_queues() noexcept { return queues_are_used.load(std::memory_order_relaxed); }

void tell(const char* kind, const std::string& text) {
    const char* path = base::environment("PLUMB_RUN");
    const int file = path != nullptr ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (file >= 0) {
        const std::string line = std::string(kind) + '\t' + text + '\n';
        (void)!write(file, line.data(), line.size()); // one call: lines of several processes stay whole
        close(file);
    }
}

void say(const std::string& sentence) {
    Shared& all = shared();
    static std::mutex mutex; // its own: the profiler speaks while it is made
    {
        const std::lock_guard lock(mutex);
        if (!all.said.insert(sentence).second) {
            return;
        }
    }
    if (base::environment("PLUMB_RUN") != nullptr) {
        tell("sentence", sentence);
    } else {
        std::fprintf(stderr, "plumb: %s\n", sentence.c_str());
    }
}

void at_close(void (*function)()) {
    Shared& all = shared();
    const std::lock_guard lock(all.mutex);
    all.closing.push_back(function);
}

} // namespace plumb::attach
