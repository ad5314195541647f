// SPDX-License-Identifier: Apache-2.0
#include "record/nvtx_out.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "base/dynamic_library.hpp"
#include "base/nvtx.hpp"
#include "base/os.hpp"
#include "record/name_registry.hpp"

namespace plumb::record {
namespace {

using namespace base::nvtx;

using CreateDomain = const void*(const char* name);
using RegisterString = const void*(const void* domain, const char* text);
using PushEx = int(const void* domain, const Attributes* attributes);
using Pop = int(const void* domain);

// What the tool fills in. A place is null until then, and where it wants no such calls.
Function functions[modules][most_functions];

int get_table(std::uint32_t module, Function*** table, std::uint32_t* size) {
    static Function* places[modules][most_functions];
    if (module == 0 || module >= modules || table == nullptr || size == nullptr) {
        return 0;
    }
    for (std::uint32_t i = 1; i < most_functions; ++i) {
        places[module][i] = &functions[module][i];
    }
    *table = places[module];
    *size = most_functions;
    return 1;
}

const void* export_table(std::uint32_t id) {
    static const Callbacks callbacks{sizeof callbacks, get_table};
    static const VersionInfo version{sizeof version, 3, 0, [](std::uint32_t) {
                                     }};
    return id == callbacks_table ? static_cast<const void*>(&callbacks) : id == version_table ? &version : nullptr;
}

template <class F>
F* function(Domain which) {
    return reinterpret_cast<F*>(functions[domain_module][static_cast<std::uint32_t>(which)]);
}

constexpr std::size_t most_told = 8;
std::atomic<const Recorder*> recorders[most_told]; // relaxed: set before the recorder is on

/// What was found out once. Never destroyed.
struct Tool {
    const void* domain = nullptr;
    PushEx* push = nullptr;
    Pop* pop = nullptr;
    RegisterString* register_string = nullptr;
    std::unique_ptr<std::atomic<const void*>[]> strings; // by name id; null: not yet
};
Tool* tool = nullptr; // set once, before any recorder is told

Result<Tool*> open_tool() {
    const char* path = base::environment(library_variable);
    const std::string advice =
        "; start the program under a tool that shows NVTX ranges, such as Nsight Systems, or leave nvtx=on out";
    if (path == nullptr || *path == '\0') {
        return Error{ErrorCode::unavailable,
                     std::string("nvtx=on: ") + library_variable + " names no tool's library" + advice};
    }
    if (std::strstr(path, "libplumb-attach") != nullptr) {
        return Error{ErrorCode::unavailable, "nvtx=on: the tool would be plumb itself, which has these scopes already"};
    }
    Result<base::DynamicLibrary> library = base::DynamicLibrary::open({path}, "look at NVTX_INJECTION64_PATH");
    if (!library) {
        return Error{ErrorCode::unavailable, "nvtx=on: " + library.error().message};
    }
    const Result<Initialise*> initialise = library->function<Initialise>(initialise_symbol);
    if (!initialise || (*initialise)(export_table) == 0) {
        return Error{ErrorCode::unavailable, std::string("nvtx=on: ") + path + " takes no NVTX ranges" + advice};
    }
    (void)base::keep_for_good(std::move(*library)); // its functions are called as long as the process lives
    auto* const push = function<PushEx>(Domain::range_push_ex);
    auto* const pop = function<Pop>(Domain::range_pop);
    auto* const create = function<CreateDomain>(Domain::create_a);
    if (push == nullptr || pop == nullptr) {
        return Error{ErrorCode::unavailable,
                     std::string("nvtx=on: ") + path + " takes no NVTX ranges of domains" + advice};
    }
    auto* made = new Tool;
    made->push = push;
    made->pop = pop;
    made->register_string = function<RegisterString>(Domain::register_string_a);
    made->domain = create != nullptr ? create("plumb") : nullptr;
    made->strings.reset(new std::atomic<const void*>[name_capacity] {});
    return made;
}

std::string text_of(std::uint16_t id) {
    for (const NameEntry& entry : names_from(id)) {
        if (entry.id == id) {
            return entry.name;
        }
    }
    return "unnamed";
}

Attributes event() noexcept {
    Attributes made{};
    made.version = 3;
    made.size = sizeof made;
    return made;
}

void push_text(const char* text) noexcept {
    Attributes made = event();
    made.message_type = static_cast<std::int32_t>(MessageType::ascii);
    made.message.ascii = text;
    (void)tool->push(tool->domain, &made);
}

/// Null: the tool takes no registered strings, or there is no memory.
const void* string_of(std::uint16_t id) noexcept {
    if (tool->register_string == nullptr || id >= name_capacity) {
        return nullptr;
    }
    const void* known = tool->strings[id].load(std::memory_order_relaxed);
    if (known == nullptr) {
        try {
            known = tool->register_string(tool->domain, text_of(id).c_str());
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        tool->strings[id].store(known, std::memory_order_relaxed); // two threads at once register it twice
    }
    return known;
}

} // namespace

std::atomic<std::uint32_t> nvtx_recorders{0}; // relaxed: set before the recorder is on

Status open_nvtx() {
    static const Result<Tool*> opened = [] {
        Result<Tool*> made = open_tool();
        tool = made.ok() ? *made : nullptr;
        return made;
    }();
    return opened.ok() ? Status() : Status(opened.error());
}

Status tell_nvtx(const Recorder& recorder) {
    if (Status opened = open_nvtx(); !opened.ok() || tells_nvtx(recorder)) {
        return opened;
    }
    for (std::atomic<const Recorder*>& place : recorders) {
        const Recorder* free = nullptr;
        if (place.compare_exchange_strong(free, &recorder, std::memory_order_relaxed)) {
            nvtx_recorders.fetch_add(1, std::memory_order_relaxed);
            return {};
        }
    }
    return Error{ErrorCode::out_of_memory, "nvtx=on: eight profilers have it already; leave it out for the others"};
}

void forget_nvtx(const Recorder& recorder) noexcept {
    for (std::atomic<const Recorder*>& place : recorders) {
        const Recorder* own = &recorder;
        if (place.compare_exchange_strong(own, nullptr, std::memory_order_relaxed)) {
            nvtx_recorders.fetch_sub(1, std::memory_order_relaxed);
        }
    }
}

bool tells_nvtx(const Recorder& recorder) noexcept {
    for (const std::atomic<const Recorder*>& place : recorders) {
        if (place.load(std::memory_order_relaxed) == &recorder) {
            return true;
        }
    }
    return false;
}

void told::push(const Recorder& recorder, std::uint64_t bits) noexcept {
    if (!tells_nvtx(recorder)) {
        return;
    }
    const auto id = static_cast<std::uint16_t>(bits >> detail::id_shift);
    Attributes made = event();
    made.message.registered = string_of(id);
    made.message_type = static_cast<std::int32_t>(MessageType::registered);
    if (made.message.registered == nullptr) {
        made.message_type = static_cast<std::int32_t>(MessageType::ascii);
        made.message.ascii = "a brick";
    }
    (void)tool->push(tool->domain, &made);
}

void told::push_step(const Recorder& recorder, Phase phase) noexcept {
    if (tells_nvtx(recorder)) {
        push_text(phase == Phase::prefill  ? "prefill step"
                  : phase == Phase::decode ? "decode step"
                  : phase == Phase::mixed  ? "mixed step"
                                           : "step");
    }
}

void told::push_layer(const Recorder& recorder, std::uint32_t layer) noexcept {
    if (tells_nvtx(recorder)) {
        char text[32];
        (void)std::snprintf(text, sizeof text, "layer %u", layer);
        push_text(text);
    }
}

void told::pop(const Recorder& recorder) noexcept {
    if (tells_nvtx(recorder)) {
        (void)tool->pop(tool->domain);
    }
}

} // namespace plumb::record
