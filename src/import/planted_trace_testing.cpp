// SPDX-License-Identifier: Apache-2.0
#include "import/planted_trace_testing.hpp"

#include <cstdio>
#include <map>
#include <ostream>
#include <set>
#include <span>
#include <sqlite3.h>
#include <sstream>
#include <stdexcept>

#include "base/json_writer.hpp"

namespace plumb::imported {
namespace {

struct PlannedKernel {
    const char* name;
    const char* brick;
};

const PlannedKernel dense_unit[] = {{"void rms_norm_kernel<float>(float*)", "rms_norm"},
                                    {"nvjet_qkv", "qkv_projection"},
                                    {"rotary_kernel", "rope_embedding"},
                                    {"flash_fwd_kernel<64>", "attention"},
                                    {"nvjet_out", "output_projection"},
                                    {"void rms_norm_kernel<float>(float*)", "rms_norm"},
                                    {"nvjet_gate_up", "gate_up_projection"},
                                    {"silu_and_mul_kernel", "activation"},
                                    {"nvjet_down", "down_projection"}};
const PlannedKernel moe_unit[] = {{"void rms_norm_kernel<float>(float*)", "rms_norm"},
                                  {"nvjet_qkv", "qkv_projection"},
                                  {"rotary_kernel", "rope_embedding"},
                                  {"flash_fwd_kernel<64>", "attention"},
                                  {"nvjet_out", "output_projection"},
                                  {"void rms_norm_kernel<float>(float*)", "rms_norm"},
                                  {"grouped_topk_kernel", "moe_router"},
                                  {"fused_moe_kernel", "moe_experts"},
                                  {"moe_sum_kernel", "moe_combine"}};

/// Lays operations down one behind the other, each of another length.
class Layer {
  public:
    Layer(PlannedTrace& to, const PlannedRun& run, std::uint64_t process, std::uint64_t device)
        : to_(to), run_(run), process_(process), device_(device) {}

    std::int64_t host = 1000, clock = 5000;
    std::uint64_t correlation = 1;

    void step(int number) {
        number_ = number;
        const std::int64_t begin = host;
        if (run_.graph) {
            launch("cudaGraphLaunch", 9000);
        }
        op({"vectorized_gather_kernel", "embedding"}, -1);
        for (int layer = 0; layer < run_.layers + run_.moe_layers; ++layer) {
            put(layer < run_.layers ? dense_unit : moe_unit, layer);
            if (run_.side_stream) {
                copy(layer);
            }
        }
        op({"nvjet_lm_head", "lm_head"}, -1);
        op({"argmax_kernel", "sampling"}, -1);
        host += ns(2000);
        if (run_.annotated) {
            to_.ranges.push_back({run_.prefill ? "step[EXTEND bs=2 toks=64]" : "step[DECODE bs=8]", begin - ns(500),
                                  host, 100, process_});
        }
        const std::int64_t before = clock;
        host = (run_.ahead ? host : std::max(host, clock)) + ns(3000);
        clock = host + ns(12000);
        clock = run_.ahead ? std::max(clock, before + ns(5000)) : clock;
    }

  private:
    void put(const std::span<const PlannedKernel> unit, int layer) {
        constexpr std::size_t behind_attention = 5; // projection of the output
        const std::size_t parts[][2] = {{0, behind_attention}, {behind_attention, unit.size()}};
        for (const auto& [begin, end] : parts) {
            for (int batch = 0; batch < (run_.two_batches ? 2 : 1); ++batch) {
                for (std::size_t i = begin; i < end; ++i) {
                    op(unit[i], layer);
                }
            }
        }
    }

    [[nodiscard]] std::int64_t ns(std::int64_t about) const {
        return std::max(about / run_.unit_ns, std::int64_t{1}) * run_.unit_ns;
    }

    void launch(const char* name, std::int64_t lasting) {
        to_.calls.push_back({name, host, host + ns(lasting), 100, process_, ++correlation});
        host += ns(lasting);
    }

