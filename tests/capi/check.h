/* SPDX-License-Identifier: Apache-2.0 */
/* What the C tests share: checks that print where they failed, and readings of what was recorded. One thread. */
#ifndef PLUMB_TESTS_CAPI_CHECK_H
#define PLUMB_TESTS_CAPI_CHECK_H

#include <plumb/plumb.h>
#include <stdio.h>
#include <string.h>

extern int failures;

#define CHECK(condition)                                                                                        \
    do {                                                                                                        \
        if (!(condition)) {                                                                                     \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, plumb_last_error()); \
            ++failures;                                                                                         \
        }                                                                                                       \
    } while (0)
#define CHECK_OK(call) CHECK((call) == plumb_ok)
/* The call fails with that code, and its sentence holds the text, is one line and says what to do. */
#define CHECK_FAILS(call, code, text)                                                                \
    do {                                                                                             \
        CHECK((call) == (code));                                                                     \
        CHECK(strstr(plumb_last_error(), text) != NULL && strchr(plumb_last_error(), '\n') == NULL); \
    } while (0)

/* Of `plumb check FILE --drops 0 --expect EXPECTED`: a plumb_outcome, or -1 where it could not be asked. */
int outcome_of_check(const char* file, const char* expected);
/* Whether the JSON of an answer to that file, or to those files, holds the text. */
int answer_holds(const char* answer, const char* file, const char* text);
int answer_of_all_holds(const char* answer, const char* const* files, uint32_t count, const char* text);

void test_run(const char* folder);
void test_context(const char* folder);
void test_late(const char* folder);
void test_tensors(const char* folder);
void test_requests(const char* folder);
void test_collectives(const char* folder);
void test_off(const char* folder);
void test_wrong_arguments(const char* folder);
void test_struct_sizes(const char* folder);
void test_queues(const char* folder);

/* "<folder>/<name>.plumb" in `path`; a spec that records there in `spec`. */
typedef struct run_names {
    char path[512];
    char spec[640];
} run_names;
run_names names_of(const char* folder, const char* name, const char* more);

#endif
