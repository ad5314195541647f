// SPDX-License-Identifier: Apache-2.0
#include "recording/graph_codec.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plumb::recording {
namespace {

constexpr std::size_t site_size = 16;
constexpr std::uint32_t site_leaf = 1;
constexpr std::uint32_t site_lap = 2;
constexpr char other_types[] = "others";

// Field numbers, append-only.
enum GraphField : std::uint16_t {
    field_key = 1,
    field_track = 2,
    field_captures = 3,
    field_instantiations = 4,
    field_updates = 5,
    field_uploads = 6,
    field_replays = 7,
    field_instrumented = 8,
    field_unread = 9,
    field_evictions = 10,
    field_eager_steps = 11,
    field_rows_used = 12,
    field_rows_padded = 13,
    field_node_checks = 14,
    field_capture_ns = 15,
    field_instantiate_ns = 16,
    field_upload_ns = 17,
    field_launch_ns = 18,
    field_bytes = 19,
    field_twin = 20,
    field_twin_reason = 21,
    field_twin_build_ns = 22,
    field_twin_bytes = 23,
    field_every = 24,
    field_site_cost_ns = 25,
    field_plain_span_ns = 26,
    field_closure_raw = 27,
    field_closure = 28,
    field_lists_kept = 29,
    field_nodes = 30,
    field_unattributed = 31,
    field_node_changes = 32,
    field_baked_in = 33,
    field_sites = 34,
    field_content = 35,
    field_site_cost_error_ns = 36,
    field_tick_ns = 37,
    field_sites_told_by = 38,
};

/// The plain numbers of a row with their fields: one list for both directions.
template <class Row, class Take>
void each_number(Row& row, Take&& take) {
    take(field_captures, row.captures);
    take(field_instantiations, row.instantiations);
    take(field_updates, row.updates);
    take(field_uploads, row.uploads);
    take(field_replays, row.replays);
    take(field_instrumented, row.instrumented);
    take(field_unread, row.unread);
    take(field_evictions, row.evictions);
    take(field_rows_used, row.rows_used);
    take(field_rows_padded, row.rows_padded);
    take(field_node_checks, row.node_checks);
    take(field_every, row.every);
}

template <class Row, class Take>
void each_figure(Row& row, Take&& take) {
    take(field_capture_ns, row.capture_ns);
    take(field_instantiate_ns, row.instantiate_ns);
    take(field_upload_ns, row.upload_ns);
    take(field_launch_ns, row.launch_ns);
    take(field_bytes, row.bytes);
    take(field_twin_build_ns, row.twin_build_ns);
    take(field_twin_bytes, row.twin_bytes);
    take(field_site_cost_ns, row.site_cost_ns);
    take(field_site_cost_error_ns, row.site_cost_error_ns);
    take(field_tick_ns, row.tick_ns);
    take(field_plain_span_ns, row.plain_span_ns);
    take(field_closure_raw, row.closure_raw);
    take(field_closure, row.closure);
}

void cut(std::string& text) {
    if (text.size() > most_graph_text) {
        std::size_t size = most_graph_text;
        // Not inside a UTF-8 character.
        while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
            --size;
        }
        text.resize(size);
    }
}

void cut(std::vector<NamedCount>& list, std::size_t most) {
    if (list.size() > most) {
        std::uint64_t rest = 0;
        for (std::size_t i = most - 1; i < list.size(); ++i) {
            rest += list[i].second;
        }
        list.resize(most - 1);
        list.emplace_back(other_types, rest);
    }
    for (auto& [name, count] : list) {
        cut(name);
    }
}

void cut(std::vector<GraphNodeChange>& list) {
    if (list.size() > most_graph_entries) {
        GraphNodeChange rest{other_types, 0, 0};
        for (std::size_t i = most_graph_entries - 1; i < list.size(); ++i) {
            rest.before += list[i].before;
            rest.after += list[i].after;
        }
        list.resize(most_graph_entries - 1);
        list.push_back(std::move(rest));
    }
    for (auto& change : list) {
        cut(change.kernel);
    }
}

