/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks that torch calls around each call of a module: steps, layers and bricks of a model that nobody changed. What is known of a
   module _torch.py finds out once; here is what runs with each call. No error of ours reaches the program.
   Thread rule: under the GIL; each thread has its own Calls. */
#include "_extension.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { on_processor = -1, no_weights = -2 };
enum { rows_unknown, rows_are_elements, rows_are_all_but_the_last };

/// What is known of one module; made by _torch.py.
typedef struct Module {
    PyObject_HEAD PyObject* weak; // of the module, with the call that forgets it
    Scope* brick;
    Scope* layer; // NULL: none
    int is_parent;
    int device; // of its weights: index of the GPU, or on_processor, or no_weights
    int rows; // how they are counted in the shape of its first argument
    double bytes;
    double bytes_of_row;
    double flops_of_row;
} Module;

static PyTypeObject* module_type;
static PyObject* known;                // address of a module -> Module
static PyObject *describe, *outermost; // of _torch.py
static PyObject *raw_stream, *gpu_now, *say_is_elsewhere; // current stream of a GPU; current GPU; that a module is on another one
static PyObject *tensor_type, *parameter_type;
static PyObject* shape_word;

/// One call of a module that has not ended. Each of its scopes is known by the address of the member that says whether it is open.
typedef struct Call {
    PyObject* module; // borrowed: never looked into
    Module* is;
    int device;        // where it computes
    const char* place; // of its hook on the C stack, which grows downwards
    char step, layer, brick;
    char paused;   // its brick is, for a call inside it
    char in_layer; // a layer is open: of this call, or of one around it
    char aside;    // nothing in it is recorded
} Call;

enum { most_calls = 64 }; // what lies deeper is the time of what holds it
typedef struct Calls {
    unsigned generation;
    unsigned depth;
    int device; // that this is a queue of, if it has a timer
    uintptr_t stream;
    plumb_queue queue;
    Call open[most_calls];
} Calls;
static _Thread_local Calls calls_of_thread;

/// Of a scope and the member of a Call that stands for it.
static void open_scope(Scope* scope, char* member) {
    *member = begin_scope(scope, (uintptr_t)member) != 0;
    PyErr_Clear();
}
static void close_scope(char* member) {
    if (*member) {
        end_scope((uintptr_t)member);
        *member = 0;
    }
}

static void forget(Calls* calls) {
    Call* call = &calls->open[--calls->depth];
    Py_CLEAR(call->is);
}

static Calls* own_calls(void) {
    Calls* calls = &calls_of_thread;
    if (PLUMB_RARE(calls->generation != generation)) {
        calls->generation = generation;
        while (calls->depth != 0) {
            forget(calls);
        }
    }
    return calls;
}

/// -1: not known.
static double rows_in(PyObject* arguments, int rows) {
    PyObject* first = rows != rows_unknown && PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0) : NULL;
    // Of these two alone looking at the shape is known to change nothing.
    const PyObject* type = first != NULL ? (const PyObject*)Py_TYPE(first) : NULL;
    if (type == NULL || (type != tensor_type && type != parameter_type)) {
        return -1;
    }
    PyObject* shape = PyObject_GetAttr(first, shape_word);
    const Py_ssize_t dimensions = shape != NULL ? PyTuple_Size(shape) : -1;
    double count = dimensions < 0 ? -1 : 1;
    for (Py_ssize_t i = 0; i < dimensions - (rows == rows_are_all_but_the_last); ++i) {
        count *= PyLong_AsDouble(PyTuple_GetItem(shape, i));
    }
    Py_XDECREF(shape);
    return PyErr_Occurred() != NULL ? -1 : count;
}

/// What a function of no or one number gives. False where it raises.
static int ask_torch(PyObject* function, int device, uintptr_t* answer) {
    PyObject* number = device >= 0 ? PyLong_FromLong(device) : NULL;
    PyObject* found = PyObject_CallFunctionObjArgs(function, number, NULL);
    *answer = found != NULL ? (uintptr_t)PyLong_AsVoidPtr(found) : 0;
    const int is_told = found != NULL && PyErr_Occurred() == NULL;
    PyErr_Clear();
    Py_XDECREF(number);
    Py_XDECREF(found);
    return is_told;
}

/// A stream that every GPU has under the same number belongs to the one that is current.
static int is_current(uintptr_t stream, int device) {
    enum { last_special = 2 };
    uintptr_t now = 0;
    if (stream > last_special || (ask_torch(gpu_now, -1, &now) && now == (uintptr_t)device)) {
        return 1;
    }
    PyObject* said = PyObject_CallFunctionObjArgs(say_is_elsewhere, NULL);
    Py_XDECREF(said);
    PyErr_Clear();
    return 0;
}

