// SPDX-License-Identifier: Apache-2.0
// The PyTorch profiler's JSON (Kineto), and what else is written in the same form: {"traceEvents": [{"ph": "X", …}, …]}, in a wrapper,
// or as a bare array.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/utf8.hpp"
#include "import/decimal.hpp"
#include "import/device_lanes.hpp"
#include "import/formats.hpp"
#include "import/in_order.hpp"
#include "import/json_stream.hpp"

namespace plumb::imported {
namespace {

constexpr unsigned most_retries = 64; // of events inside one that is damaged

enum class KinetoLane : std::uint8_t { none, kernel, memcpy, memset, api, annotation, python };

struct LaneName {
    std::string_view name;
    KinetoLane lane;
};
// In small letters: of 2021 they begin with a capital.
constexpr LaneName lanes[] = {
    {"kernel", KinetoLane::kernel},
    {"gpu_memcpy", KinetoLane::memcpy},
    {"gpu_memset", KinetoLane::memset},
    {"memcpy", KinetoLane::memcpy},
    {"memset", KinetoLane::memset},
    {"concurrent_kernel", KinetoLane::kernel},
    {"mtia_ccp_events", KinetoLane::kernel},
    {"cuda_runtime", KinetoLane::api},
    {"cuda_driver", KinetoLane::api},
    {"runtime", KinetoLane::api},
    {"driver", KinetoLane::api},
    {"hip_runtime", KinetoLane::api},
    {"privateuse1_runtime", KinetoLane::api},
    {"user_annotation", KinetoLane::annotation},
    {"python_function", KinetoLane::python},
};

KinetoLane lane_of(std::string_view category) {
    const auto same = [category](const LaneName& lane) {
        return category.size() == lane.name.size() &&
               std::equal(category.begin(), category.end(), lane.name.begin(), [](char a, char b) {
                   return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
               });
    };
    const auto* const found = std::find_if(std::begin(lanes), std::end(lanes), same);
    return found == std::end(lanes) ? KinetoLane::none : found->lane;
}

constexpr std::string_view module_prefix = "nn.Module: ";

/// Most events of a trace tell nothing here, and most writers begin with what tells so: {"ph": "X", "cat": "…", "name": "…".
/// False where that is not plain to see.
bool tells_nothing(std::string_view event) {
    std::size_t at = 1;
    const auto skip_to = [&](char wanted) {
        while (at < event.size() && (event[at] == ' ' || event[at] == '\n' || event[at] == '\r' || event[at] == '\t')) {
            ++at;
        }
        return at < event.size() && event[at++] == wanted;
    };
    const auto text = [&](std::string_view& to) {
        if (!skip_to('"')) {
            return false;
        }
        const std::size_t end = event.find('"', at);
        if (end == event.npos) {
            return false;
        }
        to = event.substr(at, end - at);
        at = end + 1;
        return to.find('\\') == to.npos;
    };
    KinetoLane lane = KinetoLane::none;
    for (int keys = 0; keys < 3; ++keys) {
        std::string_view key;
        std::string_view value;
        if (!text(key) || !skip_to(':') || !text(value)) {
            return false;
        }
        if (key == "ph" && value != "X") {
            return value != "M";
        }
        if (key == "cat") {
            lane = lane_of(value);
            if (lane == KinetoLane::none) {
                return true;
            }
        }
        if (key == "name" && lane == KinetoLane::python) {
            return !value.starts_with(module_prefix);
        }
        if (key == "cat" && lane != KinetoLane::python) {
            return false;
        }
        if (!skip_to(',')) {
            return false;
        }
    }
    return false;
}

/// What one event says that is of use.
struct KinetoEvent {
    std::string ph, category, name;
    std::string kernel, module, group; // that a call launches; of the model; of ranks
    std::optional<std::int64_t> start, duration;
    bool has_start = false, has_duration = false;
    std::uint64_t process = 0, thread = 0;
    std::uint64_t correlation = no_id, node = no_id;
    std::optional<std::uint64_t> device, stream;
    std::uint64_t graph = 0;
    bool text_number = false, large_id = false;
};

/// The library's events of one object, into an Event.
class EventReader {
  public:
    explicit EventReader(KinetoEvent& to) : to_(to) {}

