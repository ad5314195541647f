// SPDX-License-Identifier: Apache-2.0
#include "recording/metadata_codec.hpp"
#include "base/peak_fields.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plumb::recording {
namespace {

// More than any run needs; bounds what a hostile file can make a reader hold.
constexpr std::size_t most_pairs = 4096;
constexpr std::size_t most_places = 256; // that have peaks
constexpr std::size_t most_groups = 64;
constexpr std::size_t most_members = 65536; // of a group
/// Counters::ended_drops has one field for each reason, from this number on.
constexpr std::uint16_t first_ended_drop = 16;

using Pairs = std::vector<std::pair<std::string, std::string>>;

void take_pair(const Field& field, Pairs& to) {
    std::string_view key;
    std::string_view value;
    if (to.size() < most_pairs && field.as_pair(key, value)) {
        to.emplace_back(key, value);
    }
}

bool take_named_number(const Field& field, std::string_view& key, std::uint64_t& number) {
    std::string_view value;
    if (!field.as_pair(key, value) || value.size() != sizeof number) {
        return false;
    }
    number = load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(value.data()));
    return true;
}

/// Calls `take` with every field; false when the fields do not fill the buffer exactly.
template <class Take>
bool walk(const std::byte* data, std::size_t size, Take&& take) {
    FieldReader reader(data, size);
    Field field;
    while (reader.next(field)) {
        take(field);
    }
    return reader.intact();
}

void encode(const Peaks& from, Bytes& to) {
    FieldWriter fields(to);
    fields.text(1, from.place);
    fields.text(2, from.name);
    fields.text(3, from.uuid);
    fields.number(4, static_cast<std::uint64_t>(from.measured_unix_s));
    for (const PeakField& field : peak_fields) {
        const Figure& figure = from.*field.figure;
        if (figure.value) {
            fields.named_number(5, field.name, std::bit_cast<std::uint64_t>(*figure.value));
        } else {
            fields.pair(6, field.name, figure.reason);
        }
    }
}

Figure* figure_named(Peaks& peaks, std::string_view name) {
    for (const PeakField& field : peak_fields) {
        if (name == field.name) {
            return &(peaks.*field.figure);
        }
    }
    return nullptr; // of a later version
}

/// A peak that is no positive number is none: it would be divided by.
Figure peak_of(double value) {
    return std::isfinite(value) && value > 0 ? Figure{value, {}}
                                             : Figure{std::nullopt, "the recording holds no number"};
}

bool decode(std::string_view content, Peaks& to) {
    for (const PeakField& field : peak_fields) {
        (to.*field.figure).reason = "not in the recording";
    }
    return walk(reinterpret_cast<const std::byte*>(content.data()), content.size(), [&to](const Field& field) {
        std::string_view key;
        std::string_view reason;
        std::uint64_t number = 0;
        Figure* figure = nullptr;
        switch (field.number) {
        case 1:
            to.place = field.as_text();
            break;
        case 2:
            to.name = field.as_text();
            break;
        case 3:
            to.uuid = field.as_text();
            break;
        case 4:
            to.measured_unix_s = static_cast<std::int64_t>(field.as_number());
            break;
        case 5:
            if (take_named_number(field, key, number) && (figure = figure_named(to, key)) != nullptr) {
                *figure = peak_of(std::bit_cast<double>(number));
            }
            break;
        case 6:
            if (field.as_pair(key, reason) && (figure = figure_named(to, key)) != nullptr) {
                *figure = {std::nullopt, std::string(reason)};
            }
            break;
        default:
            break;
        }
    });
}

void encode(const RankGroup& from, Bytes& to) {
    FieldWriter fields(to);
    fields.text(1, from.name);
    fields.number(2, from.index);
    fields.number(3, from.size);
    for (const std::uint32_t member : from.members) {
        fields.number(4, member);
    }
}

