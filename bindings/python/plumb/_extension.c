/* SPDX-License-Identifier: Apache-2.0 */
/* The hot half of the Python package: what a decode loop calls. _fallback.py is the same over ctypes, _library.py the cold half of
   both. Stable ABI of Python 3.10, the first with METH_FASTCALL in it: one file for that and every later Python.
   Thread rule: the profiler and names belong to whoever holds the GIL; each thread has its own Stack. */
#define _GNU_SOURCE 1 // dladdr()
#include "_extension.h"

#include <dlfcn.h>
#include <float.h>
#include <stddef.h>
#include <string.h>

static const char* const kind_words[] = {"brick", "step", "layer", "context", NULL};
static const char* const phase_words[] = {"none", "prefill", "decode", "mixed", NULL};
static const char* const category_words[] = {"other",  "norm",  "attention",  "ffn",      "moe", "embedding",
                                             "output", "cache", "collective", "transfer", NULL};

#define PLUMB_OWN(name) plumb_##name,
Functions lib = {PLUMB_CALLED(PLUMB_OWN)};
plumb_profiler* profiler;
unsigned generation = 1;
int asked_environment;
static PyObject* names; // text -> plumb_name
PyTypeObject* scope_type;
static PyObject *error_type, *first_use, *decorate; // of _library.py

/// What a thread has open. plumb_pop_scope() ends the innermost: only with this does the end of a generator, or of a scope that was
/// begun in another mode, end no other scope. `ids` holds the Scope of a with statement, 0 for push().
enum { most_ids = 64 }; // as deep as the library keeps; what lies deeper is ended innermost first
typedef struct Stack {
    unsigned generation;
    unsigned depth;
    unsigned forgotten; // of an older generation: their ends do nothing
    uintptr_t ids[most_ids];
} Stack;
static _Thread_local Stack stack_of_thread;

static inline Stack* own_stack(void) {
    Stack* stack = &stack_of_thread;
    __asm__("" : "+r"(stack)); // or its address would be asked for at each use
    if (PLUMB_RARE(stack->generation != generation)) {
        stack->generation = generation;
        stack->forgotten += stack->depth;
        stack->depth = 0;
    }
    return stack;
}

static PyObject* raise_code(plumb_code code) {
    PyObject* error = PyObject_CallFunction(error_type, "si", lib.last_error(), code);
    if (error != NULL) {
        PyErr_SetObject(error_type, error);
        Py_DECREF(error);
    }
    return NULL;
}
static PyObject* none_or_raise(plumb_code code) {
    if (code != plumb_ok) {
        return raise_code(code);
    }
    Py_RETURN_NONE;
}

/// False with an exception.
static int ask_environment(void) {
    PyObject* done = PyObject_CallFunction(first_use, NULL);
    Py_XDECREF(done);
    return done != NULL;
}

int intern(Scope* scope) {
    static int told;
    PyObject* known = PyDict_GetItemWithError(names, scope->text);
    if (known != NULL) {
        scope->name = (plumb_name)PyLong_AsLong(known);
        return 1;
    }
    const char* text = PyErr_Occurred() != NULL ? NULL : PyUnicode_AsUTF8AndSize(scope->text, NULL);
    if (text == NULL) {
        return 0;
    }
    plumb_name name = 0;
    const plumb_code code = lib.intern(profiler, text, scope->category, &name);
    if (code != plumb_ok) {
        const int again = told;
        told = 1;
        return again || PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%R is recorded as \"unnamed\": %s", scope->text,
                                         lib.last_error()) == 0;
    }
    known = PyLong_FromLong(name);
    const int kept = known != NULL && PyDict_SetItem(names, scope->text, known) == 0;
    Py_XDECREF(known);
    scope->name = name;
    return kept;
}

static const plumb_work* work_of(const Scope* scope) { return scope->has_work ? &scope->is.work : NULL; }

