// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/profile.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace plumb::attach::onnxruntime {
namespace {

constexpr std::string_view node_end = "_kernel_time"; // an event's name is the node's, and this

/// What stands between the two, from `at` on; none where they do not.
std::optional<std::string_view> between(std::string_view text, std::string_view before, std::string_view after) {
    const std::size_t begin = text.find(before);
    if (begin == text.npos) {
        return std::nullopt;
    }
    text.remove_prefix(begin + before.size());
    const std::size_t end = text.find(after);
    return end == text.npos ? std::nullopt : std::optional(text.substr(0, end));
}

template <class Number>
std::optional<Number> number(std::optional<std::string_view> text) {
    Number value{};
    if (!text) {
        return std::nullopt;
    }
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    return error == std::errc() && end == text->data() + text->size() ? std::optional(value) : std::nullopt;
}

/// A list in the text, with its brackets.
std::string_view list_behind(std::string_view text, std::string_view before) {
    const std::size_t at = text.find(before);
    if (at == text.npos) {
        return {};
    }
    text.remove_prefix(at + before.size());
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
        if (depth == 0) {
            return text.substr(0, i + 1);
        }
    }
    return {};
}

struct ProfileEvent {
    std::string_view category, name, arguments;
    std::int64_t begin_us = 0, duration_us = 0, thread = 0;
};

std::optional<ProfileEvent> read_event(std::string_view line) {
    constexpr std::string_view name_begin = "\"name\" :\"";
    constexpr std::string_view name_end = "\",\"args\" : {";
    const auto category = between(line, "{\"cat\" : \"", "\"");
    const auto name = between(line, name_begin, name_end);
    const std::string_view head = line.substr(0, line.find(name_begin));
    const auto begin = number<std::int64_t>(between(head, "\"ts\" :", ","));
    const auto duration = number<std::int64_t>(between(head, "\"dur\" :", ","));
    const auto thread = number<std::int64_t>(between(head, "\"tid\" :", ","));
    constexpr std::int64_t longest = std::int64_t{1} << 40; // two weeks
    if (!category || !name || !begin || !duration || !thread || *begin < 0 || *duration < 0 || *begin > longest ||
        *duration > longest) {
        return std::nullopt;
    }
    const auto behind = static_cast<std::size_t>(name->data() + name->size() - line.data()) + name_end.size();
    return ProfileEvent{*category, *name, line.substr(behind), *begin, *duration, *thread};
}

ProfiledNode node_of(const ProfileEvent& event) {
    ProfiledNode node;
    node.name = event.name.substr(0, event.name.size() - node_end.size());
    node.begin_us = event.begin_us;
    node.end_us = event.begin_us + event.duration_us;
    node.thread = event.thread;
    const std::string_view arguments = event.arguments;
    node.operation = between(arguments, "\"op_name\" : \"", "\"").value_or("");
    node.provider = between(arguments, "\"provider\" : \"", "\"").value_or("");
    node.activation_bytes = number<double>(between(arguments, "\"activation_size\" : \"", "\"")).value_or(-1);
    node.parameter_bytes = number<double>(between(arguments, "\"parameter_size\" : \"", "\"")).value_or(-1);
    node.output_bytes = number<double>(between(arguments, "\"output_size\" : \"", "\"")).value_or(-1);
    node.inputs = list_behind(arguments, "\"input_type_shape\" : ");
    node.outputs = list_behind(arguments, "\"output_type_shape\" : ");
    return node;
}

/// Providers whose nodes have ended when their time has: others hand their work to a device and go on.
bool runs_here(std::string_view provider) {
    return provider == "CPUExecutionProvider" || provider == "XnnpackExecutionProvider" ||
           provider == "DnnlExecutionProvider";
}

/// One of a list of shapes: {"float":[1,64]}.
std::string_view shape_text(std::string_view shapes, std::size_t place) {
    for (std::size_t at = shapes.find('{'); at != shapes.npos; at = shapes.find('{', at + 1)) {
        if (place-- == 0) {
            const std::size_t end = shapes.find('}', at);
            return end == shapes.npos ? std::string_view() : shapes.substr(at, end - at);
        }
    }
    return {};
}

} // namespace

Result<RunProfile> read_profile(std::string_view text) {
    const Error corrupt{ErrorCode::corrupt, "onnxruntime's profile of a run is cut off or not as it was known"};
    if (!text.starts_with("[\n") || !text.ends_with("\n]\n")) {
        return corrupt;
    }
    text.remove_prefix(2);
    text.remove_suffix(2);
    RunProfile profile;
    bool whole = false; // the event of the run itself
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const auto event = read_event(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!event) {
            return corrupt;
        }
        whole = whole || (event->category == "Session" && event->name == "model_run");
        if (event->category == "Node" && event->name.ends_with(node_end)) {
            profile.nodes.push_back(node_of(*event));
        }
    }
    std::stable_sort(profile.nodes.begin(), profile.nodes.end(), [](const ProfiledNode& a, const ProfiledNode& b) {
        return std::pair(a.begin_us, -a.end_us) < std::pair(b.begin_us, -b.end_us);
    });
    return whole ? Result<RunProfile>(std::move(profile)) : corrupt;
}

std::string why_no_bricks(const RunProfile& profile) {
    for (const ProfiledNode& node : profile.nodes) {
        if (!runs_here(node.provider)) {
            return "nodes run on " + std::string(node.provider) +
                   ", and for those onnxruntime tells how long handing them over took";
        }
        if (node.thread != profile.nodes.front().thread) {
            return "nodes of one run run on several threads at a time";
        }
    }
    return {};
}

std::vector<std::int64_t> shape_at(std::string_view shapes, std::size_t place) {
    std::string_view text = shape_text(shapes, place);
    std::vector<std::int64_t> sizes;
    text.remove_prefix(std::min(text.find('['), text.size()));
    while (!text.empty()) {
        text.remove_prefix(1); // [ or ,
        const std::size_t end = std::min(text.find_first_of(",]"), text.size());
        const auto size = number<std::int64_t>(text.substr(0, end));
        if (!size) {
            return {};
        }
        sizes.push_back(*size);
        text.remove_prefix(end);
        if (text.starts_with(']')) {
            break;
        }
    }
    return sizes;
}

std::size_t shape_count(std::string_view shapes) {
    return static_cast<std::size_t>(std::count(shapes.begin(), shapes.end(), '{'));
}

std::size_t element_bytes(std::string_view shapes, std::size_t place) {
    const std::string_view type = between(shape_text(shapes, place), "{\"", "\"").value_or("");
    static constexpr std::pair<std::string_view, std::size_t> known[] = {
        {"float", 4},  {"float16", 2}, {"bfloat16", 2}, {"double", 8}, {"int8", 1},   {"uint8", 1}, {"int16", 2},
        {"uint16", 2}, {"int32", 4},   {"uint32", 4},   {"int64", 8},  {"uint64", 8}, {"bool", 1}};
    for (const auto& [name, bytes] : known) {
        if (type == name) {
            return bytes;
        }
    }
    return 0;
}

} // namespace plumb::attach::onnxruntime
