// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/hooks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <dlfcn.h>
#include <functional>
#include <link.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attach/attachment.hpp"
#include "attach/onnxruntime/engine.hpp"

namespace plumb::attach::onnxruntime {
namespace {

constexpr std::size_t most_copies = 4;     // of onnxruntime in one process
constexpr std::size_t most_entries = 1024; // of its table; it grows by some dozens a release

/// Written before any table leads to the hooks of that copy.
struct OrtCopy {
    const OrtBase* original = nullptr;
    OrtEngine* engine = nullptr;
    OrtBase ours{};
    std::mutex mutex;                                                      // of what follows
    std::vector<std::pair<void* const*, std::unique_ptr<void*[]>>> tables; // its own, and what a program gets for it
};

std::array<OrtCopy, most_copies>& copies() {
    static auto* all = new std::array<OrtCopy, most_copies>; // tables lead to them as long as the process lives
    return *all;
}

std::mutex copies_mutex;
std::atomic<bool> abandoned{false}; // in a forked child, whose locks another thread of its parent may have held

/// The entries from `table` on that can be read: what follows in its segment.
std::size_t readable_entries(void* const* table) {
    struct Search {
        std::uintptr_t at, end;
    } search{reinterpret_cast<std::uintptr_t>(table), 0};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* user) {
            auto& wanted = *static_cast<Search*>(user);
            for (const ElfW(Phdr) & part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
                const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
                if (part.p_type == PT_LOAD && wanted.at >= begin && wanted.at < begin + part.p_memsz) {
                    wanted.end = begin + part.p_memsz;
                }
            }
            return 0;
        },
        &search);
    return search.end > search.at ? (search.end - search.at) / sizeof(void*) : 0;
}

void tell_outcomes() {
    for (const OrtCopy& copy : copies()) {
        if (copy.engine != nullptr) {
            copy.engine->tell_outcome();
        }
    }
}

/// One set of functions for each copy: a table cannot say whose it is.
template <std::size_t Index>
struct OrtHooks {
    static const OrtApi& api() { return copies()[Index].engine->api; }
    /// Null: this process records nothing.
    static OrtEngine* engine() {
        return abandoned.load(std::memory_order_relaxed) ? nullptr
                                                         : copies()[Index].engine; // a child's only thread stored it
    }

    static Failure* run(Session* session, const RunOptions* options, const char* const* names,
                        const Value* const* values, std::size_t count, const char* const* output_names,
                        std::size_t output_count, Value** outputs) {
        const auto original = [&](const RunOptions* with) {
            return api().run(session, with, names, values, count, output_names, output_count, outputs);
        };
        OrtEngine* const its = engine();
        if (its == nullptr) {
            return original(options);
        }
        return its->run(session, options, its->facts_of(names, values, count), std::ref(original));
    }
    static Failure* run_with_binding(Session* session, const RunOptions* options, const IoBinding* binding) {
        const auto original = [&](const RunOptions* with) {
            return api().run_with_binding(session, with, binding);
        };
        OrtEngine* const its = engine();
        if (its == nullptr) {
            return original(options);
        }
        return its->run(session, options, {}, std::ref(original));
    }
    static Failure* run_async(Session* session, const RunOptions* options, const char* const* names,
                              const Value* const* values, std::size_t count, const char* const* output_names,
                              std::size_t output_count, Value** outputs,
                              void (*done)(void*, Value**, std::size_t, Failure*), void* user) {
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->run_asynchronously();
        }
        return api().run_async(session, options, names, values, count, output_names, output_count, outputs, done, user);
    }
    static void release_session(Session* session) {
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->released(session);
        }
        api().release_session(session);
    }

    static Failure* create_run_options(RunOptions** made) {
        Failure* const failure = api().create_run_options(made);
        if (OrtEngine* const its = engine(); its != nullptr && failure == nullptr) {
            its->options.made(*made);
        }
        return failure;
    }
    static void release_run_options(RunOptions* options) {
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->options.released(options);
        }
        api().release_run_options(options);
    }
    static Failure* set_terminate(RunOptions* options) {
        Failure* const failure = api().set_terminate(options);
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->options.terminates(options, true);
        }
        return failure;
    }
    static Failure* unset_terminate(RunOptions* options) {
        Failure* const failure = api().unset_terminate(options);
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->options.terminates(options, false);
        }
        return failure;
    }
    static Failure* add_config_entry(RunOptions* options, const char* key, const char* value) {
        Failure* const failure = api().add_config_entry(options, key, value);
        if (OrtEngine* const its = engine(); its != nullptr && failure == nullptr) {
            its->options.added(options, key, value);
        }
        return failure;
    }
    static Failure* add_adapter(RunOptions* options, const void* adapter) {
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->options.changed(options);
        }
        return api().add_adapter(options, adapter);
    }
    static void set_sync_stream(RunOptions* options, void* stream) {
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->options.changed(options);
        }
        api().set_sync_stream(options, stream);
    }
    static Failure* enable_profiling(RunOptions* options, const char* prefix) {
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->options.profiles(options, true);
        }
        return api().enable_profiling(options, prefix);
    }
    static Failure* disable_profiling(RunOptions* options) {
        if (OrtEngine* const its = engine(); its != nullptr) {
            its->options.profiles(options, false);
        }
        return api().disable_profiling(options);
    }

    /// The table that the program asked for, with our functions in it where it has them.
    static void* const* get_api(std::uint32_t version) {
        OrtCopy& copy = copies()[Index];
        void* const* const original = copy.original->get_api(version);
        if (original == nullptr || abandoned.load(std::memory_order_relaxed)) {
            return original;
        }
        const std::lock_guard lock(copy.mutex);
        for (const auto& [of, table] : copy.tables) {
            if (of == original) {
                return table.get();
            }
        }
        const std::size_t count = std::min(readable_entries(original), most_entries);
        auto table = std::make_unique<void*[]>(most_entries);
        std::copy_n(original, count, table.get());
#define PLUMB_ORT_STAND_IN(name)                                                          \
    if (api().name != nullptr) {                                                          \
        table[static_cast<std::size_t>(OrtPlace::name)] = reinterpret_cast<void*>(&name); \
    }
        PLUMB_ORT_STAND_IN(run)
        PLUMB_ORT_STAND_IN(run_with_binding)
        PLUMB_ORT_STAND_IN(run_async)
        PLUMB_ORT_STAND_IN(release_session)
        PLUMB_ORT_STAND_IN(create_run_options)
        PLUMB_ORT_STAND_IN(release_run_options)
        PLUMB_ORT_STAND_IN(set_terminate)
        PLUMB_ORT_STAND_IN(unset_terminate)
        PLUMB_ORT_STAND_IN(add_config_entry)
        PLUMB_ORT_STAND_IN(add_adapter)
        PLUMB_ORT_STAND_IN(set_sync_stream)
        PLUMB_ORT_STAND_IN(enable_profiling)
        PLUMB_ORT_STAND_IN(disable_profiling)
#undef PLUMB_ORT_STAND_IN
        return copy.tables.emplace_back(original, std::move(table)).second.get();
    }
};

