// SPDX-License-Identifier: Apache-2.0
// What nvcc puts beside a program's kernels. Source: fatbinary_section.h of the CUDA toolkit for the wrapper; the layout of the container
// is not documented, and was read off libraries that nvcc 13.0 made.
#pragma once

#include <string>

/// The PTX for the newest GPU in the fat binary that __cudaRegisterFatBinary was given; empty where there is none that can be read
/// (machine code alone, or compressed otherwise than by zstd).
std::string ptx_of(const void* wrapper);
