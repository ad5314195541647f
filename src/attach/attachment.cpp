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
    if (!tell("recording", std::to_string(known ? file.st_ino : 0) + '\t' + path) &&
        base::environment("PLUMB_RUN") != nullptr) {
        say("`plumb run` cannot be told of the recording " + path);
    }
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

/// What `plumb run` reads, to write at its end; -1: it is not there. The path names a process and a descriptor of that, which are somebody
/// else's in another PID namespace, or once `plumb run` has ended: it is opened only if it is the file with that number.
int open_notes() {
    const char* const said = base::environment("PLUMB_RUN");
    char path[64];
    unsigned long long device = 0;
    unsigned long long number = 0;
    if (said == nullptr || std::sscanf(said, "%63[^:]:%llu:%llu", path, &device, &number) != 3) {
        return -1;
    }
    const int named = open(path, O_PATH | O_CLOEXEC);
    struct stat file {};
    const bool is_it = named >= 0 && fstat(named, &file) == 0 && file.st_dev == device && file.st_ino == number;
    const int opened =
        is_it ? open(("/proc/self/fd/" + std::to_string(named)).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (named >= 0) {
        close(named);
    }
    return opened;
}

} // namespace

void use_queues() noexcept { queues_are_used.store(true, std::memory_order_relaxed); } // alone
bool uses_queues() noexcept { return queues_are_used.load(std::memory_order_relaxed); }

bool tell(const char* kind, const std::string& text) {
    const int file = open_notes();
    if (file < 0) {
        return false;
    }
    std::string line = std::string(kind) + '\t' + text;
    line += '\0';                                 // a path may hold any other character
    (void)!write(file, line.data(), line.size()); // one call: lines of several processes stay whole
    close(file);
    return true;
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
    if (!tell("sentence", sentence)) {
        std::fprintf(stderr, "plumb: %s\n", sentence.c_str());
    }
}

void at_close(void (*function)()) {
    Shared& all = shared();
    const std::lock_guard lock(all.mutex);
    all.closing.push_back(function);
}

} // namespace plumb::attach
