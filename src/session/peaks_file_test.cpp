// SPDX-License-Identifier: Apache-2.0
#include "session/peaks_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/peak_fields.hpp"
#include "plumb/profiler.hpp"
#include "plumb/selftest.hpp"
#include "recording/reader.hpp"
#include "support/json_schema.hpp"

namespace plumb::session {
namespace {

namespace fs = std::filesystem;

const Machine here{"node7", "A \"fast\" CPU", 64};

std::vector<Peaks> some_peaks() {
    std::vector<Peaks> all(2);
    all[0].place = "host";
    all[0].name = here.cpu;
    all[0].measured_unix_s = 1'700'000'000;
    double value = 1.25;
    for (const PeakField& field : peak_fields) {
        (all[0].*field.figure).value = value *= 3;
    }
    all[0].bf16_teraflops = {std::nullopt, "no \"bf16\" here"};
    all[1].place = "cuda:0";
    all[1].uuid = "GPU-1234";
    for (const PeakField& field : peak_fields) {
        (all[1].*field.figure).reason = "not measured";
    }
    all[1].read_gigabytes_per_second = {4100.5, {}};
    return all;
}

void expect_same(const std::vector<Peaks>& a, const std::vector<Peaks>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].place, b[i].place);
        EXPECT_EQ(a[i].name, b[i].name);
        EXPECT_EQ(a[i].uuid, b[i].uuid);
        EXPECT_EQ(a[i].measured_unix_s, b[i].measured_unix_s);
        for (const PeakField& field : peak_fields) {
            EXPECT_EQ((a[i].*field.figure).value, (b[i].*field.figure).value) << field.name;
            EXPECT_EQ((a[i].*field.figure).reason, (b[i].*field.figure).reason) << field.name;
        }
    }
}

class PeaksFile : public ::testing::Test {
  protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }
    std::string folder_ = ::testing::TempDir() + "peaks-" + std::to_string(getpid());
};

