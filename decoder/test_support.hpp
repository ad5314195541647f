// SPDX-License-Identifier: Apache-2.0
// What the decoder's tests share: a folder that goes with the test, and small models in it. One thread.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "decoder/decoder.hpp"
#include "decoder/model_maker/maker.hpp"
#include "support/sanitizers.hpp"

namespace plumb::decoder {

/// A fresh folder under the system's temporary folder; removed with all it holds.
class TestFolder {
  public:
    TestFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "plumb-decoder-XXXXXX").string();
        if (::mkdtemp(pattern.data()) != nullptr) {
            path_ = pattern;
        }
    }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;
    ~TestFolder() {
        std::error_code ignored;
        if (!path_.empty()) {
            std::filesystem::remove_all(path_, ignored);
        }
    }
    [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  private:
    std::filesystem::path path_;
};

/// Where PoCL, an OpenCL driver for CPUs, keeps what it has compiled: a folder of this process, known to it from the start.
inline void keep_pocl_to_this_process() {
    static const TestFolder cache;
    ::setenv("POCL_CACHE_DIR", cache.path().c_str(), 1);
}

/// The thread sanitizer does not see libgomp's synchronisation: one thread there.
inline int test_threads() { return thread_sanitized ? 1 : 2; }

inline std::string make_test_model(const TestFolder& folder, std::string_view shape, Type type,
                                   std::optional<Type> second = {}) {
    const std::string path = folder.file(std::string(shape) + "-" + std::string(layout_of(type).word) +
                                         std::string(second ? layout_of(*second).word : "") + ".gguf");
    MakeOptions options;
    options.type = type;
    options.second = second;
    options.seed = 7;
    options.replace = true;
    const Status status = make_model(*find_shape(shape), path, options);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return path;
}

/// A recorder that is off, for tests that are not about profiling.
class OffRecorder : public Recorder {
  public:
    OffRecorder() = default;
    ~OffRecorder() = default;
};

} // namespace plumb::decoder
