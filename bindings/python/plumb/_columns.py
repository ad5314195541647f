# SPDX-License-Identifier: Apache-2.0
"""Rows of an answer as columns that numpy takes without copying."""

import array

from ._library import ask


def _flat(row, before=""):
    """Name and value of each field; those of a dict within it have its name before theirs: "duration.p50_ns"."""
    for name, value in row.items():
        if isinstance(value, dict) and set(value) != {"absent"}:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def _column(values):
    """Whole numbers as int64 or uint64, truth as bool, other numbers as double with NaN for what is absent: a memoryview. Else a list."""
    known = [value for value in values if value is not None and not isinstance(value, dict)]
    if known and all(isinstance(value, bool) for value in known) and len(known) == len(values):
        return memoryview(bytes(values)).cast("?")
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        if len(known) == len(values) and all(isinstance(value, int) for value in known):
            for kind, least, most in (("q", -(2**63), 2**63), ("Q", 0, 2**64)):
                if all(least <= value < most for value in known):
                    return memoryview(array.array(kind, known))
        return memoryview(array.array("d", [value if isinstance(value, (int, float)) else float("nan") for value in values]))
    return [None if isinstance(value, dict) else value for value in values]


def columns(rows):
    """A table of an answer, a list of dicts, as a dict of columns of one length. Numbers are memoryviews, which numpy.asarray()
    takes without copying; figures that are absent are NaN there, words that are absent None. A field of a field is called
    "field.field"."""
    flat = [dict(_flat(row)) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return {name: _column([row.get(name) for row in flat]) for name in names}


def read(path, **options):
    """The report of a recording, its tables as columns: read("run.plumb")["bricks"]["name"]. Options are those of
    `plumb report`; ask("report", path) has the same with rows, and with the reason for each figure that is absent."""
    report = ask("report", path, **options)
    return {name: columns(value) if isinstance(value, list) and name != "notes" else value for name, value in report.items()}
