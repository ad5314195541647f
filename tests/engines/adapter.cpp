// SPDX-License-Identifier: Apache-2.0
// plumb/ggml.h in a C++ program: the sample that is C, as C++.
#include "llama_cpp.c"
