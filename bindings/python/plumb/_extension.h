/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the extension share: what is recorded to, and a thread's scopes. Thread rule: under the GIL. */
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include "plumb/plumb.h"

#define PLUMB_RARE(condition) __builtin_expect(!!(condition), 0)
#define FAST(function) ((PyCFunction)(void (*)(void))(function))

enum { kind_brick, kind_step, kind_layer, kind_context };

typedef struct Scope {
    PyObject_HEAD int kind;
    int category;
    int has_work;
    const plumb_queue* queue; // where its time passes; NULL: on this thread
    plumb_name name;          // 0: not interned yet
    PyObject* text;           // of a brick, else NULL
    union {
        plumb_work work;
        plumb_step step;
        plumb_context context;
        uint32_t layer;
    } is;
} Scope;

/// The functions of plumb.h that are called: those of the libplumb beside us, or of libplumb-attach.
#define PLUMB_CALLED(call)                                                                                  \
    call(cuda) call(get_context) call(intern) call(last_error) call(now) call(pop_scope) call(push_context) \
        call(push_layer) call(push_scope) call(push_step) call(record_span) call(set_work)
#define PLUMB_POINTER(name) __typeof__(&plumb_##name) name;
typedef struct Functions {
    PLUMB_CALLED(PLUMB_POINTER)
} Functions;
extern Functions lib;

extern plumb_profiler* profiler; // NULL: nothing is recorded
extern unsigned generation;      // grows whenever what is open ends with it
extern int asked_environment;    // whether somebody decided what `profiler` is
extern PyTypeObject* scope_type;

/// Gives a brick its number. Where the library has no room for the name it stays 0, "unnamed", which a warning says once: no reason to
/// end an engine. False with an exception. REQUIRES: something records.
int intern(Scope* scope);
/// Begins a scope of this thread under an address that no other open one has. False with an exception.
int begin_scope(Scope* scope, uintptr_t id);
/// Ends it, and what is still open in it. Does nothing where it ended with one around it.
void end_scope(uintptr_t id);
int is_innermost(uintptr_t id);
/// Whether a step is open on this thread, whoever opened it.
int in_step(void);

// --- _modules.c ---

/// Made ready once; false with an exception.
int set_up_modules(void);
PyObject* watch_modules(PyObject* module, PyObject* arguments);
PyObject* make_module(PyObject* module, PyObject* arguments);
PyObject* module_begins(PyObject* module, PyObject* const* values, Py_ssize_t count);
PyObject* module_ends(PyObject* module, PyObject* const* values, Py_ssize_t count);
