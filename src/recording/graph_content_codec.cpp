// SPDX-License-Identifier: Apache-2.0
#include "recording/graph_content_codec.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace plumb::recording {
namespace {

constexpr std::size_t kind_head = 36; // of an encoded kind, before its name
constexpr std::size_t node_size = 12;
constexpr std::size_t edge_size = 8;
constexpr std::uint32_t kind_shaped = 1;
constexpr std::uint32_t most_types = 32; // kinds without a name, one for each type
constexpr char other_kinds[] = "others";

// Field numbers, append-only.
enum ContentField : std::uint16_t {
    content_key = 1,
    content_number = 2,
    content_kind = 3,
    content_nodes = 4,
    content_edges = 5,
    content_nodes_left_out = 6,
    content_edges_left_out = 7,
};

bool same_kind(const CapturedKind& a, const CapturedKind& b) {
    return a.type == b.type && a.name == b.name && a.shaped == b.shaped && std::equal(a.grid, a.grid + 3, b.grid) &&
           std::equal(a.block, a.block + 3, b.block) && a.shared_bytes == b.shared_bytes;
}

bool same_node(const CapturedNode& a, const CapturedNode& b) {
    return a.kind == b.kind && a.site_plus_one == b.site_plus_one && a.parent_plus_one == b.parent_plus_one;
}

void cut_name(std::string& name) {
    std::size_t size = std::min(name.size(), most_captured_name);
    while (size < name.size() && size > 0 && (static_cast<unsigned char>(name[size]) & 0xc0) == 0x80) {
        --size; // not inside a UTF-8 character
    }
    name.resize(size);
}

void cut_kinds(GraphContent& content) {
    for (CapturedKind& kind : content.kinds) {
        cut_name(kind.name);
    }
    if (content.kinds.size() <= most_captured_kinds) {
        return;
    }
    std::vector<CapturedKind> kept(content.kinds.begin(), content.kinds.begin() + (most_captured_kinds - most_types));
    std::map<std::uint32_t, std::uint32_t> by_type;
    const auto other = [&](std::uint32_t type) {
        type = std::min(type, most_types - 1);
        const auto [found, fresh] = by_type.emplace(type, static_cast<std::uint32_t>(kept.size()));
        if (fresh) {
            CapturedKind& made = kept.emplace_back();
            made.type = type;
            made.name = other_kinds;
        }
        return found->second;
    };
    for (CapturedNode& node : content.nodes) {
        if (node.kind >= most_captured_kinds - most_types) {
            node.kind = other(content.kinds[node.kind].type);
        }
    }
    content.kinds = std::move(kept);
}

void encode_kind(const CapturedKind& kind, FieldWriter& fields) {
    fields.made(content_kind, [&kind](Bytes& to) {
        append_le(to, kind.type);
        append_le(to, kind.shaped ? kind_shaped : 0u);
        for (const auto& extent : {kind.grid, kind.block}) {
            for (std::size_t i = 0; i < 3; ++i) {
                append_le(to, extent[i]);
            }
        }
        append_le(to, kind.shared_bytes);
        append_bytes(to, kind.name.data(), kind.name.size());
    });
}

bool decode_kind(std::string_view content, CapturedKind& to) {
    if (content.size() < kind_head || content.size() - kind_head > most_captured_name) {
        return false;
    }
    const auto* at = reinterpret_cast<const std::byte*>(content.data());
    to.type = load_le<std::uint32_t>(at);
    to.shaped = (load_le<std::uint32_t>(at + 4) & kind_shaped) != 0;
    for (std::size_t i = 0; i < 3; ++i) {
        to.grid[i] = load_le<std::uint32_t>(at + 8 + 4 * i);
        to.block[i] = load_le<std::uint32_t>(at + 20 + 4 * i);
    }
    to.shared_bytes = load_le<std::uint32_t>(at + 32);
    to.name = content.substr(kind_head);
    return true;
}

/// False where it is no whole number of items, or more than `most` in all.
template <class Take>
bool each_item(std::string_view content, std::size_t size, std::size_t most, Take&& take) {
    const auto* at = reinterpret_cast<const std::byte*>(content.data());
    const std::size_t count = content.size() / size;
    if (count * size != content.size() || count > most) {
        return false;
    }
    for (std::size_t i = 0; i < count; ++i, at += size) {
        take(at);
    }
    return true;
}

bool take_field(const Field& field, ContentEntry& entry, GraphContent& to) {
    switch (field.number) {
    case content_key:
        entry.key = field.as_number();
        return field.content.size() == 8;
    case content_number:
        entry.number = field.as_number();
        return true;
    case content_nodes_left_out:
        to.nodes_left_out = field.as_number();
        return true;
    case content_edges_left_out:
        to.edges_left_out = field.as_number();
        return true;
    case content_kind:
        return to.kinds.size() < most_captured_kinds && decode_kind(field.content, to.kinds.emplace_back());
    case content_nodes:
        to.nodes.reserve(std::min(field.content.size() / node_size, most_captured_nodes));
        return each_item(field.content, node_size, most_captured_nodes - to.nodes.size(), [&to](const std::byte* at) {
            to.nodes.push_back(
                {load_le<std::uint32_t>(at), load_le<std::uint32_t>(at + 4), load_le<std::uint32_t>(at + 8)});
        });
    case content_edges:
        to.edges.reserve(std::min(field.content.size() / edge_size, most_captured_edges));
        return each_item(field.content, edge_size, most_captured_edges - to.edges.size(), [&to](const std::byte* at) {
            to.edges.emplace_back(load_le<std::uint32_t>(at), load_le<std::uint32_t>(at + 4));
        });
    default:
        return true;
    }
}

bool holds(const GraphContent& content) {
    for (std::size_t i = 0; i < content.nodes.size(); ++i) {
        if (content.nodes[i].kind >= content.kinds.size() || content.nodes[i].parent_plus_one > i) {
            return false;
        }
    }
    return std::all_of(content.edges.begin(), content.edges.end(), [&content](const auto& edge) {
        return edge.first < edge.second && edge.second < content.nodes.size();
    });
}

} // namespace

