// SPDX-License-Identifier: Apache-2.0
// A library that records is loaded and unloaded: nothing of ours runs in unmapped memory, nothing recorded is lost.
#include <dlfcn.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/child.hpp"

namespace plumb::core_test {
namespace {

class Plugin : public CoreTest, public testing::WithParamInterface<const char*> {
  protected:
    template <class Function>
    static Function* symbol(void* library, const char* name) {
        return reinterpret_cast<Function*>(dlsym(library, name));
    }
    [[nodiscard]] std::string spec(const std::string& file) const { return "on,out=" + folder_ + "/" + file; }
    [[nodiscard]] std::uint64_t scopes_in(const std::string& file) const {
        const Held held = read_back(folder_ + "/" + file);
        EXPECT_EQ(held.problem, "");
        return held.scopes.at(Name(Brick::rms_norm).id);
    }
};

INSTANTIATE_TEST_SUITE_P(Libraries, Plugin, testing::Values(PLUMB_PLUGIN_STATIC, PLUMB_PLUGIN_SHARED),
                         [](const auto& library) {
                             return std::string(library.param).find("static") != std::string::npos ? "plumb_inside"
                                                                                                   : "shared_plumb";
                         });

TEST_P(Plugin, loaded_closed_and_unloaded_again_and_again) {
    const ChildEnd end = in_child([&] {
        for (int i = 0; i < 3; ++i) {
            void* library = dlopen(GetParam(), RTLD_NOW | RTLD_LOCAL);
            if (library == nullptr) {
                return 1;
            }
            if (symbol<int(const char*)>(library, "plumb_plugin_open")(spec("run-" + std::to_string(i)).c_str()) != 0) {
                return 2;
            }
            symbol<void(int)>(library, "plumb_plugin_record")(10);
            symbol<void(int)>(library, "plumb_plugin_record_on_a_thread")(5);
            symbol<void()>(library, "plumb_plugin_close")();
            if (dlclose(library) != 0) {
                return 3;
            }
        }
        return 0;
    });
    EXPECT_EQ(end.signal, 0);
    EXPECT_EQ(end.code, 0);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(scopes_in("run-" + std::to_string(i)), 15u);
    }
}

TEST_P(Plugin, unloaded_while_its_profiler_is_open_and_a_thread_that_recorded_lives_on) {
    const ChildEnd end = in_child([&] {
        void* library = dlopen(GetParam(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr || symbol<int(const char*)>(library, "plumb_plugin_open")(spec("run").c_str()) != 0) {
            return 1;
        }
        std::mutex mutex;
        std::condition_variable changed;
        int stage = 0;
        const auto go_to = [&](int next) {
            const std::lock_guard<std::mutex> lock(mutex);
            stage = next;
            changed.notify_all();
        };
        const auto wait_until = [&](int wanted) {
            std::unique_lock<std::mutex> lock(mutex);
            changed.wait(lock, [&] { return stage >= wanted; });
        };
        auto* record = symbol<void(int)>(library, "plumb_plugin_record");
        std::thread lives_on([&] {
            record(10);
            go_to(1);
            wait_until(2);
        }); // its thread-local state ends after the library is gone
        wait_until(1);
        if (dlclose(library) != 0) {
            return 2;
        }
        go_to(2);
        lives_on.join();
        return 0;
    });
    EXPECT_EQ(end.signal, 0);
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(scopes_in("run"), 10u);
}

TEST_P(Plugin, left_open_at_exit) {
    const ChildEnd end = in_child([&] {
        void* library = dlopen(GetParam(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr || symbol<int(const char*)>(library, "plumb_plugin_open")(spec("run").c_str()) != 0) {
            return 1;
        }
        symbol<void(int)>(library, "plumb_plugin_record")(10);
        std::exit(5);
        return 0;
    });
    EXPECT_EQ(end.signal, 0);
    EXPECT_EQ(end.code, 5);
    EXPECT_EQ(scopes_in("run"), 10u);
}

} // namespace
} // namespace plumb::core_test
