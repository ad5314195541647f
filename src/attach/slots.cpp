// SPDX-License-Identifier: Apache-2.0
#include "attach/slots.hpp"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

// The linker's: where the library that this code is part of begins and ends.
extern "C" {
extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char _end __attribute__((visibility("hidden")));
}

namespace plumb::attach {
namespace {

#if defined(__x86_64__)
constexpr unsigned jump_slot = R_X86_64_JUMP_SLOT;
constexpr unsigned data_slot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr unsigned jump_slot = R_AARCH64_JUMP_SLOT;
constexpr unsigned data_slot = R_AARCH64_GLOB_DAT;
#endif

struct AddressRange {
    std::uintptr_t begin = 0, end = 0;
    [[nodiscard]] bool holds(std::uintptr_t at) const { return at >= begin && at < end; }
};

/// What the dynamic section of one library says; valid under the loader's lock.
struct Dynamic {
    AddressRange image;
    AddressRange read_only; // whole pages that the loader protects after relocation
    const ElfW(Sym) * symbols = nullptr;
    const char* strings = nullptr;
    std::span<const ElfW(Rela)> calls, data;

    explicit Dynamic(const dl_phdr_info& info) {
        const ElfW(Dyn)* entry = nullptr;
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        for (const ElfW(Phdr) & part : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
            const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr;
            if (part.p_type == PT_DYNAMIC) {
                entry = reinterpret_cast<const ElfW(Dyn)*>(begin);
            } else if (part.p_type == PT_LOAD) {
                image.begin = image.end == 0 ? begin : std::min(image.begin, begin);
                image.end = std::max(image.end, begin + part.p_memsz);
            } else if (part.p_type == PT_GNU_RELRO) {
                read_only = {begin / page * page, (begin + part.p_memsz) / page * page}; // as the loader rounds
            }
        }
        read(entry);
    }

  private:
    void read(const ElfW(Dyn) * entry) {
        std::uintptr_t call_table = 0;
        std::uintptr_t data_table = 0;
        std::size_t call_bytes = 0;
        std::size_t data_bytes = 0;
        for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
            switch (entry->d_tag) {
            case DT_SYMTAB:
                symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
                break;
            case DT_STRTAB:
                strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
                break;
            case DT_JMPREL:
                call_table = entry->d_un.d_ptr;
                break;
            case DT_PLTRELSZ:
                call_bytes = entry->d_un.d_val;
                break;
            case DT_RELA:
                data_table = entry->d_un.d_ptr;
                break;
            case DT_RELASZ:
                data_bytes = entry->d_un.d_val;
                break;
            default:
                break;
            }
        }
        // The kernel's own library gives offsets, not addresses: it is left out with whatever else looks like that.
        if (!image.holds(reinterpret_cast<std::uintptr_t>(symbols)) ||
            !image.holds(reinterpret_cast<std::uintptr_t>(strings))) {
            return;
        }
        const auto table = [this](std::uintptr_t at, std::size_t bytes) {
            return image.holds(at) ? std::span(reinterpret_cast<const ElfW(Rela)*>(at), bytes / sizeof(ElfW(Rela)))
                                   : std::span<const ElfW(Rela)>{};
        };
        calls = table(call_table, call_bytes);
        data = table(data_table, data_bytes);
    }
};

/// Calls visit(symbol index, slot) for each slot of the wanted symbols.
template <class Visit>
void for_each_slot(const Dynamic& library, std::uintptr_t base, std::span<const char* const> wanted, Visit visit) {
    for (const std::span<const ElfW(Rela)> table : {library.calls, library.data}) {
        for (const ElfW(Rela) & entry : table) {
            const auto type = ELF64_R_TYPE(entry.r_info);
            if (type != jump_slot && type != data_slot) {
                continue;
            }
            const char* name = library.strings + library.symbols[ELF64_R_SYM(entry.r_info)].st_name;
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                if (std::strcmp(name, wanted[i]) == 0) {
                    visit(i, reinterpret_cast<void**>(base + entry.r_offset));
                }
            }
        }
    }
}

