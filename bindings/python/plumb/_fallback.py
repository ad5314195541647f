# SPDX-License-Identifier: Apache-2.0
"""_extension.c over ctypes: the same functions, where no compiler or no headers of Python were there. Some ten times slower."""

import ctypes
import itertools
import math
import operator
import threading
import warnings

from . import _library

KINDS = ("brick", "step", "layer", "context")
PHASES = ("none", "prefill", "decode", "mixed")
CATEGORIES = ("other", "norm", "attention", "ffn", "moe", "embedding", "output", "cache", "collective", "transfer")
MOST_INDEX = 65534  # of a layer: what a record has room for


class Work(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                *((name, ctypes.c_double) for name in ("bytes", "flops", "elements", "bytes_per_kv"))]


class Step(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("phase", ctypes.c_int32),
                *((name, ctypes.c_uint64) for name in ("prefill_tokens", "decode_tokens", "sequences", "kv_length"))]


class Context(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("layer_plus_one", ctypes.c_uint32), ("step_plus_one", ctypes.c_uint64)]


class State:
    """As the statics of _extension.c."""

    profiler = None
    generation = 1
    asked_environment = False
    names = {}
    told = False  # of a name that the library has no room for


class Stack(threading.local):
    generation = 0
    forgotten = 0

    def __init__(self):
        self.scopes = []  # None for push()


# PyDLL keeps the GIL: nothing here blocks, and giving it away costs more than the call.
_lib = ctypes.PyDLL(_library.library_path())
_lib.plumb_last_error.restype = ctypes.c_char_p
_lib.plumb_now.restype = ctypes.c_uint64
_lib.plumb_now.argtypes = _lib.plumb_pop_scope.argtypes = [ctypes.c_void_p]
_lib.plumb_push_scope.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint16, ctypes.c_void_p]
_lib.plumb_push_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_lib.plumb_push_layer.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
for _name in ("push_context", "get_context", "set_work"):
    getattr(_lib, f"plumb_{_name}").argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_lib.plumb_intern.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
_lib.plumb_record_span.argtypes = [ctypes.c_void_p, ctypes.c_uint16, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]
_stack = Stack()


def _check(code):
    if code:
        raise _library.Error(_lib.plumb_last_error().decode(), code)


def _tell_once(sentence):
    if not State.told:
        State.told = True
        warnings.warn(sentence, RuntimeWarning, stacklevel=5)


def _own_stack():
    stack = _stack
    if stack.generation != State.generation:
        stack.generation = State.generation
        stack.forgotten += len(stack.scopes)
        stack.scopes.clear()
    return stack


class Scope:
    """What brick(), step(), layer() and context() make: for `with` and push(), again and again, on any thread."""

    __slots__ = ("_kind", "_given", "_text", "_category", "_name")
    __module__ = "plumb"

    def _begin(self, scope):
        if State.profiler is None:
            _decided()
        if State.profiler is not None:
            if self._kind == "brick":
                _check(_lib.plumb_push_scope(State.profiler, None, self._interned(), self._given))
            elif self._kind == "step":
                _check(_lib.plumb_push_step(State.profiler, None, self._given))
            elif self._kind == "layer":
                _check(_lib.plumb_push_layer(State.profiler, self._given))
            else:
                _check(_lib.plumb_push_context(State.profiler, self._given))
        _own_stack().scopes.append(scope)

    def _interned(self):
        if not self._name:
            if self._text not in State.names:
                name = ctypes.c_uint16()
                if _lib.plumb_intern(State.profiler, self._text.encode(), self._category, ctypes.byref(name)):
                    _tell_once(f'{self._text!r} is recorded as "unnamed": {_lib.plumb_last_error().decode()}')
                    return 0
                State.names[self._text] = name.value
            self._name = State.names[self._text]
        return self._name

    def __enter__(self):
        self._begin(self)
        return self

    def __exit__(self, *raised):
        stack = _own_stack()
        for at in range(len(stack.scopes) - 1, -1, -1):
            if stack.scopes[at] is self:
                while len(stack.scopes) > at:
                    _end_innermost(stack)
                return
        if not stack.scopes and stack.forgotten:
            stack.forgotten -= 1

    def __call__(self, function):
        return _decorate(self, function)

    def __repr__(self):
        said = {"brick": f" {self._text!r}", "layer": f" {self._given}"}.get(self._kind, "")
        return f"<plumb {self._kind}{said}>"


