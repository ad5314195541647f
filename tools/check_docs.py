#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Docs say what is there: links lead somewhere, every backend has its row, and the first C++ sample of a page in SAMPLES
is compiled code. What is read from beginning to end (README, guide, internals) stays within MOST_WORDS, and lines within
MOST_COLUMNS."""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent


def headings(page: pathlib.Path) -> set[str]:
    """The anchors of a page, as hosts of repositories make them: of its headings, and those that it names itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    made: dict[str, int] = {}
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for title in re.findall(r"^#+ +(.*)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(f"{anchor}-{made[anchor]}" if anchor in made else anchor)
        made[anchor] = made.get(anchor, 0) + 1
    return found


def broken_links(page: pathlib.Path) -> list[str]:
    problems = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text()):
        to = page.parent / target if target else page
        if "://" in target:
            continue
        if not to.exists():
            problems.append(f"{page.relative_to(ROOT)}: link to {target}, which does not exist")
        elif anchor and to.suffix == ".md" and anchor[1:] not in headings(to):
            problems.append(f"{page.relative_to(ROOT)}: link to {target}{anchor}, but no heading there is called so")
    return problems


SAMPLES = [  # page, file, name of the marks around the sample there
    ("docs/guide/cuda_graphs.md", "src/session/cuda_graph_cache_test.cpp", "graph_cache"),
]


WALKS = {  # every sample in code of the page is a marked part of one of these files
    "README.md": ["examples/readme.cpp"],
    "docs/guide/engines.md": ["examples/llama_cpp.c", "examples/loop.py", "examples/engine.rs"],
    "docs/reference/path.md": ["examples/recorded_nodes.cpp"],
    "docs/reference/requests.md": ["examples/requests.cpp"],
    "docs/guide/instrumenting.md": ["examples/instrumenting.cpp", "decoder/model/step.cpp"],
    "docs/reference/c.md": ["examples/from_c.c"],
}


def unknown_samples(page: str, sources: list[str]) -> list[str]:
    compiled = {textwrap.dedent(part[1]) for source in sources
                for part in re.findall(r"(?://|#) \[([a-z]+)\]\n(.*?)[ ]*(?://|#) \[/\1\]", (ROOT / source).read_text(), re.S)}
    shown = re.findall(r"```(?:cpp|c|rust|python)\n(.*?)```", (ROOT / page).read_text(), re.S)
    return [f"{page}: sample {number + 1} is no marked part of {' or '.join(sources)}; copy it from there"
            for number, sample in enumerate(shown) if sample not in compiled]


def sample_differs(page: str, source: str, name: str) -> list[str]:
    compiled = re.search(rf"// \[{name}\]\n(.*?)// \[/{name}\]", (ROOT / source).read_text(), re.S)
    shown = re.search(r"```cpp\n(.*?)```", (ROOT / page).read_text(), re.S)
    if not compiled or not shown or compiled.group(1) != shown.group(1):
        return [f"{page}: its first C++ sample is not the one in {source}; copy that one"]
    return []


def backends_without_row() -> list[str]:
    """Of the table that says how each one measures; a source of its own row has an empty first cell."""
    listed = re.search(r"^set\(PLUMB_BACKENDS ([^)]+)\)$", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1).split()
    rows = re.findall(r"^\| ([a-z0-9_]+) \|", (ROOT / "docs/reference/backends.md").read_text(), re.M)
    return [f"docs/reference/backends.md: no row says how {word} measures; add one to the table" for word in listed if word not in rows]


MOST_COLUMNS = {"text": 120, "table": 200}


def too_wide(page: pathlib.Path) -> list[str]:
    """Lines of text and rows of tables, without those that hold a link or are made by a program, and without code and output."""
    problems, made = [], False
    text = re.sub(r"^ *```.*?^ *```", lambda block: "\n" * block[0].count("\n"), page.read_text(), flags=re.M | re.S)
    for number, line in enumerate(text.splitlines(), 1):
        made = (made or line.startswith(("<!-- table:", "# Field by field"))) and not line.startswith("<!-- end of table")
        most = MOST_COLUMNS["table" if line.startswith("|") else "text"]
        if len(line) > most and not made and not line.startswith("    ") and "](" not in line and "://" not in line:
            problems.append(f"{page.relative_to(ROOT)}:{number}: {len(line)} columns, at most {most} are wanted")
    return problems


def other_version() -> list[str]:
    """The version is that of the project in CMakeLists.txt; the changelog's newest section is of it."""
    version = re.search(r"^project\(plumb VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1)
    return [] if version == newest else [f"CHANGELOG.md: the newest section is of {newest}, CMakeLists.txt says {version}"]


MOST_GUIDES = 10  # pages
MOST_WORDS = 27_000  # of README.md, docs/guide and docs/internals, as words_of() counts them


def words_of(page: pathlib.Path) -> int:
    """The words of a page with those of its tables, without code, output, and tables that a program makes."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
    text = re.sub(r"^<!-- table:.*?^<!-- end of table -->", "", text, flags=re.M | re.S)
    return sum(len(re.findall(r"\w\S*", line)) for line in text.splitlines() if not line.startswith("    "))


def too_many_words() -> list[str]:
    counted = {kind: sum(map(words_of, pages)) for kind, pages in (
        ("README", [ROOT / "README.md"]), ("guide", ROOT.glob("docs/guide/*.md")), ("internals", ROOT.glob("docs/internals/*.md")))}
    total = sum(counted.values())
    print(f"{total:,} words ({', '.join(f'{kind} {count:,}' for kind, count in counted.items())})")
    return [f"README.md, docs/guide and docs/internals have {total:,} words, at most {MOST_WORDS:,} are wanted: shorten, or move what "
            "describes one thing into docs/reference"] if total > MOST_WORDS else []


def too_many_guides() -> list[str]:
    pages = len(list(ROOT.glob("docs/guide/*.md")))
    return [f"docs/guide has {pages} pages; {MOST_GUIDES} are the most: is one of them reference?"] if pages > MOST_GUIDES else []


def main() -> int:
    problems = [problem for sample in SAMPLES for problem in sample_differs(*sample)]
    problems += other_version()
    problems += too_many_words()
    problems += too_many_guides()
    problems += [problem for walk in WALKS.items() for problem in unknown_samples(*walk)]
    problems += backends_without_row()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        problems += broken_links(page)
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        if page.name not in ("CHANGELOG.md", "cli.md"):  # a list of sentences; made by the command
            problems += too_wide(page)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
