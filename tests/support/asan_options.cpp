// SPDX-License-Identifier: Apache-2.0
// In every program that is built with the address sanitizer. Up to GCC 13 and LLVM 16 it takes thread storage whose address
// ends in 0x010 for a block of glibc 2.19, reads two words before it as address and length, and crashes there when it looks for
// leaks at exit (google/sanitizers#1322). Without this interceptor it finds such blocks as it finds any other memory.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }
