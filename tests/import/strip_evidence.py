# SPDX-License-Identifier: Apache-2.0
"""strip_evidence.py TRACE OUT: a copy of a trace without what it says of itself: stacks of modules, annotations, labels on kernels.
What is left stands there byte by byte. Kineto JSON, nsys and rpd sqlite, rocprofv3 JSON, all gzipped. For tests alone."""

import gzip
import json
import re
import sqlite3
import sys
import tempfile

TOLD = ("python_function", "user_annotation", "gpu_user_annotation")


def strip_kineto(text):
    begin = re.search(r'"traceEvents"\s*:\s*\[', text)
    at = begin.end() if begin else text.index("[") + 1
    kept, head, decoder = [], text[:at], json.JSONDecoder()
    while True:
        at = re.compile(r"[\s,]*").match(text, at).end()
        if text[at] == "]":
            return head + ",\n".join(kept) + text[at:]
        event, end = decoder.raw_decode(text, at)
        args = event.get("args") or {}
        if event.get("cat") not in TOLD:
            assert event.get("cat") != "kernel" or not {"name", "module_fqn"} & set(args)
            kept.append(text[at:end])
        at = end


def strip_tables(content):
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        tables = sqlite3.connect(file.name)
        names = {name for (name,) in tables.execute("select name from sqlite_master where type = 'table'")}
        if "NVTX_EVENTS" in names:
            tables.execute("delete from NVTX_EVENTS")
        if "rocpd_api" in names:
            tables.execute("delete from rocpd_api where apiName_id in (select id from rocpd_string where string = 'UserMarker')")
        tables.commit()
        tables.close()
        return open(file.name, "rb").read()


def main():
    content = gzip.open(sys.argv[1]).read()
    if content.startswith(b"SQLite format 3"):
        content = strip_tables(content)
    elif b"rocprofiler-sdk-tool" not in content[:4096]:
        content = strip_kineto(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    with gzip.open(sys.argv[2], "wb", compresslevel=1) as out:
        out.write(content)


if __name__ == "__main__":
    main()
