// SPDX-License-Identifier: Apache-2.0
// A shared object with NVTX tables of its own, of which program.c loads several.
#ifdef PLUMB_REAL_NVTX
#include <nvtx3/nvToolsExt.h>
#else
#include "caller.h"
#endif
#include <stdio.h>

__attribute__((visibility("default"))) void part_ranges(int thread, int count) {
    char own[32];
    snprintf(own, sizeof own, "thread %d", thread);
    for (int i = 0; i < count; ++i) {
        nvtxRangePushA("common");
        nvtxRangePushA(own);
        nvtxRangePop();
        nvtxRangePop();
    }
}
