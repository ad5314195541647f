// SPDX-License-Identifier: Apache-2.0
// Where onnxruntime writes the profiles of single runs: a folder of ours in memory, made with the first and removed with the process. Of one
// that is killed the folder stays. Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "plumb/result.hpp"

namespace plumb::attach::onnxruntime {

class ProfileFolder {
  public:
    static constexpr std::size_t largest = std::size_t{64} << 20; // of a profile, in bytes

    /// For one run: onnxruntime adds the time and ".json". Error unavailable: no folder can be made.
    Result<std::string> next_prefix();
    /// The text that was written under that prefix, which is then removed.
    static Result<std::string> take(const std::string& prefix);
    void remove() noexcept;

  private:
    std::mutex mutex_;
    std::string path_; // empty: not made yet
    std::atomic<std::uint64_t> next_{0};
};

} // namespace plumb::attach::onnxruntime
