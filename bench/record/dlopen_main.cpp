// SPDX-License-Identifier: Apache-2.0
// The loops come from a shared library that is loaded while the program runs.
#include <dlfcn.h>

#include <cstdio>

#include "record/part.hpp"

int main(int argc, char** argv) {
    void* library = dlopen(PLUMB_BENCH_SUBJECT, RTLD_NOW | RTLD_LOCAL);
    void* symbol = library != nullptr ? dlsym(library, "plumb_bench_subject") : nullptr;
    if (symbol == nullptr) {
        std::fprintf(stderr, "%s; build the target bench_record first\n", dlerror());
        return 2;
    }
    return bench::part_main(argc, argv, *reinterpret_cast<const bench::Subject* (*)()>(symbol)());
}
