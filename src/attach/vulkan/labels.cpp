// SPDX-License-Identifier: Apache-2.0
#include "attach/vulkan/labels.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "attach/attachment.hpp"

namespace plumb::attach::vulkan {
namespace {

constexpr std::size_t most_scope_names = 4096;

__thread std::uint64_t labelled PLUMB_TLS_MODEL = 0; // the recording whose labels this thread has open; 0: none

std::atomic<std::uint64_t> recordings_begun{0};

/// Labels of recordings that were given up on another thread than theirs.
struct LabelsLeft {
    std::atomic<std::size_t> count{0};
    std::mutex mutex;
    std::unordered_map<std::uint64_t, unsigned> by_recording;
};
LabelsLeft& labels_left() {
    static auto* all = new LabelsLeft; // threads may be in here until the process has ended
    return *all;
}

void end_scopes(unsigned count) {
    for (; count != 0; --count) {
        profiler().pop_scope();
    }
}

/// Ends what another thread left to this one.
void settle() {
    LabelsLeft& left = labels_left();
    if (labelled == 0 || left.count.load(std::memory_order_relaxed) == 0) { // what it counts lies behind the lock
        return;
    }
    unsigned count = 0;
    {
        const std::lock_guard lock(left.mutex);
        const auto found = left.by_recording.find(labelled);
        if (found == left.by_recording.end()) {
            return;
        }
        count = found->second;
        left.by_recording.erase(found);
        left.count.store(left.by_recording.size(), std::memory_order_relaxed);
    }
    end_scopes(count);
    labelled = 0;
}

} // namespace

void begin_labels(LabelCount& labels) noexcept {
    labels = {recordings_begun.fetch_add(1, std::memory_order_relaxed) + 1, 0, 0};
}

bool has_open_labels() {
    settle();
    return labelled != 0;
}

bool may_open(const LabelCount& labels) {
    settle();
    return labels.skipped == 0 && (labelled == 0 || labelled == labels.recording);
}

void opened(LabelCount& labels) noexcept {
    ++labels.open;
    labelled = labels.recording;
}

void close_label(LabelCount& labels) {
    if (labels.skipped != 0) {
        --labels.skipped;
    } else if (labels.open != 0) {
        end_scopes(1);
        labelled = --labels.open != 0 ? labels.recording : 0;
    }
}

void close_all(LabelCount& labels) {
    const unsigned open = std::exchange(labels.open, 0);
    labels.skipped = 0;
    if (open != 0 && labelled == labels.recording) {
        end_scopes(open);
        labelled = 0;
    } else if (open != 0) {
        LabelsLeft& left = labels_left();
        const std::lock_guard lock(left.mutex);
        left.by_recording[labels.recording] = open;
        left.count.store(left.by_recording.size(), std::memory_order_relaxed);
    }
}

Name name_of_scope(const std::string& text) {
    static auto* const mutex = new std::mutex;
    static auto* const known = new std::unordered_map<std::string, Name>;
    const std::lock_guard lock(*mutex);
    if (const auto found = known->find(text); found != known->end()) {
        return found->second;
    }
    if (known->size() == most_scope_names) {
        say("a Vulkan program has more than 4,096 names of labels and pipelines: the later ones are together in the "
            "brick \"other\"");
        return profiler().intern("other");
    }
    return known->emplace(text, profiler().intern(text)).first->second;
}

} // namespace plumb::attach::vulkan
