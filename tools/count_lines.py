# SPDX-License-Identifier: Apache-2.0
"""Lines of code: without blank and comment lines, generated files out.

    tools/count_lines.py [--at COMMIT] [--at COMMIT] [--by-folder]

Without --at: the working tree. With one: that commit, the working tree, and the difference. With two: the difference of
the two commits. C++ is formatted by today's .clang-format first, so that commits of another brace style compare."""

import argparse
import collections
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tokenize

import tree

FOLDERS = ("src", "tests", "tools", "cli", "decoder", "bench", "bindings")
FORMATTED = (".cpp", ".hpp", ".h")
# What is written by a program, with the program. Files that people write by hand are never listed here, whatever
# their form: those of tests/schema that a description does not write count.
GENERATED = {
    "tests/golden/": "recordings and their expected content, written by make_golden",
}
# A file of GENERATED's folders that a person writes counts all the same.
WRITTEN_BY_HAND = (".cpp", ".hpp", ".py", "CMakeLists.txt")


def language(name):
    """The language of a path, or None if it does not count."""
    path = pathlib.PurePosixPath(name)
    if path.name == "CMakeLists.txt" or path.suffix == ".cmake" or path.name.endswith(".cmake.in"):
        return "cmake"
    if path.suffix in (".cpp", ".hpp", ".h", ".inc", ".c", ".mm") or path.name.endswith(".cpp.in"):
        return "c++"
    known = {".cu": "cuda", ".cl": "opencl", ".ptx": "ptx", ".py": "python", ".sh": "shell", ".json": "json",
             ".patch": "patch", ".mjs": "javascript"}
    return known.get(path.suffix, "script" if "." not in path.name else None)


def generated(name, root):
    """A schema of tests/schema is written by `plumb help --schema` where the answers have it."""
    schema = re.fullmatch(r"tests/schema/(plumb\.\w+)\.(\d+)\.json", name)
    if schema:
        own = '"{}/{}"'.format(*schema.groups())
        return any(own in path.read_text(encoding="utf-8") for path in (root / "src/answers").rglob("*.?pp"))
    return name.startswith(tuple(GENERATED)) and not name.endswith(WRITTEN_BY_HAND)


C_TOKEN = re.compile(
    r'R"(?P<mark>[^()\s\\]{0,16})\((?:.|\n)*?\)(?P=mark)"'
    r"""|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'"""
    r"|(?P<comment>//[^\n]*|/\*(?:.|\n)*?\*/)")


def filled(text):
    return sum(bool(line.strip()) for line in text.splitlines())


def count_c(text):
    def keep(found):
        return "\n" * found.group().count("\n") if found.group("comment") else found.group()
    return filled(C_TOKEN.sub(keep, text))


def count_hash(text):
    return sum(bool(line.strip()) and (not line.lstrip().startswith("#") or line.startswith("#!"))
               for line in text.splitlines())


def count_python(text):
    """A string that is a statement of its own is a comment."""
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines, statement = set(), []

    def end_statement():
        if not (len(statement) == 1 and statement[0].type == tokenize.STRING):
            for token in statement:
                lines.update(range(token.start[0], token.end[0] + 1))
        statement.clear()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in silent:
                statement.append(token)
            elif token.type == tokenize.NEWLINE:
                end_statement()
    except (tokenize.TokenError, SyntaxError):
        return count_hash(text)
    end_statement()
    source = text.splitlines()
    return sum(bool(source[number - 1].strip()) for number in lines)


def count(kind, text):
    if kind in ("c++", "cuda", "opencl", "ptx", "javascript"):
        return count_c(text)
    if kind == "python" or (kind == "script" and text.startswith("#!") and "python" in text.split("\n", 1)[0]):
        return count_python(text)
    if kind in ("json", "patch"):
        return filled(text)
    return count_hash(text)


