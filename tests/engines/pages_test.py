# SPDX-License-Identifier: Apache-2.0
"""The samples of docs/guide/engines.md in other languages run, and leave their bricks.

usage: pages_test.py PLUMB BUILD_FOLDER rust|python    exits with 77 where the language is not here"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith("PLUMB")}


def rust(build, folder):
    """The command that runs the sample, or why there is none."""
    rustc = shutil.which("rustc")
    if rustc is None or subprocess.run([rustc, "--version"], capture_output=True).returncode != 0:
        return None, "rustc is not installed"
    library = build / "lib"
    subprocess.run([rustc, "--edition", "2021", "-O", "-D", "warnings", "-L", library, "-C", f"link-arg=-Wl,-rpath,{library}",
                    "-o", folder / "engine", EXAMPLES / "engine.rs"], check=True)
    return [folder / "engine"], None


def python(build, folder):
    CLEAN["PYTHONPATH"] = str(build / "python")
    found = subprocess.run([sys.executable, "-c", "import plumb"], env=CLEAN, cwd=folder, capture_output=True, text=True)
    if found.returncode != 0:
        return None, f"the package plumb was not built: {found.stderr.strip().splitlines()[-1]}"
    return [sys.executable, EXAMPLES / "loop.py"], None


def main():
    plumb, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command, why = {"rust": rust, "python": python}[sys.argv[3]](build, folder)
        if command is None:
            print(f"SKIPPED  {why}")
            return 77
        subprocess.run(command, check=True, cwd=folder, env={**CLEAN, "PLUMB": "on,warmup=0,out=run.plumb"})
        report = json.loads(subprocess.run([plumb, "report", folder / "run.plumb", "--json"], check=True, capture_output=True).stdout)
        phase, row = report["phases"][0], report["bricks"][0]
        assert (phase["phase"], phase["steps"]) == ("decode", 32), phase
        assert (row["name"], row["calls_per_step"]) == ("up_projection", 4), row
    return 0


if __name__ == "__main__":
    sys.exit(main())
