# SPDX-License-Identifier: Apache-2.0
"""trace_names.py TRACE: the names of a trace's device operations, one a line: nanoseconds, a tab, the name as JSON text. Kineto JSON,
nsys and rpd sqlite, rocprofv3 JSON, each also gzipped. An independent reader, for tests alone; the whole file is in memory."""

import collections
import gzip
import json
import sqlite3
import sys
import tempfile
from decimal import Decimal

COPY_KINDS = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 8: "Memcpy DtoD", 10: "Memcpy PtoP"}


def of_kineto(trace):
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        if event.get("ph") == "X" and str(event.get("cat", "")).lower() in kinds:
            yield event["name"], int(Decimal(event.get("dur", 0)) * 1000)


def of_rocprof(trace):
    for tool in trace["rocprofiler-sdk-tool"]:
        symbols = {symbol["kernel_id"]: symbol for symbol in tool["kernel_symbols"]}
        for record in tool["buffer_records"]["kernel_dispatch"]:
            symbol = symbols[record["dispatch_info"]["kernel_id"]]
            yield symbol["formatted_kernel_name"], record["end_timestamp"] - record["start_timestamp"]


def of_nsys(tables, ask):
    strings = dict(ask("select id, value from StringIds"))
    yield from ((strings[name], ns) for name, ns in ask("select demangledName, end - start from CUPTI_ACTIVITY_KIND_KERNEL"))
    if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables:
        yield from ((COPY_KINDS.get(kind, "Memcpy"), ns)
                    for kind, ns in ask("select copyKind, end - start from CUPTI_ACTIVITY_KIND_MEMCPY"))
    if "CUPTI_ACTIVITY_KIND_MEMSET" in tables:
        yield from (("Memset", ns) for (ns,) in ask("select end - start from CUPTI_ACTIVITY_KIND_MEMSET"))


def of_rpd(ask):
    strings = dict(ask("select id, string from rocpd_string"))
    for name, kind, ns in ask("select description_id, opType_id, end - start from rocpd_op"):
        name, kind = strings.get(name, ""), strings.get(kind, "")
        if "Marker" not in kind and "Barrier" not in kind:
            yield ("Memcpy " if "opy" in kind else "Memset " if "Fill" in kind else "") + (name or kind), max(ns, 0)


def operations(path):
    data = open(path, "rb").read()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if not data.startswith(b"SQLite format 3"):
        trace = json.loads(data, parse_float=Decimal)
        return of_rocprof(trace) if "rocprofiler-sdk-tool" in trace else of_kineto(trace)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        base = sqlite3.connect(file.name)
        tables = {name for (name,) in base.execute("select name from sqlite_master")}
        return list(of_rpd(base.execute) if "rocpd_op" in tables else of_nsys(tables, base.execute))


def main():
    total = collections.Counter()
    for name, ns in operations(sys.argv[1]):
        total[name] += ns
    for name, ns in total.items():
        print(ns, json.dumps(name), sep="\t")


if __name__ == "__main__":
    main()
