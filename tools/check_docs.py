#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Docs say what is there: links lead somewhere, and the README's sample is the compiled one (examples/readme.cpp)."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def broken_links(page: pathlib.Path) -> list[str]:
    problems = []
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target and not (page.parent / target).exists():
            problems.append(f"{page.relative_to(ROOT)}: link to {target}, which does not exist")
    return problems


def sample_differs() -> list[str]:
    compiled = re.search(r"// \[readme\]\n(.*?)// \[/readme\]", (ROOT / "examples/readme.cpp").read_text(), re.S)
    shown = re.search(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    if not compiled or not shown or compiled.group(1) != shown.group(1):
        return ["README.md: its first C++ sample is not the one in examples/readme.cpp; copy that one"]
    return []


def main() -> int:
    problems = sample_differs()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        problems += broken_links(page)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
