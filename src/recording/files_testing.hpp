// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share: folders, files, whole recordings in one value. Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "recording/reader.hpp"
#include "recording/records_testing.hpp"
#include "recording/writer.hpp"

namespace plumb::recording::testing {

/// A folder of its own, removed with its files.
class TemporaryFolder {
  public:
    /// `parent` empty: where temporary files go.
    explicit TemporaryFolder(const std::string& parent = "");
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

Bytes read_bytes(const std::string& path);
void write_bytes(const std::string& path, const Bytes& bytes);
std::uint64_t file_size(const std::string& path);
bool exists(const std::string& path);

/// All records by track, and the sequence number of each.
struct Content {
    std::map<std::uint32_t, std::vector<Record>> records;
    std::map<std::uint32_t, std::vector<std::uint64_t>> sequences;
    [[nodiscard]] std::size_t count() const;
};
Content content_of(Reader& reader);
/// Opens and reads; an empty Content when that fails, with a test failure.
Content content_of(const std::string& path, ReadOptions options = {});
std::string joined_notes(const Reader& reader);

/// Appends `records` as track `track` from `sequence` on, `batch` at a time; stops at the first error.
Status append_all(Writer& writer, std::uint32_t track, const std::vector<Record>& records, std::size_t batch = 1000,
                  std::uint64_t sequence = 0);

} // namespace plumb::recording::testing
