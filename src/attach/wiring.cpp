// SPDX-License-Identifier: Apache-2.0
#include "attach/wiring.hpp"

#include <atomic>
#include <dlfcn.h>
#include <pthread.h>
#include <string>
#include <utility>

#include "attach/attachment.hpp"

namespace plumb::attach {
namespace {
std::atomic<LookLock*> look_locks{nullptr};
} // namespace

LookLock::LookLock() : next_(look_locks.load(std::memory_order_relaxed)) {
    while (!look_locks.compare_exchange_weak(next_, this, std::memory_order_release)) {
    }
    static const int registered = pthread_atfork(nullptr, nullptr, in_child);
    (void)registered;
}

void LookLock::in_child() {
    for (LookLock* lock = look_locks.load(std::memory_order_acquire); lock != nullptr; lock = lock->next_) {
        lock->abandoned_ = lock->abandoned_ || !lock->mutex_.try_lock();
        if (!lock->abandoned_) {
            lock->mutex_.unlock();
        }
    }
}

std::unique_lock<std::mutex> LookLock::take() {
    return abandoned_ ? std::unique_lock<std::mutex>() : std::unique_lock(mutex_);
}

void wire(const SlotFamily& family, std::span<const Pinned> libraries, std::span<const Caller> callers) {
    std::vector<std::pair<const void*, std::size_t>> foreign;
    // Where the loader will lead a slot that was not called yet, if another tool comes before the library. Asked here, since
    // nothing of the loader may be called below.
    std::vector<void*> before(family.symbols.size());
    for (std::size_t k = 0; k < before.size(); ++k) {
        void* const found = dlsym(RTLD_DEFAULT, family.symbols[k]);
        bool is_known = false;
        for (std::size_t i = 0; i < libraries.size(); ++i) { // the program finds what the loader finds
            is_known =
                is_known || (!libraries[i].path.empty() && callers[i].copy != no_copy && callers[i].found[k] == found);
        }
        before[k] = found != nullptr && !is_ours(found) && !is_known ? found : nullptr;
    }
    const auto target = [&](const Slot& slot) -> void* {
        const Caller& caller = callers[static_cast<std::size_t>(slot.library - libraries.data())];
        if (caller.copy == no_copy || caller.found[slot.symbol] == nullptr) {
            return nullptr;
        }
        void* const hook = family.hook(caller.copy, slot.symbol);
        void* const leads_to = reinterpret_cast<void*>(slot.leads_to);
        if (leads_to == hook) {
            return nullptr;
        }
        void* original = caller.found[slot.symbol];
        void* const other = slot.unresolved ? before[slot.symbol] : leads_to;
        if (leads_to != original && other != nullptr && other != original && !is_ours(other)) {
            foreign.emplace_back(other, slot.symbol);
            original = other; // another tool's: it is called in its turn
        }
        void*& known = family.original(caller.copy, slot.symbol);
        if (known != nullptr && known != original) {
            return nullptr; // two callers of one copy that lead to different places: the second stays as it is
        }
        known = original;
        return hook;
    };
    if (const std::size_t refused = redirect(libraries, family.symbols, target); refused != 0) {
        say("the system refused to redirect " + std::to_string(refused) + " of " + family.whose +
            " slots: a part may be missing");
    }
    for (const auto& [address, symbol] : foreign) {
        say(std::string(family.symbols[symbol]) + " led to " + library_of(address) +
            " already: it is called as before, behind this profiler");
    }
}

void* original_for(const char* symbol, const void* caller) {
    Dl_info from{};
    if (dladdr(caller, &from) != 0) {
        Pinned library{0, from.dli_fname, dlopen(from.dli_fname, RTLD_LAZY | RTLD_NOLOAD)};
        if (library.handle == nullptr) { // the program itself
            library.handle = dlopen(nullptr, RTLD_LAZY);
        }
        void* const found = library.handle != nullptr ? find_symbol(library, symbol) : nullptr;
        if (library.handle != nullptr) {
            dlclose(library.handle); // it is the caller's, who may close it himself
        }
        if (found != nullptr) {
            return found;
        }
    }
    return dlsym(RTLD_NEXT, symbol);
}

} // namespace plumb::attach
