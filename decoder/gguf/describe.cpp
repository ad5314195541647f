// SPDX-License-Identifier: Apache-2.0
#include "decoder/gguf/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "decoder/gguf/text.hpp"

namespace plumb::decoder::gguf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t shown_elements = 6;
constexpr const char* unknown_size = "the size of this type is not known";

std::string value_text(const Value& value) {
    if (const auto text = value.as_string()) {
        return printable(*text, 100);
    }
    if (const auto flag = value.as_bool()) {
        return *flag ? "true" : "false";
    }
    if (const auto whole = value.as_unsigned()) {
        return fmt::format("{}", *whole);
    }
    if (const auto real = value.as_number()) {
        return fmt::format("{:g}", *real);
    }
    if (value.type != ValueType::array) {
        return "not a number";
    }
    std::string out = fmt::format("{} × {} [", value.count, value_type_name(value.element));
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < std::min(value.count, shown_elements); ++i) {
        const Value element = value.next_element(at);
        out += (i ? ", " : "");
        out += element.type == ValueType::array
                   ? fmt::format("{} × {}", element.count, value_type_name(element.element))
                   : value_text(element);
    }
    return out + (value.count > shown_elements ? ", …]" : "]");
}

Json absent(const char* why) { return Json{{"absent", why}}; }

Json value_json(const Value& value) {
    if (const auto text = value.as_string()) {
        return printable(*text, 4096);
    }
    if (const auto flag = value.as_bool()) {
        return *flag;
    }
    if (const auto whole = value.as_unsigned()) {
        return *whole;
    }
    if (const auto real = value.as_number()) {
        return *real;
    }
    if (value.type != ValueType::array) {
        return absent("not a finite number");
    }
    Json first = Json::array();
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < std::min(value.count, shown_elements); ++i) {
        const Value element = value.next_element(at);
        first.push_back(element.type == ValueType::array
                            ? Json{{"count", element.count}, {"type", value_type_name(element.element)}}
                            : value_json(element));
    }
    return Json{{"count", value.count}, {"type", value_type_name(value.element)}, {"first", first}};
}

std::string shape_text(const TensorInfo& tensor) {
    std::string out;
    for (std::uint32_t d = 0; d < tensor.dimensions; ++d) {
        out += fmt::format("{}{}", d ? " × " : "", tensor.size[d]);
    }
    return out;
}

std::string bytes_text(double bytes) {
    if (bytes >= 1e9) {
        return fmt::format("{:.2f} GB", bytes / 1e9);
    }
    if (bytes >= 1e6) {
        return fmt::format("{:.1f} MB", bytes / 1e6);
    }
    if (bytes >= 1e3) {
        return fmt::format("{:.1f} kB", bytes / 1e3);
    }
    return fmt::format("{:.0f} B", bytes);
}

struct TypeSum {
    std::uint64_t tensors = 0;
    double elements = 0;
    std::uint64_t bytes = 0;
    bool sized = true;
};

std::map<std::uint32_t, TypeSum> sums_by_type(const Contents& contents) {
    std::map<std::uint32_t, TypeSum> sums;
    for (const TensorInfo& tensor : contents.tensors) {
        TypeSum& sum = sums[tensor.type];
        ++sum.tensors;
        sum.elements += static_cast<double>(tensor.elements);
        sum.bytes += tensor.bytes.value_or(0);
        sum.sized = sum.sized && tensor.bytes.has_value();
    }
    return sums;
}

} // namespace

std::string describe_text(const Contents& contents, const std::string& path) {
    std::string out;
    auto to = std::back_inserter(out);
    fmt::format_to(to, "{}\nGGUF version {} · {} metadata entries · {} tensors · alignment {}\n\n",
                   printable(path, 4096), contents.version, contents.metadata.size(), contents.tensors.size(),
                   contents.alignment);
    std::size_t width = 0;
    for (const MetadataEntry& entry : contents.metadata) {
        width = std::max(width, printable(entry.key).size());
    }
    for (const MetadataEntry& entry : contents.metadata) {
        fmt::format_to(to, "{:<{}}  {:<6}  {}\n", printable(entry.key), width, value_type_name(entry.value.type),
                       value_text(entry.value));
    }
    out += contents.metadata.empty() ? "" : "\n";
    for (const TensorInfo& tensor : contents.tensors) {
        fmt::format_to(to, "{:<28}  {:<8}  {:>20}  {:>10}\n", printable(tensor.name), type_name(tensor.type),
                       shape_text(tensor),
                       tensor.bytes ? bytes_text(static_cast<double>(*tensor.bytes)) : std::string("size n/a"));
    }
    out += contents.tensors.empty() ? "" : "\n";
    for (const auto& [type, sum] : sums_by_type(contents)) {
        fmt::format_to(to, "{}: {} tensors, {:.4g} million elements, {}\n", type_name(type), sum.tensors,
                       sum.elements / 1e6,
                       sum.sized ? bytes_text(static_cast<double>(sum.bytes)) : std::string("size n/a (type unknown)"));
    }
    return out;
}

std::string describe_json(const Contents& contents, const std::string& path) {
    Json out{{"schema", "plumb.model/1"},       {"path", printable(path, 4096)}, {"gguf_version", contents.version},
             {"alignment", contents.alignment}, {"metadata", Json::array()},     {"tensors", Json::array()},
             {"types", Json::array()}};
    // A list and not an object: keys of a hostile file may become equal once they are escaped.
    for (const MetadataEntry& entry : contents.metadata) {
        out["metadata"].push_back({{"key", printable(entry.key, 4096)},
                                   {"type", value_type_name(entry.value.type)},
                                   {"value", value_json(entry.value)}});
    }
    for (const TensorInfo& tensor : contents.tensors) {
        Json entry{{"name", printable(tensor.name, 4096)}, {"type", type_name(tensor.type)}, {"shape", Json::array()}};
        for (std::uint32_t d = 0; d < tensor.dimensions; ++d) {
            entry["shape"].push_back(tensor.size[d]);
        }
        entry["offset"] = tensor.offset;
        entry["bytes"] = tensor.bytes ? Json(*tensor.bytes) : absent(unknown_size);
        out["tensors"].push_back(std::move(entry));
    }
    for (const auto& [type, sum] : sums_by_type(contents)) {
        out["types"].push_back({{"type", type_name(type)},
                                {"tensors", sum.tensors},
                                {"elements", sum.elements},
                                {"bytes", sum.sized ? Json(sum.bytes) : absent(unknown_size)}});
    }
    return out.dump(2);
}

} // namespace plumb::decoder::gguf