template <class Visit>
void for_each_library(Visit visit) {
    const auto call = [](dl_phdr_info* info, std::size_t, void* user) {
        (*static_cast<Visit*>(user))(*info);
        return 0;
    };
    dl_iterate_phdr(call, &visit);
}

/// False where the page could not be made writable.
bool store(const Dynamic& library, void** slot, void* value) {
    const auto at = reinterpret_cast<std::uintptr_t>(slot);
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const start = reinterpret_cast<void*>(at / page * page);
    const bool is_protected = library.read_only.holds(at);
    if (is_protected && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    // Release: whoever calls through the slot finds what the new function needs. Other threads call through it meanwhile.
    std::atomic_ref<void*>(*slot).store(value, std::memory_order_release);
    return !is_protected || mprotect(start, page, PROT_READ) == 0;
}

} // namespace

std::uint64_t loads_so_far() {
    std::uint64_t loads = 0;
    const auto call = [](dl_phdr_info* info, std::size_t, void* user) {
        *static_cast<std::uint64_t*>(user) = info->dlpi_adds;
        return 1; // the first knows it
    };
    dl_iterate_phdr(call, &loads);
    return loads;
}

std::vector<Pinned> pin_libraries_with(std::span<const char* const> symbols) {
    std::vector<Pinned> found;
    for_each_library([&](const dl_phdr_info& info) {
        const Dynamic library(info);
        if (is_ours(reinterpret_cast<const void*>(library.image.begin))) {
            return;
        }
        bool holds = false;
        for_each_slot(library, info.dlpi_addr, symbols, [&holds](std::size_t, void**) { holds = true; });
        if (holds) {
            found.push_back({info.dlpi_addr, info.dlpi_name, nullptr});
        }
    });
    // Outside the lock: dlopen() takes the loader's other lock first. It also waits until a library that another thread
    // loads at this moment is relocated.
    std::erase_if(found, [](Pinned& library) {
        const char* path = library.path.empty() ? nullptr : library.path.c_str();
        library.handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        link_map* map = nullptr;
        return library.handle == nullptr || dlinfo(library.handle, RTLD_DI_LINKMAP, &map) != 0 ||
               map->l_addr != library.base; // closed meanwhile, or of another namespace
    });
    return found;
}

std::size_t redirect(std::span<const Pinned> libraries, std::span<const char* const> symbols,
                     const std::function<void*(const Slot&)>& target_of) {
    std::size_t refused = 0;
    for_each_library([&](const dl_phdr_info& info) {
        for (const Pinned& pinned : libraries) {
            if (pinned.base != info.dlpi_addr || pinned.path != info.dlpi_name) {
                continue;
            }
            const Dynamic library(info);
            for_each_slot(library, info.dlpi_addr, symbols, [&](std::size_t symbol, void** slot) {
                const auto leads_to =
                    reinterpret_cast<std::uintptr_t>(std::atomic_ref<void*>(*slot).load(std::memory_order_acquire));
                void* const target = target_of({&pinned, symbol, leads_to, library.image.holds(leads_to)});
                if (target != nullptr && !store(library, slot, target)) {
                    ++refused;
                }
            });
        }
    });
    return refused;
}

bool is_ours(const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) && at < reinterpret_cast<std::uintptr_t>(&_end);
}

void* find_symbol(const Pinned& library, const char* symbol) {
    void* found = dlsym(library.handle, symbol);
    // The program's own scope is the global one, in which a preloaded library of ours comes before its libraries.
    return found != nullptr && is_ours(found) ? dlsym(RTLD_NEXT, symbol) : found;
}

std::string library_of(const void* address) {
    Dl_info there{};
    if (dladdr(address, &there) == 0 || there.dli_fname == nullptr) {
        return "?";
    }
    const char* slash = std::strrchr(there.dli_fname, '/');
    return slash != nullptr ? slash + 1 : there.dli_fname;
}

} // namespace plumb::attach