bool decode(std::string_view content, RankGroup& to) {
    const bool whole =
        walk(reinterpret_cast<const std::byte*>(content.data()), content.size(), [&to](const Field& field) {
            switch (field.number) {
            case 1:
                to.name = field.as_text();
                break;
            case 2:
                to.index = static_cast<std::uint32_t>(field.as_number());
                break;
            case 3:
                to.size = static_cast<std::uint32_t>(field.as_number());
                break;
            case 4:
                if (to.members.size() < most_members) {
                    to.members.push_back(static_cast<std::uint32_t>(field.as_number()));
                }
                break;
            default:
                break;
            }
        });
    return whole && to.index < to.size && (to.members.empty() || to.members.size() == to.size);
}

} // namespace

std::string bounded(std::string text) {
    if (text.size() > most_text) {
        const std::string mark = " ... (cut: it has " + std::to_string(text.size()) + " bytes)";
        std::size_t end = most_text - mark.size();
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) { // within a character
            --end;
        }
        text.resize(end);
        text += mark;
    }
    return text;
}

void encode(const Metadata& from, Bytes& to) {
    FieldWriter fields(to);
    fields.number(1, from.recording_id[0]);
    fields.number(2, from.recording_id[1]);
    fields.number(3, static_cast<std::uint64_t>(from.start_realtime_ns));
    fields.text(4, from.host);
    fields.number(5, from.pid);
    fields.number(6, from.process_start);
    fields.text(7, from.boot_id);
    fields.text(8, from.rank);
    fields.text(9, from.ring_path);
    fields.text(10, from.ring_reason);
    fields.text(11, from.config);
    fields.text(12, from.sync_mode);
    fields.number(13, from.warmup_steps);
    for (const auto& [key, value] : from.identity) {
        fields.pair(14, key, value);
    }
    for (const auto& [key, value] : from.comparability) {
        fields.pair(15, key, value);
    }
    for (const auto& [key, value] : from.costs) {
        fields.named_number(16, key, std::bit_cast<std::uint64_t>(value));
    }
    for (const auto& clock : from.clocks) {
        fields.named_number(17, clock.name, clock.id);
    }
    for (const Peaks& peaks : from.peaks) {
        Bytes nested;
        encode(peaks, nested);
        fields.text(18, {reinterpret_cast<const char*>(nested.data()), nested.size()});
    }
    if (from.world != 0) {
        fields.number(19, from.world);
    }
    if (from.time_namespace != 0) {
        fields.number(20, from.time_namespace);
    }
    for (const RankGroup& group : from.groups) {
        Bytes nested;
        encode(group, nested);
        fields.text(21, {reinterpret_cast<const char*>(nested.data()), nested.size()});
    }
}

bool decode(const std::byte* data, std::size_t size, Metadata& to) {
    return walk(data, size, [&to](const Field& field) {
        std::string_view key;
        std::uint64_t number = 0;
        switch (field.number) {
        case 1:
            to.recording_id[0] = field.as_number();
            break;
        case 2:
            to.recording_id[1] = field.as_number();
            break;
        case 3:
            to.start_realtime_ns = static_cast<std::int64_t>(field.as_number());
            break;
        case 4:
            to.host = field.as_text();
            break;
        case 5:
            to.pid = static_cast<std::uint32_t>(field.as_number());
            break;
        case 6:
            to.process_start = field.as_number();
            break;
        case 7:
            to.boot_id = field.as_text();
            break;
        case 8:
            to.rank = field.as_text();
            break;
        case 9:
            to.ring_path = field.as_text();
            break;
        case 10:
            to.ring_reason = field.as_text();
            break;
        case 11:
            to.config = field.as_text();
            break;
        case 12:
            to.sync_mode = field.as_text();
            break;
        case 13:
            to.warmup_steps = field.as_number();
            break;
        case 14:
            take_pair(field, to.identity);
            break;
        case 15:
            take_pair(field, to.comparability);
            if (!to.comparability.empty() && to.comparability.back().first == "check") {
                to.comparability.back().first = "tensors"; // as version 0.1 called the setting
            }
            break;
        case 16:
            if (to.costs.size() < most_pairs && take_named_number(field, key, number)) {
                to.costs.emplace_back(key, std::bit_cast<double>(number));
            }
            break;
        case 17:
            if (to.clocks.size() < most_pairs && take_named_number(field, key, number)) {
                to.clocks.push_back({static_cast<std::uint32_t>(number), std::string(key)});
            }
            break;
        case 18:
            if (Peaks peaks; to.peaks.size() < most_places && decode(field.content, peaks)) {
                to.peaks.push_back(std::move(peaks));
            }
            break;
        case 19:
            to.world = field.as_number();
            break;
        case 20:
            to.time_namespace = field.as_number();
            break;
        case 21:
            if (RankGroup group; to.groups.size() < most_groups && decode(field.content, group)) {
                to.groups.push_back(std::move(group));
            }
            break;
        default:
            break;
        }
    });
}

