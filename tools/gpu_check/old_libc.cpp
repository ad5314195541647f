// SPDX-License-Identifier: Apache-2.0
// Two functions that the static C++ runtime wants from newer C libraries, so that the bundle runs with glibc 2.34.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>

extern "C" {

std::uint32_t arc4random(void) noexcept {
    std::uint32_t value = 0;
    static_cast<void>(getentropy(&value, sizeof value));
    return value;
}

// Where the unwinder finds the tables of the object that `address` lies in.
int _dl_find_object(void* address, dl_find_object* result) noexcept { // NOLINT: the name is the C library's
    struct Search {
        std::uintptr_t address;
        dl_find_object* result;
    } search{reinterpret_cast<std::uintptr_t>(address), result};
    const auto look = [](dl_phdr_info* object, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        bool holds = false;
        void* tables = nullptr;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
            const ElfW(Phdr)& part = object->dlpi_phdr[i];
            const std::uintptr_t start = object->dlpi_addr + part.p_vaddr;
            if (part.p_type == PT_LOAD && wanted.address >= start && wanted.address < start + part.p_memsz) {
                holds = true;
                wanted.result->dlfo_map_start = reinterpret_cast<void*>(start);
                wanted.result->dlfo_map_end = reinterpret_cast<void*>(start + part.p_memsz);
            } else if (part.p_type == PT_GNU_EH_FRAME) {
                tables = reinterpret_cast<void*>(start);
            }
        }
        wanted.result->dlfo_eh_frame = tables;
        return holds && tables != nullptr ? 1 : 0;
    };
    *result = {};
    return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

} // extern "C"
