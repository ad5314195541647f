// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/reader.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "decoder/gguf/cursor.hpp"
#include "decoder/gguf/text.hpp"

namespace plumb::decoder::gguf {
namespace {

constexpr std::uint32_t magic = 0x46554747; // "GGUF"
constexpr std::uint64_t smallest_entry = 8 + 1 + 4 + 1;
constexpr std::uint64_t smallest_tensor = 8 + 1 + 4 + 8 + 4 + 8;

/// Reads one file; holds what the error sentences need.
class Parser {
  public:
    Parser(std::span<const std::byte> bytes, std::string_view name) : cursor_(bytes), bytes_(bytes), name_(name) {}

    [[nodiscard]] Error corrupt(const std::string& what) const {
        return {ErrorCode::corrupt, std::string(name_) + ": " + what};
    }
    [[nodiscard]] Error unsupported(const std::string& what) const {
        return {ErrorCode::unsupported, std::string(name_) + ": " + what};
    }
    [[nodiscard]] Error truncated(const std::string& where) const {
        return corrupt(where + " runs past the end of the file (" + std::to_string(bytes_.size()) +
                       " bytes): it is truncated or damaged; copy it again");
    }

    Status header(Contents& out, std::uint64_t& entries, std::uint64_t& tensors);
    Status metadata(Contents& out, std::uint64_t entries);
    Status tensor_table(Contents& out, std::uint64_t tensors);
    Status place(TensorInfo& tensor, const Contents& out) const;

  private:
    Status value(ValueType type, Value& out, std::string_view key, int depth);
    Status array(Value& out, std::string_view key, int depth);
    Status tensor(TensorInfo& out);