    bool null() { return true; }
    bool boolean(bool) { return true; }
    bool number_integer(std::int64_t value) { return number(std::to_string(value)); }
    bool number_unsigned(std::uint64_t value) { return number(std::to_string(value)); }
    bool number_float(double, const std::string& text) { return number(text); }
    bool binary(nlohmann::json::binary_t&) { return true; }
    bool string(std::string& value) {
        if (depth_ == 1 && key_ == Key::ph) {
            to_.ph = std::move(value);
        } else if (depth_ == 1 && key_ == Key::category) {
            to_.category = std::move(value);
        } else if (depth_ == 1 && key_ == Key::name) {
            to_.name = std::move(value);
        } else if (key_ == Key::group) {
            to_.group = std::move(value);
        } else if (key_ == Key::kernel) {
            to_.kernel = std::move(value);
        } else if (key_ == Key::module || key_ == Key::label) { // both: the first says more
            to_.module = key_ == Key::module || to_.module.empty() ? std::move(value) : to_.module;
        } else if (key_ != Key::other) {
            const bool counts =
                !value.empty() && (std::isdigit(static_cast<unsigned char>(value[0])) != 0 || value[0] == '-');
            to_.text_number = to_.text_number || counts;
            return number(value);
        }
        return true;
    }
    bool start_object(std::size_t) {
        in_args_ = depth_ == 1 ? key_ == Key::args : in_args_; // what lies deeper ends inside them
        return nest();
    }
    bool end_object() { return leave(); }
    bool start_array(std::size_t) { return nest(); }
    bool end_array() { return leave(); }
    bool key(const std::string& name) {
        key_ = Key::other;
        if (depth_ == 1 || (depth_ == 2 && in_args_)) {
            for (const auto& known : keys) {
                if (known.in_args == (depth_ == 2) && known.name == name) {
                    key_ = known.key;
                    break;
                }
            }
        }
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

  private:
    enum class Key : std::uint8_t {
        other,
        ph,
        category,
        name,
        process,
        thread,
        start,
        duration,
        args,
        correlation,
        stream,
        device,
        graph,
        node,
        bytes, // of no use, but whether it is text is said
        kernel,
        module,
        label,
        group // of ranks
    };
    struct Known {
        std::string_view name;
        bool in_args;
        Key key;
    };
    static constexpr Known keys[] = {
        {"ph", false, Key::ph},
        {"cat", false, Key::category},
        {"name", false, Key::name},
        {"pid", false, Key::process},
        {"tid", false, Key::thread},
        {"ts", false, Key::start},
        {"dur", false, Key::duration},
        {"args", false, Key::args},
        {"correlation", true, Key::correlation},
        {"stream", true, Key::stream},
        {"device", true, Key::device},
        {"graph id", true, Key::graph},
        {"graph node id", true, Key::node},
        {"bytes", true, Key::bytes},
        {"kernel", true, Key::kernel},
        {"module_fqn", true, Key::module},
        {"name", true, Key::label},
        {"Process Group Name", true, Key::group},
    };

    bool nest() {
        ++depth_;
        key_ = Key::other;
        return true;
    }
    bool leave() {
        --depth_;
        key_ = Key::other;
        return true;
    }

    /// Numbers of 64 bits as they are; others, and words, by a hash of their text.
    std::uint64_t id(const std::string& text) {
        if (const auto whole = whole_number(text)) {
            to_.large_id =
                to_.large_id || *whole > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
            return *whole;
        }
        return std::hash<std::string>{}(text) >> 1;
    }

    bool number(const std::string& text) {
        switch (key_) {
        case Key::start:
            to_.has_start = true;
            to_.start = microseconds_to_ns(text);
            break;
        case Key::duration:
            to_.has_duration = true;
            to_.duration = microseconds_to_ns(text);
            break;
        case Key::process:
            to_.process = id(text);
            break;
        case Key::thread:
            to_.thread = id(text);
            break;
        case Key::correlation:
            to_.correlation = id(text);
            break;
        case Key::device:
            to_.device = id(text);
            break;
        case Key::stream:
            to_.stream = id(text);
            break;
        case Key::graph:
            to_.graph = id(text);
            break;
        case Key::node:
            to_.node = id(text);
            break;
        default:
            break;
        }
        return true;
    }

    KinetoEvent& to_;
    int depth_ = 0;
    bool in_args_ = false;
    Key key_ = Key::other;
};

/// What a batch of events gives.
struct KinetoBatch {
    std::vector<RawDeviceOp> ops;
    std::vector<RawHostOp> host;
    std::vector<LaneLabel> labels;
    std::vector<RawDeviceOp> without_category;
    std::array<std::uint64_t, anomalies> counts{};

