// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a dead process's ring file. Rings carry no checksums, so plain mutation gets everywhere.
#include "mutate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    (void)plumb::fuzz::read_ring(reinterpret_cast<const std::byte*>(data), size);
    return 0;
}
