# SPDX-License-Identifier: Apache-2.0
"""No run of lines twice in the tree: what two places do alike lies in one place that both use. Lines are compared without
comments, blanks, includes and namespaces; closing braces count. Names are compared too: a copy in which every name was
changed is for the reader to see.

How long a run must be to count as a clone depends on where it stands:
  6   in the rooms of the backends (each word of PLUMB_BACKENDS), which do the same things for different drivers
  8   elsewhere in what ships, in tools, and in Python: what is left below is guard clauses and the ends of switches
  12  if one of the two is a test, a benchmark or an example: a scene may set itself up in the words of another one"""

import re
import sys

import tree

OF_BACKENDS, OF_PRODUCT, OF_TESTS = 6, 8, 12
LINES = OF_BACKENDS  # the shortest run that is looked for
FOLDERS = ("src/", "include/", "decoder/", "cli/", "bench/", "tools/", "tests/", "examples/", "bindings/")
SOURCES = (".cpp", ".hpp", ".h", ".c", ".mm", ".cu", ".cl", ".ptx", ".py", ".sh", ".inc")
TESTS = re.compile(r"^(tests|bench|examples)/|_(test|perftest|testing)\.[a-z]+$")
COMMENT = re.compile(r"//.*|/\*.*?\*/")
SILENT = re.compile(r"#|namespace\b|} // namespace|using namespace\b|import \w|from \w+ import|$")
# Files whose lines may be alike, each with its reason.
SYMBOL_TABLES = {
    "tools/gpu_check/truths/kernels.ptx": "assembly: it has no functions to share",
    "src/backends/cuda/driver_calls.hpp": "the driver's entry points: a table",
    "src/backends/hip/hip_calls.hpp": "the runtime's entry points: a table",
    "src/backends/metal/driver_calls.hpp": "the runtime's entry points: a table",
    "src/backends/opencl/driver_calls.hpp": "the loader's entry points: a table",
    "src/backends/vulkan/driver_calls.hpp": "the loader's entry points: a table",
}


def words_of(cmake):
    """The backends that the root CMakeLists.txt names: a new one is looked at without anybody saying so here."""
    return re.search(r"^set\(PLUMB_BACKENDS ([a-z0-9_ ]+)\)$", cmake, re.M).group(1).split()


def lines_of(text):
    """(number, normalised) of each line that says something."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"\s+", " ", COMMENT.sub("", line)).strip()
        if not SILENT.match(line):
            found.append((number, line))
    return found


def clones(texts):
    """texts: path -> content. Yields (count, place, place) for each longest run of equal lines, once."""
    lines = {name: lines_of(text) for name, text in sorted(texts.items()) if name not in SYMBOL_TABLES}
    first_seen = {}
    known = set()
    for name, own in lines.items():
        for start in range(len(own) - LINES + 1):
            key = tuple(line for _, line in own[start:start + LINES])
            if sum(len(line) > 2 for line in key) < LINES // 2:
                continue  # braces that close one after the other
            if key not in first_seen:
                first_seen[key] = (name, start)
                continue
            other, at = first_seen[key]
            if other == name and start - at < LINES:
                continue
            if (name, start - 1, other, at - 1) in known:
                known.add((name, start, other, at))
                continue
            known.add((name, start, other, at))
            count = LINES
            there = lines[other]
            while (start + count < len(own) and at + count < len(there)
                   and own[start + count][1] == there[at + count][1]):
                count += 1
            yield count, f"{other}:{there[at][0]}", f"{name}:{own[start][0]}"


def limit_of(first, second, rooms):
    """From how many lines on a run in these two files is a clone."""
    if first.startswith(rooms) and second.startswith(rooms):
        return OF_BACKENDS
    return OF_TESTS if TESTS.search(first) or TESTS.search(second) else OF_PRODUCT


def complaints(texts, rooms):
    found = []
    for count, first, second in clones(texts):
        if count >= limit_of(first.rpartition(":")[0], second.rpartition(":")[0], rooms):
            found.append(f"{second}: {count} lines as at {first}: let both use one")
    return found


def self_test():
    assert words_of("x\nset(PLUMB_BACKENDS cpu cuda)\n") == ["cpu", "cuda"]
    room = "src/backends/cuda/"
    def complain(texts):
        return complaints(texts, (room, "src/backends/hip/"))
    body = [f"int value_{i} = compute({i});" for i in range(OF_TESTS)]
    six, eight = body[:OF_BACKENDS], body[:OF_PRODUCT]
    once = {room + "a.cpp": "\n".join(six)}
    assert not complain(once)
    spread = "// why\n\n" + "\n  // more\n".join("    " + line for line in six) + "\n"
    assert len(complain({**once, room + "b.cpp": spread})) == 1, "a clone with other comments is not seen"
    assert len(complain({room + "a.cpp": "\n".join(six + ["int between;"] + six)})) == 1, "a clone in one file"
    assert not complain({**once, room + "b.cpp": "\n".join(six[1:])}), "five lines are no clone"
    table = next(iter(SYMBOL_TABLES))
    assert not complain({**once, table: "\n".join(six)}), "a table is one"
    assert not complain({room + "a.cpp": "}\n" * 40}), "braces alone are no clone"
    for lines, first, second, seen in (
            (six, "src/base/a.cpp", "src/base/b.cpp", 0), (eight, "src/base/a.cpp", "tools/b.py", 1),
            (eight, "src/base/a_test.cpp", "src/base/b.cpp", 0), (body, "src/base/a_test.cpp", "bench/b.cpp", 1)):
        assert len(complain({first: "\n".join(lines), second: "\n".join(lines)})) == seen, (first, second)


def main():
    self_test()
    words = words_of((tree.ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    rooms = tuple(f"src/backends/{word}/" for word in words)
    texts = {str(name): (tree.ROOT / name).read_text(encoding="utf-8")
             for name in tree.files() if str(name).startswith(FOLDERS) and str(name).endswith(SOURCES)}
    gone = [name for name in SYMBOL_TABLES if name not in texts]
    found = complaints(texts, rooms) + [f"{name}: named in tools/check_clones.py, but not there" for name in gone]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
