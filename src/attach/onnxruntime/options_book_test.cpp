// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/options_book.hpp"

#include <gtest/gtest.h>
#include <map>
#include <memory>

/// The engine's own, as this test has it.
struct OrtRunOptions {
    int verbosity = 0, severity = -1;
    std::string tag;
    std::map<std::string, std::string> entries;
    bool terminates = false;
};

namespace plumb::attach::onnxruntime {
namespace {

int living = 0;
bool refuses_entries = false;
int refusals_released = 0;

OrtApi api() {
    OrtApi made;
    made.create_run_options = [](RunOptions** options) -> Failure* {
        *options = new RunOptions;
        ++living;
        return nullptr;
    };
    made.release_run_options = [](RunOptions* options) {
        --living;
        delete options;
    };
    made.release_failure = [](Failure*) {
        ++refusals_released;
    };
    made.set_verbosity = [](RunOptions* options, int value) -> Failure* {
        options->verbosity = value;
        return nullptr;
    };
    made.get_verbosity = [](const RunOptions* options, int* value) -> Failure* {
        *value = options->verbosity;
        return nullptr;
    };
    made.set_severity = [](RunOptions* options, int value) -> Failure* {
        options->severity = value;
        return nullptr;
    };
    made.get_severity = [](const RunOptions* options, int* value) -> Failure* {
        *value = options->severity;
        return nullptr;
    };
    made.set_tag = [](RunOptions* options, const char* value) -> Failure* {
        options->tag = value;
        return nullptr;
    };
    made.get_tag = [](const RunOptions* options, const char** value) -> Failure* {
        *value = options->tag.c_str();
        return nullptr;
    };
    made.set_terminate = [](RunOptions* options) -> Failure* {
        options->terminates = true;
        return nullptr;
    };
    made.unset_terminate = [](RunOptions* options) -> Failure* {
        options->terminates = false;
        return nullptr;
    };
    made.add_config_entry = [](RunOptions* options, const char* key, const char* value) -> Failure* {
        static int refusal;
        options->entries[key] = value;
        return refuses_entries ? reinterpret_cast<Failure*>(&refusal) : nullptr;
    };
    return made;
}

class Options : public testing::Test {
  protected:
    void SetUp() override {
        living = refusals_released = 0;
        refuses_entries = false;
        book_.made(&given_);
    }
    void TearDown() override { EXPECT_EQ(living, 0); }

    const OrtApi api_ = api();
    OptionsBook book_{api_};
    RunOptions given_;
};

TEST_F(Options, F10_run_options_of_the_program_are_left_alone_and_a_stand_in_says_the_same) {
    given_ = {3, 2, "a tag", {}, false};
    book_.added(&given_, "gpu_graph_id", "4");
    RunOptions* const own = book_.stand_in(&given_);
    ASSERT_NE(own, nullptr);
    ASSERT_NE(own, &given_) << "another thread may run with them";
    EXPECT_EQ(own->verbosity, 3);
    EXPECT_EQ(own->severity, 2);
    EXPECT_EQ(own->tag, "a tag");
    EXPECT_EQ(own->entries, (std::map<std::string, std::string>{{"gpu_graph_id", "4"}}));
    EXPECT_FALSE(own->terminates);
    book_.done(&given_, own);
}

TEST_F(Options, none_at_all_are_those_by_default) {
    RunOptions* const own = book_.stand_in(nullptr);
    ASSERT_NE(own, nullptr);
    book_.done(nullptr, own);
}

TEST_F(Options, what_ends_the_program_s_run_ends_the_stand_in_too) {
    RunOptions* const own = book_.stand_in(&given_);
    book_.terminates(&given_, true);
    EXPECT_TRUE(own->terminates);
    RunOptions* const later = book_.stand_in(&given_);
    EXPECT_TRUE(later->terminates);
    book_.terminates(&given_, false);
    EXPECT_FALSE(own->terminates);
    EXPECT_FALSE(later->terminates);
    book_.done(&given_, own);
    book_.done(&given_, later);
}

TEST_F(Options, what_cannot_be_said_again_or_is_not_known_has_none) {
    book_.changed(&given_);
    EXPECT_EQ(book_.stand_in(&given_), nullptr);
    RunOptions stranger;
    EXPECT_EQ(book_.stand_in(&stranger), nullptr);
    book_.made(&given_); // another one at the same address
    RunOptions* const own = book_.stand_in(&given_);
    EXPECT_NE(own, nullptr);
    book_.done(&given_, own);
    book_.released(&given_);
    EXPECT_EQ(book_.stand_in(&given_), nullptr);
}

TEST_F(Options, runs_that_the_program_profiles_itself_are_its_own) {
    book_.profiles(&given_, true);
    EXPECT_TRUE(book_.profiled_by_program(&given_));
    EXPECT_EQ(book_.stand_in(&given_), nullptr);
    book_.profiles(&given_, false);
    RunOptions* const own = book_.stand_in(&given_);
    EXPECT_NE(own, nullptr);
    book_.done(&given_, own);
}

TEST_F(Options, a_refusal_is_given_back_and_leaves_nothing) {
    book_.added(&given_, "key", "value");
    refuses_entries = true;
    EXPECT_EQ(book_.stand_in(&given_), nullptr);
    EXPECT_EQ(refusals_released, 1);
}

} // namespace
} // namespace plumb::attach::onnxruntime
