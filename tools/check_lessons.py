# SPDX-License-Identifier: Apache-2.0
"""Every id of a lesson (F5, T10, …) that a test or a mutation patch carries stands in docs/internals/lessons.md, and each lesson there has at
least one test and one patch. Every patch applies."""

import re
import subprocess
import sys

import tree

ROW = re.compile(r"^\| ([CFTM]\d+) \|", re.M)
PATCH = re.compile(r"^tests/mutations/([^/]+)\.patch$")
PATCH_NAME = re.compile(r"([CFTM]\d+)(?:-[a-z0-9_]+)?")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*([CFTM]\d+)_|\bdef test_([CFTM]\d+)_")


def problems(table, patches, tests):
    """table: text of the page; patches: names without .patch; tests: (where, text) of sources."""
    lessons, patched, tested = set(ROW.findall(table)), {}, {}
    for name in patches:
        known = PATCH_NAME.fullmatch(name)
        if known is None:
            yield f"tests/mutations/{name}.patch: a patch is named after its lesson, <id>.patch or <id>-<variant>.patch"
        else:
            patched.setdefault(known[1], f"tests/mutations/{name}.patch")
    for where, text in tests:
        for found in TEST.findall(text):
            tested.setdefault(found[0] or found[1], where)
    for carried in (patched, tested):
        for identity in sorted(carried.keys() - lessons):
            yield f"{carried[identity]}: carries {identity}, which docs/internals/lessons.md does not have"
    for identity in sorted(lessons - patched.keys()):
        yield f"docs/internals/lessons.md: {identity} has no patch in tests/mutations/"
    for identity in sorted(lessons - tested.keys()):
        yield f"docs/internals/lessons.md: {identity} has no test that carries it"


def applies(patch):
    """As tools/mutations.py applies it."""
    with open(patch, "rb") as text:
        done = subprocess.run(["patch", "-p1", "--dry-run", "--forward", "--silent"], cwd=tree.ROOT, stdin=text, capture_output=True)
    return done.returncode == 0


def self_test():
    table, source = "| id | wrong | here |\n|---|---|---|\n| F1 | a | b |\n", [("a_test.cpp", "TEST(A, F1_b) {")]
    assert not list(problems(table, ["F1", "F1-json"], source)), "a whole table is refused"
    assert not list(problems(table, ["F1"], [("a.py", "    def test_F1_c(self):")])), "a test in Python is not seen"
    for patches, tests in ((["F1", "F2"], source), (["F1", "first"], source), ([], source), (["F1"], []),
                           (["F1"], [("a_test.cpp", "TEST_P(A, F1_b) { TEST_F(A,\n T9_c) {")])):
        assert len(list(problems(table, patches, tests))) == 1, (patches, tests)


def main():
    self_test()
    names = [str(name) for name in tree.files()]
    sources = [(name, (tree.ROOT / name).read_text(encoding="utf-8")) for name in names if name.endswith(("_test.cpp", "_test.py"))]
    patches = [found[1] for found in map(PATCH.match, names) if found]
    failed = False
    for problem in problems((tree.ROOT / "docs/internals/lessons.md").read_text(encoding="utf-8"), patches, sources):
        print(problem)
        failed = True
    for name in patches:
        if not applies(tree.ROOT / f"tests/mutations/{name}.patch"):
            print(f"tests/mutations/{name}.patch: does not apply any more")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
