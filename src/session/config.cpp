// SPDX-License-Identifier: Apache-2.0
// The spec string: one grammar, one table of keys, for code, environment and docs.
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "base/os.hpp"
#include "plumb/profiler.hpp"
#include "session/config_keys.hpp"
#include "session/rank_identity.hpp"

namespace plumb {
namespace {

std::optional<double> parse_number(std::string_view text, std::string_view& rest) {
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (failed != std::errc{} || !(value >= 0 && value < 1e18)) { // from_chars takes "inf" and "nan" too
        return std::nullopt;
    }
    rest = text.substr(static_cast<std::size_t>(end - text.data()));
    return value;
}

using Units = std::initializer_list<std::pair<std::string_view, double>>;

std::optional<double> parse_unit(std::string_view text, Units units) {
    std::string_view rest;
    const std::optional<double> number = parse_number(text, rest);
    if (number) {
        for (const auto& [name, factor] : units) {
            if (rest == name) {
                return *number * factor;
            }
        }
    }
    return std::nullopt;
}

constexpr double kib = 1024.0;

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    const auto value = parse_unit(
        text,
        {{"", 1}, {"KiB", kib}, {"MiB", kib * kib}, {"GiB", kib * kib * kib}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}});
    return value && *value < 1e18 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::optional<double> parse_seconds(std::string_view text) {
    return parse_unit(text, {{"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}});
}

constexpr std::pair<std::string_view, SyncMode> sync_modes[] = {
    {"deferred", SyncMode::deferred},
    {"immediate", SyncMode::immediate},
    {"per_layer", SyncMode::per_layer},
    {"none", SyncMode::none},
};

constexpr std::pair<std::string_view, GraphStamps> stamp_kinds[] = {
    {"cheapest", GraphStamps::cheapest},
    {"events", GraphStamps::events},
    {"kernels", GraphStamps::kernels},
    {"off", GraphStamps::off},
};

bool set_stamps(Config& config, std::string_view value) {
    for (const auto& [name, kind] : stamp_kinds) {
        if (name == value) {
            config.graph.stamps = kind;
            return true;
        }
    }
    return false;
}

bool set_sync(Config& config, std::string_view value) {
    for (const auto& [name, mode] : sync_modes) {
        if (name == value) {
            config.sync = mode;
            return true;
        }
    }
    return false;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool all = failed == std::errc{} && end == text.data() + text.size();
    return all ? std::optional(value) : std::nullopt;
}

template <class T>
bool assign(T& target, std::optional<T> value) {
    if (value) {
        target = *value;
    }
    return value.has_value();
}

constexpr std::pair<std::string_view, TensorConfig::Level> tensor_levels[] = {
    {"off", TensorConfig::Level::off},
    {"nonfinite", TensorConfig::Level::nonfinite},
    {"all", TensorConfig::Level::all},
};

/// Calls `take` for each part of a list; false as soon as it is, and for an empty part.
template <class Take>
bool each_part(std::string_view list, char separator, Take take) {
    for (;;) {
        const std::size_t end = list.find(separator);
        const std::string_view part = list.substr(0, end);
        if (part.empty() || !take(part)) {
            return false;
        }
        if (end == std::string_view::npos) {
            return true;
        }
        list = list.substr(end + 1);
    }
}

bool add_layers(TensorConfig& tensors, std::string_view range) {
    const std::size_t dash = range.find('-');
    const auto first = parse_count(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_count(range.substr(dash + 1));
    constexpr std::uint64_t most = 65'534; // of the file format
    if (!first || !last || *first > *last || *last > most) {
        return false;
    }
    tensors.layers.emplace_back(static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last));
    return true;
}

bool set_tensors_part(TensorConfig& tensors, std::string_view part) {
    for (const auto& [name, level] : tensor_levels) {
        if (part == name) {
            tensors.level = level;
            return true;
        }
    }
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view{} : part.substr(equals + 1);
    if (key == "every") {
        return assign(tensors.every, parse_count(value)) && tensors.every >= 1;
    }
    if (key == "bricks") {
        return each_part(value, '/', [&](std::string_view brick) {
            tensors.bricks.emplace_back(brick);
            return true;
        });
    }
    return key == "layers" && each_part(value, '/', [&](std::string_view range) { return add_layers(tensors, range); });
}

/// "nonfinite", "all+layers=0-3": a choice without a level means all.
bool set_tensors(Config& config, std::string_view value) {
    TensorConfig tensors;
    tensors.level = TensorConfig::Level::all;
    tensors.dump = config.tensors.dump;
    const bool good = each_part(value, '+', [&](std::string_view part) { return set_tensors_part(tensors, part); });
    config.tensors = tensors;
    return good;
}

constexpr std::uint32_t usual_tiles = 4096;

bool set_tiles(Config& config, std::string_view value) {
    constexpr std::uint64_t least = 16;
    constexpr std::uint64_t most = 65536;
    if (value == "off" || value == "on") {
        config.tiles = value == "on" ? usual_tiles : 0;
        return true;
    }
    const auto count = parse_count(value);
    if (!count || *count < least || *count > most) {
        return false;
    }
    config.tiles = static_cast<std::uint32_t>(*count);
    return true;
}

/// What stands behind each %, in order: session::expand_words() puts something in there. 0 behind one at the end.
std::string placeholders(std::string_view path) {
    std::string letters;
    for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 2)) {
        letters += at + 1 < path.size() ? path[at + 1] : '\0';
    }
    return letters;
}

bool known_placeholders(std::string_view path) {
    return placeholders(path).find_first_not_of("phr%") == std::string::npos;
}

/// What it says exactly is for whoever listens or writes there.
bool set_metrics(Config& config, std::string_view value) {
    const bool port = !value.empty() && value.find('/') == std::string_view::npos &&
                      ((value.back() >= '0' && value.back() <= '9') || value.ends_with("%r"));
    config.metrics = value;
    return (port || value.ends_with(".prom")) && known_placeholders(value);
}

struct KeyRule {
    ConfigKey key;
    bool (*set)(Config&, std::string_view);
};

constexpr std::uint64_t smallest_ring = 4096;
constexpr std::uint64_t largest_ring = std::uint64_t{1} << 30;
constexpr std::uint64_t smallest_recording = std::uint64_t{1} << 20;
constexpr std::uint64_t largest_every = 1'000'000;
constexpr double longest_keep = 1e9; // seconds: 30 years

// The one table of keys.
const KeyRule rules[] = {
    {{"out", "path with %p (pid), %h (host), %r (rank), %% (a percent sign), or none",
      "where the recording goes; an existing file is kept aside; none keeps it in memory for snapshot() only "
      "(default plumb-%p.plumb)"},
     [](Config& c, std::string_view v) {
         return !v.empty() && known_placeholders(v) && (c.out = v, true);
     }},
    {{"ring", "bytes from 4 KiB to 1 GiB: 65536, 512KiB, 4MiB",
      "ring of each recording thread, rounded down to a power of two (default 1MiB)"},
     [](Config& c, std::string_view v) {
         return assign(c.ring_bytes, parse_bytes(v)) && c.ring_bytes >= smallest_ring && c.ring_bytes <= largest_ring;
     }},
    {{"max_size", "bytes from 1 MiB on: 100MB, 1GiB",
      "bound of the recording; the oldest records go first (default: no bound)"},
     [](Config& c, std::string_view v) {
         return assign(c.max_bytes, parse_bytes(v)) && c.max_bytes >= smallest_recording;
     }},
    {{"keep", "time: 500ms, 60s, 5min, 1h", "keep at least the last so much time (default: everything)"},
     [](Config& c, std::string_view v) {
         return assign(c.keep_seconds, parse_seconds(v)) && c.keep_seconds > 0 && c.keep_seconds <= longest_keep;
     }},
    {{"sync", "deferred, immediate, per_layer or none", "when stamps are taken and collected (default deferred)"},
     set_sync},
    {{"warmup", "number of steps", "decode steps that reports keep apart (default 8)"},
     [](Config& c, std::string_view v) {
         return assign(c.warmup_steps, parse_count(v));
     }},
    {{"fork", "off or own", "a forked child records nothing, or opens its own file (own needs %p in out; default off)"},
     [](Config& c, std::string_view v) {
         return (v == "off" || v == "own") && (c.follow_fork = v == "own", true);
     }},
    {{"rank", "rank, or rank/ranks, and groups joined by +: 3, 3/8, 3/8+tp=1/4+pp=0/2",
      "which rank of the job this process is, and its index in groups of so many (default: what torchrun, Open MPI, PMI "
      "or Slurm say)"},
     [](Config& c, std::string_view v) {
         return session::parse_rank(v).has_value() && (c.rank = v, true);
     }},
    {{"redact", "on or off", "leave host, command line and paths out of the recording (default off)"},
     [](Config& c, std::string_view v) {
         return (v == "on" || v == "off") && (c.redact = v == "on", true);
     }},
    {{"counters", "on or off",
      "cycles, instructions and cache misses of the whole process, by the system's counters: read once a second by the "
      "drain, never by a recording thread (default off)"},
     [](Config& c, std::string_view v) {
         return (v == "on" || v == "off") && (c.counters = v == "on", true);
     }},
    {{"nvtx", "on or off",
      "tell scopes, laps, steps and layers as NVTX ranges too, to the tool that the program runs under, such as Nsight "
      "Systems (default off)"},
     [](Config& c, std::string_view v) {
         return (v == "on" || v == "off") && (c.nvtx = v == "on", true);
     }},
    {{"device.every", "number of steps, at least 1",
      "device scopes of eager queues whose timing has its price are timed in every n-th step (default 8)"},
     [](Config& c, std::string_view v) {
         return assign(c.device_every, parse_count(v)) && c.device_every >= 1 && c.device_every <= largest_every;
     }},
    {{"graph.stamps", "cheapest, events, kernels or off",
      "what an instrumented CUDA graph is stamped with; off: replays are counted, not looked into (default cheapest)"},
     set_stamps},
    {{"graph.every", "number of replays, or auto",
      "every n-th replay of a CUDA graph is sampled; auto: as often as costs 1 % of a step (default auto)"},
     [](Config& c, std::string_view v) {
         if (v == "auto") {
             c.graph.every = 0;
             return true;
         }
         return assign(c.graph.every, parse_count(v)) && c.graph.every >= 1 && c.graph.every <= largest_every;
     }},
    {{"graph.upload", "once or each",
      "CudaGraphCache uploads a graph after capture, or before every launch (default once)"},
     [](Config& c, std::string_view v) {
         return (v == "once" || v == "each") && (c.graph.upload_each = v == "each", true);
     }},
    {{"graph.sync", "on or off", "CudaGraphCache waits for each replay (default off)"},
     [](Config& c, std::string_view v) {
         return (v == "on" || v == "off") && (c.graph.sync = v == "on", true);
     }},
    {{"graph.profile", "number of replays, or off",
      "CudaGraphCache writes one JSON line of every n-th replay (default off)"},
     [](Config& c, std::string_view v) {
         if (v == "off") {
             c.graph.profile = 0;
             return true;
         }
         return assign(c.graph.profile, parse_count(v)) && c.graph.profile >= 1 && c.graph.profile <= largest_every;
     }},
    {{"tensors", "off, nonfinite, all, or parts joined by +: all+every=8+bricks=attention/lm_head+layers=0-3/7",
      "what PLUMB_TENSOR looks at: whether tensors are finite, or the fingerprint of each; in every n-th step, of these "
      "bricks, in these layers (default off)"},
     set_tensors},
    {{"dump", "folder",
      "keep every tensor that tensors=all looks at whole, as a .npy file there (default: none is kept)"},
     [](Config& c, std::string_view v) {
         return !v.empty() && (c.tensors.dump = v, true);
     }},
    {{"tiles", "off, on, or a number of tiles from 16 to 65536",
      "whether PLUMB_TILE acts, and how many tiles each thread keeps apart (default off; on is 4096)"},
     set_tiles},
    {{"metrics",
      "port, address and port, or file, with %p, %h, %r and %% as in out=: 9464, 0.0.0.0:9464, [::1]:946%r, run-%r.prom",
      "running totals for Prometheus while it records, over HTTP (on 127.0.0.1 unless an address is given; port 0 is any "
      "that is free) or in a file for node_exporter (default: none)"},
     set_metrics},
};

// The key of version 0.1 for tensors=, which the next version leaves out.
constexpr std::string_view old_tensors_key = "check";

std::string known_keys() {
    std::string list = "on, off";
    for (const KeyRule& rule : rules) {
        list += std::string(", ") + rule.key.key + "=";
    }
    return list;
}

Error bad(const std::string& message) { return Error{ErrorCode::invalid_argument, message}; }

/// The rule of `key`, or the sentence that lists the known ones.
Result<const KeyRule*> rule_of(std::string_view key, std::string_view option = {}) {
    for (const KeyRule& rule : rules) {
        if (rule.key.key == (key == old_tensors_key ? std::string_view("tensors") : key)) {
            return &rule;
        }
    }
    return bad((option.empty() ? "PLUMB" : std::string(option)) + ": unknown key \"" + std::string(key) +
               "\"; known are " + known_keys());
}

/// `given` is what was said to `name`, and does not fit.
Error misfit(const std::string& given, const std::string& name, const ConfigKey& key) {
    return bad(given + " does not fit; " + name + " takes " + key.value);
}

Status apply_word(Config& config, std::string_view word) {
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
        return config.set(word.substr(0, equals), word.substr(equals + 1));
    }
    if (word == "on" || word == "1") {
        config.on = true;
        return {};
    }
    if (word == "off" || word == "0") {
        config.on = false;
        return {};
    }
    const Result<const KeyRule*> rule = rule_of(word);
    return rule ? misfit("PLUMB: \"" + std::string(word) + "\"", std::string(word) + "=", (*rule)->key) : rule.error();
}

std::string text_of(std::uint64_t value) { return std::to_string(value); }

std::string text_of_seconds(double value) {
    char text[64];
    const auto written = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed);
    return {text, written.ec == std::errc{} ? written.ptr : text};
}

