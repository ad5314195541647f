// SPDX-License-Identifier: Apache-2.0
// A program with NVTX ranges that nobody built for us: what it marks is known, so what is recorded can be compared. Compiled with the
// headers of the CUDA toolkit where they are found, and with those of tests/mocks/nvtx everywhere.
// usage: program engine | domains | unbalanced | threads PART… | names COUNT | invalid | killed | forked | none
#ifdef PLUMB_REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include "caller.h"
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sink;
static void work(void) {
    for (int i = 0; i < 500; ++i) {
        sink += (unsigned long)i;
    }
}

// --- As vLLM and SGLang say it: a dictionary for each module, in a buffer that the next one uses again

static char text[512];
static void module_begins(const char* name, int rows, int columns, int tokens) {
    if (rows != 0) {
        snprintf(text, sizeof text, "{'Module': 'top.%s', 'TrainableParams': {'weight': [%d, %d]}, 'Inputs': [[%d, %d]]}", name, rows,
                 columns, tokens, columns);
    } else {
        snprintf(text, sizeof text, "{'Module': 'top.%s', 'Inputs': [[%d, 64]]}", name, tokens);
    }
    nvtxRangePushA(text);
}
static void module_ends(const char* name) {
    nvtxRangePop();
    snprintf(text, sizeof text, "{'Module': 'top.%s', 'Outputs': [[1, 64]]}", name);
    nvtxRangePushA(text);
    nvtxRangePop();
}
static void leaf(const char* name, int rows, int columns, int tokens) {
    module_begins(name, rows, columns, tokens);
    work();
    module_ends(name);
}

static void forward(int tokens) {
    char name[128];
    module_begins("model", 0, 0, tokens);
    leaf("model.embed_tokens", 0, 0, tokens);
    for (int layer = 0; layer < 4; ++layer) {
        const struct {
            const char* name;
            int rows, columns;
        } parts[] = {{"input_layernorm", 0, 0},         {"self_attn.qkv_proj", 96, 64}, {"self_attn.attn", 0, 0},
                     {"self_attn.o_proj", 64, 64},      {"mlp.gate_up_proj", 256, 64},  {"mlp.act_fn", 0, 0},
                     {"mlp.down_proj", 64, 128}};
        snprintf(name, sizeof name, "model.layers.%d", layer);
        module_begins(name, 0, 0, tokens);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
            snprintf(name, sizeof name, "model.layers.%d.%s", layer, parts[i].name);
            leaf(name, parts[i].rows, parts[i].columns, tokens);
        }
        snprintf(name, sizeof name, "model.layers.%d", layer);
        module_ends(name);
    }
    module_ends("model");
    leaf("lm_head", 512, 64, tokens);
}

static void engine(void) {
    nvtxRangePushA("execute_context_1(7)_generation_0(0)");
    forward(7);
    nvtxRangePop();
    for (int step = 0; step < 20; ++step) {
        nvtxRangePushA("execute_context_0(0)_generation_1(1)");
        forward(1);
        nvtxRangePushA("gpu_model_runner: sample");
        work();
        nvtxRangePop();
        nvtxRangePop();
    }
}

// --- Domains, registered strings, payloads, categories, marks, ranges over threads

static nvtxEventAttributes_t event(void) {
    nvtxEventAttributes_t made;
    memset(&made, 0, sizeof made);
    made.version = NVTX_VERSION;
    made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    return made;
}

static nvtxDomainHandle_t domain;
static void* end_range(void* id) {
    nvtxDomainRangeEnd(domain, *(nvtxRangeId_t*)id);
    return NULL;
}

static void domains(void) {
    domain = nvtxDomainCreateA("my_engine");
    nvtxDomainNameCategoryA(domain, 7, "attention");
    nvtxEventAttributes_t store = event();
    store.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    store.message.registered = nvtxDomainRegisterStringA(domain, "store k");
    store.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    nvtxEventAttributes_t scores = event();
    scores.messageType = NVTX_MESSAGE_TYPE_ASCII;
    scores.message.ascii = "scores";
    scores.category = 7;
    for (int i = 0; i < 10; ++i) {
        nvtxRangePushA("decode step");
        store.payload.ullValue = 4096;
        printf("%d", nvtxDomainRangePushEx(domain, &store));
        work();
        printf("%d", nvtxDomainRangePushEx(domain, &scores));
        nvtxRangePop(); // the step: of another domain, before what began in it
        printf("%d", nvtxDomainRangePop(domain));
        printf("%d\n", nvtxDomainRangePop(domain));
        nvtxMarkA("evicted");
        nvtxDomainMarkEx(domain, &scores);
    }
    nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &scores);
    pthread_t other;
    pthread_create(&other, NULL, end_range, &id);
    pthread_join(other, NULL);
}

