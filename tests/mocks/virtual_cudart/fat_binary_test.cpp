// SPDX-License-Identifier: Apache-2.0
#include "fat_binary.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
    bytes.resize(std::max(bytes.size(), at + sizeof value));
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// An entry as nvcc 13.0 writes it: its header, and the text by zstd, padded to eight bytes.
Bytes entry(std::uint16_t kind, std::uint32_t architecture, const std::string& text, bool packed) {
    Bytes data(text.begin(), text.end());
    if (packed) {
        data.resize(ZSTD_compressBound(text.size()));
        data.resize(ZSTD_compress(data.data(), data.size(), text.data(), text.size(), 3));
    }
    const auto bytes = static_cast<std::uint32_t>(data.size());
    data.resize((data.size() + 7) / 8 * 8);
    Bytes made(80);
    put(made, 0, kind);
    put<std::uint32_t>(made, 4, 80);
    put<std::uint64_t>(made, 8, data.size());
    put(made, 16, packed ? bytes : 0U);
    put(made, 28, architecture);
    made.insert(made.end(), data.begin(), data.end());
    return made;
}

std::string read_back(const std::vector<Bytes>& entries) {
    Bytes container(16);
    for (const Bytes& one : entries) {
        container.insert(container.end(), one.begin(), one.end());
    }
    put<std::uint32_t>(container, 0, 0xba55ed50);
    put<std::uint16_t>(container, 6, 16);
    put<std::uint64_t>(container, 8, container.size() - 16);
    const struct {
        std::int32_t magic, version;
        const unsigned char* container;
        const void* file;
    } wrapper{0x466243b1, 1, container.data(), nullptr};
    return ptx_of(&wrapper);
}

const std::string older = ".version 8.0\n.target sm_80\n", newer = ".version 8.0\n.target sm_90\n";

TEST(FatBinary, the_text_for_the_newest_gpu_is_found_among_machine_code) {
    EXPECT_EQ(read_back({entry(1, 80, older, true), entry(2, 86, "machine code", true), entry(1, 90, newer, true),
                         entry(2, 120, "machine code", true)}),
              newer);
    EXPECT_EQ(read_back({entry(1, 90, newer, false), entry(1, 80, older, false)}), newer);
}

TEST(FatBinary, without_a_text_that_can_be_read_there_is_none) {
    EXPECT_EQ(ptx_of(nullptr), "");
    EXPECT_EQ(read_back({entry(2, 90, "machine code", true)}), "");
    EXPECT_EQ(read_back({entry(1, 90, "packed in another way", false)}), "");
    EXPECT_EQ(read_back({}), "");
}

} // namespace
