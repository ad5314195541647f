# SPDX-License-Identifier: Apache-2.0
"""The page of `plumb page`: its sources type-check, the committed web/page.html is what they build to, byte by byte, and the lockfile
names no address. Without npm, or where npm cannot fetch what the lockfile names, the first two are skipped, loudly."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

WEB = pathlib.Path(__file__).resolve().parent.parent / "web"


def addresses():
    """Packages of the lockfile that say where they come from, or lack a hash."""
    packages = json.loads((WEB / "package-lock.json").read_text())["packages"]
    return [f"web/package-lock.json: {name}: {'an address' if 'resolved' in package else 'no hash'}"
            for name, package in packages.items() if name and ("resolved" in package or "integrity" not in package)]


def inexact():
    manifest = json.loads((WEB / "package.json").read_text())
    return [f"web/package.json: {name} {version}: not an exact version"
            for kind in ("dependencies", "devDependencies") for name, version in manifest.get(kind, {}).items()
            if not version[0].isdigit()]


def installed():
    """Whether what the lockfile names is there; "npm ci" where it is not."""
    kept = WEB / "node_modules/.package-lock.json"
    if kept.exists() and kept.stat().st_mtime >= (WEB / "package-lock.json").stat().st_mtime:
        return True
    if not shutil.which("npm"):
        return False
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=WEB, capture_output=True, text=True)
    return done.returncode == 0


def built():
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "page.html"
        done = subprocess.run(["node", "build.mjs", made], cwd=WEB, capture_output=True, text=True)
        if done.returncode != 0:
            return [done.stderr.strip()]
        if made.read_bytes() != (WEB / "page.html").read_bytes():
            return ["web/page.html is not what its sources build to: run node web/build.mjs"]
    typed = subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=WEB, capture_output=True, text=True)
    return typed.stdout.splitlines()


def main():
    problems = addresses() + inexact()
    if installed():
        problems += built()
    else:
        print("SKIPPED: web/page.html was not built again: npm is missing or could not fetch what web/package-lock.json names")
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
