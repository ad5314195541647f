# SPDX-License-Identifier: Apache-2.0
"""Puts known flaws back, one at a time, and must see their tests fail.

tests/mutations/<id>.patch (or <id>-<variant>.patch) is a flaw; its tests are those whose name starts with <id>_ (such as
Rings.F7_a_full_ring_drops_and_counts). Works in a copy under build/mutations/, kept between runs; the checkout is
never touched. A patch that does not apply or compile, and an id without a test, are errors of their own."""

import argparse
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
        self.log = folder / "log.txt"
        self.tree.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")

    def refresh(self):
        wanted = {str(name) for name in tree.files(self.source)}
        for path in list(self.tree.rglob("*")):
            name = str(path.relative_to(self.tree))
            if path.is_file() and not name.startswith("build/") and name not in wanted:
                path.unlink()
        for name in wanted:
            content = (self.source / name).read_bytes()
            copy = self.tree / name
            if not copy.is_file() or copy.read_bytes() != content:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
            copy.chmod((self.source / name).stat().st_mode & 0o777)

    def compile(self, targets):
        command = ["cmake", "--build", self.build, "-j", JOBS, "--target", *targets]
        return run(command, self.tree, self.log) == 0

    def prepare(self):
        self.refresh()
        if not (self.build / "build.ninja").is_file():
            # One launcher base for all copies: the compiler cache of an ordinary build serves this one too.
            if run(["cmake", "--preset", self.preset], self.tree, self.log):
                raise Problem(f"the copy does not configure; see {self.log}")
        if not self.compile(["all", "plumb_tests"]):
            raise Problem(f"the unchanged copy does not build; see {self.log}")

    def tests(self, pattern):
        """(names, build targets) of the tests that match."""
        listed = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1", "-R", pattern],
                                capture_output=True, text=True, check=True).stdout
        names, targets = [], set()
        for test in json.loads(listed)["tests"]:
            names.append(test["name"])
            for word in test.get("command", []):
                path = pathlib.Path(word)
                if path.is_absolute() and path.is_file() and path.is_relative_to(self.build):
                    targets.add(str(path.relative_to(self.build)))
        return names, sorted(targets)

    def failing(self, pattern):
        """Names of the failing tests among those that match; a test that hangs counts as failing."""
        report = self.build / "mutation.xml"
        report.unlink(missing_ok=True)
        run(["ctest", "--test-dir", self.build, "-R", pattern, "--timeout", "60", "-j", JOBS, "--no-tests=error",
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


def pattern_of(*identities):
    """For ctest -R, whose expressions hold at most 32 groups: one for all ids."""
    return rf"(^|[./:])({'|'.join(identities)})_"


def changed_files(patch):
    names = re.findall(r"^(?:---|\+\+\+) (?:[ab]/)?(\S+)", patch.read_text(), re.M)
    return sorted({name for name in names if name != "/dev/null"})


def judge(scratch, patch):
    """None when a test caught the flaw; raises Problem otherwise."""
    pattern = pattern_of(patch.stem.split("-")[0])
    names, targets = scratch.tests(pattern)
    if not names:
        raise Problem(f"no test matches {pattern}")
    files = changed_files(patch)
    if not files or any(not name.startswith(ALLOWED) for name in files):
        raise Problem(f"a flaw changes files under {' '.join(ALLOWED)} only, this one: {' '.join(files) or 'nothing'}")
    try:
        if run(["patch", "-p1", "--no-backup-if-mismatch", "--forward", "-i", patch], scratch.tree, scratch.log):
            raise Problem("the patch does not apply any more")
        if not scratch.compile(targets or ["all"]):
            raise Problem("the flawed code does not compile")
        failing = scratch.failing(pattern)
    finally:
        for leftover in [scratch.tree / name for name in files]:
            for suffix in (".rej", ".orig"):
                leftover.with_name(leftover.name + suffix).unlink(missing_ok=True)
        scratch.refresh()
    if not failing:
        raise Problem(f"NOT CAUGHT: the flaw is in and these tests still pass: {' '.join(names)}")
    return f"caught by {failing[0]}" + (f" and {len(failing) - 1} more" if len(failing) > 1 else "")


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
        scratch.prepare()
        everything = pattern_of(*sorted({patch.stem.split("-")[0] for patch in chosen}))
        if scratch.tests(everything)[0] and (broken := scratch.failing(everything)):
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
