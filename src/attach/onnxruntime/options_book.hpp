// SPDX-License-Identifier: Apache-2.0
// What is known of the program's run options, so that a profiled run can have options of its own that say the same: the program's are never
// changed, for several threads may run with them at this moment. Thread rule: any thread.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attach/onnxruntime/api.hpp"

namespace plumb::attach::onnxruntime {

class OptionsBook {
  public:
    explicit OptionsBook(const OrtApi& api) : api_(api) {}
    OptionsBook(const OptionsBook&) = delete;
    OptionsBook& operator=(const OptionsBook&) = delete;

    // What the program has done with its options.
    void made(const RunOptions* options);
    void released(const RunOptions* options);
    void added(const RunOptions* options, const char* key, const char* value);
    /// Something that cannot be said again.
    void changed(const RunOptions* options);
    /// It has its own runs profiled, or no longer.
    void profiles(const RunOptions* options, bool on);
    [[nodiscard]] bool profiled_by_program(const RunOptions* options);
    void terminates(const RunOptions* options, bool on);

    /// Options that say the same, with which one run is made; null options are those by default. Null: that cannot be.
    [[nodiscard]] RunOptions* stand_in(const RunOptions* options);
    void done(const RunOptions* options, RunOptions* stand_in);

  private:
    struct Known {
        bool changed = false;
        bool profiles = false;
        bool terminates = false;
        std::vector<std::pair<std::string, std::string>> entries;
        std::vector<RunOptions*> standing_in;
    };

    [[nodiscard]] bool succeeds(Failure* failure) const;
    [[nodiscard]] bool copy(const RunOptions* from, const Known& known, RunOptions* to) const;

    const OrtApi& api_;
    std::mutex mutex_; // of the map
    std::unordered_map<const RunOptions*, Known> known_;
};

} // namespace plumb::attach::onnxruntime
