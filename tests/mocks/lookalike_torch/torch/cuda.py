# SPDX-License-Identifier: Apache-2.0
"""The GPU of the look-alike: cuda.cpp, in the library that LOOKALIKE_TORCH_CUDA names. Kernels fold numbers and compute nothing."""

import ctypes
import os

EMBEDDING, NORM, GEMM, DROPOUT, MULTINOMIAL = range(5)
_path = os.environ.get("LOOKALIKE_TORCH_CUDA")
_library = None


def _gpu():
    global _library
    if _library is None:
        _library = ctypes.CDLL(_path)
        for name in ("stream", "capture_end"):
            getattr(_library, f"lookalike_{name}").restype = ctypes.c_void_p
        for name in ("state", "generator"):
            getattr(_library, f"lookalike_{name}").restype = ctypes.c_uint64
        for name in ("replay", "destroy"):
            getattr(_library, f"lookalike_{name}").argtypes = [ctypes.c_void_p]
        _library.lookalike_launch.argtypes = [ctypes.c_uint, ctypes.c_uint64]
        _library.lookalike_start()
    return _library


def launch(kernel, *shape):
    salt = 1
    for size in shape:
        salt = salt * 1009 + size
    _gpu().lookalike_launch(kernel, salt)


def is_available():
    return _path is not None


def is_initialized():
    return _library is not None


def get_device_name(index):
    return f"look-alike GPU {index}"


def is_current_stream_capturing():
    return bool(_gpu().lookalike_captures())


def synchronize():
    _gpu().lookalike_synchronize()


def state():
    """What all kernels so far gave, and how far the generator is."""
    return _gpu().lookalike_state(), _gpu().lookalike_generator()


def _raw_stream(index):
    """Of another GPU than the first it is the default stream, whose number is that of every GPU."""
    return _gpu().lookalike_stream() if index == 0 else 0


def _device():
    return 0


class CUDAGraph:
    def capture_begin(self):
        _gpu().lookalike_capture_begin()

    def capture_end(self):
        self._graph = _gpu().lookalike_capture_end()

    def replay(self):
        _gpu().lookalike_replay(self._graph)

    def __del__(self):
        if hasattr(self, "_graph"):
            _gpu().lookalike_destroy(self._graph)


class graph:
    def __init__(self, captured):
        self._captured = captured

    def __enter__(self):
        self._captured.capture_begin()

    def __exit__(self, *raised):
        self._captured.capture_end()