static void unbalanced(void) {
    for (int i = 0; i < 1000000; ++i) {
        nvtxRangePop();
    }
    for (int i = 0; i < 1000000; ++i) {
        nvtxRangePushA("never ended");
    }
    for (int i = 0; i < 1000; ++i) {
        nvtxRangePushA("balanced");
        nvtxRangePop();
    }
    for (int i = 0; i < 1000; ++i) {
        (void)nvtxRangeStartA("started");
        nvtxRangeEnd((nvtxRangeId_t)i + (nvtxRangeId_t)12345678901234567);
    }
}

// --- Many threads, each through the tables of another shared object

static char** parts;
static int part_count;
static void* run_thread(void* number) {
    const long n = (long)number;
    void* library = part_count > 0 ? dlopen(parts[n % part_count], RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*ranges)(int, int) = NULL;
    if (library != NULL) {
        *(void**)&ranges = dlsym(library, "part_ranges");
    }
    if (ranges != NULL) {
        ranges((int)n, 5000);
    }
    return NULL;
}
static void threads(void) {
    pthread_t all[16];
    for (long i = 0; i < 16; ++i) {
        pthread_create(&all[i], NULL, run_thread, (void*)i);
    }
    for (int i = 0; i < 16; ++i) {
        pthread_join(all[i], NULL);
    }
}

static void names(int count) {
    for (int i = 0; i < count; ++i) {
        snprintf(text, sizeof text, "a name of its own %d", i);
        nvtxRangePushA(text);
        nvtxRangePop();
    }
}

static void invalid(void) {
    static char longest[100001];
    memset(longest, 'x', sizeof longest - 1);
    nvtxEventAttributes_t broken = event();
    nvtxRangePushA(NULL);
    nvtxRangePushEx(NULL);
    broken.size = 4;
    nvtxRangePushEx(&broken);
    broken.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    broken.messageType = 99;
    nvtxRangePushEx(&broken);
    broken.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    broken.message.registered = (nvtxStringHandle_t)(uintptr_t)0xdeadbeefcafeULL;
    nvtxRangePushEx(&broken);
    broken.messageType = NVTX_MESSAGE_TYPE_ASCII;
    broken.message.ascii = NULL;
    nvtxRangePushEx(&broken);
    nvtxRangePushW(L"wide \x4e16\x1f600");
    nvtxRangePushA("not \xff\xfe text\x1b[2J\n");
    nvtxRangePushA("");
    nvtxRangePushA(longest);
    broken.message.ascii = "of no domain";
    nvtxDomainRangePushEx((nvtxDomainHandle_t)(uintptr_t)0x7fffdeadbeefULL, &broken);
    nvtxDomainRangePop((nvtxDomainHandle_t)(uintptr_t)0x7fffdeadbeefULL);
    for (int i = 0; i < 10; ++i) {
        nvtxRangePop();
    }
    nvtxMarkA(NULL);
    nvtxMarkEx(NULL);
    (void)nvtxRangeStartA(NULL);
    (void)nvtxRangeStartEx(NULL);
    nvtxRangeEnd(0);
    (void)nvtxDomainRegisterStringA(NULL, NULL);
    (void)nvtxDomainCreateA(NULL);
    nvtxNameCategoryA(1, NULL);
}

static void killed(void) {
    for (int i = 0; i < 1000; ++i) {
        nvtxRangePushA("decode step");
        nvtxRangePushA("attention");
        nvtxRangePop();
        nvtxRangePop();
    }
    raise(SIGKILL);
}

static void forked(void) {
    nvtxRangePushA("parent");
    const pid_t child = fork();
    if (child == 0) {
        nvtxRangePushA("child");
        nvtxRangePop();
        nvtxRangePop();
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    nvtxRangePop();
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "none";
    parts = argv + 2;
    part_count = argc - 2;
    printf("%s\n", what);
    fflush(stdout);
    if (strcmp(what, "engine") == 0) {
        engine();
    } else if (strcmp(what, "domains") == 0) {
        domains();
    } else if (strcmp(what, "unbalanced") == 0) {
        unbalanced();
    } else if (strcmp(what, "threads") == 0) {
        threads();
    } else if (strcmp(what, "names") == 0 && argc > 2) {
        names(atoi(argv[2]));
    } else if (strcmp(what, "invalid") == 0) {
        invalid();
    } else if (strcmp(what, "killed") == 0) {
        killed();
    } else if (strcmp(what, "forked") == 0) {
        forked();
    }
    return 3;
}
