/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "check.h"

int failures = 0;

static int ask_check(const char* file, const char* expected, char** json, int* outcome) {
    const char* files[1];
    const char* options[4];
    plumb_question question;
    memset(&question, 0, sizeof question);
    files[0] = file;
    options[0] = "drops", options[1] = "0";
    options[2] = "expect", options[3] = expected;
    question.struct_size = sizeof question;
    question.answer = "check";
    question.files = files;
    question.file_count = 1;
    question.options = options;
    question.option_count = 2;
    return plumb_ask(&question, json, outcome);
}

int outcome_of_check(const char* file, const char* expected) {
    int outcome = -1;
    char* json = NULL;
    if (ask_check(file, expected, &json, &outcome) != plumb_ok) {
        fprintf(stderr, "%s\n", plumb_last_error());
        return -1;
    }
    if (outcome != plumb_outcome_pass) {
        fprintf(stderr, "note: %s\n", json);
    }
    plumb_free(json);
    return outcome;
}

int answer_holds(const char* answer, const char* file, const char* text) {
    return answer_of_all_holds(answer, &file, 1, text);
}

int answer_of_all_holds(const char* answer, const char* const* files, uint32_t count, const char* text) {
    plumb_question question;
    char* json = NULL;
    int holds;
    memset(&question, 0, sizeof question);
    question.struct_size = sizeof question;
    question.answer = answer;
    question.files = files;
    question.file_count = count;
    if (plumb_ask(&question, &json, NULL) != plumb_ok) {
        fprintf(stderr, "%s\n", plumb_last_error());
        return 0;
    }
    holds = json[0] == '{' && strstr(json, text) != NULL;
    if (!holds) {
        fprintf(stderr, "%s: no %s in %s\n", answer, text, json);
    }
    plumb_free(json);
    return holds;
}

run_names names_of(const char* folder, const char* name, const char* more) {
    run_names names;
    snprintf(names.path, sizeof names.path, "%s/%s.plumb", folder, name);
    snprintf(names.spec, sizeof names.spec, "on,warmup=0,%sout=%s", more, names.path);
    remove(names.path);
    return names;
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(const char* folder);
    } tests[] = {
        {"run", test_run},
        {"context", test_context},
        {"late", test_late},
        {"tensors", test_tensors},
        {"requests", test_requests},
        {"collectives", test_collectives},
        {"off", test_off},
        {"wrong_arguments", test_wrong_arguments},
        {"struct_sizes", test_struct_sizes},
        {"queues", test_queues},
    };
    size_t i;
    if (argc != 3) {
        fputs("usage: capi_test TEST FOLDER\n", stderr);
        return 2;
    }
    for (i = 0; i < sizeof tests / sizeof tests[0]; ++i) {
        if (strcmp(argv[1], tests[i].name) == 0) {
            tests[i].run(argv[2]);
            return failures == 0 ? 0 : 1;
        }
    }
    fprintf(stderr, "there is no test %s\n", argv[1]);
    return 2;
}