def _scope(kind, given, text=None, category=0):
    scope = object.__new__(Scope)
    scope._kind, scope._given, scope._text, scope._category, scope._name = kind, given, text, category, 0
    return scope


def _new(cls, *arguments, **keywords):
    raise TypeError("cannot create 'plumb.Scope' instances")


Scope.__new__ = _new


def _decided():
    if not State.asked_environment:
        _first_use()


def _end_innermost(stack):
    stack.scopes.pop()
    if State.profiler is not None:
        _lib.plumb_pop_scope(State.profiler)


def _word(words, given, what):
    if given not in words:
        raise ValueError(f"{given!r} is no {what}")
    return words.index(given)


def _work(**given):
    work = Work(ctypes.sizeof(Work), 0, *given.values())
    for name, value in given.items():
        if not 0 <= getattr(work, name) < math.inf:
            raise ValueError(f"{name}={value!r} is no amount of work: it is a finite number from 0")
    return work


def brick(name, /, *, bytes=0, flops=0, elements=0, bytes_per_kv=0, category="other"):
    if not isinstance(name, str):
        raise TypeError("a brick takes its name, and keywords")
    if not name.encode():
        raise ValueError("a name is empty: give its text")
    work = _work(bytes=bytes, flops=flops, elements=elements, bytes_per_kv=bytes_per_kv)
    known = bytes or flops or elements or bytes_per_kv
    return _scope("brick", ctypes.byref(work) if known else None, name, _word(CATEGORIES, category, "category"))


def step(phase="decode", /, *, prefill_tokens=0, decode_tokens=0, sequences=0, kv_length=0, tokens=0):
    number = _word(PHASES, phase, "phase")
    if tokens and phase == "prefill":
        prefill_tokens = tokens
    elif tokens:
        decode_tokens = tokens
    counts = (_count(given) for given in (prefill_tokens, decode_tokens, sequences, kv_length))
    return _scope("step", ctypes.byref(Step(ctypes.sizeof(Step), number, *counts)))


def _count(given):
    count = operator.index(given)
    if not 0 <= count < 2**64:
        raise ValueError("a count is negative or beyond 64 bits")
    return count


def layer(index, /):
    if _count(index) > MOST_INDEX:
        raise ValueError(f"{index!r} is no index of a layer: that is 0 to {MOST_INDEX}")
    return _scope("layer", operator.index(index))


def context():
    now_open = Context(ctypes.sizeof(Context), 0, 0)
    if State.profiler is not None:
        _lib.plumb_get_context(State.profiler, ctypes.byref(now_open))
    return _scope("context", ctypes.byref(now_open))


def push(scope, /):
    if not isinstance(scope, Scope):
        raise TypeError(f"{scope!r} is no Scope: give what plumb.brick() and its like made")
    scope._begin(None)


def pop():
    stack = _own_stack()
    if stack.scopes:
        _end_innermost(stack)
    elif stack.forgotten:
        stack.forgotten -= 1
    elif State.profiler is not None:
        _check(_lib.plumb_pop_scope(State.profiler))


def work(*, bytes=0, flops=0, elements=0, bytes_per_kv=0):
    given = _work(bytes=bytes, flops=flops, elements=elements, bytes_per_kv=bytes_per_kv)
    stack = _own_stack()
    dropped = not stack.scopes and stack.forgotten  # the brick was, when recording began or ended
    if State.profiler is not None and not dropped:
        _check(_lib.plumb_set_work(State.profiler, ctypes.byref(given)))


def now():
    _decided()
    return _lib.plumb_now(State.profiler)


def span(brick, begin, end, /):
    if not isinstance(brick, Scope) or brick._kind != "brick":
        raise TypeError(f"{brick!r} is no brick: give what plumb.brick() made")
    begin, end = _count(begin), _count(end)
    if State.profiler is not None and begin:
        _check(_lib.plumb_record_span(State.profiler, brick._interned(), begin, end, brick._given))


def _use(handle):
    State.profiler = handle or None
    State.asked_environment = True
    State.generation += 1


def _set_up(error, first_use, decorate):
    global _first_use, _decorate
    _first_use, _decorate = first_use, decorate


def _library_path():
    return _library.library_path()
