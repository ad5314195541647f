#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages as a static site: stages README.md, docs/ and the other pages of the root, lets mkdocs build them, and reads what it
built: every link leads to a page and to a heading that is there, and no page asks another host for anything.

usage: site.py OUT      writes OUT/site; open OUT/site/index.html
"""

import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import tree

ROOT_PAGES = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
CONFIG = """site_name: Plumbline
docs_dir: pages
site_dir: site
use_directory_urls: false
theme:
  name: mkdocs
  highlightjs: false
  navigation_depth: 3
plugins:
  - search
nav:
"""
LEFT_OUT = ("404.html", "search.html")  # mkdocs' own, with links from the root of a server
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def navigation() -> list[tuple[str, list[tuple[str, str]]]]:
    """The kinds of docs/README.md, each with the title and file of its pages."""
    kinds, seen = [], set()
    for line in (tree.ROOT / "docs/README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## ") and line != "## Glossary":
            kinds.append((line[3:], []))
        elif line.startswith("|") and kinds:
            for title, target in re.findall(r"\[([^\]]+)\]\(([^)#]+\.md)\)", line.split("|")[1]):
                if target not in seen:
                    seen.add(target)
                    kinds[-1][1].append((title, target.removeprefix("../")))
    return kinds


def place_of(page: pathlib.Path) -> pathlib.PurePosixPath:
    """Where a file of the tree lies among the site's pages."""
    named = {tree.ROOT / "README.md": "overview.md", tree.ROOT / "docs/README.md": "index.md"}
    place = page.relative_to(tree.ROOT)
    return pathlib.PurePosixPath(named.get(page) or (pathlib.PurePosixPath(*place.parts[1:]) if place.parts[0] == "docs" else place))


def staged(page: pathlib.Path, pages: set[pathlib.Path], to: pathlib.PurePosixPath) -> str:
    """The text of a page, with links as they must be where it lies now; a link to a source file is its path."""

    def moved(match: re.Match) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        leads_to = (page.parent / target).resolve()
        if leads_to not in pages and not image and leads_to.suffix != ".txt":
            return f"{text} (`{leads_to.relative_to(tree.ROOT)}`)"
        up = "../" * (len(to.parts) - 1)
        return f"{image}[{text}]({up}{place_of(leads_to)}{anchor})"

    parts = re.split(r"(^```.*?^```$)", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return "".join(part if part.startswith("```") else LINK.sub(moved, part) for part in parts)


def stage(out: pathlib.Path) -> None:
    pages = {tree.ROOT / name for name in ["README.md", *ROOT_PAGES] if (tree.ROOT / name).exists()}
    pages |= set((tree.ROOT / "docs").rglob("*.md"))
    for page in sorted(pages):
        place = place_of(page)
        to = out / "pages" / place
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(staged(page, pages, place), encoding="utf-8")
    for other in [*(tree.ROOT / "docs").rglob("*.png"), *(tree.ROOT / "docs").rglob("*.txt")]:
        to = out / "pages" / place_of(other)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(other, to)
    lines = ["  - Overview: overview.md", "  - All pages: index.md"]
    for kind, entries in navigation():
        lines.append(f"  - {kind}:")
        lines += [f"      - {title!r}: {target}" for title, target in entries]
    (out / "mkdocs.yml").write_text(CONFIG + "\n".join(lines) + "\n", encoding="utf-8")


class Built(html.parser.HTMLParser):
    """What one page of the site links to, asks for, and offers as targets."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.requests, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif given.get("src"):
            self.requests.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon") and given.get("href"):
            self.requests.append(given["href"])


def problems(site: pathlib.Path):
    built = {page: Built(page.read_text(encoding="utf-8")) for page in sorted(site.rglob("*.html"))}
    for page, found in built.items():
        name = page.relative_to(site)
        for asked in [] if page.name in LEFT_OUT else found.requests:
            if re.match(r"(?:https?:)?//", asked):
                yield f"{name}: asks another host for {asked}"
            elif not (page.parent / urllib.parse.unquote(asked.split("?")[0])).exists():
                yield f"{name}: {asked} is not there"
        for link in found.links:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:|//", link) or page.name in LEFT_OUT:
                continue
            to = (page.parent / urllib.parse.unquote(target)).resolve() if target else page.resolve()
            if not to.exists():
                yield f"{name}: the link {link} leads nowhere"
            elif anchor and to.suffix == ".html" and anchor not in built[to].anchors:
                yield f"{name}: {target or 'the page'} has no heading #{anchor}"
    listed = {target for _, entries in navigation() for _, target in entries}
    for page in sorted((tree.ROOT / "docs").rglob("*.md")):
        name = str(page.relative_to(tree.ROOT / "docs"))
        if name != "README.md" and name not in listed:
            yield f"docs/README.md does not list docs/{name}"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    out = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(out, ignore_errors=True)
    stage(out)
    done = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--config-file", out / "mkdocs.yml"], check=False)
    found = list(problems(out / "site")) if done.returncode == 0 else []
    for problem in found:
        print(problem)
    return 1 if done.returncode or found else 0


if __name__ == "__main__":
    sys.exit(main())
