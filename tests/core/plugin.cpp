// SPDX-License-Identifier: Apache-2.0
// A library that records, loaded and unloaded by plugin_test: once with plumb inside, once beside a shared libplumb.
#include <memory>
#include <thread>

#include "plumb/plumb.hpp"

namespace {

std::unique_ptr<plumb::Profiler> profiler; // destroyed when the library is unloaded

void scopes(int count) {
    for (int i = 0; i < count; ++i) {
        PLUMB_BRICK(*profiler, plumb::host, plumb::Brick::rms_norm, plumb::bytes(64));
    }
}

} // namespace

extern "C" __attribute__((visibility("default"))) int plumb_plugin_open(const char* spec) {
    profiler = std::make_unique<plumb::Profiler>(plumb::Config::parse(spec));
    return profiler->enabled() ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) void plumb_plugin_record(int count) { scopes(count); }

extern "C" __attribute__((visibility("default"))) void plumb_plugin_record_on_a_thread(int count) {
    std::thread([count] { scopes(count); }).join();
}

extern "C" __attribute__((visibility("default"))) void plumb_plugin_close() { profiler.reset(); }
