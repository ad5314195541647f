/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's program in C: records a scope in each of four steps, and asks for the results. Fails if nothing was recorded, or the
 * analysis is not there where it should be, or the other way round. */
#include <plumb/plumb.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, plumb_last_error());
    return 1;
}

/* What a question gave is what `present` says: JSON, or a sentence about the analysis. */
static int wrong(plumb_code code, char* json, int present) {
    const int right = present
                          ? code == plumb_ok && json != NULL && strstr(json, "rms_norm") != NULL
                          : code == plumb_unavailable && json == NULL && strstr(plumb_last_error(), "analysis") != NULL;
    plumb_free(json);
    return !right;
}

int main(int argc, char** argv) {
    const int present = argc == 3 && strcmp(argv[2], "present") == 0;
    char spec[4096];
    char* json = NULL;
    const char* files[1];
    plumb_profiler* profiler = NULL;
    plumb_step step;
    plumb_question question;
    plumb_code code;
    if (argc != 3) {
        fputs("usage: consumer_c FILE present|absent\n", stderr);
        return 2;
    }
    snprintf(spec, sizeof spec, "on,warmup=0,out=%s", argv[1]);
    if (plumb_open(spec, &profiler) != plumb_ok) {
        return failed("plumb_open()");
    }
    memset(&step, 0, sizeof step);
    step.struct_size = sizeof step;
    step.phase = plumb_phase_decode;
    for (step.decode_tokens = 1; step.kv_length < 4; ++step.kv_length) {
        if (plumb_push_step(profiler, NULL, &step) != plumb_ok ||
            plumb_push_scope(profiler, NULL, plumb_brick_rms_norm, NULL) != plumb_ok ||
            plumb_pop_scope(profiler) != plumb_ok || plumb_pop_scope(profiler) != plumb_ok) {
            return failed("recording");
        }
    }
    code = plumb_snapshot(profiler, &json);
    if (wrong(code, json, present)) {
        return failed("plumb_snapshot()");
    }
    if (plumb_close(profiler) != plumb_ok) {
        return failed("plumb_close()");
    }
    memset(&question, 0, sizeof question);
    question.struct_size = sizeof question;
    question.answer = "report";
    question.files = files;
    question.file_count = 1;
    files[0] = argv[1];
    code = plumb_ask(&question, &json, NULL);
    return wrong(code, json, present) ? failed("plumb_ask()") : 0;
}
