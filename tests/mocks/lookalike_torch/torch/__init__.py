# SPDX-License-Identifier: Apache-2.0
"""A look-alike of torch: modules with the hooks of PyTorch 1.13, or of 2.x where LOOKALIKE_TORCH=2, and tensors that are shapes alone. It
computes nothing; on a GPU it launches kernels (cuda.py)."""

import os

IS_2 = os.environ.get("LOOKALIKE_TORCH") == "2"
__version__ = "2.0 look-alike" if IS_2 else "1.13 look-alike"
float32, float16, int64 = "float32", "float16", "int64"
SIZES = {float32: 4, float16: 2, int64: 8}
compiled = []  # what compile() was given, and how many hooks there were then


class Size(tuple):
    pass


class device:
    def __init__(self, kind, index=None):
        self.type, self.index = kind, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)


class Tensor:
    looked_at = 0  # how often shapes of tensors of a type of their own were asked for

    def __init__(self, shape, dtype=float32, where=None):
        self._shape, self.dtype, self.device = Size(shape), dtype, where or device("cpu")

    @property
    def shape(self):
        if type(self) not in (Tensor, nn.Parameter):
            Tensor.looked_at += 1
        return self._shape

    def dim(self):
        return len(self._shape)

    def numel(self):
        count = 1
        for size in self._shape:
            count *= size
        return count

    def element_size(self):
        return SIZES[self.dtype]

    def is_floating_point(self):
        return self.dtype != int64


def zeros(*shape, dtype=float32):
    return Tensor(shape, dtype)


def dropout(given):
    if given.device.type == "cuda":
        cuda.launch(cuda.DROPOUT, *given.shape)
    return given


def multinomial(given):
    if given.device.type == "cuda":
        cuda.launch(cuda.MULTINOMIAL, *given.shape)
    return Tensor((*given.shape[:-1], 1), int64, given.device)


def get_num_threads():
    return 1


class _C:
    @staticmethod
    def _get_tracing_state():
        return None


from . import cuda, nn
from .nn.modules import module as _module

if cuda.is_available():
    _C._cuda_getCurrentRawStream, _C._cuda_getDevice = staticmethod(cuda._raw_stream), staticmethod(cuda._device)


class jit:
    class ScriptModule(nn.Module):
        pass


if IS_2:
    def compile(function):
        compiled.append((function, len(_module._global_forward_pre_hooks), len(_module._global_forward_hooks)))
        return function
