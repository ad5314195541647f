// SPDX-License-Identifier: Apache-2.0
// What libplumb-attach.so shows of itself to a process that it is put into, read from the file.
#include <elf.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "support/text_of_file.hpp"

namespace {

class AttachFile : public testing::Test {
  protected:
    void SetUp() override {
        image_ = plumb::support::text_of_file(PLUMB_ATTACH_FILE);
        if (image_.empty()) {
            GTEST_SKIP() << "libplumb-attach.so was not built: no libzstd.a or libpcre2-8.a, or with a sanitizer";
        }
    }
    template <class T>
    [[nodiscard]] const T& at(std::size_t offset) const {
        return *reinterpret_cast<const T*>(image_.data() + offset);
    }
    [[nodiscard]] const Elf64_Shdr* section(unsigned type) const {
        const auto& header = at<Elf64_Ehdr>(0);
        for (unsigned i = 0; i < header.e_shnum; ++i) {
            const auto& found = at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
            if (found.sh_type == type) {
                return &found;
            }
        }
        return nullptr;
    }
    /// Names of the dynamic section's strings that its entries of this tag give.
    [[nodiscard]] std::set<std::string> needed() const {
        const Elf64_Shdr* table = section(SHT_DYNAMIC);
        const std::size_t strings =
            at<Elf64_Shdr>(at<Elf64_Ehdr>(0).e_shoff + table->sh_link * sizeof(Elf64_Shdr)).sh_offset;
        std::set<std::string> names;
        for (std::size_t at_byte = 0; at_byte < table->sh_size; at_byte += sizeof(Elf64_Dyn)) {
            const auto& entry = at<Elf64_Dyn>(table->sh_offset + at_byte);
            if (entry.d_tag == DT_NEEDED) {
                names.insert(&at<char>(strings + entry.d_un.d_val));
            }
        }
        return names;
    }

    std::string image_;
};

TEST_F(AttachFile, exports_the_names_of_its_doors_and_nothing_else) {
    const Elf64_Shdr* table = section(SHT_DYNSYM);
    ASSERT_NE(table, nullptr);
    const std::size_t strings =
        at<Elf64_Shdr>(at<Elf64_Ehdr>(0).e_shoff + table->sh_link * sizeof(Elf64_Shdr)).sh_offset;
    std::set<std::string> names;
    for (std::size_t at_byte = 0; at_byte < table->sh_size; at_byte += sizeof(Elf64_Sym)) {
        const auto& symbol = at<Elf64_Sym>(table->sh_offset + at_byte);
        if (symbol.st_shndx != SHN_UNDEF) {
            names.insert(&at<char>(strings + symbol.st_name));
        }
    }
    EXPECT_EQ(names, (std::set<std::string>{
                         "InitializeInjection", "InitializeInjectionNvtx2", "OrtGetApiBase", "clGetLayerInfo",
                         "clInitLayer", "cudaStreamBeginCapture", "cudaStreamBeginCapture_ptsz", "ggml_backend_score",
                         "ggml_backend_sched_new", "plumb_attach_function", "vkNegotiateLoaderLayerInterfaceVersion"}));
}

TEST_F(AttachFile, needs_only_what_every_process_may_have) {
    for (const std::string& name : needed()) {
        EXPECT_TRUE(name.starts_with("libc.so") || name.starts_with("libm.so") || name.starts_with("libgcc_s.so") ||
                    name.starts_with("ld-linux"))
            << name;
    }
}

TEST_F(AttachFile, asks_for_none_of_the_thread_local_storage_that_is_short_in_a_late_library) {
    const Elf64_Shdr* table = section(SHT_DYNAMIC);
    for (std::size_t at_byte = 0; at_byte < table->sh_size; at_byte += sizeof(Elf64_Dyn)) {
        const auto& entry = at<Elf64_Dyn>(table->sh_offset + at_byte);
        EXPECT_FALSE(entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_STATIC_TLS) != 0)
            << "a room is missing in PLUMB_LATE_ROOMS";
    }
}

TEST_F(AttachFile, runs_with_the_c_library_of_2021) {
    const std::string& text = image_;
    for (const char* newer : {"GLIBC_2.35", "GLIBC_2.36", "GLIBC_2.37", "GLIBC_2.38", "GLIBC_2.39", "GLIBC_2.40"}) {
        EXPECT_EQ(text.find(std::string(newer) + '\0'), text.npos) << newer;
    }
}

} // namespace
