# SPDX-License-Identifier: Apache-2.0
"""Runs inside gdb: follows a program from stop to stop. FOLLOW in the environment is JSON, {"legs": [[[file, function], …], …],
"unit": the source that includes headers, "out": path}. A leg begins when the one before is complete, and with its own first stop: another thread may be anywhere in
its round until then. From there on all stops of the leg are open, so that their order is the program's. Writes
{"absent": stops that no code has, "hits": [{"stop", "facts"}, …], "exit": code}."""

import json
import os
import struct

import gdb

ARGUMENTS = {"i386:x86-64": ("rdi", "rsi", "rdx", "rcx"), "aarch64": ("x0", "x1", "x2", "x3")}


def argument(number, returns_object=False):
    """As the calling convention passes it; `this` is number 0."""
    frame = gdb.selected_frame()
    machine = frame.architecture().name()
    hidden = 1 if returns_object and machine != "aarch64" else 0  # where the object goes
    return int(frame.read_register(ARGUMENTS[machine][number + hidden])) & (1 << 64) - 1


def memory(address, form):
    return struct.unpack(form, gdb.selected_inferior().read_memory(address, struct.calcsize(form)).tobytes())


def pushed():
    """ThreadRecorder::push(first, second) in line in Scope::end."""
    end = gdb.selected_frame()  # gdb may show the stop as one before push()
    while not end.name().endswith("Scope::end"):
        end = end.older()
    bits, duration, begin = (int(end.read_var(name)) for name in ("bits", "duration", "now"))
    return {"record": [begin - duration, bits | duration], "ticks": duration, "name_id": bits >> 40 & 0xFFFF}


def appended():
    """Status Writer::append(const RecordBatch&): track, first_sequence, records, count."""
    records, count = memory(argument(1, returns_object=True), "=I4xQQQ")[2:]
    return {"records": [memory(records + 16 * index, "=QQ") for index in range(count)]}


def resolved():
    """TrackResolver::scope(const Record&, …)."""
    return {"record": memory(argument(1), "=QQ")}


def sampled():
    """RowTable::add(const Sample&, …): kind, phase, name, track, layer, step, begin_ns, duration_ns."""
    _, _, name, _, _, _, _, duration = memory(argument(1), "=BBHII4xQqq")
    return {"name_id": name, "ns": duration}


def printed():
    """TextTable::add_row(std::vector<std::string> cells)."""
    cells, end = memory(argument(1), "=QQ")
    texts = (memory(cell, "=QQ") for cell in range(cells, end, 32))
    return {"cells": [memory(text, f"={size}s")[0].decode() for text, size in texts]}


FACTS = {"include/plumb/thread_recorder.hpp:push": pushed, "src/recording/writer.cpp:append": appended,
         "src/resolve/track_resolver.cpp:scope": resolved, "src/analysis/row_table.cpp:add": sampled,
         "src/page/text_table.cpp:add_row": printed}


def source_of(address):
    """The file of the function whose code that is: where it is in line, of the one around it that is not."""
    block = gdb.block_for_pc(address)
    function = None
    while block is not None and not block.is_static and not block.is_global:
        function = block.function or function
        block = block.superblock
    return function.symtab.filename if function is not None else ""


def breakpoints(file, function, unit):
    """One for each place of the code that is this function of this file; of a header, in line in `unit`."""
    header = file.endswith(".hpp")
    probe = gdb.Breakpoint(f"-function {function}" if header else f"-source {file} -function {function}", internal=True)
    wanted = "/" + (unit if header else file)
    places = [place.address for place in probe.locations if source_of(place.address).endswith(wanted)]
    probe.delete()
    made = [gdb.Breakpoint(f"*{place:#x}", internal=True) for place in places]
    for one in made:
        one.enabled = False
    return made


def main():
    task = json.loads(os.environ["FOLLOW"])
    result = {"absent": [], "hits": [], "exit": None}
    gdb.events.exited.connect(lambda event: result.update(exit=getattr(event, "exit_code", None)))
    stopped_at = []
    gdb.events.stop.connect(lambda event: stopped_at.extend(getattr(event, "breakpoints", [])))
    gdb.execute("starti", to_string=True)
    legs = [[(f"{file}:{function}", breakpoints(file, function, task["unit"])) for file, function in leg] for leg in task["legs"]]
    result["absent"] = [stop for leg in legs for stop, made in leg if not made]
    for leg in legs if not result["absent"] else []:
        open_stops = dict(leg)
        first = leg[0][0]
        for one in open_stops[first]:
            one.enabled = True
        while open_stops and gdb.selected_inferior().pid != 0:
            stopped_at.clear()
            gdb.execute("continue", to_string=True)
            for stop in [stop for stop, made in open_stops.items() if any(one in stopped_at for one in made)]:
                result["hits"].append({"stop": stop, "facts": FACTS[stop]() if stop in FACTS else {}})
                for one in open_stops.pop(stop):
                    one.enabled = False
                if stop == first:
                    for one in (one for made in open_stops.values() for one in made):
                        one.enabled = True
    if gdb.selected_inferior().pid != 0:
        gdb.execute("continue" if not result["absent"] else "kill", to_string=True)
    with open(task["out"], "w") as out:
        json.dump(result, out)


gdb.execute("set breakpoint pending off")
gdb.execute("set confirm off")
gdb.execute("set pagination off")
main()
