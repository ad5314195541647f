// SPDX-License-Identifier: Apache-2.0
// The other side of the stand-in libcublasLt, for tests: found by dlsym in the library that is loaded. One thread.
#pragma once

#include <cstdint>

extern "C" {
/// From now on calls of `symbol` do nothing and answer `status`; 0: they work again.
void virtual_cublaslt_answer(const char* symbol, int status);
/// Products done so far.
std::uint64_t virtual_cublaslt_products();
/// What would have been undefined on a device, first of all: memory or an algorithm that is not the product's. Empty: nothing.
const char* virtual_cublaslt_failure();
}