/// The queue of the current stream of that GPU. False: its time cannot be told.
static int find_queue(int device, const plumb_queue** queue) {
    Calls* calls = &calls_of_thread;
    uintptr_t stream = 0;
    *queue = NULL;
    if (device < 0) {
        return 1;
    }
    if (!ask_torch(raw_stream, device, &stream) || !is_current(stream, device)) {
        return 0;
    }
    if (calls->queue.timer == NULL || calls->device != device || calls->stream != stream) {
        calls->device = device;
        calls->stream = stream;
        calls->queue.struct_size = sizeof calls->queue;
        if (lib.cuda((void*)stream, &calls->queue) != plumb_ok) {
            calls->queue.timer = NULL;
            return 0;
        }
    }
    *queue = &calls->queue;
    return 1;
}

/// `rows` is negative where its work is not known.
static void open_brick(Call* call, double rows) {
    const Module* is = call->is;
    const plumb_queue* queue = NULL;
    if (PLUMB_RARE(is->brick->name == 0) && profiler != NULL && !intern(is->brick)) { // may warn
        PyErr_Clear();
    }
    if (!find_queue(call->device, &queue)) {
        return;
    }
    // From here on no Python runs: the brick is one for all threads.
    plumb_work* work = &is->brick->is.work;
    is->brick->queue = queue;
    is->brick->has_work = rows >= 0;
    work->bytes = is->bytes + rows * is->bytes_of_row;
    work->flops = rows * is->flops_of_row;
    open_scope(is->brick, &call->brick);
}

/// The time of a module that holds others ends where one of them begins, and goes on behind it.
static void make_way(Call* call) {
    if (call->brick && is_innermost((uintptr_t)&call->brick)) { // else the program has a scope of its own open in it
        close_scope(&call->brick);
        call->paused = 1;
    }
}
static void go_on(Call* call) {
    if (call->paused) {
        call->paused = 0;
        open_brick(call, -1);
    }
}

static void end_call(Calls* calls) {
    Call* call = &calls->open[calls->depth - 1];
    close_scope(&call->brick);
    close_scope(&call->layer);
    close_scope(&call->step);
    forget(calls);
}

static Module* look_up(PyObject* module) {
    PyObject* address = PyLong_FromVoidPtr(module);
    PyObject* found = address != NULL ? PyDict_GetItemWithError(known, address) : NULL;
    Py_XDECREF(address);
    return (Module*)found;
}

/// Borrowed; NULL where _torch.py has nothing to say of it.
static Module* what_is(PyObject* module, const Calls* calls) {
    Module* found = look_up(module);
    if (PLUMB_RARE(found == NULL)) {
        PyObject* outer = calls->depth != 0 ? calls->open[0].module : module;
        PyObject* done = PyErr_Occurred() != NULL ? NULL : PyObject_CallFunctionObjArgs(describe, module, outer, NULL);
        Py_XDECREF(done);
        found = done != NULL ? look_up(module) : NULL;
        PyErr_Clear();
    }
    return found;
}

/// `step` is NULL in a module that another one holds, for one that holds none, while a graph is captured, and in a step.
static void begin_call(Call* call, const Call* around, PyObject* step, PyObject* arguments) {
    Scope* layer = around == NULL || !around->in_layer ? call->is->layer : NULL;
    call->in_layer = layer != NULL || (around != NULL && around->in_layer);
    call->device = call->is->device;
    if (call->device == no_weights) {
        call->device = around != NULL ? around->device : on_processor;
    }
    if (step != NULL) {
        open_scope((Scope*)step, &call->step);
    }
    if (layer != NULL) {
        open_scope(layer, &call->layer);
    }
    const double rows = rows_in(arguments, call->is->rows);
    PyErr_Clear();
    open_brick(call, rows);
}

static Call* innermost(Calls* calls) { return calls->depth != 0 ? &calls->open[calls->depth - 1] : NULL; }

