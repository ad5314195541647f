// SPDX-License-Identifier: Apache-2.0
// The program's side of NVTX 3, as NVIDIA documents it for tools: loads the library that NVTX_INJECTION64_PATH names with the first call,
// hands its tables over, and calls through them. Each file that includes it has tables of its own, as each shared object has with the
// real headers. Names and types are those of nvToolsExt.h, so that a program compiles with either. Thread rule: any thread.
#ifndef PLUMB_TESTS_NVTX_CALLER_H
#define PLUMB_TESTS_NVTX_CALLER_H

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomain* nvtxDomainHandle_t;
typedef struct nvtxString* nvtxStringHandle_t;

enum { NVTX_VERSION = 3 };
enum { NVTX_MESSAGE_UNKNOWN, NVTX_MESSAGE_TYPE_ASCII, NVTX_MESSAGE_TYPE_UNICODE, NVTX_MESSAGE_TYPE_REGISTERED };
enum {
    NVTX_PAYLOAD_UNKNOWN,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
    NVTX_PAYLOAD_TYPE_INT64,
    NVTX_PAYLOAD_TYPE_DOUBLE,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT32,
    NVTX_PAYLOAD_TYPE_INT32,
    NVTX_PAYLOAD_TYPE_FLOAT
};

typedef struct nvtxEventAttributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType;
    int32_t reserved0;
    union {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
        uint32_t uiValue;
        int32_t iValue;
        float fValue;
    } payload;
    int32_t messageType;
    union {
        const char* ascii;
        const wchar_t* unicode;
        nvtxStringHandle_t registered;
    } message;
} nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

// Numbers of the functions in their tables.
enum {
    nvtx_core_mark_ex = 1,
    nvtx_core_mark_a,
    nvtx_core_mark_w,
    nvtx_core_start_ex,
    nvtx_core_start_a,
    nvtx_core_start_w,
    nvtx_core_end,
    nvtx_core_push_ex,
    nvtx_core_push_a,
    nvtx_core_push_w,
    nvtx_core_pop,
    nvtx_core_category_a,
    nvtx_core_functions = 16
};
enum {
    nvtx_domain_mark_ex = 1,
    nvtx_domain_start_ex,
    nvtx_domain_end,
    nvtx_domain_push_ex,
    nvtx_domain_pop,
    nvtx_domain_category_a = 8,
    nvtx_domain_register_a = 10,
    nvtx_domain_register_w,
    nvtx_domain_create_a,
    nvtx_domain_functions = 16
};

typedef void (*nvtx_function)(void);
static nvtx_function nvtx_core[nvtx_core_functions];
static nvtx_function nvtx_domain[nvtx_domain_functions];

static int nvtx_function_table(uint32_t module, nvtx_function*** table, uint32_t* size) {
    static nvtx_function* places[2][16];
    if (module != 1 && module != 5) {
        return 0;
    }
    for (int i = 1; i < 16; ++i) {
        places[0][i] = &nvtx_core[i];
        places[1][i] = &nvtx_domain[i];
    }
    *table = places[module == 5];
    *size = 16;
    return 1;
}

static const void* nvtx_export_table(uint32_t id) {
    static const struct {
        size_t struct_size;
        int (*get)(uint32_t, nvtx_function***, uint32_t*);
    } callbacks = {sizeof callbacks, nvtx_function_table};
    return id == 1 ? &callbacks : NULL;
}

static void nvtx_load(void) {
    const char* path = getenv("NVTX_INJECTION64_PATH");
    void* library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    int (*initialise)(const void* (*)(uint32_t)) = NULL;
    if (library != NULL) {
        *(void**)&initialise = dlsym(library, "InitializeInjectionNvtx2");
        if (initialise == NULL || initialise(nvtx_export_table) == 0) {
            dlclose(library);
            for (int i = 0; i < 16; ++i) {
                nvtx_core[i] = nvtx_domain[i] = NULL;
            }
        }
    }
}

