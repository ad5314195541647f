// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a recording.
#include "mutate.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    (void)plumb::fuzz::read_recording({bytes, bytes + size});
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    const std::size_t changed = LLVMFuzzerMutate(data, size, most);
    if (seed % 2 == 0) {
        plumb::fuzz::repair_checksums(reinterpret_cast<std::byte*>(data), changed);
    }
    return changed;
}
