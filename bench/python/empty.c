/* SPDX-License-Identifier: Apache-2.0 */
/* What any call of an extension costs: functions that do nothing, called as push(brick) and pop() are. */
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

static PyObject* take(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(given)) { Py_RETURN_NONE; }

static PyMethodDef functions[] = {
    {"one", take, METH_O, NULL}, {"none", take, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "empty", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_empty(void) { return PyModule_Create(&module_of); }
