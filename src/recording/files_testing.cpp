// SPDX-License-Identifier: Apache-2.0
#include "recording/files_testing.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/text_of_file.hpp"

namespace plumb::recording::testing {

TemporaryFolder::TemporaryFolder(const std::string& parent) {
    std::string name =
        (parent.empty() ? std::filesystem::temp_directory_path().string() : parent) + "/plumb-test-XXXXXX";
    path_ = mkdtemp(name.data()) == nullptr ? std::string() : name;
    EXPECT_FALSE(path_.empty()) << "no temporary folder";
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

Bytes read_bytes(const std::string& path) {
    const std::string text = support::text_of_file(path);
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

void write_bytes(const std::string& path, const Bytes& bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::uint64_t file_size(const std::string& path) {
    struct stat facts = {};
    return stat(path.c_str(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::size_t Content::count() const {
    std::size_t sum = 0;
    for (const auto& [track, list] : records) {
        sum += list.size();
    }
    return sum;
}

Content content_of(Reader& reader) {
    Content content;
    const Status status = reader.for_each_batch([&](const RecordBatch& batch) {
        EXPECT_GT(batch.count, 0u);
        auto& records = content.records[batch.track];
        records.insert(records.end(), batch.records, batch.records + batch.count);
        for (std::size_t i = 0; i < batch.count; ++i) {
            content.sequences[batch.track].push_back(batch.first_sequence + i);
        }
        return true;
    });
    EXPECT_TRUE(status.ok());
    return content;
}

Content content_of(const std::string& path, ReadOptions options) {
    Result<Reader> reader = Reader::open(path, options);
    if (!reader.ok()) {
        ADD_FAILURE() << reader.error().message;
        return {};
    }
    return content_of(*reader);
}

std::string joined_notes(const Reader& reader) {
    std::string all;
    for (const std::string& note : reader.notes()) {
        all += note + "\n";
    }
    return all;
}

Status append_all(Writer& writer, std::uint32_t track, const std::vector<Record>& records, std::size_t batch,
                  std::uint64_t sequence) {
    for (std::size_t i = 0; i < records.size(); i += batch) {
        const std::size_t count = std::min(batch, records.size() - i);
        if (Status status = writer.append({track, sequence + i, records.data() + i, count}); !status) {
            return status;
        }
    }
    return {};
}

} // namespace plumb::recording::testing
