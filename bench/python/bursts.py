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

STATEMENTS, BURSTS = 10, 9
LOOPS = 40 if os.environ["PLUMB_PYTHON"] == "ctypes" else 400  # half a millisecond: fits between two interruptions
KINDS = {  # name: what is timed, and whether the profiler records
    "loop": ("pass", False),
    "empty": ("empty.one(b); empty.none()", False),
    "push": ("plumb.push(b); plumb.pop()", True),
    "push_work": ("plumb.push(w); plumb.pop()", True),
    "push_off": ("plumb.push(b); plumb.pop()", False),
    "with": ("\n  with b: pass", True),
    "with_off": ("\n  with b: pass", False),
    "with_made": ("\n  with plumb.brick('attention', bytes=4096): pass", True),
    "with_python": ("\n  with nothing: pass", False),
}


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass


def burst_of(statement):
    scope = {"empty": empty, "plumb": plumb, "b": plumb.brick("attention"), "nothing": Nothing(),
             "w": plumb.brick("attention", bytes=4096, flops=8192), "clock": time.perf_counter_ns}
    text = "def burst(loops):\n begin = clock()\n for _ in range(loops):\n" + f"  {statement}\n" * STATEMENTS
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