static plumb_code push_other(const Scope* scope) {
    switch (scope->kind) {
    case kind_step:
        return lib.push_step(profiler, NULL, &scope->is.step);
    case kind_layer:
        return lib.push_layer(profiler, scope->is.layer);
    default:
        return lib.push_context(profiler, &scope->is.context);
    }
}

/// False with an exception.
static inline int begin(Scope* scope, uintptr_t id) {
    if (PLUMB_RARE(profiler == NULL && !asked_environment) && !ask_environment()) {
        return 0;
    }
    if (profiler != NULL) {
        plumb_code code = plumb_ok;
        if (PLUMB_RARE(scope->kind != kind_brick)) {
            code = push_other(scope);
        } else if (PLUMB_RARE(scope->name == 0) && !intern(scope)) {
            return 0;
        } else {
            code = lib.push_scope(profiler, scope->queue, scope->name, work_of(scope));
        }
        if (PLUMB_RARE(code != plumb_ok) && profiler != NULL) { // else it was closed while intern() warned
            (void)raise_code(code);
            return 0;
        }
    }
    Stack* stack = own_stack();
    if (stack->depth < most_ids) {
        stack->ids[stack->depth] = id;
    }
    ++stack->depth;
    return 1;
}

static inline void end_innermost(Stack* stack) {
    --stack->depth;
    if (profiler != NULL) {
        (void)lib.pop_scope(profiler);
    }
}

int in_step(void) {
    plumb_context context;
    memset(&context, 0, sizeof context);
    context.struct_size = sizeof context;
    return profiler != NULL && lib.get_context(profiler, &context) == plumb_ok && context.step_plus_one != 0;
}

int begin_scope(Scope* scope, uintptr_t id) { return begin(scope, id); }

int is_innermost(uintptr_t id) {
    const Stack* stack = own_stack();
    return stack->depth != 0 && stack->depth <= most_ids && stack->ids[stack->depth - 1] == id;
}

// --- Scope ---

static PyObject* scope_enter(PyObject* self, PyObject* Py_UNUSED(none)) {
    if (!begin((Scope*)self, (uintptr_t)self)) {
        return NULL;
    }
    Py_INCREF(self);
    return self;
}

void end_scope(uintptr_t id) {
    Stack* stack = own_stack();
    unsigned at = stack->depth;
    if (at > most_ids) {
        end_innermost(stack);
        return;
    }
    while (at != 0 && stack->ids[at - 1] != id) {
        --at;
    }
    if (at == 0) { // ended with one around it, begun on another thread, or before the profiler was closed
        stack->forgotten -= stack->depth == 0 && stack->forgotten != 0;
        return;
    }
    while (stack->depth >= at) {
        end_innermost(stack);
    }
}

static PyObject* scope_exit(PyObject* self, PyObject* const* Py_UNUSED(arguments), Py_ssize_t Py_UNUSED(count)) {
    end_scope((uintptr_t)self);
    Py_RETURN_NONE;
}

static PyObject* scope_call(PyObject* self, PyObject* arguments, PyObject* keywords) {
    PyObject* function = NULL;
    if (keywords != NULL || !PyArg_ParseTuple(arguments, "O", &function)) {
        PyErr_SetString(PyExc_TypeError, "a Scope is called with the function that it decorates");
        return NULL;
    }
    return PyObject_CallFunctionObjArgs(decorate, self, function, NULL);
}

static PyObject* scope_repr(PyObject* self) {
    const Scope* scope = (const Scope*)self;
    return scope->kind == kind_brick   ? PyUnicode_FromFormat("<plumb brick %R>", scope->text)
           : scope->kind == kind_layer ? PyUnicode_FromFormat("<plumb layer %u>", scope->is.layer)
                                       : PyUnicode_FromFormat("<plumb %s>", kind_words[scope->kind]);
}

static void scope_free(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    Py_XDECREF(((Scope*)self)->text);
    PyObject_Free(self);
    Py_DECREF(type);
}