PyObject* module_begins(PyObject* Py_UNUSED(self), PyObject* const* values, Py_ssize_t count) {
    const char* here = __builtin_frame_address(0);
    Calls* calls = own_calls();
    if (count != 2 || known == NULL || (profiler == NULL && asked_environment)) {
        Py_RETURN_NONE;
    }
    Call* around = innermost(calls);
    while (around != NULL && around->place <= here) { // it raised, and torch called no hook
        end_call(calls);
        around = innermost(calls);
    }
    if ((around != NULL && around->aside) || calls->depth == most_calls) {
        Py_RETURN_NONE;
    }
    Module* is = what_is(values[0], calls);
    if (is == NULL || profiler == NULL) {
        Py_RETURN_NONE;
    }
    const int begins_step = around == NULL && is->is_parent;
    PyObject* step = NULL;
    if (around == NULL) {
        calls->queue.timer = NULL; // asked again: there may be a driver now
    }
    if (begins_step) {
        step = PyObject_CallFunctionObjArgs(outermost, values[0], values[1], NULL);
        PyErr_Clear();
        is = look_up(values[0]); // it may have moved, and is known anew
        PyErr_Clear();
    }
    if (is == NULL || profiler == NULL) {
        Py_XDECREF(step);
        Py_RETURN_NONE;
    }
    Py_INCREF(is);
    calls = own_calls(); // what ran meanwhile may have opened or closed the profiler
    around = innermost(calls);
    Call* call = &calls->open[calls->depth++];
    memset(call, 0, sizeof *call);
    call->module = values[0];
    call->is = is;
    call->place = here;
    const int has_step = step != NULL && Py_TYPE(step) == scope_type;
    call->aside = begins_step && !has_step && step != Py_True;
    if (!call->aside) {
        if (around != NULL) {
            make_way(around);
        }
        begin_call(call, around, has_step && !in_step() ? step : NULL, values[1]);
    }
    Py_XDECREF(step);
    Py_RETURN_NONE;
}

PyObject* module_ends(PyObject* Py_UNUSED(self), PyObject* const* values, Py_ssize_t count) {
    Calls* calls = own_calls();
    unsigned at = count != 0 ? calls->depth : 0;
    while (at != 0 && calls->open[at - 1].module != values[0]) {
        --at;
    }
    if (at == 0) {
        Py_RETURN_NONE;
    }
    while (calls->depth >= at) { // those above it raised
        end_call(calls);
    }
    if (calls->depth != 0) {
        go_on(&calls->open[calls->depth - 1]);
    }
    Py_RETURN_NONE;
}

// --- For _torch.py ---

PyObject* make_module(PyObject* Py_UNUSED(self), PyObject* arguments) {
    PyObject *weak = NULL, *brick = NULL, *layer = NULL;
    int is_parent = 0, device = 0, rows = 0;
    double bytes = 0, bytes_of_row = 0, flops_of_row = 0;
    if (!PyArg_ParseTuple(arguments, "OO!Opiiddd", &weak, scope_type, &brick, &layer, &is_parent, &device, &rows,
                          &bytes, &bytes_of_row, &flops_of_row)) {
        return NULL;
    }
    Module* made = PyObject_New(Module, module_type);
    if (made == NULL) {
        return NULL;
    }
    Py_INCREF(weak);
    made->weak = weak;
    Py_INCREF(brick);
    made->brick = (Scope*)brick;
    made->layer = NULL;
    if (Py_TYPE(layer) == scope_type) {
        Py_INCREF(layer);
        made->layer = (Scope*)layer;
    }
    made->is_parent = is_parent;
    made->device = device;
    made->rows = rows;
    made->bytes = bytes;
    made->bytes_of_row = bytes_of_row;
    made->flops_of_row = flops_of_row;
    made->brick->is.work.struct_size = sizeof made->brick->is.work;
    return (PyObject*)made;
}

PyObject* watch_modules(PyObject* Py_UNUSED(self), PyObject* arguments) {
    PyObject* given[8];
    if (!PyArg_ParseTuple(arguments, "O!OOOOOOO", &PyDict_Type, &given[0], &given[1], &given[2], &given[3], &given[4],
                          &given[5], &given[6], &given[7])) {
        return NULL;
    }
    PyObject** const kept[] = {&known, &describe, &outermost, &raw_stream, &gpu_now, &say_is_elsewhere, &tensor_type, &parameter_type};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i) {
        Py_INCREF(given[i]);
        *kept[i] = given[i]; // as long as the process
    }
    Py_RETURN_NONE;
}

static void module_free(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    Module* module = (Module*)self;
    Py_XDECREF(module->weak);
    Py_XDECREF(module->brick);
    Py_XDECREF(module->layer);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyType_Slot module_slots[] = {{Py_tp_dealloc, module_free}, {0, NULL}};
static PyType_Spec module_spec = {"plumb._Module", sizeof(Module), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, module_slots};

int set_up_modules(void) {
    shape_word = PyUnicode_InternFromString("shape");
    module_type = (PyTypeObject*)PyType_FromSpec(&module_spec);
    return shape_word != NULL && module_type != NULL;
}
