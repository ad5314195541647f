// SPDX-License-Identifier: Apache-2.0
// nvtx=on, towards a stand-in for a tool's library. The order of tests matters: a process looks for the library once.
#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>

#include "plumb/plumb.hpp"
#include "record/nvtx_out.hpp"

namespace plumb {
namespace {

/// A process of its own tries it.
void record_with(const char* library) {
    if (library != nullptr) {
        setenv("NVTX_INJECTION64_PATH", library, 1);
    } else {
        unsetenv("NVTX_INJECTION64_PATH");
    }
    const Profiler prof(Config::parse("on,out=none,nvtx=on"));
    std::_Exit(prof.enabled() && !record::tells_nvtx(prof) ? 0 : 1);
}

TEST(NvtxOutDeathTest, without_a_tool_a_sentence_says_so_and_the_recording_goes_on) {
    EXPECT_EXIT(record_with(nullptr), testing::ExitedWithCode(0), "NVTX_INJECTION64_PATH names no tool's library");
    EXPECT_EXIT(record_with("/nonexistent/tool.so"), testing::ExitedWithCode(0), "nvtx=on: .*tool.so");
    EXPECT_EXIT(record_with("libc.so.6"), testing::ExitedWithCode(0), "libc.so.6 takes no NVTX ranges");
    EXPECT_EXIT(record_with("/usr/lib/libplumb-attach.so"), testing::ExitedWithCode(0),
                "the tool would be plumb itself");
}

class NvtxOut : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        setenv("NVTX_INJECTION64_PATH", PLUMB_NVTX_TOOL, 1);
        void* const tool = dlopen(PLUMB_NVTX_TOOL, RTLD_NOW);
        ASSERT_NE(tool, nullptr) << dlerror();
        said_ = reinterpret_cast<const char* (*)()>(dlsym(tool, "nvtx_tool_said"));
        ASSERT_NE(said_, nullptr);
    }
    static void TearDownTestSuite() { unsetenv("NVTX_INJECTION64_PATH"); }
    static std::string said() { return said_(); }

    static const char* (*said_)();
};
const char* (*NvtxOut::said_)() = nullptr;

TEST_F(NvtxOut, steps_layers_and_bricks_are_told_as_they_nest) {
    Profiler prof(Config::parse("on,out=none,warmup=0,nvtx=on"));
    ASSERT_TRUE(prof.status().ok());
    EXPECT_EQ(said(), "domain plumb\n");
    for (int i = 0; i < 2; ++i) {
        PLUMB_STEP(prof, host, Phase::decode, tokens(1));
        PLUMB_LAYER(prof, 3);
        PLUMB_BRICK(prof, host, Brick::attention);
        { PLUMB_BRICK(prof, host, "my own"); }
    }
    const std::string once = "push decode step\npush layer 3\npush attention\npush my own\npop\npop\npop\npop\n";
    EXPECT_EQ(said(), once + once);
    ASSERT_TRUE(prof.flush().ok());
    const Result<Report> report = prof.snapshot();
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->phases.at(0).steps, 2U);
    EXPECT_EQ(report->bricks.size(), 2U);
    EXPECT_TRUE(report->losses.empty());
}

TEST_F(NvtxOut, laps_end_where_the_next_begins) {
    Profiler prof(Config::parse("on,out=none,nvtx=on"));
    (void)said();
    {
        PLUMB_BRICK(prof, host, Brick::attention);
        PLUMB_LAP(prof, host, Brick::qk_norm);
        PLUMB_LAP(prof, host, Brick::rope_embedding);
    }
    EXPECT_EQ(said(), "push attention\npush qk_norm\npop\npush rope_embedding\npop\npop\n");
}

TEST_F(NvtxOut, pushes_and_pops_are_balanced_where_recording_stops_in_between) {
    Profiler prof(Config::parse("on,out=none,nvtx=on"));
    (void)said();
    {
        PLUMB_BRICK(prof, host, Brick::attention);
        prof.disable();
        PLUMB_BRICK(prof, host, Brick::rms_norm);
    }
    EXPECT_EQ(said(), "push attention\npop\n");
}

TEST_F(NvtxOut, what_is_too_deep_is_not_told) {
    Profiler prof(Config::parse("on,out=none,nvtx=on"));
    (void)said();
    for (unsigned i = 0; i < max_depth + 5; ++i) {
        prof.push_scope(host, Brick::attention);
    }
    for (unsigned i = 0; i < max_depth + 5; ++i) {
        prof.pop_scope();
    }
    const std::string all = said();
    std::size_t pushes = 0;
    std::size_t pops = 0;
    for (std::size_t at = 0; (at = all.find("pu", at)) != all.npos; ++at) {
        ++pushes;
    }
    for (std::size_t at = 0; (at = all.find("pop", at)) != all.npos; ++at) {
        ++pops;
    }
    EXPECT_EQ(pushes, max_depth);
    EXPECT_EQ(pops, max_depth);
}

TEST_F(NvtxOut, a_profiler_without_it_tells_nothing_and_stays_on_its_fast_path) {
    Profiler told(Config::parse("on,out=none,nvtx=on"));
    Profiler prof(Config::parse("on,out=none"));
    (void)said();
    { PLUMB_BRICK(prof, host, Brick::attention); }
    EXPECT_EQ(said(), "");
    EXPECT_FALSE(record::tells_nvtx(prof));
    EXPECT_TRUE(record::tells_nvtx(told));
    EXPECT_NE(told.mode() & detail::mode_indirect, 0U); // and of the other what the machine's clock allows
}

TEST(NvtxOutConfig, the_key_is_read_and_written) {
    EXPECT_TRUE(Config::parse(Config::parse("on,nvtx=on")->spec())->nvtx);
    EXPECT_FALSE(Config::parse("on,nvtx=yes").ok());
}

} // namespace
} // namespace plumb
