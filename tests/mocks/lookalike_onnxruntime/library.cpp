// SPDX-License-Identifier: Apache-2.0
// A library with the table of onnxruntime, which computes a number and takes some time for each node. What its profiles say is known: node k
// of a run lasts 5 + k microseconds, and one microsecond lies between two. LOOKALIKE_ORT_MINOR is the release that it is like.
//
// LOOKALIKE_ORT_PROFILE: cut, empty, none, refused (profiles that go wrong), device, parallel, loop (what nodes are like).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "lookalike_onnxruntime/places.hpp"

struct OrtStatus {
    std::string message;
};
struct OrtEnv {};
struct OrtSessionOptions {
    bool profiles = false;
};
struct OrtSession {
    std::uint64_t profiling_since = 0;
};
struct OrtRunOptions {
    int verbosity = 0, severity = -1;
    std::string tag;
    std::map<std::string, std::string> entries;
    std::atomic<bool> terminates{false};
    bool profiles = false;
    std::string prefix;
    int changes = 0;
    mutable std::atomic<int> running{0};
};
struct OrtValue {
    std::vector<std::int64_t> sizes;
    double data = 0;
};
struct OrtTensorTypeAndShapeInfo {
    std::vector<std::int64_t> sizes;
};

namespace {

constexpr int layers = 3;
constexpr int first_duration = 5;

using Clock = std::chrono::steady_clock;

bool mode_is(const char* word) {
    const char* mode = std::getenv("LOOKALIKE_ORT_PROFILE");
    return mode != nullptr && std::strcmp(mode, word) == 0;
}

struct Node {
    std::string name, operation, sizes;
};

std::vector<Node> nodes_of_a_run() {
    std::vector<Node> nodes;
    const std::string row =
        R"("activation_size" : "256","parameter_size" : "0","output_size" : "256","input_type_shape" : [{"float":[1,1,64]}],)"
        R"("output_type_shape" : [{"float":[1,1,64]}])";
    nodes.push_back({"/model/embed_tokens/Gather", "Gather", row});
    for (int layer = 0; layer < layers; ++layer) {
        const std::string at = "/model/layers." + std::to_string(layer);
        nodes.push_back({at + "/input_layernorm/LayerNorm", "SimplifiedLayerNormalization", row});
        nodes.push_back({at + "/attn/qkv_proj/MatMul", "MatMul", row});
        nodes.push_back({at + "/attn/GroupQueryAttention", "GroupQueryAttention", row});
        nodes.push_back({at + "/attn/o_proj/MatMul", "MatMul", row});
        nodes.push_back({at + "/Add", "Add", row});
        nodes.push_back({at + "/mlp/\"quoted\"/Cast", "Cast", row});
    }
    nodes.push_back({"/lm_head/MatMul", "MatMul", row});
    return nodes;
}

std::string event(const char* category, const std::string& name, long thread, long begin, long duration,
                  const std::string& more) {
    std::ostringstream line;
    line << "{\"cat\" : \"" << category << "\",\"pid\" :" << getpid() << ",\"tid\" :" << thread
         << ",\"dur\" :" << duration << ",\"ts\" :" << begin << ",\"ph\" : \"X\",\"name\" :\"" << name
         << "\",\"args\" : {" << more << "}}";
    return line.str();
}

void write_profile(const std::string& prefix) {
    if (mode_is("none")) {
        return;
    }
    std::vector<std::string> lines;
    long at = 2;
    int number = 0;
    for (const Node& node : nodes_of_a_run()) {
        const bool last = number + 2 == layers * 6 + 2;
        const char* provider = mode_is("device") && last ? "CUDAExecutionProvider" : "CPUExecutionProvider";
        const long thread = mode_is("parallel") && last ? 99 : gettid();
        lines.push_back(event("Node", node.name + "_kernel_time", thread, at, first_duration + number,
                              std::string("\"provider\" : \"") + provider + "\",\"op_name\" : \"" + node.operation +
                                  "\"," + node.sizes));
        if (mode_is("loop") && node.operation == "Gather") { // a loop around nodes that lie in it
            lines.push_back(event("Node", "body/Neg_kernel_time", thread, at + 1, 1,
                                  "\"provider\" : \"CPUExecutionProvider\",\"op_name\" : \"Neg\""));
            lines.push_back(event("Node", "body/Exp_kernel_time", thread, at + 2, 4,
                                  "\"provider\" : \"CPUExecutionProvider\",\"op_name\" : \"Exp\""));
        }
        at += first_duration + number + 1;
        ++number;
    }
    lines.push_back(event("Session", "SequentialExecutor::Execute", gettid(), 1, at, ""));
    lines.push_back(event("Session", "model_run", gettid(), 0, at + 2, ""));
    std::string text = "[\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text += lines[i] + (i + 1 < lines.size() ? ",\n" : "\n]\n");
    }
    std::ofstream out(prefix + "_2026-01-02_03-04-05_678.json", std::ios::binary);
    out << (mode_is("empty") ? "" : mode_is("cut") ? text.substr(0, text.size() / 2) : text);
}

