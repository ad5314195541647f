// SPDX-License-Identifier: Apache-2.0
// A stranger's program: records two scopes, closes the profiler, and fails if nothing was recorded.
#include <plumb/plumb.hpp>

#include <cstdio>
#include <fstream>
#include <string>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: consumer FILE\n", stderr);
        return 2;
    }
    const std::string path = argv[1];
    {
        plumb::Profiler prof(plumb::Config::parse("on,out=" + path));
        for (int token = 0; token < 4; ++token) {
            PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1), plumb::kv_length(token));
            PLUMB_BRICK(prof, plumb::host, plumb::Brick::rms_norm, plumb::bytes(64));
        }
        if (!prof.status()) {
            std::fputs("the profiler is off\n", stderr);
            return 1;
        }
    }
    std::ifstream recording(path, std::ios::binary | std::ios::ate);
    if (!recording || recording.tellg() <= 0) {
        std::fputs("no recording was written\n", stderr);
        return 1;
    }
    return 0;
}
