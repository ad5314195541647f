// SPDX-License-Identifier: Apache-2.0
// Records one brick, for a debugger to follow. Exits with 77 where this machine does not take the common way.
#include <cstdio>
#include <plumb/profiler.hpp>
#include <plumb/record.hpp>

namespace {

void one_brick(plumb::Profiler& prof) { PLUMB_BRICK(prof, plumb::host, "a brick to follow"); }

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: record_one FILE\n");
        return 2;
    }
    plumb::Config config;
    config.on = true;
    config.out = argv[1];
    plumb::Profiler prof(config);
    if ((prof.mode() & plumb::detail::mode_indirect) != 0) {
        std::fprintf(stderr, "this machine has no counter that scopes can read directly\n");
        return 77;
    }
    one_brick(prof);
    const plumb::Status closed = prof.close();
    if (!closed) {
        std::fprintf(stderr, "%s\n", closed.error().message.c_str());
        return 1;
    }
    return 0;
}
