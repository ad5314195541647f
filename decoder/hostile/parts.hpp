// SPDX-License-Identifier: Apache-2.0
// A GGUF file taken apart, so that it can be put together again wrongly: what is said where is known to the byte.
// Owned by the caller; points into the bytes it was taken from. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/gguf/reader.hpp"

namespace plumb::decoder::hostile {

using Bytes = std::vector<std::byte>;

struct EntryPart {
    std::string key;
    gguf::ValueType type = gguf::ValueType::u32;
    std::string value; // of a number or text; no length before a text
    // Of an array: elements, each as it is stored but without a length.
    gguf::ValueType element = gguf::ValueType::u32;
    std::vector<std::string> elements;
};

struct TensorPart {
    std::string name;
    std::vector<std::uint64_t> size;
    std::uint32_t type = 0;
    std::span<const std::byte> data;
    std::uint64_t bytes = 0; // that are written: the data again and again
};

struct Parts {
    std::uint64_t alignment = 32;
    std::vector<EntryPart> entries;
    std::vector<TensorPart> tensors;
};

/// A number of the file that says how much follows, of what, or where.
struct Place {
    std::size_t at = 0;
    std::size_t width = 0;
    bool element = false; // the length of a text in an array: most places are
};

struct Written {
    Bytes bytes;
    std::vector<Place> places; // in file order
    std::size_t header = 0;    // bytes before the tensors' data
};

/// REQUIRES contents without arrays of arrays.
[[nodiscard]] Parts take_apart(const gguf::Contents& contents);
[[nodiscard]] Written put_together(const Parts& parts);
/// What a tensor of that type and size takes; for an unknown type, or sizes beyond `most`, at most that.
[[nodiscard]] std::uint64_t bytes_of(const TensorPart& tensor, std::uint64_t most);

} // namespace plumb::decoder::hostile