void encode(const TrackInfo& from, Bytes& to) {
    FieldWriter fields(to);
    fields.number(1, from.id);
    fields.number(2, static_cast<std::uint64_t>(from.kind));
    fields.number(3, from.clock);
    fields.number(4, from.os_thread);
    fields.text(5, from.name);
    fields.text(6, from.source);
    // Only where they say something: a recording without devices stays what it was, byte for byte.
    if (from.sampled_every != 1) {
        fields.number(7, from.sampled_every);
    }
    if (from.kind == TrackKind::captured_graph) {
        fields.number(8, from.graph_key);
    }
    if (!from.clock_name.empty()) {
        fields.text(9, from.clock_name);
    }
    if (!from.device_name.empty()) {
        fields.text(10, from.device_name);
    }
}

namespace {

/// A kind that this version does not know is a host thread: nothing is assumed of it.
TrackKind track_kind_of(std::uint64_t number) {
    return number <= static_cast<std::uint64_t>(TrackKind::captured_graph) ? static_cast<TrackKind>(number)
                                                                           : TrackKind::host_thread;
}

} // namespace

bool decode(const std::byte* data, std::size_t size, TrackInfo& to) {
    bool has_id = false;
    const bool whole = walk(data, size, [&](const Field& field) {
        switch (field.number) {
        case 1:
            to.id = static_cast<std::uint32_t>(field.as_number());
            has_id = true;
            break;
        case 2:
            to.kind = track_kind_of(field.as_number());
            break;
        case 3:
            to.clock = static_cast<std::uint32_t>(field.as_number());
            break;
        case 4:
            to.os_thread = field.as_number();
            break;
        case 5:
            to.name = field.as_text();
            break;
        case 6:
            to.source = field.as_text();
            break;
        case 7:
            to.sampled_every = std::max(static_cast<std::uint32_t>(field.as_number()), std::uint32_t{1});
            break;
        case 8:
            to.graph_key = field.as_number();
            break;
        case 9:
            to.clock_name = field.as_text();
            break;
        case 10:
            to.device_name = field.as_text();
            break;
        default:
            break;
        }
    });
    return whole && has_id;
}

void encode(const NameInfo& from, Bytes& to) {
    FieldWriter fields(to);
    fields.number(1, from.id);
    fields.number(2, static_cast<std::uint64_t>(from.category));
    fields.text(3, from.name);
}

bool decode(const std::byte* data, std::size_t size, NameInfo& to) {
    std::uint64_t id = 0;
    const bool whole = walk(data, size, [&](const Field& field) {
        switch (field.number) {
        case 1:
            id = field.as_number();
            break;
        case 2:
            // A category this version does not know counts as other.
            to.category = field.as_number() <= static_cast<std::uint64_t>(Category::transfer)
                              ? static_cast<Category>(field.as_number())
                              : Category::other;
            break;
        case 3:
            to.name = field.as_text();
            break;
        default:
            break;
        }
    });
    to.id = static_cast<std::uint16_t>(id);
    return whole && id != 0 && id <= 0xffff;
}

void encode(const ClockPair& from, Bytes& to) {
    FieldWriter fields(to);
    fields.number(1, from.clock);
    fields.number(2, from.ticks);
    fields.number(3, static_cast<std::uint64_t>(from.monotonic_ns));
    fields.number(4, static_cast<std::uint64_t>(from.realtime_ns));
    fields.number(5, from.uncertainty_ticks);
}

