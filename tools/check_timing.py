#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/timing.txt names every test that waits, forks, kills or listens: ./dev test --timing runs them many times beside busy loops. A
test in C++ that does so, by its own words, and is not named there is a problem, and so is a name without a test."""

import re
import sys

import tree

WAITS = re.compile(r"\bfork\(|\bkill\(|\braise\(|sleep_for|\busleep\(|nanosleep|\blisten\(|\bpoll\(|waitpid|\bBusyLoop\b")
LIST = tree.ROOT / "tests/timing.txt"


def tests_of(text):
    """(name, body) of each test in a source file."""
    parts = re.split(r"^(?:TYPED_)?TEST(?:_F|_P)?\(", text, flags=re.M)
    for part in parts[1:]:
        if found := re.match(r"(\w+),\s*(\w+)\)", part):
            yield f"{found[1]}.{found[2]}", part


def listed():
    lines = LIST.read_text().splitlines()
    return {line.split("#")[0].strip() for line in lines} - {""}


def main():
    assert [name for name, body in tests_of("TEST(A, b) {\n}\nTEST_F(C, d) { poll(&p, 1, 2); }\n") if WAITS.search(body)] == ["C.d"]
    named, known, waiting = listed(), set(), {}
    for path in tree.files():
        if str(path).endswith("_test.cpp"):
            for name, body in tests_of((tree.ROOT / path).read_text()):
                known.add(name)
                if WAITS.search(body):
                    waiting[name] = path
        elif path.name == "CMakeLists.txt":  # tests that are programs, by the words of a foreach
            text = (tree.ROOT / path).read_text()
            for prefix in re.findall(r"add_test\(NAME (\w+)\.\$\{\w+\}", text):
                known |= {f"{prefix}.{word}" for word in re.findall(r"\w+", text)}
    problems = [f"{path}: {name} waits, forks, kills or listens: name it in tests/timing.txt"
                for name, path in sorted(waiting.items()) if name not in named]
    problems += [f"tests/timing.txt: there is no test {name}" for name in sorted(named - known)]
    print("\n".join(problems), end="\n" if problems else "")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
