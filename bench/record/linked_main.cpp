// SPDX-License-Identifier: Apache-2.0
// The loops come from a shared library that was loaded with the program.
#include "record/part.hpp"

int main(int argc, char** argv) { return bench::part_main(argc, argv, *plumb_bench_subject()); }
