// SPDX-License-Identifier: Apache-2.0
// One copy of onnxruntime in this process: each of its runs becomes a step, and some runs, which onnxruntime profiles for us, have their
// nodes as bricks. After the first error of ours no run is profiled. Thread rule: any thread of the program. An OrtEngine stays for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "attach/onnxruntime/api.hpp"
#include "attach/onnxruntime/options_book.hpp"
#include "attach/onnxruntime/pace.hpp"
#include "attach/onnxruntime/profile.hpp"
#include "attach/onnxruntime/profile_folder.hpp"
#include "plumb/profiler.hpp"

namespace plumb::attach::onnxruntime {

class OrtEngine {
  public:
    /// `version`: as it says itself, "1.30.0".
    OrtEngine(const OrtApi& api, std::string version);
    OrtEngine(const OrtEngine&) = delete;
    OrtEngine& operator=(const OrtEngine&) = delete;

    /// What its inputs say of a run.
    struct RunFacts {
        Phase phase = Phase::none;
        std::uint64_t tokens = 0, sequences = 0;
        std::optional<std::uint64_t> kv_length;
    };
    [[nodiscard]] RunFacts facts_of(const char* const* names, const Value* const* values, std::size_t count) const;

    /// The run itself, with these options.
    using Original = std::function<Failure*(const RunOptions*)>;
    Failure* run(const Session* session, const RunOptions* options, const RunFacts& facts, const Original& original);
    void run_asynchronously();
    /// REQUIRES: nothing runs in it, as onnxruntime itself does.
    void released(const Session* session);

    const OrtApi api;
    OptionsBook options;

    /// At the end of the process: what was seen and what was not.
    void tell_outcome();

  private:
    struct KnownSession {
        bool left_alone = false; // the program profiles it
        std::unordered_map<Phase, Pace> paces;
    };
    struct ProfiledRun {
        Queue queue; // of its thread, from before it began: a thread that ends meanwhile gives away its own
        std::string prefix;
        std::int64_t begin_ns = 0;
        std::uint64_t begin_ticks = 0;
        Context step;
    };
    struct Named {
        Name brick;
        std::int32_t layer;
    };
    class OpenStep;

    /// From the first run on there is a recording.
    Profiler& met();
    [[nodiscard]] bool is_left_alone(const Session* session) const;
    /// Whether this run is one that is profiled.
    [[nodiscard]] bool begins(const Session* session, Phase phase);
    template <class Tell>
    void ends(const Session* session, Phase phase, Tell tell);
    /// Options for a run that is profiled; null: it is not.
    [[nodiscard]] RunOptions* profiling_options(const RunOptions* given, std::string& prefix);
    void read_nodes(const ProfiledRun& run);
    void emit(const RunProfile& profile, const ProfiledRun& run);
    [[nodiscard]] Named named(const ProfiledNode& node);
    void turn_off(const std::string& why);

    std::string version_;
    std::once_flag met_;
    ProfileFolder folder_;
    std::atomic<bool> profiles_;
    std::mutex mutex_; // of both maps
    std::unordered_map<const Session*, KnownSession> sessions_;
    std::unordered_map<std::string, Named> names_; // by name and operator of a node
    std::atomic<std::uint64_t> runs_{0}, profiled_{0}, nodes_{0}, lost_{0}, asynchronous_{0};
};

} // namespace plumb::attach::onnxruntime