static Scope* new_scope(int kind) {
    Scope* scope = PyObject_New(Scope, scope_type);
    if (scope != NULL) {
        const size_t header = offsetof(Scope, kind);
        memset((char*)scope + header, 0, sizeof *scope - header);
        scope->kind = kind;
    }
    return scope;
}

// --- Arguments ---

/// The keywords of a function, interned: a call is told by address.
typedef struct Word {
    const char* text;
    PyObject* key;
} Word;
static Word brick_keywords[] = {{"bytes", 0},        {"flops", 0},    {"elements", 0},
                                {"bytes_per_kv", 0}, {"category", 0}, {0, 0}};
enum { category_keyword = 4 };
static Word step_keywords[] = {{"prefill_tokens", 0}, {"decode_tokens", 0}, {"sequences", 0},
                               {"kv_length", 0},      {"tokens", 0},        {0, 0}};
enum { most_index = 65534 }; // of a layer: what a record has room for

/// Negative with an exception.
static int keyword_in(const Word* words, PyObject* key) {
    for (int i = 0; words[i].text != NULL; ++i) {
        if (words[i].key == key) {
            return i;
        }
    }
    for (int i = 0; words[i].text != NULL; ++i) {
        if (PyUnicode_CompareWithASCIIString(key, words[i].text) == 0) {
            return i;
        }
    }
    PyErr_Format(PyExc_TypeError, "there is no argument %R", key);
    return -1;
}

/// Negative with an exception.
static int word_in(const char* const* words, PyObject* given, const char* what) {
    if (PyUnicode_Check(given)) {
        for (int i = 0; words[i] != NULL; ++i) {
            if (PyUnicode_CompareWithASCIIString(given, words[i]) == 0) {
                return i;
            }
        }
    }
    PyErr_Format(PyExc_ValueError, "%R is no %s", given, what);
    return -1;
}

/// Work from the keywords of a call; `category` may be NULL. False with an exception.
static int read_work(PyObject* const* values, PyObject* keywords, plumb_work* work, int* category) {
    double* const fields[] = {&work->bytes, &work->flops, &work->elements, &work->bytes_per_kv};
    const Py_ssize_t count = keywords != NULL ? PyTuple_Size(keywords) : 0;
    work->struct_size = sizeof *work;
    for (Py_ssize_t i = 0; i < count; ++i) {
        const int keyword = keyword_in(brick_keywords, PyTuple_GetItem(keywords, i));
        if (keyword == category_keyword && category != NULL) {
            *category = word_in(category_words, values[i], "category");
        } else if (keyword == category_keyword) {
            PyErr_SetString(PyExc_TypeError, "a category is given where the brick is made");
        } else if (keyword >= 0) {
            const double given = PyFloat_AsDouble(values[i]);
            if (!(given >= 0 && given <= DBL_MAX) && PyErr_Occurred() == NULL) {
                PyErr_Format(PyExc_ValueError, "%s=%R is no amount of work: it is a finite number from 0",
                             brick_keywords[keyword].text, values[i]);
            }
            *fields[keyword] = given;
        }
        if (PyErr_Occurred() != NULL) {
            return 0;
        }
    }
    return 1;
}

static int no_brick(PyObject* given) {
    const int wrong = Py_TYPE(given) != scope_type || ((Scope*)given)->kind != kind_brick;
    if (wrong) {
        PyErr_Format(PyExc_TypeError, "%R is no brick: give what plumb.brick() made", given);
    }
    return wrong;
}

// --- Functions ---

