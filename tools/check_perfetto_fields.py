#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the field numbers of src/export/perfetto_fields.hpp against a schema.

    tools/check_perfetto_fields.py              against tests/perfetto/trace_subset.proto, which must have the same and no more
    tools/check_perfetto_fields.py --published  against the published .proto files: PLUMB_PERFETTO_PROTOS names a folder that
                                                holds them at any depth; exits 77 (skipped) where it is not set
"""

import collections
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Namespaces of the header that are enums, and messages that are written as another that is alike.
ALIKE = {"EventCategory": "EventName", "DebugAnnotationName": "EventName"}
ENUMS = {"SequenceFlags", "BuiltinClock", "TrackEventType", "Api", "RenderStageCategory"}


def of_header():
    """(message or enum, name) -> number."""
    found, where = {}, None
    for line in (ROOT / "src/export/perfetto_fields.hpp").read_text().splitlines():
        if match := re.match(r"namespace (\w+) \{", line):
            where = match[1]
        elif match := re.match(r"inline constexpr unsigned (\w+) = (\d+);", line):
            found[where, match[1]] = int(match[2])
    return found


def of_proto(text):
    """Lists of (message, field, number) and (enum value, number)."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    fields, values, stack = [], [], []
    token = re.compile(r"(message|enum|oneof|extend)\s+([\w.]+)\s*\{|(\{)|(\})|"
                       r"(?:optional|repeated|required)?\s*[\w.]+\s+(\w+)\s*=\s*(\d+)\s*(?:\[[^\]]*\])?;|(\w+)\s*=\s*(\d+)\s*;")
    for match in token.finditer(text):
        kind, name, opened, closed, field, number, value, at = match.groups()
        if kind:
            stack.append((kind, name.rsplit(".", 1)[-1]))
        elif opened:
            stack.append(("other", ""))
        elif closed:
            if stack:
                stack.pop()
        elif value or (stack and stack[-1][0] == "enum"):
            if stack and stack[-1][0] == "enum":
                values.append((value or field, int(at or number)))
        else:
            around = [n for k, n in stack if k in ("message", "extend")]
            if around:
                fields.append((around[-1], field, int(number)))
    return fields, values


def compare(header, fields, values, exact):
    by_field, by_value, wrong = collections.defaultdict(set), collections.defaultdict(set), []
    for message, field, number in fields:
        by_field[message, field].add(number)
    for value, number in values:
        by_value[value].add(number)
    for (where, name), number in sorted(header.items()):
        known = by_value[name] if where in ENUMS else by_field[where, name]
        if number not in known:
            wrong.append(f"{where}.{name} is {number} with us, and {sorted(known) or 'nowhere'} there")
    if exact:
        names = {(where, name) for where, name in header}
        for message, field, number in fields:
            if (ALIKE.get(message, message), field) not in names:
                wrong.append(f"{message}.{field} is not in the header: nothing writes it")
    return wrong


def main():
    header = of_header()
    if sys.argv[1:] == ["--published"]:
        folder = os.environ.get("PLUMB_PERFETTO_PROTOS", "")
        if not folder:
            print("SKIPPED: PLUMB_PERFETTO_PROTOS names no folder with the published .proto files of Perfetto")
            return 77
        files = sorted(pathlib.Path(folder).rglob("*.proto"))
        if not files:
            print(f"{folder} holds no .proto file: name a folder with those of Perfetto")
            return 2
    else:
        files = [ROOT / "tests/perfetto/trace_subset.proto"]
    fields, values = [], []
    for path in files:
        more_fields, more_values = of_proto(path.read_text())
        fields += more_fields
        values += more_values
    wrong = compare(header, fields, values, exact=len(sys.argv) == 1)
    for line in wrong:
        print(line)
    print(f"{len(header)} numbers, {len(files)} files, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