/// Only what differs from the default, so that specs stay short.
std::string spec_of_devices(const Config& config) {
    const Config standard;
    std::string text = config.counters ? ",counters=on" : "";
    text += config.nvtx ? ",nvtx=on" : "";
    if (config.device_every != standard.device_every) {
        text += ",device.every=" + text_of(config.device_every);
    }
    for (const auto& [name, kind] : stamp_kinds) {
        if (kind == config.graph.stamps && kind != standard.graph.stamps) {
            text += ",graph.stamps=" + std::string(name);
        }
    }
    if (config.graph.every != 0) {
        text += ",graph.every=" + text_of(config.graph.every);
    }
    if (config.graph.upload_each) {
        text += ",graph.upload=each";
    }
    if (config.graph.sync) {
        text += ",graph.sync=on";
    }
    if (config.graph.profile != 0) {
        text += ",graph.profile=" + text_of(config.graph.profile);
    }
    if (config.tensors.level != TensorConfig::Level::off) {
        text += ",tensors=" + config.tensors.spec();
    }
    if (!config.tensors.dump.empty()) {
        text += ",dump=" + config.tensors.dump;
    }
    if (config.tiles != 0) {
        text += ",tiles=" + (config.tiles == usual_tiles ? std::string("on") : text_of(config.tiles));
    }
    if (!config.metrics.empty()) {
        text += ",metrics=" + config.metrics;
    }
    return text;
}

} // namespace

