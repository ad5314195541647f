// SPDX-License-Identifier: Apache-2.0
#include "attach/slots.hpp"

#include <dlfcn.h>
#include <fstream>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sstream>

namespace plumb::attach {
namespace {

constexpr const char* wanted[] = {"plumb_probe_target"};

int replaced() { return 7; }

/// Rights of the page that holds the address, as the system lists them.
std::string rights_at(std::uintptr_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        char dash = 0;
        std::string rights;
        std::istringstream words(line);
        words >> std::hex >> begin >> dash >> end >> rights;
        if (address >= begin && address < end) {
            return rights;
        }
    }
    return "?";
}

/// One copy of the probe, linked in one of the ways that libraries are.
class Slots : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        handle_ = dlopen(GetParam(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(handle_, nullptr) << dlerror();
    }
    /// The one library of this test; those of the tests before stay loaded too.
    [[nodiscard]] static std::vector<Pinned> pinned() {
        std::vector<Pinned> found = pin_libraries_with(wanted);
        std::erase_if(found, [](const Pinned& library) { return library.path != GetParam(); });
        return found;
    }
    [[nodiscard]] int call(const char* name) const { return reinterpret_cast<int (*)()>(dlsym(handle_, name))(); }

    void* handle_ = nullptr;
};

TEST_P(Slots, a_redirected_slot_leads_elsewhere_and_its_neighbour_does_not) {
    const std::vector<Pinned> found = pinned();
    ASSERT_EQ(found.size(), 1U);
    std::size_t asked = 0;
    std::vector<std::uintptr_t> led_to;
    const auto target = [&](const Slot& slot) {
        ++asked;
        led_to.push_back(slot.leads_to);
        EXPECT_TRUE(slot.unresolved); // the library's own
        return reinterpret_cast<void*>(&replaced);
    };
    EXPECT_EQ(redirect(found, wanted, target), 0U);
    EXPECT_GE(asked, 1U);
    EXPECT_EQ(call("plumb_probe_call"), 7);
    EXPECT_EQ(call("plumb_probe_call_longer"), 2);
    EXPECT_EQ(call("plumb_probe_target"), 1) << "the function itself is as it was";

    // Put back, so that the same library can be loaded by the next test.
    std::size_t next = 0;
    EXPECT_EQ(redirect(found, wanted, [&](const Slot&) { return reinterpret_cast<void*>(led_to[next++]); }), 0U);
    EXPECT_EQ(call("plumb_probe_call"), 1);
}

/// What /proc/self/maps says of that file.
std::string pages_of(const char* path) {
    std::ifstream maps("/proc/self/maps");
    std::string found;
    for (std::string line; std::getline(maps, line);) {
        found += line.ends_with(path) ? line + '\n' : "";
    }
    return found;
}

TEST_P(Slots, pages_keep_their_protection) {
    const std::vector<Pinned> found = pinned();
    ASSERT_EQ(found.size(), 1U);
    const std::string before = pages_of(GetParam());
    EXPECT_EQ(redirect(found, wanted, [](const Slot& slot) { return reinterpret_cast<void*>(slot.leads_to); }), 0U);
    EXPECT_NE(before, "");
    EXPECT_EQ(before, pages_of(GetParam()));
    EXPECT_EQ(rights_at(found[0].base).substr(1, 1), "-") << "its first page is not writable";
}

TEST_P(Slots, a_library_stays_loaded_after_its_last_dlclose) {
    const std::vector<Pinned> found = pinned();
    ASSERT_EQ(found.size(), 1U);
    dlclose(handle_);
    dlclose(found[0].handle);
    void* const again = dlopen(GetParam(), RTLD_NOW | RTLD_NOLOAD);
    EXPECT_NE(again, nullptr);
    handle_ = again;
}

std::string word_of(const testing::TestParamInfo<const char*>& linked) {
    constexpr const char* words[] = {"lazily", "at_once", "without_plt"};
    return words[linked.index];
}
INSTANTIATE_TEST_SUITE_P(Linked, Slots, testing::Values(PLUMB_PROBE_LAZY, PLUMB_PROBE_NOW, PLUMB_PROBE_NO_PLT),
                         word_of);

TEST(SlotsOfUs, our_own_code_is_told_from_the_rest) {
    EXPECT_TRUE(is_ours(reinterpret_cast<const void*>(&replaced)));
    EXPECT_FALSE(is_ours(reinterpret_cast<const void*>(&gnu_get_libc_version)));
    EXPECT_EQ(library_of(reinterpret_cast<const void*>(&gnu_get_libc_version)).substr(0, 4), "libc");
}

} // namespace
} // namespace plumb::attach