TEST_F(PeaksFile, what_is_kept_comes_back_whole_and_is_replaced_as_a_whole) {
    const Result<std::string> first = write_peaks(folder_ + "/new/folder", here, some_peaks());
    ASSERT_TRUE(first.ok()) << first.error().message;
    std::vector<Peaks> changed = some_peaks();
    changed.pop_back();
    const Result<std::string> second = write_peaks(folder_ + "/new/folder", here, changed);
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(*first, *second);
    const auto back = read_peaks(folder_ + "/new/folder", here);
    ASSERT_TRUE(back.ok()) << back.error().message;
    expect_same(*back, changed);
    struct stat info {};
    ASSERT_EQ(stat(first->c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/new/folder"), fs::directory_iterator()), 1);
}

TEST_F(PeaksFile, its_text_is_valid_under_the_schema_and_documented) {
    const auto problems = [](const support::json& kept) {
        return support::schema_problems(PLUMB_SOURCE_DIR, "plumb.peaks.1.json", {kept});
    };
    support::json kept = support::parsed(peaks_json(here, some_peaks()));
    EXPECT_EQ(problems(kept), "");
    EXPECT_EQ(problems(support::parsed(peaks_json(here, {}))), "");
    kept["peaks"][0]["l1_bytes"] = 0;
    EXPECT_NE(problems(kept), "") << "0 is no measured figure";
}

TEST_F(PeaksFile, T7_peaks_of_another_machine_are_not_believed) {
    const Result<std::string> written = write_peaks(folder_, here, some_peaks());
    ASSERT_TRUE(written.ok());
    std::vector<Machine> others(3, here);
    others[0].host = "node8";
    others[1].cpu = "another CPU";
    others[2].cpus = 2;
    for (const Machine& other : others) {
        EXPECT_FALSE(read_peaks(folder_, other).ok());
        // Not even under the name that the other machine looks for.
        const auto copied = parse_peaks(peaks_json(here, some_peaks()), other);
        ASSERT_FALSE(copied.ok());
        EXPECT_EQ(copied.error().code, ErrorCode::not_found);
        EXPECT_NE(copied.error().message.find("plumb selftest --peaks"), std::string::npos);
    }
}

TEST_F(PeaksFile, damaged_files_are_refused_at_every_byte) {
    const std::string good = peaks_json(here, some_peaks());
    ASSERT_TRUE(parse_peaks(good, here).ok());
    for (std::size_t size = 0; size + 2 < good.size(); ++size) {
        EXPECT_FALSE(parse_peaks(std::string_view(good).substr(0, size), here).ok()) << size;
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
        for (const char sign : {'{', '}', '"', '0', '-', '\\', '[', 'n'}) {
            std::string bad = good;
            bad[at] = sign;
            const auto read = parse_peaks(bad, here);
            for (const Peaks& peaks : read.ok() ? *read : std::vector<Peaks>{}) {
                for (const PeakField& field : peak_fields) {
                    const Figure& figure = peaks.*field.figure;
                    EXPECT_TRUE(!figure.value || *figure.value > 0) << at << sign;
                }
            }
        }
    }
}

TEST_F(PeaksFile, peaks_that_are_no_positive_numbers_are_absent) {
    for (const char* number : {"0", "-5", "1e999"}) {
        std::string text = peaks_json(here, some_peaks());
        const std::size_t at = text.find("\"f32_teraflops\": ") + sizeof("\"f32_teraflops\": ") - 1;
        text.replace(at, text.find(',', at) - at, number);
        const auto read = parse_peaks(text, here);
        EXPECT_TRUE(!read.ok() || !read->front().f32_teraflops.value) << number;
    }
}

TEST_F(PeaksFile, a_folder_that_cannot_be_written_is_named_with_its_fix) {
    std::ofstream(folder_ + "/file") << "in the way";
    const Result<std::string> written = write_peaks(folder_ + "/file/below", here, some_peaks());
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().message.find("XDG_CACHE_HOME"), std::string::npos);
    ASSERT_EQ(setenv("XDG_CACHE_HOME", (folder_ + "/file").c_str(), 1), 0);
    const Result<std::string> asked = peaks_file(); // before anything is measured
    ASSERT_FALSE(asked.ok());
    EXPECT_NE(asked.error().message.find("XDG_CACHE_HOME"), std::string::npos);
}

TEST_F(PeaksFile, asking_where_it_will_be_makes_its_folder_and_no_file) {
    ASSERT_EQ(setenv("XDG_CACHE_HOME", folder_.c_str(), 1), 0);
    const Result<std::string> asked = peaks_file();
    ASSERT_TRUE(asked.ok()) << asked.error().message;
    EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/plumb"));
    const Result<std::string> stored = store_peaks(some_peaks());
    ASSERT_TRUE(stored.ok()) << stored.error().message;
    EXPECT_EQ(*asked, *stored);
}

TEST_F(PeaksFile, a_profiler_takes_what_was_measured_here_into_its_recording_and_measures_nothing) {
    ASSERT_EQ(setenv("XDG_CACHE_HOME", folder_.c_str(), 1), 0);
    const auto peaks_of_run = [&](const char* name, bool redact) {
        Config config;
        config.on = true;
        config.redact = redact;
        config.out = folder_ + "/" + name;
        { Profiler profiler(config); }
        Result<recording::Reader> reader = recording::Reader::open(config.out);
        EXPECT_TRUE(reader.ok());
        return reader.ok() ? reader->metadata().peaks : std::vector<Peaks>{};
    };
    EXPECT_TRUE(peaks_of_run("before.plumb", false).empty());
    ASSERT_TRUE(store_peaks(some_peaks()).ok());
    expect_same(peaks_of_run("after.plumb", false), some_peaks());
    std::vector<Peaks> hidden = some_peaks();
    hidden[1].uuid = "redacted";
    expect_same(peaks_of_run("redacted.plumb", true), hidden);
}

} // namespace
} // namespace plumb::session
