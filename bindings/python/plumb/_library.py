# SPDX-License-Identifier: Apache-2.0
"""libplumb itself, and the cold half of the package: the profiler and its life, errors, decorators. What a decode loop calls
is `core`: the extension, or _fallback where there is none.

Thread rule: every function from any thread. close() of a Profiler waits for the calls of other threads into libplumb; these wait for
nobody. A forked child gets locks of its own."""

import atexit
import ctypes
import functools
import importlib
import inspect
import json
import os
import pathlib
import sys
import threading
import types
import warnings

from . import _build

CODES = ("ok", "invalid_argument", "not_found", "already_exists", "unavailable", "unsupported", "corrupt", "no_space",
         "permission", "pending", "out_of_memory", "failed")
OUTCOMES = ("pass", "fail", "unknown")
REQUEST_PHASES = ("queue", "prefill", "kv_transfer", "decode", "end")
SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


class Error(Exception):
    """What libplumb could not do: one sentence that says what to do, and `code`, a word such as "not_found"."""

    def __init__(self, sentence, code):
        super().__init__(sentence)
        self.code = CODES[code] if isinstance(code, int) else code


def _core():
    if os.environ.get("PLUMB_PYTHON") != "ctypes":
        try:
            return importlib.import_module("._extension", __package__)
        except ModuleNotFoundError:  # built without a compiler or Python's headers
            pass
    from . import _fallback

    return _fallback


def library_path():
    """Where libplumb lies: beside this file in a wheel, in the lib of PREFIX/lib/plumb/python/plumb, else where the loader finds it."""
    here = pathlib.Path(__file__).absolute()
    places = [here.with_name(_build.LIBRARY), *(folder / _build.LIBRARY for folder in here.parents[3:4])]
    return next((str(place) for place in places if place.exists()), _build.LIBRARY)


class Answer(dict):
    """An answer as a plain dict. `outcome` is how it judges: "pass" (also where it judges nothing), "fail" or "unknown"."""

    outcome = "pass"


