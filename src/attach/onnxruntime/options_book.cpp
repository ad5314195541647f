// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/options_book.hpp"

#include <algorithm>

namespace plumb::attach::onnxruntime {

bool OptionsBook::succeeds(Failure* failure) const {
    if (failure != nullptr) {
        api_.release_failure(failure);
    }
    return failure == nullptr;
}

void OptionsBook::made(const RunOptions* options) {
    const std::lock_guard lock(mutex_);
    known_[options] = {};
}

void OptionsBook::released(const RunOptions* options) {
    const std::lock_guard lock(mutex_);
    known_.erase(options);
}

void OptionsBook::added(const RunOptions* options, const char* key, const char* value) {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(options); found != known_.end() && key != nullptr && value != nullptr) {
        found->second.entries.emplace_back(key, value);
    }
}

void OptionsBook::changed(const RunOptions* options) {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(options); found != known_.end()) {
        found->second.changed = true;
    }
}

void OptionsBook::profiles(const RunOptions* options, bool on) {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(options); found != known_.end()) {
        found->second.profiles = on;
    }
}

bool OptionsBook::profiled_by_program(const RunOptions* options) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(options);
    return found != known_.end() && found->second.profiles;
}

/// What the program ends from another thread must end, whichever options it runs with.
void OptionsBook::terminates(const RunOptions* options, bool on) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(options);
    if (found == known_.end()) {
        return;
    }
    found->second.terminates = on;
    for (RunOptions* const other : found->second.standing_in) {
        (void)succeeds(on ? api_.set_terminate(other) : api_.unset_terminate(other));
    }
}

bool OptionsBook::copy(const RunOptions* from, const Known& known, RunOptions* to) const {
    int verbosity = 0;
    int severity = 0;
    const char* tag = nullptr;
    return succeeds(api_.get_verbosity(from, &verbosity)) && succeeds(api_.set_verbosity(to, verbosity)) &&
           succeeds(api_.get_severity(from, &severity)) && succeeds(api_.set_severity(to, severity)) &&
           succeeds(api_.get_tag(from, &tag)) && (tag == nullptr || succeeds(api_.set_tag(to, tag))) &&
           std::all_of(known.entries.begin(), known.entries.end(),
                       [&](const auto& entry) {
                           return succeeds(api_.add_config_entry(to, entry.first.c_str(), entry.second.c_str()));
                       }) &&
           (!known.terminates || succeeds(api_.set_terminate(to)));
}

RunOptions* OptionsBook::stand_in(const RunOptions* options) {
    const std::lock_guard lock(mutex_);
    Known* known = nullptr;
    if (options != nullptr) {
        const auto found = known_.find(options);
        if (found == known_.end() || found->second.changed || found->second.profiles) {
            return nullptr;
        }
        known = &found->second;
    }
    RunOptions* made = nullptr;
    if (!succeeds(api_.create_run_options(&made)) || made == nullptr) {
        return nullptr;
    }
    if (known != nullptr && !copy(options, *known, made)) {
        api_.release_run_options(made);
        return nullptr;
    }
    if (known != nullptr) {
        known->standing_in.push_back(made);
    }
    return made;
}

void OptionsBook::done(const RunOptions* options, RunOptions* stand_in) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = known_.find(options); found != known_.end()) {
            std::erase(found->second.standing_in, stand_in);
        }
    }
    api_.release_run_options(stand_in);
}

} // namespace plumb::attach::onnxruntime