/// As long as its nodes take, by what profiles say.
void take_time() {
    long all = 4;
    for (int i = 0; i < layers * 6 + 2; ++i) {
        all += first_duration + i + 1;
    }
    const auto end = Clock::now() + std::chrono::microseconds(all);
    while (Clock::now() < end) {
    }
}

Refusal refuse(const char* message) { return new OrtStatus{message}; }

/// None at all are those by default.
double folded(const OrtRunOptions* given) {
    static const OrtRunOptions by_default;
    const OrtRunOptions& options = given != nullptr ? *given : by_default;
    double sum = options.verbosity + 10 * options.severity + 100.0 * static_cast<double>(options.tag.size());
    for (const auto& [key, value] : options.entries) {
        sum += static_cast<double>(key.size() * 1000 + value.size());
    }
    return sum;
}

Refusal run_once(const OrtRunOptions* options, double& result) {
    const std::string prefix = options != nullptr && options->profiles ? options->prefix : "";
    if (options != nullptr) {
        options->running.fetch_add(1);
    }
    take_time();
    const bool ended = options != nullptr && options->terminates.load();
    result += folded(options);
    if (options != nullptr) {
        options->running.fetch_sub(1);
    }
    if (!prefix.empty()) {
        write_profile(prefix);
    }
    return ended ? refuse("Exiting due to terminate flag being set to true.") : nullptr;
}

/// What must not be while another thread runs with these options.
void change(OrtRunOptions* options) {
    ++options->changes;
    if (options->running.load() != 0) {
        std::fprintf(stderr, "options are changed while a run reads them\n");
        std::abort();
    }
}