class Question(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("file_count", ctypes.c_uint32), ("answer", ctypes.c_char_p),
                ("files", ctypes.POINTER(ctypes.c_char_p)), ("options", ctypes.POINTER(ctypes.c_char_p)),
                ("option_count", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


def check(code, library=None):
    """REQUIRES: right after the call, on the same thread."""
    if code:
        raise Error((library or lib).plumb_last_error().decode(), code)


def decode(text):
    """An Answer from JSON that our own libplumb gave, which is freed."""
    try:
        return Answer(json.loads(ctypes.string_at(text)))
    finally:
        own.plumb_free(text)


class Attached:
    """The functions of libplumb-attach, which `plumb run` put into this process: what it records and what we do is one recording then.
    AttributeError: it is not here, lacks one of them, or records nothing."""

    def __init__(self):
        find = ctypes.CDLL(None).plumb_attach_function
        find.restype = ctypes.c_void_p
        for name, (result, arguments) in SIGNATURES.items():
            address = find(f"plumb_{name}".encode())
            if not address and name not in OF_FILES:
                raise AttributeError(name)
            setattr(self, f"plumb_{name}", ctypes.CFUNCTYPE(result, *arguments)(address) if address else None)
        if not core._call_into(ctypes.cast(find, ctypes.c_void_p).value):
            raise AttributeError("_call_into")


def settle(spec):
    """Which library records in this process: decided once, for names are numbered by it."""
    global lib
    if lib is None:
        try:
            lib = own if spec is not None or not hasattr(core, "_call_into") else Attached()
        except AttributeError:
            lib = own


def unsigned(number, what):
    """ctypes would take it modulo 2**64."""
    if not 0 <= number < 2**64:
        raise ValueError(f"{number!r} is no {what}: that is 0 to 2**64 - 1")
    return number


class Profiler:
    """An open recording; made by profiler(). As a context manager it closes itself."""

    def __init__(self, spec):
        self._handle = ctypes.c_void_p()
        self._used_by_nobody()
        settle(spec)
        check(lib.plumb_open(None if spec is None else os.fsencode(spec), ctypes.byref(self._handle)))
        self._is_open = True
        self._recording()
        _close_with_worker()

    def _used_by_nobody(self):
        self._users = []  # the threads that are in _call()
        self._left = threading.Condition()  # one of them has left, and close() may wait for that

    def _recording(self):
        with self._left:
            core._use(self._handle.value if self.enabled else 0)

    def _call(self, function, *arguments):
        self._users.append(threading.get_ident())  # before the look at _is_open: close() looks at both the other way round
        try:
            if not self._is_open:
                raise Error("this profiler is closed: open another one with plumb.profiler(spec)", "invalid_argument")
            check(function(self._handle, *arguments))
        except ctypes.ArgumentError as wrong:
            raise TypeError(str(wrong)) from None
        finally:
            self._users.remove(threading.get_ident())
            if not self._is_open:
                with self._left:
                    self._left.notify_all()

    @property
    def enabled(self):
        """Whether it records."""
        with self._left:
            return self._is_open and bool(lib.plumb_enabled(self._handle))

    @property
    def path(self):
        """Of the recording; "" while none is open."""
        text = ctypes.c_void_p()
        self._call(lib.plumb_path, ctypes.byref(text))
        try:
            return os.fsdecode(ctypes.string_at(text.value))
        finally:
            lib.plumb_free(text)

    def enable(self):
        """Starts recording. What is open now is not recorded."""
        self._call(lib.plumb_enable)
        self._recording()

    def disable(self):
        """Stops recording. What is open now is dropped and counted."""
        self._call(lib.plumb_disable)
        self._recording()

    def describe(self, key, value):
        """Says something about the run, shown at the head of reports: "model", "qwen2.5-0.5b bf16"."""
        self._call(lib.plumb_describe, str.encode(key), str(value).encode())

    def request(self, id, phase, *, trace_parent=None, tokens=None):
        """From here on the request is in that phase: "queue", "prefill", "kv_transfer", "decode" or "end". `id` is any integer from 0
        to 2**64 - 1, of one request at a time; `trace_parent` the W3C header that it came with; `tokens`, with "end", how many it gave."""
        if phase not in REQUEST_PHASES:
            raise ValueError(f"the phase of a request is one of {', '.join(REQUEST_PHASES)}, not {phase!r}")
        if tokens is not None and phase == "end":
            self._call(lib.plumb_end_request, unsigned(id, "id of a request"), unsigned(tokens, "count of tokens"))
        elif tokens is not None:
            raise ValueError('tokens are said with "end"')
        else:
            header = None if trace_parent is None else str.encode(trace_parent)
            self._call(lib.plumb_request, unsigned(id, "id of a request"), 1 + REQUEST_PHASES.index(phase), header)

    def step_request(self, id):
        """The request is in the batch of the step that is open on this thread."""
        self._call(lib.plumb_step_request, unsigned(id, "id of a request"))

    def flush(self, timeout=5.0):
        """Waits until what was recorded before is in the recording. An Error of code "pending" after so many seconds."""
        self._call(lib.plumb_flush, timeout)

    def snapshot(self):
        """The report of everything so far."""
        if lib is not own:  # it has no answers: those are in a library beside our own
            self.flush()
            if not self.path:
                raise Error("under `plumb run` a recording in memory has no report: name a file in the spec, or leave the spec out", "unavailable")
            return ask("report", self.path)
        text = ctypes.c_void_p()
        self._call(lib.plumb_snapshot, ctypes.byref(text))
        return decode(text.value)

    def close(self):
        """Finishes the recording. What is open now is dropped and counted; scopes that begin later are not recorded."""
        global _current
        with self._left:
            if not self._handle:
                return
            self._is_open = False
            core._use(0)
            self._left.wait_for(lambda: {*self._users} <= {threading.get_ident()})  # where a handler of a signal closes, its thread is one
            handle, self._handle = self._handle, ctypes.c_void_p()
            if _current is self:
                _current = None
            if handle:  # else another thread closed it meanwhile
                check(lib.plumb_close(handle))

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()


_current = None
_lock = threading.RLock()


def profiler(spec=None):
    """Opens the process' profiler by a spec such as "on,out=run.plumb". Without a spec: the one that is open, else one by the
    environment variable PLUMB. There is one at a time; scopes go to it, whenever they were made."""
    global _current
    with _lock:
        if _current is None:
            _current = Profiler(spec)
        elif spec is not None:
            raise Error("a profiler is open in this process: close it before you open another", "already_exists")
        return _current


def current():
    """The profiler of this process; None where none is open."""
    return _current


def open_by_environment():
    """Where nobody made a profiler, PLUMB decides, as in any program."""
    with _lock:
        try:
            if _current is None and os.environ.get("PLUMB", "") not in ("", "0", "off"):
                profiler()
        finally:
            if _current is None:
                core._use(0)


def _first_use():
    """A scope begins, and nobody made a profiler."""
    try:
        open_by_environment()
    except Error as error:  # no reason to end an engine
        warnings.warn(f"not profiled: {error}", RuntimeWarning, stacklevel=3)


def _decorate(scope, function):
    name = getattr(function, "__name__", repr(function))
    for called in (function, type(function).__call__):
        if inspect.isgeneratorfunction(called) or inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            raise TypeError(f"{name}() is suspended in the middle, and other scopes may end meanwhile: write `with` "
                            "around parts of it that hold no yield and no await")

    @functools.wraps(function)
    def scoped(*arguments, **keywords):
        with scope:
            result = function(*arguments, **keywords)
        if type(result) in SUSPENDED:  # no reason to end an engine
            warnings.warn(f"{name}() gave a {type(result).__name__}, which runs later: {scope} has the time of making it alone; write `with` "
                          "around parts of it that hold no yield and no await", RuntimeWarning, stacklevel=2)
        return result

    return scoped


def _close_at_exit():
    if _current is not None:
        try:
            _current.close()
        except Error as error:
            warnings.warn(str(error), RuntimeWarning)


def _close_with_worker(_=None):
    """A process of multiprocessing that was forked ends without atexit, with finalizers of its own."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        multiprocessing.util.Finalize(None, _close_at_exit, exitpriority=-1000)  # after all others


def _in_forked_child():
    global _lock
    _lock = threading.RLock()
    if _current is not None:
        _current._used_by_nobody()
        _current._recording()
        util = sys.modules.get("multiprocessing.util")
        if util is not None and _current.enabled:
            util.register_after_fork(_current, _close_with_worker)


def ask(answer, *files, **options):
    """What the command `plumb ANSWER FILES --OPTION VALUE` prints as JSON, as a dict: ask("wall", "run.plumb", slowest=3).
    A flag is True, an option that is given several times a list; _ in a name is - there, and other names go by
    **{"tok/s": 60}."""
    words = []
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None and one is not False:
                words += [name.replace("_", "-"), "" if one is True else str(one)]
    paths, pairs = ((ctypes.c_char_p * len(texts))(*map(os.fsencode, texts)) for texts in (files, words))
    question = Question(ctypes.sizeof(Question), len(files), answer.encode(), paths, pairs, len(words) // 2, 0)
    text, outcome = ctypes.c_void_p(), ctypes.c_int()
    check(own.plumb_ask(ctypes.byref(question), ctypes.byref(text), ctypes.byref(outcome)), own)
    try:
        found = decode(text.value)
    except ValueError:
        raise Error(f"plumb {answer} prints no JSON with these options; ask without them", "invalid_argument") from None
    found.outcome = OUTCOMES[outcome.value]
    return found


POINTER, CODE = ctypes.c_void_p, ctypes.c_int
OF_FILES = ("snapshot", "ask")
SIGNATURES = {  # of what is called here: result and arguments
    "last_error": (ctypes.c_char_p, ()), "free": (None, (POINTER,)), "open": (CODE, (ctypes.c_char_p, POINTER)),
    "close": (CODE, (POINTER,)), "enabled": (CODE, (POINTER,)), "enable": (CODE, (POINTER,)), "disable": (CODE, (POINTER,)),
    "describe": (CODE, (POINTER, ctypes.c_char_p, ctypes.c_char_p)), "flush": (CODE, (POINTER, ctypes.c_double)),
    "path": (CODE, (POINTER, POINTER)), "request": (CODE, (POINTER, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p)),
    "end_request": (CODE, (POINTER, ctypes.c_uint64, ctypes.c_uint64)), "step_request": (CODE, (POINTER, ctypes.c_uint64)),
    "snapshot": (CODE, (POINTER, POINTER)), "ask": (CODE, (POINTER, POINTER, POINTER)),
}
core = _core()
own = ctypes.CDLL(core._library_path())  # which reads recordings
lib = None  # which makes them
for _name, (_result, _arguments) in SIGNATURES.items():
    getattr(own, f"plumb_{_name}").restype = _result
    getattr(own, f"plumb_{_name}").argtypes = _arguments
core._set_up(Error, _first_use, _decorate)
atexit.register(_close_at_exit)
os.register_at_fork(after_in_child=_in_forked_child)