GraphContent bounded(GraphContent content) {
    if (content.nodes.size() > most_captured_nodes) {
        content.nodes_left_out += content.nodes.size() - most_captured_nodes;
        content.nodes.resize(most_captured_nodes);
        content.edges.erase(std::remove_if(content.edges.begin(), content.edges.end(),
                                           [](const auto& edge) { return edge.second >= most_captured_nodes; }),
                            content.edges.end());
    }
    if (content.edges.size() > most_captured_edges) {
        content.edges_left_out += content.edges.size() - most_captured_edges;
        content.edges.resize(most_captured_edges);
    }
    cut_kinds(content);
    return content;
}

bool is_bounded(const GraphContent& content) {
    return content.nodes.size() <= most_captured_nodes && content.edges.size() <= most_captured_edges &&
           content.kinds.size() <= most_captured_kinds &&
           std::all_of(content.kinds.begin(), content.kinds.end(),
                       [](const CapturedKind& kind) { return kind.name.size() <= most_captured_name; });
}

bool same_content(const std::shared_ptr<const GraphContent>& a, const std::shared_ptr<const GraphContent>& b) {
    if (a == b || a == nullptr || b == nullptr) {
        return a == b;
    }
    return a->nodes_left_out == b->nodes_left_out && a->edges_left_out == b->edges_left_out && a->edges == b->edges &&
           std::equal(a->kinds.begin(), a->kinds.end(), b->kinds.begin(), b->kinds.end(), same_kind) &&
           std::equal(a->nodes.begin(), a->nodes.end(), b->nodes.begin(), b->nodes.end(), same_node);
}

std::uint64_t encoded_size(const GraphContent& content) {
    std::uint64_t size = content.nodes.size() * node_size + content.edges.size() * edge_size;
    for (const CapturedKind& kind : content.kinds) {
        size += kind_head + kind.name.size();
    }
    return size;
}

void encode(const ContentEntry& from, Bytes& to) {
    const GraphContent& content = *from.content;
    to.reserve(to.size() + encoded_size(content) + 1024);
    FieldWriter fields(to);
    fields.number(content_key, from.key);
    fields.number(content_number, from.number);
    for (const CapturedKind& kind : content.kinds) {
        encode_kind(kind, fields);
    }
    fields.made(content_nodes, [&content](Bytes& bytes) {
        for (const CapturedNode& node : content.nodes) {
            append_le(bytes, node.kind);
            append_le(bytes, node.site_plus_one);
            append_le(bytes, node.parent_plus_one);
        }
    });
    fields.made(content_edges, [&content](Bytes& bytes) {
        for (const auto& [source, target] : content.edges) {
            append_le(bytes, source);
            append_le(bytes, target);
        }
    });
    if (content.nodes_left_out != 0) {
        fields.number(content_nodes_left_out, content.nodes_left_out);
    }
    if (content.edges_left_out != 0) {
        fields.number(content_edges_left_out, content.edges_left_out);
    }
}

bool decode(const std::byte* data, std::size_t size, ContentEntry& to) {
    FieldReader reader(data, size);
    Field field;
    GraphContent content;
    bool has_key = false;
    while (reader.next(field)) {
        if (!take_field(field, to, content)) {
            return false;
        }
        has_key = has_key || field.number == content_key;
    }
    if (!reader.intact() || !has_key || !holds(content)) {
        return false;
    }
    to.content = std::make_shared<const GraphContent>(std::move(content));
    return true;
}

} // namespace plumb::recording