    void op(const PlannedKernel& kernel, int layer) {
        if (!run_.graph) {
            launch("cudaLaunchKernel", 4000);
            clock = std::max(clock, host + ns(1500));
        }
        const std::int64_t lasting = ns(2000 + 137 * static_cast<std::int64_t>(++count_ % 29));
        to_.ops.push_back({kernel.name, DeviceOpKind::kernel, clock, clock + lasting, device_, 7, process_, correlation,
                           0, number_, layer, kernel.brick});
        clock += lasting + (run_.overlaps ? -ns(300) : ns(448));
    }

    void copy(int layer) {
        if (!run_.graph) {
            launch("cudaMemcpyAsync", 4000);
        }
        const std::int64_t begin = clock - ns(900);
        to_.ops.push_back({"Memcpy HtoD (Pageable -> Device)", DeviceOpKind::memcpy, begin, begin + ns(700), device_,
                           13, process_, correlation, 4096, number_, layer, "copy_h2d"});
    }

    PlannedTrace& to_;
    const PlannedRun& run_;
    std::uint64_t process_, device_;
    int number_ = 0;
    std::uint64_t count_ = 0;
};

/// Microseconds with the nanoseconds as decimals.
std::string microseconds(std::int64_t ns, bool whole) {
    char text[48];
    if (whole) {
        std::snprintf(text, sizeof text, "%lld", static_cast<long long>(ns / 1000));
    } else {
        std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                      static_cast<long long>(ns % 1000));
    }
    return text;
}

class KinetoWriter {
  public:
    KinetoWriter(std::ostream& to, const PlannedTrace& trace, const KinetoForm& form)
        : to_(to), trace_(trace), form_(form) {}