void cut(std::vector<std::string>& list) {
    if (list.size() > most_graph_entries) {
        const std::size_t rest = list.size() - (most_graph_entries - 1);
        list.resize(most_graph_entries - 1);
        list.push_back("and " + std::to_string(rest) + " more");
    }
    for (auto& text : list) {
        cut(text);
    }
}

void encode_sites(const std::vector<GraphSite>& sites, FieldWriter& fields) {
    if (sites.empty()) {
        return;
    }
    Bytes packed;
    packed.reserve(sites.size() * site_size);
    for (const GraphSite& site : sites) {
        append_le(packed, site.name);
        append_le(packed, site.layer_plus_one);
        append_le(packed, site.occurrence);
        append_le(packed, site.nodes);
        append_le(packed, (site.leaf ? site_leaf : 0u) | (site.lap ? site_lap : 0u));
    }
    fields.text(field_sites, {reinterpret_cast<const char*>(packed.data()), packed.size()});
}

void decode_sites(std::string_view content, std::vector<GraphSite>& sites) {
    const auto* at = reinterpret_cast<const std::byte*>(content.data());
    for (std::size_t n = content.size() / site_size; n > 0 && sites.size() < most_graph_sites; --n, at += site_size) {
        const auto flags = load_le<std::uint32_t>(at + 12);
        sites.push_back({load_le<std::uint16_t>(at), load_le<std::uint16_t>(at + 2), load_le<std::uint32_t>(at + 4),
                         load_le<std::uint32_t>(at + 8), (flags & site_leaf) != 0, (flags & site_lap) != 0});
    }
}

void encode_lists(const GraphInfo& from, FieldWriter& fields) {
    for (const auto& [type, count] : from.nodes) {
        fields.named_number(field_nodes, type, count);
    }
    for (const auto& [kernel, count] : from.unattributed) {
        fields.named_number(field_unattributed, kernel, count);
    }
    for (const GraphNodeChange& change : from.node_changes) {
        fields.named_number(field_node_changes, change.kernel,
                            change.before | (static_cast<std::uint64_t>(change.after) << 32));
    }
    for (const std::string& found : from.baked_in) {
        fields.text(field_baked_in, found);
    }
    encode_sites(from.sites, fields);
}

/// False when the content is no named number.
bool read_named(const Field& field, std::string_view& name, std::uint64_t& number) {
    std::string_view value;
    if (!field.as_pair(name, value) || value.size() != sizeof number || name.size() > most_graph_text) {
        return false;
    }
    number = load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(value.data()));
    return true;
}

void take_named(const Field& field, std::vector<NamedCount>& to, std::size_t most) {
    std::string_view name;
    std::uint64_t number = 0;
    if (to.size() < most && read_named(field, name, number)) {
        to.emplace_back(name, number);
    }
}

void take_list(const Field& field, GraphInfo& to) {
    std::string_view name;
    std::uint64_t number = 0;
    switch (field.number) {
    case field_eager_steps:
        take_named(field, to.eager_steps, most_graph_kinds);
        break;
    case field_nodes:
        take_named(field, to.nodes, most_graph_kinds);
        break;
    case field_unattributed:
        take_named(field, to.unattributed, most_graph_entries);
        break;
    case field_node_changes:
        if (to.node_changes.size() < most_graph_entries && read_named(field, name, number)) {
            to.node_changes.push_back(
                {std::string(name), static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)});
        }
        break;
    case field_baked_in:
        if (to.baked_in.size() < most_graph_entries && field.content.size() <= most_graph_text) {
            to.baked_in.push_back(field.as_text());
        }
        break;
    case field_sites:
        decode_sites(field.content, to.sites);
        break;
    default:
        break;
    }
}

} // namespace

GraphInfo bounded(GraphInfo row) {
    cut(row.eager_steps, most_graph_kinds);
    cut(row.nodes, most_graph_kinds);
    cut(row.unattributed, most_graph_entries);
    cut(row.node_changes);
    cut(row.baked_in);
    cut(row.twin);
    cut(row.twin_reason);
    cut(row.sites_told_by);
    if (row.sites.size() > most_graph_sites) {
        row.sites.resize(most_graph_sites);
    }
    return row;
}