    Cursor cursor_;
    std::span<const std::byte> bytes_;
    std::string_view name_;
};

Status Parser::header(Contents& out, std::uint64_t& entries, std::uint64_t& tensors) {
    if (cursor_.read<std::uint32_t>() != magic || cursor_.failed()) {
        return corrupt("is not a GGUF file (it does not start with 'GGUF'); give the path of a .gguf model");
    }
    out.version = cursor_.read<std::uint32_t>();
    if (cursor_.failed()) {
        return truncated("the header");
    }
    if ((out.version & 0xffffU) == 0 && out.version != 0) {
        return unsupported("is a big-endian GGUF file; convert it to little-endian first");
    }
    if (out.version != 2 && out.version != 3) {
        return unsupported("has GGUF version " + std::to_string(out.version) +
                           ", and only 2 and 3 are read; convert the model again with a current converter");
    }
    tensors = cursor_.read<std::uint64_t>();
    entries = cursor_.read<std::uint64_t>();
    if (cursor_.failed()) {
        return truncated("the header");
    }
    if (entries > max_entries || entries > cursor_.remaining() / smallest_entry) {
        return corrupt("claims " + std::to_string(entries) +
                       " metadata entries, more than the file can hold or a model has; copy it again");
    }
    if (tensors > max_entries || tensors > cursor_.remaining() / smallest_tensor) {
        return corrupt("claims " + std::to_string(tensors) +
                       " tensors, more than the file can hold or a model has; copy it again");
    }
    return {};
}

Status Parser::array(Value& out, std::string_view key, int depth) {
    const auto element = cursor_.read<std::uint32_t>();
    out.count = cursor_.read<std::uint64_t>();
    if (cursor_.failed()) {
        return truncated("metadata '" + printable(key) + "'");
    }
    if (element >= value_types) {
        return corrupt("metadata '" + printable(key) + "' is an array of unknown value type " +
                       std::to_string(element) + "; copy the file again");
    }
    out.element = static_cast<ValueType>(element);
    const std::uint64_t begin = cursor_.position();
    if (const std::uint64_t size = value_size(out.element); size != 0) {
        if (out.count > cursor_.remaining() / size) {
            return truncated("metadata '" + printable(key) + "'");
        }
        (void)cursor_.take(out.count * size);
    } else {
        if (depth >= max_array_depth) {
            return corrupt("metadata '" + printable(key) + "' nests arrays more than " +
                           std::to_string(max_array_depth) + " deep; convert the model again");
        }
        // Every string or array takes at least 8 bytes, so this ends with the file.
        for (std::uint64_t i = 0; i < out.count; ++i) {
            Value ignored;
            if (Status status = value(out.element, ignored, key, depth + 1); !status) {
                return status;
            }
        }
    }
    out.payload = bytes_.subspan(begin, cursor_.position() - begin);
    return {};
}

Status Parser::value(ValueType type, Value& out, std::string_view key, int depth) {
    out.type = type;
    if (type == ValueType::array) {
        return array(out, key, depth);
    }
    if (type == ValueType::string) {
        const std::string_view text = cursor_.string();
        out.payload = std::as_bytes(std::span(text));
    } else {
        out.payload = cursor_.take(value_size(type));
    }
    if (cursor_.failed()) {
        return truncated("metadata '" + printable(key) + "'");
    }
    if (type == ValueType::boolean && std::to_integer<unsigned>(out.payload[0]) > 1) {
        return corrupt("metadata '" + printable(key) + "' is neither true nor false; copy the file again");
    }
    return {};
}

Status Parser::metadata(Contents& out, std::uint64_t entries) {
    out.metadata.reserve(entries);
    for (std::uint64_t i = 0; i < entries; ++i) {
        MetadataEntry entry;
        entry.key = cursor_.string();
        const auto type = cursor_.read<std::uint32_t>();
        if (cursor_.failed()) {
            return truncated("metadata entry " + std::to_string(i));
        }
        if (entry.key.empty()) {
            return corrupt("metadata entry " + std::to_string(i) + " has no name; copy the file again");
        }
        if (type >= value_types) {
            return corrupt("metadata '" + printable(entry.key) + "' has unknown value type " + std::to_string(type) +
                           "; copy the file again");
        }
        if (Status status = value(static_cast<ValueType>(type), entry.value, entry.key, 0); !status) {
            return status;
        }
        out.metadata.push_back(entry);
    }
    return {};
}

Status Parser::tensor(TensorInfo& out) {
    out.name = cursor_.string();
    out.dimensions = cursor_.read<std::uint32_t>();
    const std::string label = "tensor '" + printable(out.name) + "'";
    if (cursor_.failed()) {
        return truncated("the tensor table");
    }
    if (out.name.empty()) {
        return corrupt("a tensor has no name; copy the file again");
    }
    if (out.dimensions == 0 || out.dimensions > max_dimensions) {
        return corrupt(label + " has " + std::to_string(out.dimensions) + " dimensions, and 1 to " +
                       std::to_string(max_dimensions) + " are possible; copy the file again");
    }
    out.elements = 1;
    for (std::uint32_t d = 0; d < out.dimensions; ++d) {
        out.size[d] = cursor_.read<std::uint64_t>();
        if (cursor_.failed()) {
            return truncated("the tensor table");
        }
        if (out.size[d] == 0) {
            return corrupt(label + " has a dimension of size 0; convert the model again");
        }
        if (out.elements > std::numeric_limits<std::int64_t>::max() / out.size[d]) {
            return corrupt(label + " has more elements than 63 bits can count; copy the file again");
        }
        out.elements *= out.size[d];
    }
    out.type = cursor_.read<std::uint32_t>();
    out.offset = cursor_.read<std::uint64_t>();
    if (cursor_.failed()) {
        return truncated("the tensor table");
    }
    return {};
}

Status Parser::tensor_table(Contents& out, std::uint64_t tensors) {
    out.tensors.reserve(tensors);
    for (std::uint64_t i = 0; i < tensors; ++i) {
        TensorInfo entry;
        if (Status status = tensor(entry); !status) {
            return status;
        }
        out.tensors.push_back(entry);
    }
    // Padding up to the data; a file without tensors may end before it.
    const std::uint64_t end = cursor_.position();
    out.data_offset = end + (out.alignment - end % out.alignment) % out.alignment;
    return {};
}

Status Parser::place(TensorInfo& tensor, const Contents& out) const {
    const std::string label = "tensor '" + printable(tensor.name) + "'";
    if (tensor.offset % out.alignment != 0) {
        return corrupt(label + " starts at offset " + std::to_string(tensor.offset) +
                       ", which is not a multiple of the alignment " + std::to_string(out.alignment) +
                       "; convert the model again");
    }
    if (out.data_offset > bytes_.size() || tensor.offset > bytes_.size() - out.data_offset) {
        return corrupt(label + " starts past the end of the file (" + std::to_string(bytes_.size()) +
                       " bytes): it is truncated; copy it again");
    }
    tensor.offset += out.data_offset;
    const auto traits = type_traits(tensor.type);
    if (!traits) {
        return {};
    }
    if (tensor.size[0] % traits->block != 0) {
        return corrupt(label + " has rows of " + std::to_string(tensor.size[0]) + " elements, not a multiple of the " +
                       std::to_string(traits->block) + " that a block of " + std::string(traits->name) +
                       " holds; convert the model again");
    }
    const std::uint64_t blocks = tensor.elements / traits->block;
    if (blocks > (bytes_.size() - tensor.offset) / traits->bytes) {
        // The end is said only where 64 bits hold it: a block has at most 292 bytes.
        const bool sayable = blocks < (std::uint64_t{1} << 54);
        return corrupt(label + " ends at " +
                       (sayable ? "byte " + std::to_string(tensor.offset + blocks * traits->bytes)
                                : std::string("an impossible position")) +
                       " but the file has " + std::to_string(bytes_.size()) + ": it is truncated; copy it again");
    }
    tensor.bytes = blocks * traits->bytes;
    tensor.data = bytes_.subspan(tensor.offset, *tensor.bytes);
    return {};
}

/// Indices of `items` sorted by name; the first name that occurs twice, if any.
template <class Item, class NameOf>
std::optional<std::string_view> index_by_name(const std::vector<Item>& items, NameOf name_of,
                                              std::vector<std::uint32_t>& order) {
    order.resize(items.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return name_of(items[a]) < name_of(items[b]); });
    const auto twice = std::adjacent_find(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return name_of(items[a]) == name_of(items[b]);
    });
    if (twice == order.end()) {
        return std::nullopt;
    }
    return name_of(items[*twice]);
}

