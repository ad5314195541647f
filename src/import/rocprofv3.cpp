// SPDX-License-Identifier: Apache-2.0
// What rocprofv3 --output-format json writes: {"rocprofiler-sdk-tool": [{…, "buffer_records": {"kernel_dispatch": […], …}}]}.
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "import/formats.hpp"
#include "import/in_order.hpp"
#include "import/json_stream.hpp"

namespace plumb::imported {
namespace {

using Json = nlohmann::json;

enum class List : std::uint8_t { none, dispatch, copy, api, symbol };

List list_of(const JsonPath& path) {
    const std::string& key = path.back();
    return key == "kernel_dispatch"               ? List::dispatch
           : key == "memory_copy"                 ? List::copy
           : key == "hip_api" || key == "hsa_api" ? List::api
           : key == "kernel_symbols"              ? List::symbol
                                                  : List::none;
}

/// The member at the end of that way; null where there is none.
const Json* at(const Json& from, std::initializer_list<const char*> keys) {
    const Json* value = &from;
    for (const char* key : keys) {
        if (!value->is_object()) {
            return nullptr;
        }
        const auto found = value->find(key);
        if (found == value->end()) {
            return nullptr;
        }
        value = &*found;
    }
    return value;
}

std::optional<std::uint64_t> number(const Json& from, std::initializer_list<const char*> keys) {
    const Json* value = at(from, keys);
    return value != nullptr && value->is_number_unsigned() ? std::optional(value->get<std::uint64_t>()) : std::nullopt;
}

std::string text(const Json& from, std::initializer_list<const char*> keys) {
    const Json* value = at(from, keys);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

struct ListElements {
    std::size_t part = 0;
    List list = List::none;
    JsonElements some;
};

struct RocprofBatch {
    std::size_t part = 0;
    std::vector<RawDeviceOp> ops; // name: the kernel's id; numbering: the HIP stream, or no_id
    std::vector<RawHostOp> host;  // name: kind << 16 | operation
    std::vector<std::pair<std::uint64_t, std::string>> symbols;
    std::uint64_t damaged = 0, no_time = 0;
};

/// False where it has none.
template <class Op>
bool set_times(const Json& record, Op& op) {
    const auto start = number(record, {"start_timestamp"});
    const auto end = number(record, {"end_timestamp"});
    op.start_ns = static_cast<std::int64_t>(start.value_or(0) & ~(std::uint64_t{1} << 63));
    op.end_ns = static_cast<std::int64_t>(end.value_or(0) & ~(std::uint64_t{1} << 63));
    op.correlation = number(record, {"correlation_id", "internal"}).value_or(no_id);
    return start && end;
}

void add_dispatch(const Json& record, RocprofBatch& to) {
    RawDeviceOp raw;
    if (!set_times(record, raw.op)) {
        ++to.no_time;
        return;
    }
    raw.op.name = static_cast<std::uint32_t>(number(record, {"dispatch_info", "kernel_id"}).value_or(0));
    raw.device = number(record, {"dispatch_info", "agent_id", "handle"}).value_or(0);
    raw.stream = number(record, {"dispatch_info", "queue_id", "handle"}).value_or(0);
    raw.numbering = number(record, {"stream_id", "handle"}).value_or(no_id);
    to.ops.push_back(std::move(raw));
}

void add_copy(const Json& record, RocprofBatch& to) {
    static constexpr const char* names[] = {"Memcpy", "Memcpy HtoH", "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD"};
    RawDeviceOp raw;
    if (!set_times(record, raw.op)) {
        ++to.no_time;
        return;
    }
    raw.op.kind = DeviceOpKind::memcpy;
    const std::uint64_t operation = number(record, {"operation"}).value_or(0);
    raw.name = names[operation < std::size(names) ? operation : 0];
    raw.device = number(record, {operation == 3 ? "src_agent_id" : "dst_agent_id", "handle"}).value_or(0);
    raw.stream = number(record, {"stream_id", "handle"}).value_or(0);
    to.ops.push_back(std::move(raw));
}

void add_api(const Json& record, RocprofBatch& to) {
    RawHostOp raw;
    if (!set_times(record, raw.op)) {
        ++to.no_time;
        return;
    }
    raw.op.name = static_cast<std::uint32_t>(number(record, {"kind"}).value_or(0) << 16 |
                                             (number(record, {"operation"}).value_or(0) & 0xffff));
    raw.thread = number(record, {"thread_id"}).value_or(0);
    to.host.push_back(std::move(raw));
}

RocprofBatch read_batch(ListElements& batch) {
    RocprofBatch found;
    found.part = batch.part;
    for (const std::string_view element : batch.some.texts) {
        const Json record = Json::parse(element.begin(), element.end(), nullptr, false);
        if (record.is_discarded()) {
            ++found.damaged;
            continue;
        }
        switch (batch.list) {
        case List::dispatch:
            add_dispatch(record, found);
            break;
        case List::copy:
            add_copy(record, found);
            break;
        case List::api:
            add_api(record, found);
            break;
        case List::symbol: {
            std::string name = text(record, {"formatted_kernel_name"});
            found.symbols.emplace_back(number(record, {"kernel_id"}).value_or(0),
                                       name.empty() ? text(record, {"kernel_name"}) : std::move(name));
            break;
        }
        case List::none:
            break;
        }
    }
    batch.some = {};
    return found;
}

/// One process of the trace. Names and devices may stand behind what uses them, so that all is kept until the end.
class RocprofPart {
  public:
    explicit RocprofPart(TraceBuilder& to) : to_(to) {}

    void take(RocprofBatch& found) {
        std::move(found.ops.begin(), found.ops.end(), std::back_inserter(ops_));
        std::move(found.host.begin(), found.host.end(), std::back_inserter(host_));
        for (auto& [id, name] : found.symbols) {
            symbols_[id] = to_.intern(name.empty() ? "unnamed" : name);
        }
        to_.count(Anomaly::damaged, found.damaged);
        to_.count(Anomaly::no_time, found.no_time);
    }

    void value(const JsonPath& path, std::string_view content) {
        const Json value = Json::parse(content.begin(), content.end(), nullptr, false);
        const std::string& key = path.back();
        if (key == "metadata") {
            to_.facts.host = text(value, {"node", "hostname"});
            pid_ = number(value, {"pid"}).value_or(0);
        } else if (key == "agents" && value.is_array()) {
            for (const Json& agent : value) {
                if (number(agent, {"type"}) == 2U) { // a GPU
                    const auto index = static_cast<std::uint32_t>(agents_.size());
                    to_.facts.devices[index] = text(agent, {"product_name"});
                    agents_.emplace(number(agent, {"id", "handle"}).value_or(0), index);
                }
            }
        } else if (key == "buffer_records" && value.is_array()) { // of "strings": names of calls
            for (std::size_t kind = 0; kind < value.size(); ++kind) {
                const Json* names = at(value[kind], {"operations"});
                for (std::size_t i = 0; names != nullptr && names->is_array() && i < names->size(); ++i) {
                    if ((*names)[i].is_string()) {
                        calls_[static_cast<std::uint32_t>(kind << 16 | i)] = to_.intern((*names)[i].get<std::string>());
                    }
                }
            }
        }
    }

    void finish() {
        const std::uint32_t unnamed = to_.intern("unnamed");
        const bool queues = by_queues();
        for (RawDeviceOp& raw : ops_) {
            const bool kernel = raw.op.kind == DeviceOpKind::kernel;
            if (kernel) {
                const auto found = symbols_.find(raw.op.name);
                raw.op.name = found == symbols_.end() ? unnamed : found->second;
                raw.stream = queues ? raw.stream : raw.numbering;
            }
            raw.numbering = kernel && queues ? 0 : 1; // of HSA queues, or of HIP streams
            const auto agent = agents_.find(raw.device);
            raw.device = agent == agents_.end() ? raw.device : agent->second;
            raw.process = pid_;
        }
        for (RawHostOp& raw : host_) {
            const auto found = calls_.find(raw.op.name);
            raw.op.name = found == calls_.end() ? unnamed : found->second;
            raw.process = pid_;
        }
        to_.add(ops_, host_);
    }

  private:
    /// Whether streams of kernels are the queues they ran on: older tools tell no HIP stream, and a tool that does not look writes 0.
    [[nodiscard]] bool by_queues() const {
        bool all = true;
        bool any = false;
        for (const RawDeviceOp& raw : ops_) {
            if (raw.op.kind == DeviceOpKind::kernel) {
                all = all && raw.numbering != no_id;
                any = any || raw.numbering != 0;
            }
        }
        return !all || !any;
    }

    TraceBuilder& to_;
    std::vector<RawDeviceOp> ops_;
    std::vector<RawHostOp> host_;
    std::unordered_map<std::uint64_t, std::uint32_t> symbols_, agents_;
    std::unordered_map<std::uint32_t, std::uint32_t> calls_;
    std::uint64_t pid_ = 0;
};

} // namespace

Status read_rocprofv3(Input& input, TraceBuilder& to) {
    to.facts.tool = "rocprofv3";
    std::map<std::size_t, RocprofPart> parts; // by element of "rocprofiler-sdk-tool", from 1
    const auto part = [&parts, &to](std::size_t number) -> RocprofPart& {
        return parts.try_emplace(number, to).first->second;
    };
    InOrder<ListElements, RocprofBatch> workers(
        read_batch, [&part](RocprofBatch& found) { part(found.part).take(found); }, base::usable_cpus());
    struct Value {
        std::size_t part;
        JsonPath path;
        std::string content;
    };
    std::vector<Value> values; // parts are busy on other threads
    std::size_t at = 0;
    JsonVisitor visitor;
    visitor.choose = [&at](const JsonPath& path, char opens) {
        if (path.empty()) {
            return Take::inside;
        }
        if (list_of(path) != List::none) {
            return opens == '[' ? Take::elements : Take::skip;
        }
        at += path.size() == 1 && opens == '{' ? 1 : 0;
        const std::string& key = path.back();
        if (key == "metadata" || key == "agents" ||
            (path.size() == 3 && path[1] == "strings" && key == "buffer_records")) {
            return Take::text;
        }
        return path.size() == 1 || key == "buffer_records" || key == "strings" ? Take::inside : Take::skip;
    };
    visitor.value = [&values, &at](const JsonPath& path, std::string_view content) {
        values.push_back({at, path, std::string(content)});
    };
    visitor.elements = [&workers, &at](const JsonPath& path, JsonElements&& some) {
        workers.give({at, list_of(path), std::move(some)});
        return true;
    };
    const Result<JsonDamage> damage = walk_json(input, visitor);
    workers.finish();
    if (!damage) {
        return damage.error();
    }
    for (const Value& value : values) {
        part(value.part).value(value.path, value.content);
    }
    for (auto& [number, process] : parts) {
        process.finish();
    }
    to.count(Anomaly::damaged, damage->elements);
    to.facts.cut = damage->cut;
    return {};
}

} // namespace plumb::imported
