# SPDX-License-Identifier: Apache-2.0
"""Plumbline: where every microsecond of a token goes.

    import plumb

    attention = plumb.brick("attention", bytes=4096)    # made once

    with plumb.profiler("on,out=run.plumb"):            # or PLUMB=on in the environment, and no such line
        with plumb.step("decode", tokens=1, kv_length=17):
            with plumb.layer(0), attention:
                attend()
    print(plumb.read("run.plumb")["bricks"]["name"])
"""

from ._build import VERSION as __version__
from ._columns import columns, read
from ._library import Answer, Error, Profiler, ask, core as _core, profiler

Scope = _core.Scope
brick, step, layer, context = _core.brick, _core.step, _core.layer, _core.context
push, pop, work, now, span = _core.push, _core.pop, _core.work, _core.now, _core.span

__all__ = ["Answer", "Error", "Profiler", "Scope", "ask", "brick", "columns", "context", "layer", "now", "pop", "profiler",
           "push", "read", "span", "step", "work"]
