#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Docs say what is there: links lead somewhere, every backend has its row, and the first C++ sample of a page in SAMPLES
is compiled code."""

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
    ("docs/cuda_graphs.md", "src/session/cuda_graph_cache_test.cpp", "graph_cache"),
]


WALKS = {  # every sample in code of the page is a marked part of one of these files
    "README.md": ["examples/readme.cpp"],
    "docs/engines.md": ["examples/llama_cpp.c", "examples/loop.py", "examples/engine.rs"],
    "docs/path.md": ["examples/recorded_nodes.cpp"],
    "docs/requests.md": ["examples/requests.cpp"],
    "docs/instrumenting.md": ["examples/instrumenting.cpp", "decoder/model/step.cpp", "examples/from_c.c"],
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
    rows = re.findall(r"^\| ([a-z0-9_]+) \|", (ROOT / "docs/backends.md").read_text(), re.M)
    return [f"docs/backends.md: no row says how {word} measures; add one to the table" for word in listed if word not in rows]


def other_version() -> list[str]:
    """The version is that of the project in CMakeLists.txt; the changelog's newest section is of it."""
    version = re.search(r"^project\(plumb VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1)
    return [] if version == newest else [f"CHANGELOG.md: the newest section is of {newest}, CMakeLists.txt says {version}"]


def main() -> int:
    problems = [problem for sample in SAMPLES for problem in sample_differs(*sample)]
    problems += other_version()
    problems += [problem for walk in WALKS.items() for problem in unknown_samples(*walk)]
    problems += backends_without_row()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        problems += broken_links(page)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
