// SPDX-License-Identifier: Apache-2.0
// plumb top without its terminal: which recording, what it shows now, and how it ends. The one header that the command includes.
// Owned by the command; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::top {

/// The recording that an argument names: a file, the pid of a process that records, or nothing where one process alone does.
/// Errors: not_found, with what is running.
[[nodiscard]] Result<std::string> recording_named(const std::string& argument);

class Top {
  public:
    /// Nothing is read yet. `live`: looks follow every second, and each may only take its share of that. Errors: as opening a recording.
    static Result<Top> open(const std::string& recording, bool live);
    Top(Top&&) noexcept;
    Top& operator=(Top&&) noexcept;
    ~Top();

    /// Reads what was appended. Errors: what following the file gives; the view stays as it was.
    Status look();
    /// Its process ended: the next look would show nothing new.
    [[nodiscard]] bool ended() const;
    /// As of the last look, with the last minute. `rows` 0: as many as it takes, without a history and keys.
    [[nodiscard]] std::vector<std::string> lines(std::size_t columns, std::size_t rows, bool color) const;
    /// "process 4711 ended: plumb report run.plumb has the whole run"
    [[nodiscard]] std::string farewell() const;

  private:
    struct State;
    explicit Top(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace plumb::top
