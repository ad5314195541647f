# SPDX-License-Identifier: Apache-2.0
"""Bursts of Python statements, kinds interleaved: prints "KIND NS" for each kind and round, of one statement.

usage: bursts.py PACKAGE EMPTY extension|ctypes FILE ROUNDS"""

import os
import statistics
import sys
import time

PACKAGE, EMPTY, os.environ["PLUMB_PYTHON"], FILE, ROUNDS = sys.argv[1:]
sys.path[:0] = [PACKAGE, EMPTY]

import empty
import plumb

STATEMENTS, LOOPS, BURSTS = 10, 2000, 5
KINDS = {  # name: what is timed, and whether the profiler records
    "loop": ("pass", False),
    "empty": ("one(b); none()", False),
    "push": ("push(b); pop()", True),
    "push_work": ("push(w); pop()", True),
    "push_off": ("push(b); pop()", False),
    "with": ("\n  with b: pass", True),
    "with_off": ("\n  with b: pass", False),
    "with_made": ("\n  with brick('attention', bytes=4096): pass", True),
    "with_python": ("\n  with nothing: pass", False),
}


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass


def burst_of(statement):
    scope = {"one": empty.one, "none": empty.none, "push": plumb.push, "pop": plumb.pop, "b": plumb.brick("attention"),
             "w": plumb.brick("attention", bytes=4096, flops=8192), "brick": plumb.brick, "nothing": Nothing(),
             "clock": time.perf_counter_ns}
    names = ", ".join(f"{name}={name}" for name in scope)  # as locals
    text = f"def burst(loops, {names}):\n begin = clock()\n for _ in range(loops):\n" + f"  {statement}\n" * STATEMENTS
    exec(text + " return clock() - begin\n", scope)
    return scope["burst"]


def main():
    bursts = {kind: burst_of(statement) for kind, (statement, _) in KINDS.items()}
    with plumb.profiler(f"on,out={FILE}") as profiler:
        for round_number in range(int(ROUNDS)):
            order = list(KINDS)
            order = order[round_number % len(order):] + order[:round_number % len(order)]
            for kind in order:
                taken = []
                for _ in range(BURSTS):
                    (profiler.enable if KINDS[kind][1] else profiler.disable)()
                    profiler.flush()
                    bursts[kind](LOOPS // 10)
                    taken.append(bursts[kind](LOOPS) / (LOOPS * STATEMENTS))
                print(kind, statistics.median(taken), flush=True)


main()
