// SPDX-License-Identifier: Apache-2.0
// For tests: a folder of their own that goes away with its owner, and files in it. One thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <zlib.h>

#include "support/text_of_file.hpp"

namespace plumb::imported {

class TraceFolder {
  public:
    TraceFolder() {
        std::string name = std::filesystem::temp_directory_path() / "plumb-import-XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    TraceFolder(const TraceFolder&) = delete;
    TraceFolder& operator=(const TraceFolder&) = delete;
    ~TraceFolder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string operator/(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

inline void save(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
}

inline void save_packed(const std::string& path, const std::string& content) {
    gzFile file = ::gzopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ::gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    ::gzclose(file);
}

inline std::string content_of(const std::string& path) { return support::text_of_file(path); }

} // namespace plumb::imported
