// SPDX-License-Identifier: Apache-2.0
// The slots through which loaded libraries call each other's functions (their global offset tables), and how one is led
// elsewhere: one atomic store of pointer size, under the loader's lock, with the page's protection put back.
// Thread rule: any thread; never inside a callback of dl_iterate_phdr().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace plumb::attach {

/// A loaded library, or the program itself, that holds slots of one of the wanted symbols. It stays loaded for good.
struct Pinned {
    std::uintptr_t base = 0;
    std::string path; // empty: the program
    void* handle = nullptr;
};

/// One slot while the loader's lock is held.
struct Slot {
    const Pinned* library;
    std::size_t symbol; // index into the wanted ones
    std::uintptr_t leads_to;
    bool unresolved; // it leads into the library's own lazy binding, or to a function of that library
};

/// How often libraries were loaded since the process began: where it is as before, nothing new has come.
[[nodiscard]] std::uint64_t loads_so_far();

/// The libraries with slots of these symbols; ours is not among them. Each is kept from being unloaded.
[[nodiscard]] std::vector<Pinned> pin_libraries_with(std::span<const char* const> symbols);

/// Asks `target_of` for each slot of these symbols in these libraries where it shall lead; null leaves it as it is.
/// Returns how many could not be written. `target_of` runs under the loader's lock: it may call no function of the loader.
std::size_t redirect(std::span<const Pinned> libraries, std::span<const char* const> symbols,
                     const std::function<void*(const Slot&)>& target_of);

/// `symbol` as the library itself finds it, in itself and what it depends on; never one of ours. Null: not there.
[[nodiscard]] void* find_symbol(const Pinned& library, const char* symbol);

/// File name of the library that holds this address, without its folder; "?" where the loader knows none.
[[nodiscard]] std::string library_of(const void* address);
/// Whether the address lies in the library that this code is part of.
[[nodiscard]] bool is_ours(const void* address);

} // namespace plumb::attach