    void write() {
        if (!form_.bare_array) {
            text_ += form_.wrapped ? "{\"source\": \"elsewhere\", \"trace\": " : "";
            text_ += "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": ";
            base::append_json_string(text_, form_.odd ? "" : trace_.device_name);
            text_ += "}], \"distributedInfo\": {\"rank\": " + (form_.odd ? "\"\"" : trace_.rank) +
                     ", \"world_size\": 8}, \"traceEvents\": ";
        }
        text_ += "[";
        if (form_.odd) {
            text_ += R"({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0.5, "args": {"name": "python"}},
                        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 2, "pid": 4711, "tid": 100, "ts": 1.000},
                        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 2, "pid": 0, "tid": 7, "ts": 5.000, "bp": "e"},
                        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace", "ts": 0.1},
                        {},)";
        }
        for (const PlannedRange& range : trace_.ranges) {
            event("user_annotation", range.name, range.start, range.end, std::to_string(range.process),
                  std::to_string(range.thread), "");
        }
        for (const PlannedCall& call : trace_.calls) {
            event("cuda_runtime", call.name, call.start, call.end, std::to_string(call.process),
                  std::to_string(call.thread), "\"cbid\": 311, " + number("correlation", call.correlation));
            beside(call);
        }
        for (const PlannedOp& op : trace_.ops) {
            const char* category = op.kind == DeviceOpKind::kernel   ? "kernel"
                                   : op.kind == DeviceOpKind::memcpy ? "gpu_memcpy"
                                                                     : "gpu_memset";
            std::string args = number("device", op.device) + ", " + number("stream", op.stream) + ", " +
                               number("correlation", op.correlation) + ", \"grid\": [2, 3, 4]";
            if (op.bytes != 0) {
                args += ", " + number("bytes", op.bytes);
            }
            event(category, op.name, op.start, op.end, std::to_string(op.device), std::to_string(op.stream), args);
        }
        text_ +=
            form_.odd ? R"(, {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 9e9}, {}])" : "]";
        if (!form_.bare_array) {
            text_ += form_.absolute ? "" : ", \"baseTimeNanoseconds\": " + std::to_string(trace_.base_ns);
            text_ += form_.wrapped ? "}}" : "}";
        }
        to_ << text_;
    }

  private:
    [[nodiscard]] std::string quoted(const std::string& number) const {
        return form_.text_numbers ? '"' + number + '"' : number;
    }
    [[nodiscard]] std::string number(const char* key, std::uint64_t value) const {
        return '"' + std::string(key) + "\": " + quoted(std::to_string(value));
    }

    void beside(const PlannedCall& call) {
        static const std::string frames[] = {
            "engine.py(12): forward", "torch/_ops.py(1116): __call__", "torch/nn/modules/module.py(1776): _call_impl",
            "<built-in method copy_ of Tensor object at 0x7f1951a44710>",
            "engine/python/engine/runtime/srt/layers/quantization/unquant.py(128): apply"};
        const std::string process = std::to_string(call.process);
        const std::string thread = std::to_string(call.thread);
        for (int i = 0; i < form_.python_functions; ++i) {
            const std::string parent = std::to_string(python_++);
            event("python_function", frames[python_ % std::size(frames)], call.start, call.end, process, thread,
                  "\"Python parent id\": " + parent + ", \"Python id\": " + std::to_string(python_) +
                      ", \"Ev Idx\": " + std::to_string(python_ + 55943));
        }
        for (int i = 0; i < form_.operators; ++i) {
            event(
                "cpu_op", i % 2 == 0 ? "aten::empty" : "aten::linear", call.start, call.end, process, thread,
                "\"External id\": " + std::to_string(call.correlation) +
                    ", \"Record function id\": 0, \"Concrete Inputs\": [\"[0]\", \"4\", \"\", \"\", \"False\", \"\"], "
                    "\"Input type\": [\"ScalarList\", \"Scalar\", \"\", \"\", \"Scalar\", \"\"], \"Input Strides\": "
                    "[[], [], [], [], [], []], \"Input Dims\": [[], [], [], [], [], []]");
        }
        for (const char* end : {"s", "f"}) {
            if (form_.arrows) {
                text_ += std::string(",\n  {\n    \"ph\": \"") + end +
                         "\", \"id\": " + std::to_string(call.correlation) + ", \"pid\": " + process +
                         ", \"tid\": " + thread + ", \"ts\": " + microseconds(call.start, form_.whole_us) +
                         ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  }";
            }
        }
    }

    void event(const char* category, const std::string& name, std::int64_t start, std::int64_t end,
               const std::string& process, const std::string& thread, const std::string& args) {
        const std::string line = form_.pretty ? "\n    " : "";
        text_ += first_ ? "" : ",";
        text_ += form_.pretty ? "\n  {" : "{";
        const std::map<std::string, std::string> of_2021 = {
            {"kernel", "Kernel"}, {"gpu_memcpy", "Memcpy"}, {"gpu_memset", "Memset"}, {"cuda_runtime", "Runtime"}};
        const auto capital = form_.old ? of_2021.find(category) : of_2021.end();
        text_ += line + "\"ph\": \"X\", \"cat\": \"" + (capital != of_2021.end() ? capital->second : category) +
                 "\", \"name\": ";
        base::append_json_string(text_, name);
        const std::int64_t offset = form_.absolute ? trace_.base_ns : 0;
        text_ += ", \"pid\": " + process + ", \"tid\": " + thread + "," + line +
                 "\"ts\": " + quoted(microseconds(start + offset, form_.whole_us)) +
                 ", \"dur\": " + quoted(microseconds(end - start, form_.whole_us)) + "," + line + "\"args\": {" + args +
                 "}";
        text_ += form_.pretty ? "\n  }" : "}";
        text_ += form_.between;
        first_ = false;
        if (text_.size() >= piece) {
            to_ << text_;
            text_.clear();
        }
    }

    static constexpr std::size_t piece = 1 << 20;

    std::ostream& to_;
    const PlannedTrace& trace_;
    const KinetoForm& form_;
    std::string text_;
    std::uint64_t python_ = 1; // functions so far
    bool first_ = true;
};