def export(commit, into):
    """The counted folders of a commit, or of the working tree (None), as files below `into`."""
    if commit is None:
        for name in tree.files():
            if name.parts[0] in FOLDERS:
                (into / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree.ROOT / name, into / name)
        return
    there = subprocess.run(["git", "ls-tree", "--name-only", commit], cwd=tree.ROOT, check=True, capture_output=True,
                           text=True).stdout.split()
    archive = subprocess.run(["git", "archive", commit, *(folder for folder in FOLDERS if folder in there)],
                             cwd=tree.ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(into)


def format_all(folder):
    """With the .clang-format of the working tree, whatever the commit has."""
    names = [str(path) for path in folder.rglob("*") if path.suffix in FORMATTED]
    style = tree.ROOT / ".clang-format"
    share = max(1, len(names) // (os.cpu_count() or 1) + 1)
    running = [subprocess.Popen(["clang-format-16", "-i", f"--style=file:{style}", *names[at:at + share]])
               for at in range(0, len(names), share)]
    if any([process.wait() for process in running]):
        sys.exit("clang-format-16 failed")


def lines_of(commit):
    """(folder, language) -> lines."""
    totals = collections.Counter()
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        export(commit, folder)
        format_all(folder)
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            kind = language(name) if path.is_file() and not path.is_symlink() else None
            if kind and not generated(name, folder):
                totals[folder_of(name), kind] += count(kind, path.read_text(encoding="utf-8"))
    return totals


def folder_of(name):
    """Two parts: src/base, tests/core; a file beside such folders belongs to the first part."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def table(columns, by_folder):
    """columns: (title, totals). Two or more end in their difference, the last less the first."""
    def folder(place):
        return place[0] if by_folder else place[0].split("/")[0]

    def language_of(place):
        return place[1]
    text = []

    def add(name, numbers):
        cells = [f"{number:>12,}" for number in numbers]
        if len(numbers) > 1:
            cells.append(f"{numbers[-1] - numbers[0]:>+12,}")
        text.append(f"{name:<28}" + "".join(cells))
    head = [title for title, _ in columns] + (["difference"] if len(columns) > 1 else [])
    for group, name_of in (("folder", folder), ("language", language_of)):
        counters = [collections.Counter() for _ in columns]
        for counter, (_, totals) in zip(counters, columns):
            for place, lines in totals.items():
                counter[name_of(place)] += lines
        text.append(f"{group:<28}" + "".join(f"{title:>12}" for title in head))
        for name in sorted(set().union(*counters)):
            add(name, [counter[name] for counter in counters])
        text.append("")
    add("total", [sum(totals.values()) for _, totals in columns])
    return "\n".join(text)


def self_test():
    assert count_c("int a; // why\n// alone\n\n/* two\n lines */ int b;\n") == 2
    assert count_c('auto s = "// no comment"; // one\nauto r = R"(\n// text\n)";\n') == 4
    assert count_c("char c = '\"'; // x\nint n = 1'000; /*\n*/\nint m;\n") == 3
    assert count_hash("#!/bin/sh\n# why\n\nset -e # now\n") == 2
    assert count_python('"""A file.\n\nLong."""\n\n# why\ndef f():\n    """Doc."""\n    return """a\nb"""\n') == 3
    assert count("json", '{\n\n "a": 1\n}\n') == 3
    assert language("src/a.hpp") == "c++" and language("dev") == "script" and language("a/CMakeLists.txt") == "cmake"
    assert language("a.plumb") is None and language("notes.txt") is None
    assert generated("tests/golden/v1.json", tree.ROOT) and not generated("tests/golden/golden_test.cpp", tree.ROOT)
    for name, made in (("wall.2", True), ("history.1", True), ("peaks.1", True), ("trace.1", True), ("model.1", False)):
        assert generated(f"tests/schema/plumb.{name}.json", tree.ROOT) == made, name
    assert folder_of("src/base/os.hpp") == "src/base" and folder_of("tools/tree.py") == "tools"
    shown = table([("a", {("src/x", "c++"): 3}), ("b", {("src/x", "c++"): 5, ("cli", "c++"): 1})], True)
    assert shown.splitlines()[-1].split() == ["total", "3", "6", "+3"], shown


def main():
    self_test()
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--at", action="append", default=[], metavar="COMMIT", help="once or twice")
    options.add_argument("--by-folder", action="store_true", help="one row for each room")
    chosen = options.parse_args()
    if len(chosen.at) > 2:
        options.error("--at is given once or twice")
    commits = chosen.at if len(chosen.at) == 2 else [*chosen.at, None]
    print(table([(commit[:10] if commit else "here", lines_of(commit)) for commit in commits], chosen.by_folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