/// The position of `name` in `order`, or nothing.
template <class Item, class NameOf>
const Item* look_up(const std::vector<Item>& items, NameOf name_of, const std::vector<std::uint32_t>& order,
                    std::string_view name) noexcept {
    const auto at = std::lower_bound(order.begin(), order.end(), name,
                                     [&](std::uint32_t i, std::string_view key) { return name_of(items[i]) < key; });
    return at != order.end() && name_of(items[*at]) == name ? &items[*at] : nullptr;
}

std::string_view key_of(const MetadataEntry& entry) noexcept { return entry.key; }
std::string_view name_of_tensor(const TensorInfo& tensor) noexcept { return tensor.name; }

/// Names the first two tensors of known size that share bytes.
std::optional<std::pair<std::string_view, std::string_view>> overlapping(const std::vector<TensorInfo>& tensors) {
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return tensors[a].offset < tensors[b].offset; });
    const TensorInfo* before = nullptr;
    for (const std::uint32_t i : order) {
        const TensorInfo& tensor = tensors[i];
        if (before && tensor.offset < before->offset + *before->bytes) {
            return {{before->name, tensor.name}};
        }
        if (tensor.bytes) {
            before = &tensor;
        }
    }
    return std::nullopt;
}

} // namespace

Result<Contents> parse(std::span<const std::byte> bytes, std::string_view name) {
    Parser parser(bytes, name);
    Contents out;
    std::uint64_t entries = 0;
    std::uint64_t tensors = 0;
    if (Status status = parser.header(out, entries, tensors); !status) {
        return status.error();
    }
    if (Status status = parser.metadata(out, entries); !status) {
        return status.error();
    }
    if (const auto twice = index_by_name(out.metadata, key_of, out.by_key_)) {
        return parser.corrupt("has the metadata '" + printable(*twice) + "' twice; convert the model again");
    }
    if (const Value* alignment = out.find("general.alignment")) {
        const auto value = alignment->as_unsigned();
        if (!value || *value < 8 || *value > (1U << 20) || (*value & (*value - 1)) != 0) {
            return parser.corrupt(
                "has a general.alignment that is not a power of two from 8 to 1048576; convert it again");
        }
        out.alignment = *value;
    }
    if (Status status = parser.tensor_table(out, tensors); !status) {
        return status.error();
    }
    if (const auto twice = index_by_name(out.tensors, name_of_tensor, out.by_name_)) {
        return parser.corrupt("has the tensor '" + printable(*twice) + "' twice; convert the model again");
    }
    for (TensorInfo& tensor : out.tensors) {
        if (Status status = parser.place(tensor, out); !status) {
            return status.error();
        }
    }
    if (const auto pair = overlapping(out.tensors)) {
        return parser.corrupt("tensors '" + printable(pair->first) + "' and '" + printable(pair->second) +
                              "' lie over each other; copy it again");
    }
    return out;
}

const Value* Contents::find(std::string_view key) const noexcept {
    const MetadataEntry* entry = look_up(metadata, key_of, by_key_, key);
    return entry ? &entry->value : nullptr;
}

const TensorInfo* Contents::tensor(std::string_view name) const noexcept {
    return look_up(tensors, name_of_tensor, by_name_, name);
}

Result<File> File::open(const std::string& path) {
    Result<FileMap> map = FileMap::open(path);
    if (!map) {
        return map.error();
    }
    return from(std::move(*map), path);
}

Result<File> File::from(FileMap map, const std::string& name) {
    File file;
    file.path_ = name;
    file.map_ = std::move(map);
    Result<Contents> contents = parse(file.map_.bytes(), name);
    if (!contents) {
        return contents.error();
    }
    file.contents_ = std::move(*contents);
    return file;
}

} // namespace plumb::decoder::gguf
