# SPDX-License-Identifier: Apache-2.0
"""What the checks fetch from npm, in exact versions, into PLUMB_SCALE_CACHE (build/scale)."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = pathlib.Path(os.environ.get("PLUMB_SCALE_CACHE") or ROOT / "build/scale").resolve()
PACKAGES = {"duckdb": ["@duckdb/node-api@1.5.6-r.1"], "hyparquet": ["hyparquet@1.31.5", "hyparquet-compressors@1.1.2"], "chdb": ["chdb@3.4.0"]}
LONGEST = 600  # seconds for one program, on a machine that does much else


def fetch(reader):
    """The folder of its packages, or why it cannot be had."""
    folder = CACHE / reader
    if folder.is_dir():
        return folder, None
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None, "npm and node are not installed"
    part = folder.with_name(reader + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    (part / "package.json").write_text('{"private": true}\n')
    print(f"    fetching {' '.join(PACKAGES[reader])}", flush=True)
    try:
        done = subprocess.run(["npm", "install", "--prefix", part, "--no-package-lock", "--no-save", "--ignore-scripts", "--omit=dev",
                               "--no-audit", "--no-fund", "--fetch-retries=1", *PACKAGES[reader]],
                              capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return None, f"npm took more than {LONGEST // 60} minutes"
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["npm failed"])[0]
    part.rename(folder)
    return folder, None


def with_duckdb(folder):
    """The environment in which plumb sql finds it."""
    return {**os.environ, "LD_LIBRARY_PATH": str(folder / "node_modules/@duckdb/node-bindings-linux-x64")}
