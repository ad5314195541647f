# SPDX-License-Identifier: Apache-2.0
"""Rooms include one way only (docs/internals/architecture.md has the map). Any room may include <plumb/...>; public headers include
only each other and the system; cli and decoder include <plumb/...> and their own folders. What only tests use is named
*_testing.hpp, and no file that ships includes it."""

import re
import sys

import tree

# Direct edges, lowest first; what a room may include is everything reachable.
BELOW = {
    "base": [],
    "layers": ["base"],
    "clock": ["base"],
    "record": ["clock"],
    "recording": ["base"],
    "asking": ["recording"],
    "metrics": ["asking"],
    "drain": ["record", "recording"],
    "backends": ["record", "asking"],
    "fingerprint": ["drain", "backends"],
    "cudagraph": ["fingerprint"],
    "resolve": ["recording"],
    "ranks": ["resolve"],
    "read": ["resolve"],
    "stats": ["recording"],
    "execgraph": ["recording"],
    "numerics": ["recording"],
    "analysis": ["read", "stats", "execgraph", "numerics"],
    "export": ["analysis"],
    "page": ["base"],
    "answers": ["analysis", "ranks", "page", "asking"],
    "session": ["cudagraph", "fingerprint", "asking", "metrics"],
    "ggml": [],
    "capi": ["session", "ggml"],
    "attach": ["session", "ggml", "capi", "import"],
    "import": ["layers", "recording"],
    "top": ["answers"],
    "sql": ["page"],
    "upload": ["export"],
}
BELOW_TESTS = {"session": ["export", "answers"], "attach": ["answers"], "import": ["answers"]}  # what only the tests of a room include
# Of the room that both libraries hold, what reads: no file of libplumb's other rooms that ships includes it.
READING = {f"src/recording/{name}.hpp" for name in ("decode_ahead", "follower", "index", "reader", "recorded_run", "recovery", "ring_merge")}
OF_BACKEND = {"attach": {"cuda", "opencl", "vulkan"}, "cudagraph": {"cuda", "hip"}, "fingerprint": {"cuda"}}  # rooms that stand on these backends alone
STANDS_ON = {"hip": "cuda"}  # backends that are another table over one implementation
PARTS = {"cli": {"cli", "decoder"}, "decoder": {"decoder"}}
DOORS = {"cli": {"src/import/import.hpp", "src/top/top.hpp", "src/sql/sql.hpp", "src/upload/upload.hpp"}}  # of rooms that are a part's alone
THIRD_PARTY = re.compile(r"^(fmt/|nlohmann/|CLI/|zstd|xxhash|sqlite3|zlib|gtest/|gmock/|benchmark/|hwy/|dnnl|oneapi/|cblas|openblas)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>]+)>|"([^"]+)")', re.M)
OF_TESTS = re.compile(r"(_test|_perftest|_testing)\.[a-z]+$")
SOURCES = (".cpp", ".hpp", ".h", ".c", ".cu", ".mm", ".inc")


def reachable(room):
    seen, open_rooms = {room}, [room]
    while open_rooms:
        for below in BELOW[open_rooms.pop()]:
            if below not in seen:
                seen.add(below)
                open_rooms.append(below)
    return seen


def target_of(include, quoted, own_folder, names):
    """The repository path an include means, or None for a system header."""
    if quoted and f"{own_folder}/{include}" in names:
        return f"{own_folder}/{include}"
    for base in ("include/", "src/", ""):
        if base + include in names:
            return base + include
    return None


def complaint(name, include, target):
    """Why file `name` may not include `target` (its text was `include`), or None."""
    if ".." in include.split("/"):
        return "includes must not climb with '..'"
    area = name.split("/")
    if target is not None and target.startswith("include/plumb/"):
        return None
    if area[0] == "include":
        if target is not None:
            return "a public header includes only <plumb/...> and system headers"
        if THIRD_PARTY.match(include):
            return "a public header must not need a third-party library"
        return None
    if target is None:
        return None
    to = target.split("/")
    if area[0] == "src":
        if area[1] not in BELOW:
            return f"the room {area[1]} is not on the map in tools/check_layers.py"
        if to[0] != "src":
            return f"a room must not include {to[0]}/"
        of_tests = is_of_tests(name)
        below = set().union(*(reachable(room) for room in [area[1], *(BELOW_TESTS.get(area[1], []) if of_tests else [])]))
        if to[1] not in below:
            return f"the room {area[1]} must not include the room {to[1]}"
        if target in READING and area[1] != "recording" and area[1] in reachable("session") and not of_tests:
            return "libplumb reads no recording: libplumb-analysis does, behind src/asking"
        allowed = OF_BACKEND.get(area[1], set()) | ({STANDS_ON.get(area[2])} if area[1] == "backends" else set())
        if to[1] == "backends" and len(to) > 3 and area[:3] != to[:3] and to[2] not in allowed:
            return f"{target} belongs to one backend: reach it through the registry"
        return None
    if area[0] in PARTS and to[0] not in PARTS[area[0]] and target not in DOORS.get(area[0], ()):
        return f"{area[0]} includes only <plumb/...> and its own folder, not {to[0]}/"
    if area[0] == "examples" and to[0] == "src":
        return "an example includes only <plumb/...>"
    return None


def check(texts):
    """texts: path -> content. Yields 'path:line: reason'."""
    for name, text in sorted(texts.items()):
        for found in INCLUDE.finditer(text):
            include = found.group(1) or found.group(2)
            target = target_of(include, found.group(2) is not None, name.rpartition("/")[0], texts)
            reason = complaint(name, include, target)
            if reason:
                line = text.count("\n", 0, found.start()) + 1
                yield f"{name}:{line}: #include of {include}: {reason}"


def is_of_tests(name):
    return not name.startswith(("src/", "include/", "decoder/", "cli/")) or OF_TESTS.search(name) is not None


def misnamed(texts):
    """Yields 'path: reason' for headers of rooms that only tests include, and files that ship but include such a one."""
    used_by = {}
    for name, text in texts.items():
        for found in INCLUDE.finditer(text):
            target = target_of(found.group(1) or found.group(2), found.group(2) is not None, name.rpartition("/")[0], texts)
            used_by.setdefault(target, set()).add(name)
    for name in sorted(texts):
        users = used_by.get(name, set())
        if not name.startswith("src/") or not name.endswith(".hpp"):
            continue
        if OF_TESTS.search(name):
            yield from (f"{user}: ships, and includes {name}" for user in sorted(users) if not is_of_tests(user))
        elif users and all(is_of_tests(user) for user in users):
            yield f"{name}: only tests include it: name it {name[len('src/'):-len('.hpp')]}_testing.hpp"


def self_test():
    helper = {"src/base/help.hpp": "", "src/base/a_test.cpp": '#include "base/help.hpp"\n'}
    assert len(list(misnamed(helper))) == 1 and not list(misnamed({**helper, "src/base/b.cpp": '#include "help.hpp"\n'}))
    named = {"src/base/help_testing.hpp": "", "src/base/a_test.cpp": '#include "base/help_testing.hpp"\n'}
    assert not list(misnamed(named))
    assert len(list(misnamed({**named, "src/base/b.cpp": '#include "base/help_testing.hpp"\n'}))) == 1
    good = {
        "include/plumb/a.hpp": "#include <plumb/b.hpp>\n#include <cstdint>\n", "include/plumb/b.hpp": "",
        "src/base/x.hpp": "#include <plumb/a.hpp>\n", "src/record/r.hpp": '#include "base/x.hpp"\n',
        "src/recording/f.hpp": "", "src/drain/d.cpp": '#include "record/r.hpp"\n#include "recording/f.hpp"\n',
        "src/backends/cpu/c.hpp": "", "src/backends/cpu/c.cpp": '#include "c.hpp"\n',
        "src/backends/cuda/q.hpp": "", "src/backends/hip/b.cpp": '#include "backends/cuda/q.hpp"\n',
        "src/answers/a.hpp": "", "src/recording/reader.hpp": "", "src/resolve/r.cpp": '#include "recording/reader.hpp"\n',
        "src/session/a_test.cpp": '#include "answers/a.hpp"\n#include "recording/reader.hpp"\n',
        "decoder/d.hpp": "", "cli/m.cpp": '#include "decoder/d.hpp"\n#include <CLI/CLI.hpp>\n',
    }
    assert not list(check(good)), list(check(good))
    planted = {
        "src/base/up.cpp": '#include "record/r.hpp"\n', "src/recording/up.cpp": '#include "drain/d.hpp"\n',
        "src/drain/d.hpp": '#include "../base/x.hpp"\n', "include/plumb/room.hpp": '#include "base/x.hpp"\n',
        "include/plumb/fmt.hpp": "#include <fmt/format.h>\n", "decoder/in.cpp": '#include "record/r.hpp"\n',
        "cli/in.cpp": '#include "base/x.hpp"\n', "src/session/b.cpp": '#include "backends/cpu/c.hpp"\n',
        "src/backends/cpu/h.cpp": '#include "backends/cuda/q.hpp"\n',
        "src/backends/cuda/h.cpp": '#include "backends/cpu/c.hpp"\n',
        "src/session/a.cpp": '#include "answers/a.hpp"\n', "src/drain/r.cpp": '#include "recording/reader.hpp"\n',
        "src/utils/u.cpp": '#include "base/x.hpp"\n',
    }
    for name, text in planted.items():
        found = list(check({**good, "src/drain/d.hpp": "", name: text}))
        assert len(found) == 1 and found[0].startswith(name + ":1"), f"planted {name}: {found}"


def main():
    self_test()
    texts = {str(name): (tree.ROOT / name).read_text(encoding="utf-8")
             for name in tree.files() if str(name).endswith(SOURCES)}
    found = [*check(texts), *misnamed(texts)]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