std::string TensorConfig::spec() const {
    std::string text;
    for (const auto& [name, its_level] : tensor_levels) {
        if (its_level == level) {
            text = name;
        }
    }
    if (every != 1) {
        text += "+every=" + std::to_string(every);
    }
    for (std::size_t i = 0; i < bricks.size(); ++i) {
        text += (i == 0 ? "+bricks=" : "/") + bricks[i];
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto& [first, last] = layers[i];
        text += (i == 0 ? "+layers=" : "/") + std::to_string(first) + "-" + std::to_string(last);
    }
    return text;
}

const std::vector<ConfigKey>& config_keys() {
    static const std::vector<ConfigKey> keys = [] {
        std::vector<ConfigKey> list;
        for (const KeyRule& rule : rules) {
            list.push_back(rule.key);
        }
        return list;
    }();
    return keys;
}

Status Config::set(std::string_view key, std::string_view value, std::string_view option) {
    const Result<const KeyRule*> rule = rule_of(key, option);
    if (!rule) {
        return rule.error();
    }
    Config changed = *this;
    if (!(*rule)->set(changed, value)) {
        const std::string name(key), text(value), shown(option);
        return shown.empty() ? misfit("PLUMB: \"" + name + "=" + text + "\"", name + "=", (*rule)->key)
                             : misfit(shown + " \"" + text + "\"", shown, (*rule)->key);
    }
    changed.tensors.by_old_key = changed.tensors.by_old_key || key == old_tensors_key;
    *this = std::move(changed);
    return {};
}

