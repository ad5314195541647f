// SPDX-License-Identifier: Apache-2.0
#include "top/running.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/os.hpp"
#include "recording/files_testing.hpp"

namespace plumb::top {
namespace {

using recording::testing::TemporaryFolder;

recording::Bytes ring_of(std::uint32_t pid) {
    recording::Metadata metadata = recording::testing::full_metadata();
    metadata.pid = pid;
    metadata.process_start = *base::process_start_time(pid);
    recording::Bytes bytes = recording::testing::ring_bytes(metadata, 64, {});
    bytes[offsetof(detail::RingFileHeader, recording)] = std::byte{'r'};
    return bytes;
}

TEST(Running, a_live_process_with_a_ring_is_found_and_nothing_else) {
    const TemporaryFolder folder;
    const auto own = static_cast<std::uint32_t>(getpid());
    recording::testing::write_bytes(folder.file("plumb-1234-5678.ring"), ring_of(own));
    recording::Bytes dead = ring_of(own);
    dead[offsetof(detail::RingFileHeader, process_start)] ^= std::byte{1}; // an earlier process of that pid
    recording::testing::write_bytes(folder.file("plumb-dead-dead.ring"), dead);
    recording::Bytes begun = ring_of(own);
    begun[offsetof(detail::RingFileHeader, recording)] = std::byte{0};
    recording::testing::write_bytes(folder.file("plumb-begun-1.ring"), begun);
    recording::testing::write_bytes(folder.file("plumb-noise-1.ring"), recording::Bytes(5000, std::byte{7}));
    recording::testing::write_bytes(folder.file("plumb-short-1.ring"), recording::Bytes(5, std::byte{7}));
    recording::testing::write_bytes(folder.file("another.file"), ring_of(own));
    const std::vector<Running> found = running_recordings({folder.path(), folder.file("not there")});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].pid, own);
    EXPECT_EQ(found[0].recording, "r");
}

} // namespace
} // namespace plumb::top
