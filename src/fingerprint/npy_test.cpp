// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/npy.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "support/text_of_file.hpp"

namespace plumb::fingerprint {
namespace {

std::string scratch(const char* name) {
    return testing::TempDir() + "plumb-npy-" + std::to_string(::getpid()) + "-" + name + ".npy";
}

std::string written(const Tensor& tensor, const char* name) {
    const std::string path = scratch(name);
    EXPECT_TRUE(write_npy(path, tensor).ok());
    std::string bytes = support::text_of_file(path);
    std::remove(path.c_str());
    return bytes;
}

/// Checks magic, version, length and padding; gives the dictionary.
std::string header_of(const std::string& file) {
    EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const std::size_t length = static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
    EXPECT_EQ((10 + length) % 64, 0u);
    EXPECT_EQ(file[9 + length], '\n');
    return file.substr(10, length);
}

template <class T>
std::vector<T> data_of(const std::string& file) {
    const std::size_t start = 10 + header_of(file).size();
    std::vector<T> values((file.size() - start) / sizeof(T));
    if (!values.empty()) {
        std::memcpy(values.data(), file.data() + start, values.size() * sizeof(T));
    }
    return values;
}

TEST(Npy, a_matrix_is_written_row_by_row) {
    const float values[] = {1, 2, 3, 4, 5, 6};
    const std::string file = written(tensor(values, DType::f32, {2, 3}), "matrix");
    EXPECT_EQ(header_of(file).find("{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,), }"), 0u);
    EXPECT_EQ(data_of<float>(file), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, strides_are_followed) {
    const std::int32_t values[] = {1, 2, 3, 4, 5, 6};
    EXPECT_EQ(data_of<std::int32_t>(written(tensor(values, DType::i32, {3, 2}, {1, 3}), "turned")),
              (std::vector<std::int32_t>{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(data_of<std::int32_t>(written(tensor(values + 5, DType::i32, {2, 3}, {-3, -1}), "back")),
              (std::vector<std::int32_t>{6, 5, 4, 3, 2, 1}));
    EXPECT_EQ(data_of<std::int32_t>(written(tensor(values, DType::i32, {2, 1, 2}, {2, 9, 0}), "repeated")),
              (std::vector<std::int32_t>{1, 1, 3, 3}));
}

TEST(Npy, bf16_becomes_f32_exactly) {
    const std::uint16_t values[] = {0x3f80, 0xc020, 0x7f80};
    const std::vector<float> read = data_of<float>(written(tensor(values, DType::bf16, {3}), "bf16"));
    ASSERT_EQ(read.size(), 3u);
    EXPECT_EQ(read[0], 1.0F);
    EXPECT_EQ(read[1], -2.5F);
    EXPECT_EQ(read[2], std::numeric_limits<float>::infinity());
}

TEST(Npy, a_size_limit_of_the_process_is_no_end_of_it) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const float values[1024] = {};
    const rlimit limit{128 + sizeof values - 1, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Status refused = write_npy(scratch("limited"), tensor(values, DType::f32, {1024}));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    std::remove(scratch("limited").c_str());
    EXPECT_EQ(refused.error().code, ErrorCode::no_space);
}

TEST(Npy, each_type_has_its_word) {
    const double values[4] = {};
    const std::pair<DType, const char*> words[] = {
        {DType::f64, "<f8"}, {DType::f16, "<f2"}, {DType::i8, "|i1"}, {DType::i32, "<i4"}};
    for (const auto& [type, word] : words) {
        const std::string file = written(tensor(values, type, {4}), "types");
        EXPECT_NE(header_of(file).find(word), std::string::npos) << word;
        EXPECT_EQ(file.size() % 64, 4 * size_of(type) % 64) << word;
    }
}

TEST(Npy, an_empty_tensor_is_a_header) {
    EXPECT_TRUE(data_of<float>(written(tensor(nullptr, DType::f32, {0, 4}), "empty")).empty());
}

TEST(Npy, a_tensor_without_dimensions_is_written_as_the_nothing_that_it_holds) {
    const float value = 1;
    const std::string file = written(tensor(&value, DType::f32, {}), "rank0");
    EXPECT_NE(header_of(file).find("'shape': (0,), }"), std::string::npos) << "of () NumPy reads one element";
    EXPECT_TRUE(data_of<float>(file).empty());
}

TEST(Npy, a_folder_that_is_not_there_is_said) {
    const float value = 1;
    const Status status = write_npy("/nowhere/at/all.npy", tensor(&value, DType::f32, {1}));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::not_found);
    EXPECT_NE(status.error().message.find("make its folder first"), std::string::npos) << status.error().message;
}

TEST(Npy, a_full_disk_is_said) {
    if (::access("/dev/full", W_OK) != 0) {
        GTEST_SKIP() << "no /dev/full here";
    }
    const float value = 1;
    const Status status = write_npy("/dev/full", tensor(&value, DType::f32, {1}));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::no_space);
}

} // namespace
} // namespace plumb::fingerprint
