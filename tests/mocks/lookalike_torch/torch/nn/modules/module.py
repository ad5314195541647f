# SPDX-License-Identifier: Apache-2.0
from ... import IS_2, device, float16
from ...utils.hooks import RemovableHandle

_global_forward_pre_hooks, _global_forward_hooks = {}, {}
_always_called = set()


def _add(hooks, hook):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_forward_pre_hook(hook):
    return _add(_global_forward_pre_hooks, hook)


if IS_2:
    def register_module_forward_hook(hook, *, always_call=False):
        handle = _add(_global_forward_hooks, hook)
        if always_call:
            _always_called.add(handle.id)
        return handle
else:
    def register_module_forward_hook(hook):
        return _add(_global_forward_hooks, hook)


class Module:
    def __init__(self):
        for name in ("_parameters", "_buffers", "_modules", "_forward_pre_hooks", "_forward_hooks"):
            self.__dict__[name] = {}

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self._modules[name] = value
        elif type(value).__name__ == "Parameter":
            self._parameters[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        for members in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(members, {}):
                return self.__dict__[members][name]
        raise AttributeError(name)

    def register_forward_hook(self, hook):
        return _add(self._forward_hooks, hook)

    def children(self):
        return iter(dict.fromkeys(self._modules.values()))

    def named_modules(self, seen=None, prefix=""):
        seen = set() if seen is None else seen
        if self not in seen:
            seen.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                yield from module.named_modules(seen, f"{prefix}.{name}" if prefix else name)

    def parameters(self):
        for _, module in self.named_modules():
            yield from module._parameters.values()

    def half(self):
        for weight in self.parameters():
            weight.dtype = float16
        return self

    def cuda(self, index=0):
        for weight in self.parameters():
            weight.device = device("cuda", index)
        return self

    def eval(self):
        return self

    def _call_impl(self, *args, **kwargs):
        if not (_global_forward_pre_hooks or _global_forward_hooks or self._forward_pre_hooks or self._forward_hooks):
            return self.forward(*args, **kwargs)
        called = set()

        def inner():
            nonlocal args
            for hook in [*_global_forward_pre_hooks.values(), *self._forward_pre_hooks.values()]:
                given = hook(self, args)
                if given is not None:
                    args = given if isinstance(given, tuple) else (given,)
            result = self.forward(*args, **kwargs)
            for number, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
                called.add(number)
                given = hook(self, args, result)
                result = result if given is None else given
            return result

        try:
            return inner()
        except Exception:
            for number in _always_called - called:
                _global_forward_hooks[number](self, args, None)
            raise

    __call__ = _call_impl
