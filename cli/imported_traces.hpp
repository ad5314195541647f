// SPDX-License-Identifier: Apache-2.0
// Traces of other tools where an answer reads recordings: they are imported into a folder that goes away with its owner.
// One thread: main's.
#pragma once

#include <string>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::cli {

class ImportedTraces {
  public:
    ImportedTraces() = default;
    ImportedTraces(const ImportedTraces&) = delete;
    ImportedTraces& operator=(const ImportedTraces&) = delete;
    ~ImportedTraces();

    /// What is a recording stays as it is; of a trace there is one for each of its processes. Errors: as plumb import.
    Result<std::vector<std::string>> recordings_of(const std::vector<std::string>& paths);

  private:
    std::string folder_; // empty: none was needed yet
    std::size_t traces_ = 0;
};

} // namespace plumb::cli