static PyObject* make_brick(PyObject* Py_UNUSED(module), PyObject* const* values, Py_ssize_t count,
                            PyObject* keywords) {
    if (count != 1 || !PyUnicode_Check(values[0])) {
        PyErr_SetString(PyExc_TypeError, "a brick takes its name, and keywords");
        return NULL;
    }
    Py_ssize_t size = 0;
    if (PyUnicode_AsUTF8AndSize(values[0], &size) == NULL) {
        return NULL;
    }
    if (size == 0) {
        PyErr_SetString(PyExc_ValueError, "a name is empty: give its text");
        return NULL;
    }
    Scope* scope = new_scope(kind_brick);
    if (scope == NULL) {
        return NULL;
    }
    Py_INCREF(values[0]);
    scope->text = values[0];
    if (!read_work(values + 1, keywords, &scope->is.work, &scope->category)) {
        Py_DECREF(scope);
        return NULL;
    }
    const plumb_work* work = &scope->is.work;
    scope->has_work = work->bytes != 0 || work->flops != 0 || work->elements != 0 || work->bytes_per_kv != 0;
    return (PyObject*)scope;
}

static uint64_t count_in(PyObject* given) {
    PyObject* whole = PyNumber_Index(given);
    const uint64_t count = whole != NULL ? PyLong_AsUnsignedLongLong(whole) : 0;
    if (PyErr_Occurred() != NULL && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_SetString(PyExc_ValueError, "a count is negative or beyond 64 bits");
    }
    Py_XDECREF(whole);
    return count;
}

static PyObject* make_step(PyObject* Py_UNUSED(module), PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
    if (count > 1) {
        PyErr_SetString(PyExc_TypeError, "a step takes its phase, and keywords");
        return NULL;
    }
    const int phase = count == 0 ? plumb_phase_decode : word_in(phase_words, values[0], "phase");
    Scope* scope = phase < 0 ? NULL : new_scope(kind_step);
    if (scope == NULL) {
        return NULL;
    }
    plumb_step* step = &scope->is.step;
    uint64_t tokens = 0; // not known
    uint64_t* const fields[] = {&step->prefill_tokens, &step->decode_tokens, &step->sequences, &step->kv_length,
                                &tokens};
    const Py_ssize_t given = keywords != NULL ? PyTuple_Size(keywords) : 0;
    step->struct_size = sizeof *step;
    step->phase = phase;
    for (Py_ssize_t i = 0; i < given; ++i) {
        const int keyword = keyword_in(step_keywords, PyTuple_GetItem(keywords, i));
        if (keyword >= 0) {
            *fields[keyword] = count_in(values[count + i]);
        }
        if (PyErr_Occurred() != NULL) {
            Py_DECREF(scope);
            return NULL;
        }
    }
    if (tokens != 0) {
        *(phase == plumb_phase_prefill ? &step->prefill_tokens : &step->decode_tokens) = tokens;
    }
    return (PyObject*)scope;
}

static PyObject* make_layer(PyObject* Py_UNUSED(module), PyObject* given) {
    const uint64_t index = count_in(given);
    if (index > most_index && PyErr_Occurred() == NULL) {
        PyErr_Format(PyExc_ValueError, "%R is no index of a layer: that is 0 to 65534", given);
    }
    Scope* scope = PyErr_Occurred() != NULL ? NULL : new_scope(kind_layer);
    if (scope != NULL) {
        scope->is.layer = (uint32_t)index;
    }
    return (PyObject*)scope;
}

static PyObject* make_context(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(none)) {
    Scope* scope = new_scope(kind_context);
    if (scope != NULL) {
        scope->is.context.struct_size = sizeof scope->is.context;
        if (profiler != NULL) {
            (void)lib.get_context(profiler, &scope->is.context);
        }
    }
    return (PyObject*)scope;
}

