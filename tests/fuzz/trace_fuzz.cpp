// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a trace of another tool, of whatever format they look like.
#include <cstdint>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "import/formats.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const int file = memfd_create("trace", MFD_CLOEXEC);
    static const std::string path = "/proc/self/fd/" + std::to_string(file);
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
        __builtin_trap(); // no memory for the file: not the reader's fault
    }
    (void)plumb::imported::read_trace(path);
    return 0;
}
