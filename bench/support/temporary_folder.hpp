// SPDX-License-Identifier: Apache-2.0
// A folder that goes away with its owner: recordings of a benchmark lie there. One thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace bench {

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "plumb-bench-XXXXXX").string();
        path_ = mkdtemp(name.data()) != nullptr ? name : std::string(".");
    }
    ~TemporaryFolder() {
        if (path_ != ".") {
            std::error_code ignored;
            std::filesystem::remove_all(path_, ignored);
        }
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

} // namespace bench
