// SPDX-License-Identifier: Apache-2.0
// Writes the traces that fuzzing starts from: make_trace_corpus FOLDER. Small ones of each format, as they were planned.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "import/planted_trace_testing.hpp"

using namespace plumb::imported;

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[1];
    std::filesystem::create_directories(folder);
    PlannedRun run;
    run.layers = 1;
    run.steps = 1;
    run.annotated = run.side_stream = true;
    const PlannedTrace planned = plan(run);
    KinetoForm odd;
    odd.pretty = false;
    odd.text_numbers = odd.wrapped = true;
    std::ofstream(folder + "/kineto", std::ios::binary) << as_kineto(planned);
    std::ofstream(folder + "/kineto-odd", std::ios::binary) << as_kineto(planned, odd);
    std::ofstream(folder + "/rocprofv3", std::ios::binary) << as_rocprofv3(planned);
    for (const auto& [name, make] : {std::pair{"/nsys", &save_nsys}, {"/rpd", &save_rpd}}) {
        std::filesystem::remove(folder + name);
        make(planned, folder + name);
    }
    return 0;
}