static PyObject* push(PyObject* Py_UNUSED(module), PyObject* given) {
    if (PLUMB_RARE(Py_TYPE(given) != scope_type)) {
        PyErr_Format(PyExc_TypeError, "%R is no Scope: give what plumb.brick() and its like made", given);
        return NULL;
    }
    if (!begin((Scope*)given, 0)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject* pop(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(none)) {
    Stack* stack = own_stack();
    if (stack->depth != 0) {
        end_innermost(stack);
    } else if (stack->forgotten != 0) {
        --stack->forgotten;
    } else if (profiler != NULL) {
        return none_or_raise(lib.pop_scope(profiler)); // says what is wrong, and counts it
    }
    Py_RETURN_NONE;
}

static PyObject* set_work(PyObject* Py_UNUSED(module), PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
    plumb_work work;
    memset(&work, 0, sizeof work);
    if (count != 0) {
        PyErr_SetString(PyExc_TypeError, "work() takes keywords alone");
        return NULL;
    }
    if (!read_work(values, keywords, &work, NULL)) {
        return NULL;
    }
    const Stack* stack = own_stack();
    const int dropped = stack->depth == 0 && stack->forgotten != 0; // the brick was, when recording began or ended
    return none_or_raise(profiler != NULL && !dropped ? lib.set_work(profiler, &work) : plumb_ok);
}

static PyObject* now(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(none)) {
    return asked_environment || ask_environment() ? PyLong_FromUnsignedLongLong(lib.now(profiler)) : NULL;
}

static PyObject* span(PyObject* Py_UNUSED(module), PyObject* const* values, Py_ssize_t count) {
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "span() takes a brick and two moments from plumb.now()");
        return NULL;
    }
    if (no_brick(values[0])) {
        return NULL;
    }
    Scope* scope = (Scope*)values[0];
    const uint64_t from = count_in(values[1]);
    const uint64_t to = PyErr_Occurred() != NULL ? 0 : count_in(values[2]);
    if (PyErr_Occurred() != NULL || (profiler != NULL && scope->name == 0 && !intern(scope))) {
        return NULL;
    }
    const int known = profiler != NULL && from != 0; // 0: it began while nothing was recorded
    return none_or_raise(known ? lib.record_span(profiler, scope->name, from, to, work_of(scope)) : plumb_ok);
}

// --- For _library.py ---

static PyObject* use(PyObject* Py_UNUSED(module), PyObject* handle) {
    void* given = PyLong_AsVoidPtr(handle);
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
    profiler = given;
    asked_environment = 1;
    ++generation;
    Py_RETURN_NONE;
}

/// Whether this thread has a scope open, or is in a step of whoever else records.
static PyObject* is_open(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(none)) {
    return PyBool_FromLong(own_stack()->depth != 0 || in_step());
}

/// From now on functions of the library behind this address: of plumb_attach_function(). False where it lacks one. REQUIRES: nothing was
/// recorded yet.
static PyObject* call_into(PyObject* Py_UNUSED(module), PyObject* address) {
    void* (*const find)(const char*) = (void* (*)(const char*))(uintptr_t)PyLong_AsVoidPtr(address);
    if (PyErr_Occurred() != NULL) {
        return NULL;
    }
#define PLUMB_FOUND(name) (__typeof__(&plumb_##name))(uintptr_t)find("plumb_" #name),
    const Functions found = {PLUMB_CALLED(PLUMB_FOUND)};
    void* each[sizeof found / sizeof(void*)];
    memcpy(each, &found, sizeof found);
    for (size_t i = 0; i < sizeof each / sizeof *each; ++i) {
        if (each[i] == NULL) {
            Py_RETURN_FALSE;
        }
    }
    lib = found;
    Py_RETURN_TRUE;
}

static PyObject* set_up(PyObject* Py_UNUSED(module), PyObject* arguments) {
    if (!PyArg_ParseTuple(arguments, "OOO", &error_type, &first_use, &decorate)) {
        return NULL;
    }
    Py_INCREF(error_type);
    Py_INCREF(first_use);
    Py_INCREF(decorate);
    Py_RETURN_NONE;
}

static PyObject* library_path(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(none)) {
    Dl_info found;
    if (dladdr((void*)(uintptr_t)&plumb_open, &found) == 0) {
        Py_RETURN_NONE;
    }
    return PyUnicode_DecodeFSDefault(found.dli_fname);
}

