// SPDX-License-Identifier: Apache-2.0
#include "decoder/hostile/parts.hpp"

#include <algorithm>
#include <cstring>

namespace plumb::decoder::hostile {
namespace {

using gguf::ValueType;

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Puts numbers and texts behind each other and notes where the telling ones lie.
class Sheet {
  public:
    template <class T>
    void number(T value) {
        const auto* raw = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), raw, raw + sizeof value);
    }
    template <class T>
    void told(T value, bool element = false) {
        places_.push_back({bytes_.size(), sizeof value, element});
        number(value);
    }
    void characters(std::string_view text) {
        const auto raw = std::as_bytes(std::span(text));
        bytes_.insert(bytes_.end(), raw.begin(), raw.end());
    }
    void text(std::string_view text, bool element = false) {
        told(static_cast<std::uint64_t>(text.size()), element);
        characters(text);
    }
    void pad(std::uint64_t alignment) { bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment); }

    Bytes bytes_;
    std::vector<Place> places_;
};

void put(Sheet& sheet, const EntryPart& entry) {
    sheet.text(entry.key);
    sheet.told(static_cast<std::uint32_t>(entry.type));
    if (entry.type == ValueType::string) {
        return sheet.text(entry.value);
    }
    if (entry.type != ValueType::array) {
        sheet.places_.push_back({sheet.bytes_.size(), std::max<std::size_t>(1, entry.value.size())});
        return sheet.characters(entry.value);
    }
    sheet.told(static_cast<std::uint32_t>(entry.element));
    sheet.told(static_cast<std::uint64_t>(entry.elements.size()));
    for (const std::string& element : entry.elements) {
        entry.element == ValueType::string ? sheet.text(element, true) : sheet.characters(element);
    }
}

void put_data(Bytes& out, const TensorPart& tensor) {
    for (std::uint64_t left = tensor.bytes; left > 0 && !tensor.data.empty();) {
        const std::size_t part = std::min<std::size_t>(tensor.data.size(), left);
        out.insert(out.end(), tensor.data.begin(), tensor.data.begin() + static_cast<std::ptrdiff_t>(part));
        left -= part;
    }
}

} // namespace

Parts take_apart(const gguf::Contents& contents) {
    Parts parts;
    parts.alignment = contents.alignment;
    for (const gguf::MetadataEntry& entry : contents.metadata) {
        EntryPart part{std::string(entry.key), entry.value.type, {}, entry.value.element, {}};
        if (entry.value.type != ValueType::array) {
            part.value = text_of(entry.value.payload);
        }
        std::size_t at = 0;
        for (std::uint64_t i = 0; i < entry.value.count; ++i) {
            part.elements.push_back(text_of(entry.value.next_element(at).payload));
        }
        parts.entries.push_back(std::move(part));
    }
    for (const gguf::TensorInfo& tensor : contents.tensors) {
        parts.tensors.push_back({std::string(tensor.name),
                                 {tensor.size, tensor.size + tensor.dimensions},
                                 tensor.type,
                                 tensor.data,
                                 tensor.data.size()});
    }
    return parts;
}

std::uint64_t bytes_of(const TensorPart& tensor, std::uint64_t most) {
    const auto traits = gguf::type_traits(tensor.type).value_or(gguf::TypeTraits{"", 1, 1});
    std::uint64_t elements = 1;
    for (const std::uint64_t size : tensor.size) {
        if (size > most) {
            return most;
        }
        elements *= size;
        if (elements / traits.block > most) {
            return most;
        }
    }
    return std::min(most, elements / traits.block * traits.bytes);
}

Written put_together(const Parts& parts) {
    Sheet sheet;
    sheet.places_.push_back({0, 4});
    sheet.characters("GGUF");
    sheet.told(std::uint32_t{3});
    sheet.told(static_cast<std::uint64_t>(parts.tensors.size()));
    sheet.told(static_cast<std::uint64_t>(parts.entries.size()));
    for (const EntryPart& entry : parts.entries) {
        put(sheet, entry);
    }
    std::uint64_t offset = 0;
    for (const TensorPart& tensor : parts.tensors) {
        sheet.text(tensor.name);
        sheet.told(static_cast<std::uint32_t>(tensor.size.size()));
        for (const std::uint64_t size : tensor.size) {
            sheet.told(size);
        }
        sheet.told(tensor.type);
        sheet.told(offset);
        offset = (offset + tensor.bytes + parts.alignment - 1) / parts.alignment * parts.alignment;
    }
    sheet.pad(parts.alignment);
    Written out;
    out.header = sheet.bytes_.size();
    sheet.bytes_.reserve(out.header + offset);
    for (const TensorPart& tensor : parts.tensors) {
        put_data(sheet.bytes_, tensor);
        sheet.pad(parts.alignment);
    }
    out.bytes = std::move(sheet.bytes_);
    out.places = std::move(sheet.places_);
    return out;
}

} // namespace plumb::decoder::hostile
