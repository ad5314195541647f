// SPDX-License-Identifier: Apache-2.0
// A library that takes LOOKALIKE_HOG bytes of the thread-local storage that a process keeps for libraries opened late. Copies
// of it leave none.
namespace {
__attribute__((tls_model("initial-exec"))) thread_local char hog[LOOKALIKE_HOG] = {1};
} // namespace
extern "C" __attribute__((visibility("default"))) char* lookalike_hog();
char* lookalike_hog() { return hog; }