/// A new database; the test ends where it cannot be written.
class Database {
  public:
    explicit Database(const std::string& path) {
        if (::sqlite3_open(path.c_str(), &database_) != SQLITE_OK) {
            throw std::runtime_error("cannot make " + path);
        }
        run("BEGIN");
    }
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    ~Database() {
        ::sqlite3_exec(database_, "COMMIT", nullptr, nullptr, nullptr);
        ::sqlite3_close(database_);
    }
    void run(const std::string& query) {
        char* error = nullptr;
        if (::sqlite3_exec(database_, query.c_str(), nullptr, nullptr, &error) != SQLITE_OK) {
            throw std::runtime_error(query + ": " + (error != nullptr ? error : "?"));
        }
    }
    /// One row, numbers as they are, texts in quotes of SQL.
    void insert(const std::string& table, const std::vector<std::string>& values) {
        std::string query = "INSERT INTO " + table + " VALUES (";
        for (const std::string& value : values) {
            query += (&value == values.data() ? "" : ", ") + value;
        }
        run(query + ")");
    }

  private:
    sqlite3* database_ = nullptr;
};

template <class Number>
std::string text(Number value) {
    return std::to_string(value);
}

std::string in_quotes(const std::string& value) {
    std::string made = "'";
    for (const char c : value) {
        made += c == '\'' ? "''" : std::string(1, c);
    }
    return made + "'";
}

/// Numbers for texts, as both databases have them.
class Texts {
  public:
    Texts(Database& to, std::string table) : to_(to), table_(std::move(table)) {}
    std::string of(const std::string& value) {
        const auto [found, is_new] = ids_.try_emplace(value, static_cast<int>(ids_.size()) + 1);
        if (is_new) {
            to_.insert(table_, {text(found->second), in_quotes(value)});
        }
        return text(found->second);
    }

  private:
    Database& to_;
    std::string table_;
    std::map<std::string, int> ids_;
};

} // namespace

PlannedTrace plan(const PlannedRun& run) {
    PlannedTrace made;
    made.steps = run.steps;
    for (int process = 0; process < run.processes; ++process) {
        Layer layer(made, run, 4711 + static_cast<std::uint64_t>(process), static_cast<std::uint64_t>(process));
        layer.host = layer.host / run.unit_ns * run.unit_ns + run.unit_ns;
        layer.clock = layer.clock / run.unit_ns * run.unit_ns + 20 * run.unit_ns;
        for (int step = 0; step < run.steps; ++step) {
            layer.step(step);
        }
    }
    return made;
}

PlannedTrace window_of(PlannedTrace trace, std::int64_t from, std::int64_t to) {
    const auto outside = [from, to](const auto& element) {
        return element.start < from || element.end > to;
    };
    std::set<std::pair<std::uint64_t, std::uint64_t>> lost; // calls, by process and correlation
    for (const PlannedCall& call : trace.calls) {
        if (outside(call)) {
            lost.emplace(call.process, call.correlation);
        }
    }
    std::map<int, int> numbers; // of whole steps
    std::set<int> cut;
    for (const PlannedOp& op : trace.ops) {
        numbers.emplace(op.step, 0);
        if (outside(op) || lost.contains({op.process, op.correlation})) {
            cut.insert(op.step);
        }
    }
    trace.steps = 0;
    for (auto& [step, number] : numbers) {
        number = cut.contains(step) ? -1 : trace.steps++;
    }
    std::erase_if(trace.ops, outside);
    std::erase_if(trace.calls, outside);
    std::erase_if(trace.ranges, outside);
    for (PlannedOp& op : trace.ops) {
        op.step = numbers[op.step];
        op.layer = op.step < 0 ? -1 : op.layer;
    }
    return trace;
}

