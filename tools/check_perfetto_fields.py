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
# Messages that are written as another that is alike, and enums whose name says little outside their message.
ALIKE = {"EventCategory": "EventName", "DebugAnnotationName": "EventName", "Type": "TrackEventType"}


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
    """(message, field, number) and (enum, value, number), in one list."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    found, stack = [], []
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
                found.append((stack[-1][1], value or field, int(at or number)))
        else:
            around = [n for k, n in stack if k in ("message", "extend")]
            if around:
                found.append((around[-1], field, int(number)))
    return found


def compare(header, there, exact):
    numbers, wrong = collections.defaultdict(set), []
    for where, name, number in there:
        numbers[ALIKE.get(where, where), name].add(number)
    for (where, name), number in sorted(header.items()):
        if number not in numbers[where, name]:
            wrong.append(f"{where}.{name} is {number} with us, and {sorted(numbers[where, name]) or 'nowhere'} there")
    if exact:
        wrong += [f"{where}.{name} is not in the header: nothing writes it"
                  for where, name, number in there  # 0: the value that proto3 demands of each enum
                  if number != 0 and (ALIKE.get(where, where), name) not in header]
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
    there = [one for path in files for one in of_proto(path.read_text())]
    wrong = compare(header, there, exact=len(sys.argv) == 1)
    for line in wrong:
        print(line)
    print(f"{len(header)} numbers, {len(files)} files, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
