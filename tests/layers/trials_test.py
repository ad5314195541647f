# SPDX-License-Identifier: Apache-2.0
"""Trials of layer detection: trials_test.py TRIALS_BINARY planted|traces [--all]

"traces" needs the folder of public traces in PLUMB_TRACES; without it the test is skipped. --all: as many trials of each
kind as docs/internals/layer_detection.md states its figures for, of every rank.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def main():
    binary, part, everything = sys.argv[1], sys.argv[2], "--all" in sys.argv
    if part == "planted":
        return subprocess.run([binary, "--trials", "6000" if everything else "60"], check=False).returncode
    folder = os.environ.get("PLUMB_TRACES")
    if not folder:
        print("skipped: PLUMB_TRACES names no folder of public traces")
        return SKIPPED
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        export = pathlib.Path(__file__).with_name("export_sequences.py")
        subprocess.run([sys.executable, export, folder, *([] if everything else ["--one-rank"])], stdout=file, check=True)
        return subprocess.run([binary, "--trials", "2000" if everything else "20", "--from", file.name], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
