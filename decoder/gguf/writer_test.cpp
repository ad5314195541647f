// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/writer.hpp"

#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "decoder/gguf/describe.hpp"
#include "decoder/gguf/reader.hpp"
#include "decoder/test_support.hpp"

namespace plumb::decoder::gguf {
namespace {

constexpr std::array<std::uint64_t, 2> two_by_three{3, 2};
constexpr std::array<std::uint64_t, 1> five{5};

std::vector<std::byte> counted(std::size_t n) {
    std::vector<std::byte> out(n);
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = static_cast<std::byte>(i + 1);
    }
    return out;
}

/// A file with one value of each kind and two tensors; `data` is spread over several writes.
Status write_sample(const std::string& path, bool replace) {
    GgufWriter writer(path);
    writer.add("general.architecture", "llama");
    writer.add("number", std::uint32_t{7});
    writer.add("real", 0.5F);
    writer.add("flag", true);
    writer.add_tensor("first", two_by_three, 0);
    writer.add_tensor("second", five, 30);
    if (Status status = writer.begin(replace); !status) {
        return status;
    }
    const auto data = counted(24 + 10);
    if (Status status = writer.write(std::span(data).first(30)); !status) {
        return status;
    }
    if (Status status = writer.write(std::span(data).subspan(30)); !status) {
        return status;
    }
    return writer.finish();
}

std::size_t files_in(const std::filesystem::path& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(GgufWriter, what_is_written_is_read_back) {
    const TestFolder folder;
    const std::string path = folder.file("m.gguf");
    ASSERT_TRUE(write_sample(path, false).ok());
    Result<File> file = File::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const Contents& contents = file->contents();
    EXPECT_EQ(contents.version, 3U);
    EXPECT_EQ(contents.find("general.architecture")->as_string(), "llama");
    EXPECT_EQ(contents.find("number")->as_unsigned(), 7U);
    EXPECT_EQ(contents.find("real")->as_number(), 0.5);
    EXPECT_EQ(contents.find("flag")->as_bool(), true);
    EXPECT_EQ(contents.find("absent"), nullptr);
    const TensorInfo* first = contents.tensor("first");
    const TensorInfo* second = contents.tensor("second");
    ASSERT_TRUE(first != nullptr && second != nullptr);
    EXPECT_EQ(first->size[0], 3U);
    EXPECT_EQ(first->size[1], 2U);
    const auto data = counted(34);
    ASSERT_EQ(first->data.size(), 24U);
    ASSERT_EQ(second->data.size(), 10U);
    EXPECT_EQ(0, std::memcmp(first->data.data(), data.data(), 24));
    EXPECT_EQ(0, std::memcmp(second->data.data(), data.data() + 24, 10));
    EXPECT_EQ(second->offset % 32, 0U);
}

TEST(GgufWriter, an_existing_file_is_kept_unless_it_may_be_replaced) {
    const TestFolder folder;
    const std::string path = folder.file("m.gguf");
    std::ofstream(path) << "precious";
    const Status refused = write_sample(path, false);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::already_exists);
    std::string kept;
    std::ifstream(path) >> kept;
    EXPECT_EQ(kept, "precious");
    EXPECT_TRUE(write_sample(path, true).ok());
    EXPECT_TRUE(File::open(path).ok());
}

TEST(GgufWriter, a_link_is_written_through) {
    const TestFolder folder;
    std::filesystem::create_directory(folder.file("elsewhere"));
    std::filesystem::create_symlink("elsewhere/step", folder.file("link"));
    std::filesystem::create_symlink("m.gguf", folder.file("elsewhere/step"));
    for (const bool there : {false, true}) {
        ASSERT_TRUE(write_sample(folder.file("link"), there).ok());
        EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
        EXPECT_TRUE(std::filesystem::is_symlink(folder.file("elsewhere/step")));
        EXPECT_TRUE(std::filesystem::is_regular_file(folder.file("elsewhere/m.gguf")));
        EXPECT_TRUE(File::open(folder.file("link")).ok());
        EXPECT_EQ(files_in(folder.file("elsewhere")), 2U);
    }
}

TEST(GgufWriter, an_unfinished_file_leaves_nothing_behind) {
    const TestFolder folder;
    {
        GgufWriter writer(folder.file("m.gguf"));
        writer.add_tensor("t", two_by_three, 0);
        ASSERT_TRUE(writer.begin(false).ok());
        EXPECT_EQ(files_in(folder.path()), 1U);
        EXPECT_FALSE(writer.finish().ok()) << "its data is missing";
    }
    EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(GgufWriter, a_missing_folder_is_named_in_one_sentence) {
    const TestFolder folder;
    const Status status = write_sample(folder.file("absent/m.gguf"), false);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::not_found);
    EXPECT_NE(status.error().message.find("the folder does not exist"), std::string::npos);
}

/// A limit on the size of files stands for the full disk: the kernel answers the same calls with the same kind of error.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

  private:
    rlimit before_{};
    void (*handler_)(int);
};

TEST(GgufWriter, a_full_disk_gives_one_sentence_and_leaves_nothing) {
    const TestFolder folder;
    MakeOptions options;
    Status status;
    {
        const FileSizeLimit limit(100000);
        status = make_model(*find_shape("test"), folder.file("m.gguf"), options);
    }
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::no_space);
    EXPECT_NE(status.error().message.find("the disk is full"), std::string::npos);
    EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(GgufDescription, names_every_tensor_and_unknown_types) {
    const TestFolder folder;
    const std::string path = folder.file("m.gguf");
    GgufWriter writer(path);
    writer.add("general.name", "line\nbreak");
    writer.add_tensor("odd", five, 777);
    ASSERT_TRUE(writer.begin(false).ok());
    ASSERT_TRUE(writer.write(counted(5)).ok());
    ASSERT_TRUE(writer.finish().ok());
    Result<File> file = File::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const std::string text = describe_text(file->contents(), path);
    EXPECT_NE(text.find("unknown type 777"), std::string::npos);
    EXPECT_NE(text.find("size n/a"), std::string::npos);
    EXPECT_NE(text.find("line\\x0abreak"), std::string::npos);
    const std::string json = describe_json(file->contents(), path);
    EXPECT_NE(json.find("\"unknown type 777\""), std::string::npos);
    EXPECT_NE(json.find("\"absent\": \"the size of this type is not known\""), std::string::npos);
    EXPECT_EQ(json.find("null"), std::string::npos);
}

} // namespace
} // namespace plumb::decoder::gguf
