// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: whatever the bytes are, the reader refuses them or gives contents that can be described.
#include <cstddef>
#include <cstdint>
#include <span>

#include "decoder/gguf/describe.hpp"
#include "decoder/gguf/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace plumb::decoder;
    const plumb::Result<gguf::Contents> contents = gguf::parse(std::as_bytes(std::span(data, size)), "fuzz.gguf");
    if (contents.ok()) {
        (void)gguf::describe_text(*contents, "fuzz.gguf");
        (void)gguf::describe_json(*contents, "fuzz.gguf");
    }
    return 0;
}