    void count(Anomaly anomaly) { ++counts[static_cast<std::size_t>(anomaly)]; }
};

/// Begin and duration are numbers whose sum fits; nothing of a trace is above.
bool is_timed(const KinetoEvent& event) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
    return event.start && event.duration && std::max(*event.start, *event.duration) <= most &&
           std::min(*event.start, *event.duration) >= -most;
}

void add_device_op(const KinetoEvent& event, KinetoLane lane, std::vector<RawDeviceOp>& to) {
    RawDeviceOp& raw = to.emplace_back();
    raw.op.start_ns = *event.start;
    raw.op.end_ns = *event.start + *event.duration;
    raw.op.correlation = event.correlation;
    raw.op.node = event.node;
    raw.op.graph = static_cast<std::uint32_t>(std::min<std::uint64_t>(event.graph, 0xffffffff));
    raw.op.kind = lane == KinetoLane::kernel   ? DeviceOpKind::kernel
                  : lane == KinetoLane::memcpy ? DeviceOpKind::memcpy
                                               : DeviceOpKind::memset;
    raw.process = TraceBuilder::unsettled(event.process);
    raw.device = event.device.value_or(event.process);
    raw.stream = event.stream.value_or(event.thread);
    raw.name = event.name.empty() ? "unnamed" : event.name;
    raw.module = event.module;
    raw.group = event.group;
}

/// What an event without a category may be: the name of a lane, or an operation in one.
void add_without_category(const KinetoEvent& event, KinetoBatch& to) {
    if (event.ph == "M" && (event.name == "process_name" || event.name == "thread_name")) {
        to.labels.push_back(
            {event.process, event.name[0] == 't' ? std::optional(event.thread) : std::nullopt, event.module});
    } else if (event.ph == "X" && event.has_duration && is_timed(event)) {
        add_device_op(event, KinetoLane::kernel, to.without_category);
        to.without_category.back().process = event.process;
        to.without_category.back().stream = event.thread;
    }
}

void add_host_op(const KinetoEvent& event, KinetoLane lane, KinetoBatch& to) {
    RawHostOp& raw = to.host.emplace_back();
    raw.op.start_ns = *event.start;
    raw.op.end_ns = *event.start + *event.duration;
    raw.op.correlation = event.correlation;
    raw.op.kind = lane == KinetoLane::api                  ? HostOpKind::api
                  : lane == KinetoLane::python             ? HostOpKind::module
                  : event.name.starts_with("ProfilerStep") ? HostOpKind::profiler_step
                                                           : HostOpKind::annotation;
    raw.process = TraceBuilder::unsettled(event.process);
    raw.thread = event.thread;
    raw.name = event.name.empty() ? "unnamed" : event.name;
    raw.target = event.kernel;
}

void add_event(KinetoEvent& event, KinetoBatch& to) {
    if (event.category.empty()) {
        add_without_category(event, to);
        return;
    }
    const KinetoLane lane = lane_of(event.category);
    if (event.ph != "X" || lane == KinetoLane::none ||
        (lane == KinetoLane::python && !event.name.starts_with(module_prefix))) {
        return;
    }
    event.duration = event.has_duration ? event.duration : std::optional<std::int64_t>(0);
    const bool on_device = lane == KinetoLane::kernel || lane == KinetoLane::memcpy || lane == KinetoLane::memset;
    if (!event.has_start || !event.start || !event.duration) {
        to.count(event.has_start ? Anomaly::bad_number : Anomaly::no_time);
        return;
    }
    if (!is_timed(event)) {
        to.count(Anomaly::absurd_time);
        return;
    }
    if (event.text_number) {
        to.count(Anomaly::text_number);
    }
    if (event.large_id) {
        to.count(Anomaly::large_id);
    }
    if (on_device) {
        add_device_op(event, lane, to.ops);
    } else {
        add_host_op(event, lane, to);
    }
}

bool parse(std::string_view text, KinetoEvent& event) {
    EventReader reader(event);
    return nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
}

/// Bytes that JSON does not allow, in what is else well: replaced.
std::string mended(std::string_view text) {
    std::string made = base::valid_utf8(text);
    std::replace_if(
        made.begin(), made.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return made;
}

/// False where it is no JSON.
bool read_whole(std::string_view text, KinetoBatch& to) {
    if (tells_nothing(text)) {
        return true;
    }
    KinetoEvent event;
    if (!parse(text, event)) {
        event = {};
        if (!parse(mended(text), event)) {
            return false;
        }
    }
    add_event(event, to);
    return true;
}

/// One element; where a quote or bracket is missing it may hold others, which are looked for.
void read_event(std::string_view text, KinetoBatch& to) {
    if (read_whole(text, to)) {
        return;
    }
    to.count(Anomaly::damaged);
    const std::string_view key = first_key(text);
    std::size_t at = next_like(text, 1, key);
    for (unsigned tries = 0; tries < most_retries && at != text.npos; ++tries) {
        std::size_t broken = text.npos;
        const std::size_t end = end_of_element(text, at, broken);
        const bool well = end != text.npos && read_whole(text.substr(at, end - at), to);
        at = next_like(text, well ? end : at + 1, key);
    }
}

KinetoBatch read_events(JsonElements& some) {
    KinetoBatch found;
    for (const std::string_view text : some.texts) {
        read_event(text, found);
    }
    some = {};
    return found;
}

// ---- what stands beside the events

std::string text_of(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : std::string();
}

void read_devices(const nlohmann::json& list, TraceFacts& facts) {
    if (!list.is_array()) {
        return;
    }
    for (const nlohmann::json& device : list) {
        if (device.is_object() && device.contains("id") && device["id"].is_number_unsigned()) {
            facts.devices[static_cast<std::uint32_t>(device["id"].get<std::uint64_t>())] =
                device.contains("name") ? text_of(device["name"]) : std::string();
        }
    }
}

constexpr std::uint64_t most_ranks = 1'000'000;

/// "pg_config": process groups, those of one rank among them. torch calls a group by a number; some engines describe it.
void read_groups(const nlohmann::json& list, TraceFacts& facts) {
    for (const nlohmann::json& group : list.is_array() ? list : nlohmann::json::array()) {
        if (!group.is_object() || !group.contains("pg_name") || !group.contains("ranks") ||
            !group["ranks"].is_array()) {
            continue;
        }
        TraceGroup& made = facts.groups[text_of(group["pg_name"])];
        made = {group.contains("pg_desc") ? text_of(group["pg_desc"]) : std::string(), {}};
        made.word = made.word == "undefined" ? std::string() : made.word;
        for (const nlohmann::json& rank : group["ranks"]) {
            if (rank.is_number_unsigned() && rank.get<std::uint64_t>() < most_ranks) {
                made.ranks.push_back(static_cast<std::uint32_t>(rank.get<std::uint64_t>()));
            }
        }
    }
}

void read_fact(const std::string& key, std::string_view text, TraceFacts& facts) {
    const nlohmann::json value = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
    if (value.is_discarded()) {
        return;
    }
    if (key == "deviceProperties") {
        read_devices(value, facts);
    } else if (key == "baseTimeNanoseconds") {
        const std::string number = text_of(value);
        facts.base_realtime_ns = static_cast<std::int64_t>(
            std::min<std::uint64_t>(whole_number(number).value_or(0), std::uint64_t{1} << 62));
    } else if (key == "distributedInfo" && value.is_object()) {
        facts.rank = value.contains("rank") ? text_of(value["rank"]) : std::string();
        facts.world_size = value.contains("world_size") ? text_of(value["world_size"]) : std::string();
        read_groups(value.contains("pg_config") ? value["pg_config"] : nlohmann::json(), facts);
    }
}

bool is_fact(const std::string& key) {
    return key == "deviceProperties" || key == "baseTimeNanoseconds" || key == "distributedInfo";
}

/// Ranks that were merged into one file.
void settle_processes(TraceBuilder& to) {
    const TraceBuilder::Settled settled = to.settle_processes();
    if (settled == TraceBuilder::Settled::one_process) {
        return;
    }
    to.facts.rank.clear(); // it is that of one of them
    if (settled == TraceBuilder::Settled::not_known) {
        to.facts.notes.emplace_back("the file holds several processes, and which of them launched what is not known: "
                                    "launches, and steps by annotation, are n/a; import the trace of each process");
    }
}

} // namespace

Status read_kineto(Input& input, TraceBuilder& to) {
    to.facts.tool = "kineto";
    DeviceLanes device_lanes(to);
    InOrder<JsonElements, KinetoBatch> workers(
        read_events,
        [&to, &device_lanes](KinetoBatch& found) {
            to.add(found.ops, found.host);
            device_lanes.add(found.labels, found.without_category);
            for (std::size_t i = 0; i < anomalies; ++i) {
                to.count(static_cast<Anomaly>(i), found.counts[i]);
            }
        },
        base::usable_cpus());
    JsonVisitor visitor;
    visitor.choose = [](const JsonPath& path, char opens) {
        if (path.empty()) {
            return opens == '[' ? Take::elements : Take::inside;
        }
        if (path.back() == "traceEvents" && opens == '[') {
            return Take::elements;
        }
        return is_fact(path.back()) ? Take::text : opens == '{' ? Take::inside : Take::skip;
    };
    visitor.value = [&to](const JsonPath& path, std::string_view text) {
        read_fact(path.back(), text, to.facts);
    };
    visitor.elements = [&workers](const JsonPath&, JsonElements&& some) {
        workers.give(std::move(some));
        return true;
    };
    const Result<JsonDamage> damage = walk_json(input, visitor);
    workers.finish();
    if (!damage) {
        return damage.error();
    }
    device_lanes.finish();
    settle_processes(to);
    to.count(Anomaly::damaged, damage->elements);
    to.facts.cut = damage->cut;
    return {};
}

} // namespace plumb::imported