Result<Config> Config::parse(std::string_view spec) {
    Config config;
    while (!spec.empty()) {
        const std::size_t comma = spec.find(',');
        const std::string_view word = spec.substr(0, comma);
        if (Status status = apply_word(config, word); !status.ok()) {
            return status.error();
        }
        spec = comma == std::string_view::npos ? std::string_view{} : spec.substr(comma + 1);
    }
    if (Status status = config.validate(); !status.ok()) {
        return status.error();
    }
    return config;
}

Status Config::validate() const {
    for (const std::string* path : {&out, &metrics}) { // which a program may have set by itself
        if (!known_placeholders(*path)) {
            return bad("\"" + *path +
                       "\" holds a % that is not of %p (pid), %h (host), %r (rank) or %% (a percent sign)");
        }
    }
    if (!tensors.dump.empty() && tensors.level != TensorConfig::Level::all) {
        return bad(
            "a dump keeps the tensors that are looked at whole: it needs tensors=all too, or a choice of bricks or layers");
    }
    if (follow_fork && placeholders(out).find('p') == std::string::npos) {
        return bad("fork=own needs %p in the name of the recording, so that every process has a file of its own");
    }
    return {};
}

Result<Config> Config::from_env() {
    const char* spec = base::environment("PLUMB");
    return spec == nullptr ? Result<Config>(Config{}) : parse(spec);
}

std::string Config::spec() const {
    std::string text = on ? "on" : "off";
    text += ",out=" + out + ",ring=" + text_of(ring_bytes);
    if (max_bytes != 0) {
        text += ",max_size=" + text_of(max_bytes);
    }
    if (keep_seconds > 0) {
        text += ",keep=" + text_of_seconds(keep_seconds) + "s";
    }
    for (const auto& [name, mode] : sync_modes) {
        if (mode == sync) {
            text += ",sync=" + std::string(name);
        }
    }
    text += ",warmup=" + text_of(warmup_steps);
    if (follow_fork) {
        text += ",fork=own";
    }
    if (!rank.empty()) {
        text += ",rank=" + rank;
    }
    if (redact) {
        text += ",redact=on";
    }
    return text + spec_of_devices(*this);
}

} // namespace plumb