bool same_lists(const GraphInfo& a, const GraphInfo& b) {
    const auto same_change = [](const GraphNodeChange& x, const GraphNodeChange& y) {
        return x.kernel == y.kernel && x.before == y.before && x.after == y.after;
    };
    const auto same_site = [](const GraphSite& x, const GraphSite& y) {
        return x.name == y.name && x.layer_plus_one == y.layer_plus_one && x.occurrence == y.occurrence &&
               x.nodes == y.nodes && x.leaf == y.leaf && x.lap == y.lap;
    };
    return a.nodes == b.nodes && a.unattributed == b.unattributed && a.baked_in == b.baked_in &&
           std::equal(a.node_changes.begin(), a.node_changes.end(), b.node_changes.begin(), b.node_changes.end(),
                      same_change) &&
           std::equal(a.sites.begin(), a.sites.end(), b.sites.begin(), b.sites.end(), same_site);
}

void take_lists(GraphInfo& to, GraphInfo& from) {
    to.nodes = std::move(from.nodes);
    to.unattributed = std::move(from.unattributed);
    to.node_changes = std::move(from.node_changes);
    to.baked_in = std::move(from.baked_in);
    to.sites = std::move(from.sites);
}

void encode(const StoredGraph& from, Bytes& to) {
    const GraphInfo& row = from.row;
    FieldWriter fields(to);
    fields.number(field_key, row.key);
    if (row.track != 0) {
        fields.number(field_track, row.track);
    }
    each_number(row, [&fields](GraphField field, std::uint64_t value) {
        if (value != 0) {
            fields.number(field, value);
        }
    });
    each_figure(row, [&fields](GraphField field, double value) {
        if (!std::isnan(value)) {
            fields.number(field, std::bit_cast<std::uint64_t>(value));
        }
    });
    for (const auto& [reason, count] : row.eager_steps) {
        fields.named_number(field_eager_steps, reason, count);
    }
    if (!row.twin.empty()) {
        fields.text(field_twin, row.twin);
    }
    if (!row.twin_reason.empty()) {
        fields.text(field_twin_reason, row.twin_reason);
    }
    if (!row.sites_told_by.empty()) {
        fields.text(field_sites_told_by, row.sites_told_by);
    }
    if (from.content != 0) {
        fields.number(field_content, from.content);
    }
    if (from.lists_kept) {
        fields.number(field_lists_kept, 1);
    } else {
        encode_lists(row, fields);
    }
}

bool decode(const std::byte* data, std::size_t size, StoredGraph& to) {
    FieldReader reader(data, size);
    Field field;
    bool has_key = false;
    while (reader.next(field)) {
        each_number(to.row, [&field](GraphField number, std::uint64_t& value) {
            value = field.number == number ? field.as_number() : value;
        });
        each_figure(to.row, [&field](GraphField number, double& value) {
            value =
                field.number == number && field.content.size() == 8 ? std::bit_cast<double>(field.as_number()) : value;
        });
        switch (field.number) {
        case field_key:
            to.row.key = field.as_number();
            has_key = field.content.size() == 8;
            break;
        case field_track:
            to.row.track = static_cast<std::uint32_t>(field.as_number());
            break;
        case field_twin:
            to.row.twin = std::string(field.content.substr(0, most_graph_text));
            break;
        case field_twin_reason:
            to.row.twin_reason = std::string(field.content.substr(0, most_graph_text));
            break;
        case field_sites_told_by:
            to.row.sites_told_by = std::string(field.content.substr(0, most_graph_text));
            break;
        case field_lists_kept:
            to.lists_kept = field.as_number() != 0;
            break;
        case field_content:
            to.content = field.as_number();
            break;
        default:
            take_list(field, to.row);
            break;
        }
    }
    return reader.intact() && has_key;
}

} // namespace plumb::recording
