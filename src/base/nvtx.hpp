// SPDX-License-Identifier: Apache-2.0
// What a program with NVTX 3 and a tool say to each other: as NVIDIA documents it for tools. Each shared object that uses NVTX has
// tables of its own, and asks the tool once. Plain data; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::base::nvtx {

using ExportTable = const void* (*)(std::uint32_t id);
inline constexpr std::uint32_t callbacks_table = 1; // of ExportTable

using Function = void (*)();

/// What ExportTable gives for callbacks_table.
struct Callbacks {
    std::size_t struct_size;
    /// Gives an array of `size` places, by number below, each the address of the pointer that the program calls through; null
    /// where it has no such function. 0: there is no such module.
    int (*get_module_function_table)(std::uint32_t module, Function*** table, std::uint32_t* size);
};

/// What a tool may ask for that wants to know which NVTX a program has.
inline constexpr std::uint32_t version_table = 3; // of ExportTable
struct VersionInfo {
    std::size_t struct_size;
    std::uint32_t version;
    std::uint32_t reserved;
    void (*set_injection_version)(std::uint32_t version);
};

/// What the library that this variable names exports: it is called once a shared object, and gives 0 where it is not to be used.
inline constexpr const char* library_variable = "NVTX_INJECTION64_PATH";
inline constexpr const char* initialise_symbol = "InitializeInjectionNvtx2";
using Initialise = int(ExportTable get);

inline constexpr std::uint32_t core_module = 1;
inline constexpr std::uint32_t domain_module = 5;
inline constexpr std::uint32_t modules = 7;         // numbers from 1; the others name things of CUDA and OpenCL
inline constexpr std::uint32_t most_functions = 16; // of one module

/// Places in the table of core_module: functions of the default domain.
enum class Core : std::uint32_t {
    mark_ex = 1,
    mark_a = 2,
    mark_w = 3,
    range_start_ex = 4,
    range_start_a = 5,
    range_start_w = 6,
    range_end = 7,
    range_push_ex = 8,
    range_push_a = 9,
    range_push_w = 10,
    range_pop = 11,
    name_category_a = 12,
    name_category_w = 13,
};

/// Places in the table of domain_module.
enum class Domain : std::uint32_t {
    mark_ex = 1,
    range_start_ex = 2,
    range_end = 3,
    range_push_ex = 4,
    range_pop = 5,
    name_category_a = 8,
    name_category_w = 9,
    register_string_a = 10,
    register_string_w = 11,
    create_a = 12,
    create_w = 13,
    destroy = 14,
};

enum class MessageType : std::int32_t { none = 0, ascii = 1, wide = 2, registered = 3 };
enum class PayloadType : std::int32_t { none = 0, u64 = 1, i64 = 2, f64 = 3, u32 = 4, i32 = 5, f32 = 6 };

/// nvtxEventAttributes_t
struct Attributes {
    std::uint16_t version;
    std::uint16_t size;
    std::uint32_t category;
    std::int32_t color_type;
    std::uint32_t color;
    std::int32_t payload_type; // PayloadType
    std::int32_t reserved;
    union {
        std::uint64_t u64;
        std::int64_t i64;
        double f64;
        std::uint32_t u32;
        std::int32_t i32;
        float f32;
    } payload;
    std::int32_t message_type; // MessageType
    union {
        const char* ascii;
        const wchar_t* wide;
        const void* registered; // what register_string gave
    } message;
};
static_assert(sizeof(Attributes) == 48, "as NVTX 2 and 3 have it");

/// Levels of range_push and range_pop that are none.
inline constexpr int no_level = -1;

} // namespace plumb::base::nvtx