KinetoForm kineto_of_prefill() {
    KinetoForm form;
    form.python_functions = 100;
    form.operators = 7;
    form.arrows = true;
    return form;
}

void write_kineto(std::ostream& to, const PlannedTrace& trace, const KinetoForm& form) {
    KinetoWriter(to, trace, form).write();
}

std::string as_kineto(const PlannedTrace& trace, const KinetoForm& form) {
    std::ostringstream to;
    write_kineto(to, trace, form);
    return to.str();
}

std::string as_rocprofv3(const PlannedTrace& trace) {
    std::map<std::string, std::size_t> kernels;
    std::string dispatches;
    std::string copies;
    for (const PlannedOp& op : trace.ops) {
        const std::string when = "\"correlation_id\": {\"internal\": " + text(op.correlation) +
                                 "}, \"start_timestamp\": " + text(op.start) + ", \"end_timestamp\": " + text(op.end);
        if (op.kind == DeviceOpKind::kernel) {
            const std::size_t id = kernels.try_emplace(op.name, kernels.size() + 1).first->second;
            dispatches +=
                (dispatches.empty() ? "{" : ", {") + when +
                ", \"dispatch_info\": {\"agent_id\": {\"handle\": " + text(900 + op.device) +
                "}, \"queue_id\": {\"handle\": " + text(op.stream + 6) + "}, \"kernel_id\": " + text(id) +
                ", \"grid_size\": {\"x\": 2, \"y\": 3, \"z\": 4}}, \"stream_id\": {\"handle\": " + text(op.stream) +
                "}}";
        } else {
            copies += (copies.empty() ? "{" : ", {") + when + ", \"operation\": 2, \"bytes\": " + text(op.bytes) +
                      ", \"dst_agent_id\": {\"handle\": " + text(900 + op.device) +
                      "}, \"stream_id\": {\"handle\": " + text(op.stream) + "}}";
        }
    }
    std::string symbols;
    for (const auto& [name, id] : kernels) {
        symbols += (symbols.empty() ? "{" : ", {") + std::string("\"kernel_id\": ") + text(id) +
                   ", \"formatted_kernel_name\": ";
        base::append_json_string(symbols, name);
        symbols += "}";
    }
    std::string calls;
    for (const PlannedCall& call : trace.calls) {
        calls += (calls.empty() ? "{" : ", {") + std::string("\"kind\": 0, \"operation\": ") +
                 (call.name == "cudaGraphLaunch"       ? "1"
                  : call.name.ends_with("Synchronize") ? "2"
                                                       : "0") +
                 ", \"thread_id\": " + text(call.thread) +
                 ", \"correlation_id\": {\"internal\": " + text(call.correlation) +
                 "}, \"start_timestamp\": " + text(call.start) + ", \"end_timestamp\": " + text(call.end) + "}";
    }
    return "{\"rocprofiler-sdk-tool\": [{\"metadata\": {\"pid\": 4711, \"node\": {\"hostname\": \"planned\"}}, \"agents\": [{\"id\": "
           "{\"handle\": 900}, \"type\": 2, \"product_name\": \"" +
           trace.device_name +
           "\"}], \"strings\": {\"buffer_records\": [{\"kind\": \"HIP_RUNTIME_API\", \"operations\": [\"hipLaunchKernel\", "
           "\"hipGraphLaunch\", \"hipStreamSynchronize\"]}]}, \"kernel_symbols\": [" +
           symbols + "], \"buffer_records\": {\"kernel_dispatch\": [" + dispatches + "], \"hip_api\": [" + calls +
           "], \"memory_copy\": [" + copies + "]}}]}";
}

