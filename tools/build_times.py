# SPDX-License-Identifier: Apache-2.0
"""Where the time of a build goes: the slowest steps, and the sum for each room, from Ninja's log of the folder given. A step's
time is wall time, as the log has it: with as many jobs as cores it is near the processor's. Steps that ccache answered are
in it with the little they took."""

import collections
import pathlib
import sys

SLOWEST = 25


def steps(log):
    """{output: seconds} of the last time each was made."""
    found = {}
    for line in log.read_text().splitlines():
        fields = line.split("\t")
        if len(fields) == 5:
            found[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return found


def kind_and_room(output, build):
    """("compile", "src/drain"), ("precompile", "cli"), ("link", "tests"): None for what only copies or counts."""
    output = output.removeprefix(f"{build}/")
    folder, found, rest = output.partition("CMakeFiles/")
    parts = [part for part in pathlib.PurePath(folder).parts if part != ".."]
    if output.endswith(".gch"):
        return "precompile", "/".join(parts)
    if output.endswith(".o") and found:
        inner = pathlib.PurePath(rest).parts[1:-1]
        if rest.split("/")[0].endswith("_test.dir") or output.endswith("_test.cpp.o"):
            parts.append("tests")
        elif parts and parts[0] != "src" and inner and not inner[0].startswith("__"):
            parts.append(inner[0])
        return "compile", "/".join(parts)
    if found or not parts or output == "build.ninja" or pathlib.PurePath(output).suffix in (".cmake", ".txt", ".cpp", ".ptx", ".stamp"):
        return None
    return "link", parts[0]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rooms, slowest = collections.Counter(), []
    number = collections.Counter()
    for output, seconds in steps(build / ".ninja_log").items():
        place = kind_and_room(output, build)
        if place:
            rooms[place] += seconds
            number[place] += 1
            slowest.append((seconds, place[0], output))
    print(f"{'seconds':>8}  step")
    for seconds, kind, output in sorted(slowest, reverse=True)[:SLOWEST]:
        print(f"{seconds:8.1f}  {kind} {output}")
    print(f"\n{'seconds':>8} {'steps':>6}  room")
    for (kind, room), seconds in rooms.most_common():
        print(f"{seconds:8.1f} {number[kind, room]:6}  {kind} {room}")
    print(f"{sum(rooms.values()):8.1f} {sum(number.values()):6}  in all")


if __name__ == "__main__":
    sys.exit(main())