const char* GetErrorMessage(const OrtStatus* status) { return status->message.c_str(); }
Refusal CreateEnv(int, const char*, OrtEnv** made) {
    *made = new OrtEnv;
    return nullptr;
}
Refusal CreateSession(const OrtEnv*, const char* path, const OrtSessionOptions* options, OrtSession** made) {
    if (std::strcmp(path, "broken") == 0) {
        return refuse("Load model from broken failed");
    }
    *made = new OrtSession{options != nullptr && options->profiles ? std::uint64_t{1} << 60 : 0};
    return nullptr;
}
Refusal CreateSessionOptions(OrtSessionOptions** made) {
    *made = new OrtSessionOptions;
    return nullptr;
}
Refusal EnableProfiling(OrtSessionOptions* options, const char*) {
    options->profiles = true;
    return nullptr;
}
Refusal Run(OrtSession* session, const OrtRunOptions* options, OrtNames names, OrtInputs inputs, std::size_t count,
            OrtNames, std::size_t outputs_count, OrtValue** outputs) {
    if (session->profiling_since != 0 && options != nullptr && options->profiles) {
        std::fprintf(stderr, "a run of a session that is profiled is profiled\n");
        std::abort();
    }
    for (std::size_t i = 0; i < count; ++i) { // as the real one says it
        if (names[i] == nullptr || *names[i] == '\0') {
            return refuse("input name cannot be empty");
        }
        if (inputs[i] == nullptr) {
            return refuse("NULL input supplied for input");
        }
    }
    double result = 0;
    if (Refusal refusal = run_once(options, result); refusal != nullptr) {
        return refusal;
    }
    bool has_input = false;
    for (std::size_t i = 0; i < count; ++i) {
        has_input = has_input || std::strcmp(names[i], "input_ids") == 0 || std::strcmp(names[i], "pixels") == 0;
        result += inputs[i]->data;
    }
    if (!has_input) {
        return refuse("Missing Input: input_ids");
    }
    for (std::size_t i = 0; i < outputs_count; ++i) {
        if (outputs[i] == nullptr) {
            outputs[i] = new OrtValue{{1, 1}, 0};
        }
        outputs[i]->data = result;
    }
    return nullptr;
}
Refusal RunWithBinding(OrtSession*, const OrtRunOptions* options, const OrtIoBinding*) {
    double result = 0;
    return run_once(options, result);
}
Refusal RunAsync(OrtSession* session, const OrtRunOptions* options, OrtNames names, OrtInputs inputs, std::size_t count,
                 OrtNames output_names, std::size_t output_count, OrtValue** outputs, OrtDone done, void* user) {
    std::thread([=] {
        done(user, outputs, output_count,
             Run(session, options, names, inputs, count, output_names, output_count, outputs));
    }).detach();
    return nullptr;
}
Refusal CreateRunOptions(OrtRunOptions** made) {
    *made = new OrtRunOptions;
    return nullptr;
}
Refusal RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options, int value) {
    change(options);
    options->verbosity = value;
    return nullptr;
}
Refusal RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int value) {
    change(options);
    options->severity = value;
    return nullptr;
}
Refusal RunOptionsSetRunTag(OrtRunOptions* options, const char* value) {
    change(options);
    options->tag = value;
    return nullptr;
}
Refusal RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options, int* value) {
    *value = options->verbosity;
    return nullptr;
}
Refusal RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options, int* value) {
    *value = options->severity;
    return nullptr;
}
Refusal RunOptionsGetRunTag(const OrtRunOptions* options, const char** value) {
    *value = options->tag.c_str();
    return nullptr;
}
Refusal RunOptionsSetTerminate(OrtRunOptions* options) {
    options->terminates.store(true);
    return nullptr;
}
Refusal RunOptionsUnsetTerminate(OrtRunOptions* options) {
    options->terminates.store(false);
    return nullptr;
}
Refusal CreateTensorAsOrtValue(void*, const std::int64_t* sizes, std::size_t rank, int, OrtValue** made) {
    *made = new OrtValue{{sizes, sizes + rank}, 0};
    return nullptr;
}
Refusal GetTensorMutableData(OrtValue* value, void** data) {
    *data = &value->data;
    return nullptr;
}
Refusal GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, std::size_t* count) {
    *count = info->sizes.size();
    return nullptr;
}
Refusal GetDimensions(const OrtTensorTypeAndShapeInfo* info, std::int64_t* sizes, std::size_t count) {
    std::copy_n(info->sizes.begin(), count, sizes);
    return nullptr;
}
Refusal GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** made) {
    *made = new OrtTensorTypeAndShapeInfo{value->sizes};
    return nullptr;
}
void ReleaseStatus(OrtStatus* status) { delete status; }
void ReleaseSession(OrtSession* session) { delete session; }
void ReleaseValue(OrtValue* value) { delete value; }
void ReleaseRunOptions(OrtRunOptions* options) { delete options; }
void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* info) { delete info; }
Refusal SessionGetProfilingStartTimeNs(const OrtSession* session, std::uint64_t* since) {
    *since = session->profiling_since;
    return nullptr;
}
Refusal AddRunConfigEntry(OrtRunOptions* options, const char* key, const char* value) {
    change(options);
    options->entries[key] = value;
    return nullptr;
}
Refusal RunOptionsAddActiveLoraAdapter(OrtRunOptions* options, const void*) {
    change(options);
    options->verbosity += 7;
    return nullptr;
}
void RunOptionsSetSyncStream(OrtRunOptions* options, void*) { change(options); }
Refusal RunOptionsEnableProfiling(OrtRunOptions* options, const char* prefix) {
    if (mode_is("refused")) {
        return refuse("no profiles today");
    }
    change(options);
    options->profiles = true;
    options->prefix = prefix;
    return nullptr;
}
Refusal RunOptionsDisableProfiling(OrtRunOptions* options) {
    change(options);
    options->profiles = false;
    return nullptr;
}

[[noreturn]] void no_such_entry() {
    std::fprintf(stderr, "an entry of the table was called that this release does not have\n");
    std::abort();
}

constexpr std::size_t entries = LOOKALIKE_ORT_MINOR >= 25 ? 417 : 414;

// As the real one has it: in the library's own data.
void* table[entries];

void* const* get_api(std::uint32_t version) {
    static const bool filled = [] {
        std::fill_n(table, entries, reinterpret_cast<void*>(&no_such_entry));
#define LOOKALIKE_ORT_PUT(name, place, result, parameters) \
    if (std::size_t{place} < entries) {                    \
        table[place] = reinterpret_cast<void*>(&name);     \
    }
        LOOKALIKE_ORT(LOOKALIKE_ORT_PUT)
#undef LOOKALIKE_ORT_PUT
        return true;
    }();
    return filled && version >= 1 && version <= LOOKALIKE_ORT_MINOR ? table : nullptr;
}

const char* version() { return LOOKALIKE_ORT_VERSION; }

constexpr LookalikeBase base{get_api, version};

} // namespace

extern "C" const LookalikeBase* OrtGetApiBase() { return &base; }
extern "C" int lookalike_ort_changes(const OrtRunOptions* options) { return options->changes; }
