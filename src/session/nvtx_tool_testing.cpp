// SPDX-License-Identifier: Apache-2.0
// A tool's library for nvtx_test: it takes the functions that a profiler of ranges takes, and writes down what it is told.
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "base/nvtx.hpp"
#include "plumb/api.hpp"

namespace {

using namespace plumb::base::nvtx;

std::mutex mutex;
std::string said;
std::vector<std::string> strings{"none"};

void add(const std::string& line) {
    const std::lock_guard lock(mutex);
    said += line + '\n';
}

const void* create(const char* name) {
    add(std::string("domain ") + name);
    return &said;
}
const void* register_string(const void* domain, const char* text) {
    const std::lock_guard lock(mutex);
    strings.emplace_back(domain == &said ? text : "of another domain");
    return reinterpret_cast<const void*>(strings.size() - 1);
}
int push(const void* domain, const Attributes* event) {
    if (domain != &said || event->version != 3 || event->size != sizeof(Attributes)) {
        add("a push that is none");
        return -1;
    }
    std::string text = "?";
    if (event->message_type == static_cast<std::int32_t>(MessageType::ascii)) {
        text = event->message.ascii;
    } else if (event->message_type == static_cast<std::int32_t>(MessageType::registered)) {
        const std::lock_guard lock(mutex);
        text = strings.at(reinterpret_cast<std::size_t>(event->message.registered));
    }
    add("push " + text);
    return 0;
}
int pop(const void* domain) {
    add(domain == &said ? "pop" : "pop of another domain");
    return 0;
}

} // namespace

extern "C" PLUMB_API int InitializeInjectionNvtx2(ExportTable get) {
    const auto* version = static_cast<const VersionInfo*>(get(version_table));
    const auto* callbacks = static_cast<const Callbacks*>(get(callbacks_table));
    Function** table = nullptr;
    std::uint32_t size = 0;
    if (version == nullptr || version->version != 3 || callbacks == nullptr ||
        callbacks->get_module_function_table(domain_module, &table, &size) == 0) {
        return 0;
    }
    const auto set = [&](Domain which, auto* function) {
        *table[static_cast<std::uint32_t>(which)] = reinterpret_cast<Function>(function);
    };
    set(Domain::create_a, create);
    set(Domain::register_string_a, register_string);
    set(Domain::range_push_ex, push);
    set(Domain::range_pop, pop);
    return 1;
}

/// What was told since the last call.
extern "C" PLUMB_API const char* nvtx_tool_said() {
    static std::string given;
    const std::lock_guard lock(mutex);
    given.swap(said);
    said.clear();
    return given.c_str();
}
