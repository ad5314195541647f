# SPDX-License-Identifier: Apache-2.0
"""Puts known flaws back, one at a time, and must see their tests fail.

tests/mutations/<id>.patch (or <id>-<variant>.patch) is a flaw; its tests are those whose name starts with <id>_ (such as
Rings.F7_a_full_ring_drops_and_counts). Of these the ones of the flaw's own room are built and run first, the others only where
those miss it. Works in a copy under build/mutations/, kept between runs; the checkout is never touched. A patch that does not
apply or compile, and an id without a test, are errors of their own."""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

import tree

ALLOWED = ("src/", "include/", "decoder/", "cli/")
JOBS = str(os.cpu_count() or 2)


Test = collections.namedtuple("Test", "number name targets")


class Problem(Exception):
    """One mutation (or the tree itself) cannot be judged; the text says why."""


def run(command, cwd, log, timeout=None):
    with open(log, "ab") as output:
        output.write(f"$ {' '.join(map(str, command))}\n".encode())
        output.flush()
        return subprocess.run(command, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, timeout=timeout).returncode


class Scratch:
    """The copy, its build folder and its log. Files keep their time stamps unless changed, so builds stay incremental."""

    def __init__(self, source, folder, preset):
        self.source, self.tree = source, folder / "tree"
        self.build, self.preset = self.tree / "build" / preset, preset
        self.log, self.known = folder / "log.txt", []
        self.tree.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")

    def refresh(self):
        wanted = {str(name) for name in tree.files(self.source)}
        for folder, below, names in os.walk(self.tree):
            if pathlib.Path(folder) == self.tree and "build" in below:
                below.remove("build")
            for path in [pathlib.Path(folder) / name for name in names]:
                if str(path.relative_to(self.tree)) not in wanted:
                    path.unlink()
        self.restore(wanted)

    def restore(self, names):
        for name in names:
            copy = self.tree / name
            if not (self.source / name).is_file():
                copy.unlink(missing_ok=True)
                continue
            content = (self.source / name).read_bytes()
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
            copy.chmod((self.source / name).stat().st_mode & 0o777)

    def compile(self, targets):
        command = ["cmake", "--build", self.build, "-j", JOBS, "--target", *targets]
        return run(command, self.tree, self.log) == 0

    def programs(self, identities):
        """Targets that hold a test of these ids: by their sources, since only a program that was built lists its tests."""
        carried = re.compile(rf"\bTEST(?:_F|_P)?\(\s*\w+,\s*(?:{'|'.join(identities)})_")
        found = set().union(*(test.targets for test in self.tests(*identities)))
        for one in json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8")):
            if any(carried.search(source.read_text(encoding="utf-8")) for source in compiled(pathlib.Path(one["file"]))):
                found.add(re.search(r" -o \S*CMakeFiles/(\w+)\.dir/", one["command"])[1])
        return sorted(found)

    def prepare(self, identities):
        self.refresh()
        # One launcher base for all copies: the compiler cache of an ordinary build serves this one too.
        if run(["cmake", "--preset", self.preset], self.tree, self.log):
            raise Problem(f"the copy does not configure; see {self.log}")
        self.list_tests()
        if not self.compile(self.programs(identities) or ["plumb_tests"]):
            raise Problem(f"the unchanged copy does not build; see {self.log}")
        self.list_tests()

    def list_tests(self):
        listed = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], capture_output=True, text=True,
                                check=True).stdout
        made = subprocess.run(["ninja", "-C", self.build, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
        made = {line.split(": ")[0] for line in made.splitlines()}
        self.known = []
        for number, test in enumerate(json.loads(listed)["tests"], 1):
            words = {word.removeprefix(f"{self.build}/") for word in test.get("command", [])}
            self.known.append(Test(number, test["name"], frozenset(words & made)))

    def tests(self, *identities):
        """Those of these ids."""
        pattern = re.compile(rf"(^|[./:])({'|'.join(identities)})_")
        return [test for test in self.known if pattern.search(test.name)]

    def failing(self, tests):
        """Names of the failing tests among these; a test that hangs counts as failing."""
        report = self.build / "mutation.xml"
        report.unlink(missing_ok=True)
        numbers = ",".join(str(test.number) for test in tests)
        run(["ctest", "--test-dir", self.build, "-I", f"0,0,0,{numbers}", "--timeout", "60", "-j", JOBS, "--no-tests=error",
             "--output-junit", report], self.tree, self.log)
        if not report.is_file():
            raise Problem("ctest ran nothing")
        cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
        for case in cases:
            if case.get("name", "").endswith("_NOT_BUILT"):
                raise Problem(f"{case.get('name')}: a test program is missing")
            if case.get("status") in ("notrun", "disabled"):
                raise Problem(f"{case.get('name')} is skipped here, so it proves nothing")
        return [case.get("name") for case in cases if case.get("status") == "fail"]


def compiled(source):
    """The files that one compiler call compiles: the source, or what a unity build put together in it. One that the build is yet to
    make (PTX as text) holds no test."""
    unity = "/Unity/" in str(source) and source.is_file()
    sources = re.findall(r'^#include "(.+)"', source.read_text(encoding="utf-8"), re.M) if unity else [source]
    return [path for path in map(pathlib.Path, sources) if path.is_file()]


def changed_files(patch):
    names = re.findall(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+)", patch.read_text(), re.M)
    return sorted({name for name in names if name != "/dev/null"})


def by_nearness(tests, files):
    """Two lots: the tests of programs that are named after a changed file's room, and the others."""
    folders = [pathlib.PurePosixPath(name.removeprefix("src/")).parent for name in files]
    rooms = {str(room).replace("/", "_") for folder in folders for room in (folder, *folder.parents)}
    near = [test for test in tests if any(f"plumb_{room}_test" in target for target in test.targets for room in rooms)]
    return [lot for lot in (near, [test for test in tests if test not in near]) if lot]


def judge(scratch, patch):
    """What caught the flaw; raises Problem where nothing did."""
    identity = patch.stem.split("-")[0]
    tests = scratch.tests(identity)
    if not tests:
        raise Problem(f"no test is named {identity}_…")
    files = changed_files(patch)
    if not files or any(not name.startswith(ALLOWED) for name in files):
        raise Problem(f"a flaw changes files under {' '.join(ALLOWED)} only, this one: {' '.join(files) or 'nothing'}")
    try:
        if run(["patch", "-p1", "--no-backup-if-mismatch", "--forward", "-i", patch], scratch.tree, scratch.log):
            raise Problem("the patch does not apply any more")
        for lot in by_nearness(tests, files):
            if not scratch.compile(sorted(frozenset().union(*(test.targets for test in lot))) or ["all"]):
                raise Problem("the flawed code does not compile")
            if failing := scratch.failing(lot):
                return f"caught by {failing[0]}" + (f" and {len(failing) - 1} more" if len(failing) > 1 else "")
    finally:
        scratch.restore([name + suffix for name in files for suffix in ("", ".rej", ".orig")])
    raise Problem(f"NOT CAUGHT: the flaw is in and these tests still pass: {' '.join(test.name for test in tests)}")


def choose(patches, ids, share, commits):
    if ids:
        chosen = [patch for patch in patches if patch.stem in ids or patch.stem.split("-")[0] in ids]
        missing = set(ids) - {patch.stem for patch in chosen} - {patch.stem.split("-")[0] for patch in chosen}
        if missing:
            raise Problem(f"there is no patch for {' '.join(sorted(missing))} in tests/mutations/")
        return chosen
    if share == "auto" and patches:
        start = commits * 5 % len(patches)  # where the budget ends differs; the start moves with every commit
        return patches[start:] + patches[:start]
    if share and share != "auto":
        index, count = map(int, share.split("/"))
        if not 1 <= index <= count:
            raise Problem(f"--share {share}: say which part of how many, from 1/{count} to {count}/{count}")
        return patches[index - 1::count]
    return patches


def commit_count():
    done = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=tree.ROOT, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def main():
    parser = argparse.ArgumentParser(prog="./dev mutations", description=__doc__.split("\n")[0])
    parser.add_argument("ids", nargs="*", help="only these (default: all)")
    parser.add_argument("--share", help="i/n: the i-th of n parts; auto: all, starting elsewhere after every commit")
    parser.add_argument("--budget", type=float, default=float("inf"), help="start none after this many seconds")
    parser.add_argument("--source", type=pathlib.Path, default=tree.ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--preset", default="release", help=argparse.SUPPRESS)
    parser.add_argument("--clean", action="store_true", help="make the copy anew")
    options = parser.parse_args()
    started = time.monotonic()
    source = options.source.resolve()
    folder = source / "build" / "mutations"
    passed = failed = 0
    try:
        chosen = choose(sorted((source / "tests/mutations").glob("*.patch")), options.ids, options.share, commit_count())
        if not chosen and any((source / "tests/mutations").glob("*.patch")):
            print("this share is empty\n0 passed, 0 failed")
            return 0
        if not chosen:
            raise Problem("there is no patch in tests/mutations/")
        if options.clean:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"==> building the unchanged copy in {folder}", flush=True)
        scratch = Scratch(source, folder, options.preset)
        identities = sorted({patch.stem.split("-")[0] for patch in chosen})
        scratch.prepare(identities)
        everything = scratch.tests(*identities)
        if everything and (broken := scratch.failing(everything)):
            raise Problem(f"these tests fail without any flaw: {' '.join(broken)}")
    except (Problem, ValueError) as problem:
        print(f"error: {problem}")
        print("0 passed, 1 failed")
        return 1
    for number, patch in enumerate(chosen):
        if number and time.monotonic() - started > options.budget:
            print(f"==> budget of {options.budget:.0f} s used: {len(chosen) - number} of {len(chosen)} flaws not tried")
            break
        begin = time.monotonic()
        try:
            verdict, passed = judge(scratch, patch), passed + 1
        except Problem as problem:
            verdict, failed = f"ERROR: {problem}", failed + 1
        print(f"{patch.stem:12} {time.monotonic() - begin:5.1f} s  {verdict}", flush=True)
    if failed:
        print(f"(what the tools said: {scratch.log})")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