static inline nvtx_function nvtx_get(nvtx_function* table, int number) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static int ready; // only saves the call below
    if (__builtin_expect(!__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 0)) {
        pthread_once(&once, nvtx_load);
        __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    }
    return table[number];
}

#define NVTX_CALLER(result, name, table, number, none, parameters, arguments)         \
    static inline __attribute__((unused)) result name parameters {                    \
        result(*function) parameters = (result(*) parameters)nvtx_get(table, number); \
        return function != NULL ? function arguments : none;                          \
    }
#define NVTX_TELLER(name, table, number, parameters, arguments)                   \
    static inline __attribute__((unused)) void name parameters {                  \
        void(*function) parameters = (void(*) parameters)nvtx_get(table, number); \
        if (function != NULL) {                                                   \
            function arguments;                                                   \
        }                                                                         \
    }

NVTX_CALLER(int, nvtxRangePushA, nvtx_core, nvtx_core_push_a, -2, (const char* text), (text))
NVTX_CALLER(int, nvtxRangePushW, nvtx_core, nvtx_core_push_w, -2, (const wchar_t* text), (text))
NVTX_CALLER(int, nvtxRangePushEx, nvtx_core, nvtx_core_push_ex, -2, (const nvtxEventAttributes_t* event), (event))
NVTX_CALLER(int, nvtxRangePop, nvtx_core, nvtx_core_pop, -2, (void), ())
NVTX_CALLER(nvtxRangeId_t, nvtxRangeStartA, nvtx_core, nvtx_core_start_a, 0, (const char* text), (text))
NVTX_CALLER(nvtxRangeId_t, nvtxRangeStartEx, nvtx_core, nvtx_core_start_ex, 0, (const nvtxEventAttributes_t* event),
            (event))
NVTX_TELLER(nvtxRangeEnd, nvtx_core, nvtx_core_end, (nvtxRangeId_t id), (id))
NVTX_TELLER(nvtxMarkA, nvtx_core, nvtx_core_mark_a, (const char* text), (text))
NVTX_TELLER(nvtxMarkEx, nvtx_core, nvtx_core_mark_ex, (const nvtxEventAttributes_t* event), (event))
NVTX_TELLER(nvtxNameCategoryA, nvtx_core, nvtx_core_category_a, (uint32_t number, const char* name), (number, name))
NVTX_CALLER(nvtxDomainHandle_t, nvtxDomainCreateA, nvtx_domain, nvtx_domain_create_a, NULL, (const char* name), (name))
NVTX_CALLER(nvtxStringHandle_t, nvtxDomainRegisterStringA, nvtx_domain, nvtx_domain_register_a, NULL,
            (nvtxDomainHandle_t domain, const char* text), (domain, text))
NVTX_CALLER(int, nvtxDomainRangePushEx, nvtx_domain, nvtx_domain_push_ex, -2,
            (nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event), (domain, event))
NVTX_CALLER(int, nvtxDomainRangePop, nvtx_domain, nvtx_domain_pop, -2, (nvtxDomainHandle_t domain), (domain))
NVTX_CALLER(nvtxRangeId_t, nvtxDomainRangeStartEx, nvtx_domain, nvtx_domain_start_ex, 0,
            (nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event), (domain, event))
NVTX_TELLER(nvtxDomainRangeEnd, nvtx_domain, nvtx_domain_end, (nvtxDomainHandle_t domain, nvtxRangeId_t id),
            (domain, id))
NVTX_TELLER(nvtxDomainMarkEx, nvtx_domain, nvtx_domain_mark_ex,
            (nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event), (domain, event))
NVTX_TELLER(nvtxDomainNameCategoryA, nvtx_domain, nvtx_domain_category_a,
            (nvtxDomainHandle_t domain, uint32_t number, const char* name), (domain, number, name))

#endif