static PyMethodDef functions[] = {
    {"brick", FAST(make_brick), METH_FASTCALL | METH_KEYWORDS,
     "brick(name, /, *, bytes=0, flops=0, elements=0, bytes_per_kv=0, category='other')\n--\n\n"
     "One operation: for `with`, push(), or as a decorator. Make it once and use it again: that is the fast way.\n"
     "bytes: read and written; flops: a multiply-add counts 2; bytes_per_kv: times the step's kv_length, added to bytes.\n"
     "0 is not known. The category counts where the name is first used; well-known names have theirs."},
    {"step", FAST(make_step), METH_FASTCALL | METH_KEYWORDS,
     "step(phase='decode', /, *, prefill_tokens=0, decode_tokens=0, sequences=0, kv_length=0, tokens=0)\n--\n\n"
     "One forward pass. phase: 'prefill', 'decode', 'mixed' or 'none'; tokens: those of the phase; kv_length: positions of\n"
     "the kv cache that its attention reads."},
    {"layer", make_layer, METH_O, "layer(index, /)\n--\n\nOne layer of a step, counted from 0."},
    {"context", make_context, METH_NOARGS,
     "context()\n--\n\nStep and layer that are open here, for `with` on another thread that works for them."},
    {"push", push, METH_O,
     "push(scope, /)\n--\n\nBegins a scope, to its pop() on the same thread. Costs less than `with`."},
    {"pop", pop, METH_NOARGS, "pop()\n--\n\nEnds what this thread began last."},
    {"work", FAST(set_work), METH_FASTCALL | METH_KEYWORDS,
     "work(*, bytes=0, flops=0, elements=0, bytes_per_kv=0)\n--\n\n"
     "Work of the innermost brick, known only now; it replaces what was given before."},
    {"now", now, METH_NOARGS, "now()\n--\n\nThe profiler's clock, in ticks of its own; 0 while there is none."},
    {"span", FAST(span), METH_FASTCALL,
     "span(brick, begin, end, /)\n--\n\n"
     "A brick that was timed elsewhere: both moments from now(). Outside the nesting of this thread."},
    {"_use", use, METH_O, NULL},
    {"_is_open", is_open, METH_NOARGS, NULL},
    {"_call_into", call_into, METH_O, NULL},
    {"_set_up", set_up, METH_VARARGS, NULL},
    {"_library_path", library_path, METH_NOARGS, NULL},
    {"_watch_modules", watch_modules, METH_VARARGS, NULL},
    {"_module", make_module, METH_VARARGS, NULL},
    {"_module_begins", FAST(module_begins), METH_FASTCALL, NULL},
    {"_module_ends", FAST(module_ends), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static PyMethodDef scope_methods[] = {{"__enter__", scope_enter, METH_NOARGS, NULL},
                                      {"__exit__", FAST(scope_exit), METH_FASTCALL, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyType_Slot scope_slots[] = {
    {Py_tp_dealloc, scope_free},
    {Py_tp_methods, scope_methods},
    {Py_tp_call, scope_call},
    {Py_tp_repr, scope_repr},
    {Py_tp_doc,
     "What brick(), step(), layer() and context() make: for `with` and push(), again and again, on any thread."},
    {0, NULL}};
static PyType_Spec scope_spec = {"plumb.Scope", sizeof(Scope), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, scope_slots};

static struct PyModuleDef module_of = {
    PyModuleDef_HEAD_INIT, "plumb._extension", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__extension(void) {
    PyObject* module = PyModule_Create(&module_of);
    scope_type = (PyTypeObject*)PyType_FromSpec(&scope_spec);
    names = PyDict_New();
    if (module == NULL || scope_type == NULL || names == NULL || PyModule_AddType(module, scope_type) < 0 ||
        !set_up_modules()) {
        return NULL;
    }
    for (Word* list = brick_keywords; list != NULL; list = list == brick_keywords ? step_keywords : NULL) {
        for (Word* word = list; word->text != NULL; ++word) {
            word->key = PyUnicode_InternFromString(word->text);
        }
    }
    return module;
}