bool decode(const std::byte* data, std::size_t size, ClockPair& to) {
    unsigned seen = 0;
    const bool whole = walk(data, size, [&](const Field& field) {
        const std::uint64_t value = field.as_number();
        switch (field.number) {
        case 1:
            to.clock = static_cast<std::uint32_t>(value);
            break;
        case 2:
            to.ticks = value;
            break;
        case 3:
            to.monotonic_ns = static_cast<std::int64_t>(value);
            break;
        case 4:
            to.realtime_ns = static_cast<std::int64_t>(value);
            break;
        case 5:
            to.uncertainty_ticks = value;
            break;
        default:
            return;
        }
        seen |= 1u << field.number;
    });
    return whole && (seen & 0b1110) == 0b1110; // a pair without clock, ticks or time is none
}

void encode(const Counters& from, Bytes& to) {
    FieldWriter fields(to);
    for (const auto& [reason, count] : from.drops) {
        fields.named_number(1, reason, count);
    }
    fields.number(2, from.drain_cpu_ns);
    fields.number(3, from.records);
    fields.number(4, from.records_removed);
    fields.number(5, from.unresolved);
    if (from.checks != 0) {
        fields.number(6, from.checks);
    }
    for (const auto& [name, total] : from.hardware) {
        fields.named_number(7, name, total);
    }
    if (!from.hardware_reason.empty()) {
        fields.text(8, from.hardware_reason);
    }
    for (std::size_t i = 0; i < drop_reasons; ++i) {
        if (from.ended_drops[i] != 0) {
            fields.number(static_cast<std::uint16_t>(first_ended_drop + i), from.ended_drops[i]);
        }
    }
}

bool decode(const std::byte* data, std::size_t size, Counters& to) {
    return walk(data, size, [&](const Field& field) {
        std::string_view key;
        std::uint64_t number = 0;
        switch (field.number) {
        case 1:
            if (to.drops.size() < most_pairs && take_named_number(field, key, number)) {
                to.drops.emplace_back(key, number);
            }
            break;
        case 2:
            to.drain_cpu_ns = field.as_number();
            break;
        case 3:
            to.records = field.as_number();
            break;
        case 4:
            to.records_removed = field.as_number();
            break;
        case 5:
            to.unresolved = field.as_number();
            break;
        case 6:
            to.checks = field.as_number();
            break;
        case 7:
            if (to.hardware.size() < most_pairs && take_named_number(field, key, number)) {
                to.hardware.emplace_back(key, number);
            }
            break;
        case 8:
            to.hardware_reason = field.as_text();
            break;
        default:
            if (field.number >= first_ended_drop && field.number - first_ended_drop < static_cast<int>(drop_reasons)) {
                to.ended_drops[field.number - first_ended_drop] = field.as_number();
            }
            break;
        }
    });
}

void encode(const Description& from, Bytes& to) { FieldWriter(to).pair(1, from.first, from.second); }

bool decode(const std::byte* data, std::size_t size, Description& to) {
    bool found = false;
    const bool whole = walk(data, size, [&](const Field& field) {
        std::string_view key;
        std::string_view value;
        if (field.number == 1 && field.as_pair(key, value)) {
            to = {std::string(key), std::string(value)};
            found = true;
        }
    });
    return whole && found;
}

void encode(const Removal& from, Bytes& to) {
    FieldWriter fields(to);
    fields.number(1, from.track);
    fields.number(2, from.until_sequence);
    fields.number(3, from.records);
}

bool decode(const std::byte* data, std::size_t size, Removal& to) {
    return walk(data, size, [&to](const Field& field) {
        switch (field.number) {
        case 1:
            to.track = static_cast<std::uint32_t>(field.as_number());
            break;
        case 2:
            to.until_sequence = field.as_number();
            break;
        case 3:
            to.records = field.as_number();
            break;
        default:
            break;
        }
    });
}

} // namespace plumb::recording