using GetApi = void* const* (*)(std::uint32_t);

std::array<GetApi, most_copies> all_get_api() {
    return []<std::size_t... Index>(std::index_sequence<Index...>) {
        return std::array<GetApi, most_copies>{&OrtHooks<Index>::get_api...};
    }(std::make_index_sequence<most_copies>{});
}

/// A library whose table a copy here stands for stays, also where what loaded it goes.
void pin_library_of(const void* address) {
    Dl_info there{};
    if (dladdr(address, &there) != 0) {
        (void)dlopen(there.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

/// What a program finds that asks for the function in a process without onnxruntime: no table of any version.
constexpr OrtBase nothing_there{[](std::uint32_t) -> void* const* { return nullptr; },
                                [] {
                                    return "";
                                }};

/// Null: its table is not known here, or there is no room for one more copy.
const OrtBase* stand_in_for(const OrtBase* original) {
    const std::lock_guard lock(copies_mutex);
    for (std::size_t i = 0; i < most_copies; ++i) {
        OrtCopy& copy = copies()[i];
        if (copy.original == original) {
            return &copy.ours;
        }
        if (copy.original != nullptr) {
            continue;
        }
        const char* const version = original->version();
        const unsigned minor = minor_of(version);
        void* const* const table = minor != 0 ? original->get_api(minor) : nullptr;
        if (table == nullptr || readable_entries(table) == 0) {
            say("onnxruntime " + std::string(version != nullptr ? version : "?") +
                " has a table that is not known here: it is not recorded");
            return nullptr;
        }
        copy.engine = new OrtEngine(OrtApi::read(table, minor), version);
        copy.ours = {all_get_api()[i], original->version};
        copy.original = original;
        pin_library_of(original);
        if (i == 0) {
            at_close(tell_outcomes);
            pthread_atfork(nullptr, nullptr, [] { abandoned.store(true, std::memory_order_relaxed); });
        }
        return &copy.ours;
    }
    say("more than four copies of onnxruntime are in this process: the fifth is not recorded");
    return nullptr;
}

} // namespace

const void* base_of(void* original) {
    const auto get = reinterpret_cast<const OrtBase* (*)()>(original);
    const OrtBase* const base = get != nullptr ? get() : &nothing_there;
    if (get == nullptr || base == nullptr || abandoned.load(std::memory_order_relaxed) || !wanted()) {
        return base;
    }
    const OrtBase* const ours = stand_in_for(base);
    return ours != nullptr ? ours : base;
}

} // namespace plumb::attach::onnxruntime