void save_nsys(const PlannedTrace& trace, const std::string& path) {
    Database to(path);
    to.run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)");
    to.run("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)");
    to.run("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)");
    to.run("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT)");
    to.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId "
        "INTEGER, globalPid INTEGER, demangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, graphNodeId INTEGER)");
    to.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId "
        "INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER)");
    to.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId "
        "INTEGER)");
    to.run(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId "
        "INTEGER, globalPid INTEGER, graphId INTEGER)");
    to.run("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER)");
    Texts texts(to, "StringIds");
    to.insert("META_DATA_EXPORT", {"'EXPORT_PRODUCT_VERSION'", "'2026.2'"});
    to.insert("TARGET_INFO_SESSION_START_TIME", {text(trace.base_ns)});
    to.insert("TARGET_INFO_GPU", {"0", in_quotes(trace.device_name)});
    for (const PlannedOp& op : trace.ops) {
        const std::string process = text(op.process << 24);
        if (op.kind == DeviceOpKind::kernel) {
            to.insert("CUPTI_ACTIVITY_KIND_KERNEL",
                      {text(op.start), text(op.end), text(op.device), text(op.stream), text(op.correlation), process,
                       texts.of(op.name), "2", "3", "4", "NULL"});
        } else if (op.kind == DeviceOpKind::graph) {
            to.insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {text(op.start), text(op.end), text(op.device),
                                                          text(op.stream), text(op.correlation), process, "5"});
        } else {
            to.insert("CUPTI_ACTIVITY_KIND_MEMCPY", {text(op.start), text(op.end), text(op.device), text(op.stream),
                                                     text(op.correlation), process, text(op.bytes), "1"});
        }
    }
    for (const PlannedCall& call : trace.calls) {
        to.insert("CUPTI_ACTIVITY_KIND_RUNTIME",
                  {text(call.start), text(call.end), text(call.process << 24 | call.thread), text(call.correlation),
                   texts.of(call.name)});
    }
    for (const PlannedRange& range : trace.ranges) {
        to.insert("NVTX_EVENTS", {text(range.start), text(range.end), "NULL", texts.of(range.name),
                                  text(range.process << 24 | range.thread)});
    }
}

void change_database(const std::string& path, const std::vector<std::string>& queries) {
    Database to(path);
    for (const std::string& query : queries) {
        to.run(query);
    }
}

void save_rpd(const PlannedTrace& trace, const std::string& path) {
    Database to(path);
    to.run("CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT)");
    to.run("CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag TEXT, value TEXT)");
    to.run(
        "CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName_id INTEGER, "
        "args_id INTEGER)");
    to.run("CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, start INTEGER, end INTEGER, "
           "description_id INTEGER, opType_id INTEGER)");
    to.run("CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER)");
    Texts texts(to, "rocpd_string");
    to.insert("rocpd_metadata", {"1", "'schema_version'", "'2'"});
    std::size_t row = 0;
    // A call has one number in the whole file.
    const auto number = [](std::uint64_t process, std::uint64_t correlation) {
        return text(process * 100'000 + correlation);
    };
    for (const PlannedCall& call : trace.calls) {
        const std::string name = "hip" + call.name.substr(call.name.starts_with("cuda") ? 4 : 2);
        to.insert("rocpd_api", {number(call.process, call.correlation), text(call.process), text(call.thread),
                                text(call.start), text(call.end), texts.of(name), texts.of("")});
    }
    for (const PlannedRange& range : trace.ranges) {
        to.insert("rocpd_api", {text(++row), text(range.process), text(range.thread), text(range.start),
                                text(range.end), texts.of("UserMarker"), texts.of(range.name)});
    }
    row = 0;
    for (const PlannedOp& op : trace.ops) {
        const bool kernel = op.kind == DeviceOpKind::kernel;
        to.insert("rocpd_op",
                  {text(++row), text(op.device), text(op.stream), text(op.start), text(op.end),
                   texts.of(kernel ? op.name : ""), texts.of(kernel ? "KernelExecution" : "CopyHostToDevice")});
        to.insert("rocpd_api_ops", {text(row), number(op.process, op.correlation), text(row)});
    }
}

} // namespace plumb::imported
