// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "recording/reader.hpp"
#include "recording/writer.hpp"

namespace plumb::recording {
namespace {

TEST(RoundTrip, a_record_written_in_memory_is_read_back) {
    Metadata metadata;
    metadata.host = "somewhere";
    Result<std::unique_ptr<Writer>> writer = Writer::create({}, metadata);
    ASSERT_TRUE(writer.ok());
    const Record record{1000, pack(RecordKind::scope, 3, 17)};
    ASSERT_TRUE((*writer)->append({1, 0, &record, 1}).ok());
    ASSERT_TRUE((*writer)->close().ok());
    Result<Reader> reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->metadata().host, "somewhere");
    EXPECT_TRUE(reader->notes().empty());
    std::size_t seen = 0;
    ASSERT_TRUE(reader
                    ->for_each_batch([&](const RecordBatch& batch) {
                        EXPECT_EQ(batch.count, 1u);
                        EXPECT_EQ(batch.records[0].first, record.first);
                        EXPECT_EQ(batch.records[0].second, record.second);
                        seen += batch.count;
                        return true;
                    })
                    .ok());
    EXPECT_EQ(seen, 1u);
}

} // namespace
} // namespace plumb::recording
