# SPDX-License-Identifier: Apache-2.0
"""No six lines twice in the rooms of the backends (each word of PLUMB_BACKENDS): what two of them do alike lies in one place
that both use. Lines are compared without comments, blanks, includes and namespaces; closing braces count. Names are
compared too: a copy in which every name was changed is for the reader to see."""

import re
import sys

import tree

LINES = 6
SOURCES = (".cpp", ".hpp", ".cl", ".ptx")
COMMENT = re.compile(r"//.*|/\*.*?\*/")
SILENT = re.compile(r"#|namespace\b|} // namespace|using namespace\b|$")
# Files whose lines may be alike, each with its reason.
SYMBOL_TABLES = {
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


def complaints(texts):
    return [f"{second}: {count} lines as at {first}: let both use one" for count, first, second in clones(texts)]


def self_test():
    assert words_of("x\nset(PLUMB_BACKENDS cpu cuda)\n") == ["cpu", "cuda"]
    room = "src/backends/cuda/"
    body = [f"int value_{i} = compute({i});" for i in range(LINES)]
    once = {room + "a.cpp": "\n".join(body)}
    assert not complaints(once)
    spread = "// why\n\n" + "\n  // more\n".join("    " + line for line in body) + "\n"
    assert len(complaints({**once, room + "b.cpp": spread})) == 1, "a clone with other comments is not seen"
    assert len(complaints({room + "a.cpp": "\n".join(body + ["int between;"] + body)})) == 1, "a clone in one file"
    assert not complaints({**once, room + "b.cpp": "\n".join(body[1:])}), "five lines are no clone"
    table = next(iter(SYMBOL_TABLES))
    assert not complaints({**once, table: "\n".join(body)}), "a table is one"
    assert not complaints({room + "a.cpp": "}\n" * 40}), "braces alone are no clone"


def main():
    self_test()
    words = words_of((tree.ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    rooms = tuple(f"src/backends/{word}/" for word in words)
    texts = {str(name): (tree.ROOT / name).read_text(encoding="utf-8")
             for name in tree.files() if str(name).startswith(rooms) and str(name).endswith(SOURCES)}
    gone = [name for name in SYMBOL_TABLES if name not in texts]
    found = complaints(texts) + [f"{name}: named in tools/check_clones.py, but not there" for name in gone]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
