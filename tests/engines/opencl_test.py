# SPDX-License-Identifier: Apache-2.0
"""An OpenCL program that knows nothing of us, through our layer (docs/reference/attach.md): what it computes does not change, and each
kernel is timed, whether or not the program asked for its event.

usage: opencl_test.py PLUMB PROGRAM"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from recorded import run

PLUMB, PROGRAM = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-opencl-")
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "OPENCL_LAYERS")) and key != "LD_PRELOAD"}
HANG = 120


class OpenCl(unittest.TestCase):
    def test_each_kernel_is_timed(self):
        alone = subprocess.run([PROGRAM], capture_output=True, text=True, env=CLEAN, timeout=HANG, check=True).stdout.split()
        recording = pathlib.Path(SCRATCH.name) / "run.plumb"
        done = run(PLUMB, recording, [str(PROGRAM)], CLEAN, timeout=HANG)
        self.assertEqual(done.returncode, 0, done.stderr)
        computed, took = done.stdout.split()[:2]
        self.assertEqual(computed, alone[0])
        exported = subprocess.run([PLUMB, "export", recording, "--format", "jsonl"], capture_output=True, text=True, check=True)
        rows = [row for row in map(json.loads, exported.stdout.splitlines()) if row.get("kind") == "scope"]
        self.assertEqual(collections.Counter(row["name"] for row in rows), {"attention": 20, "stir": 20})
        self.assertLessEqual(sum(row["duration_ns"] for row in rows), int(took))
        spans = sorted((row["begin_ns"], row["begin_ns"] + row["duration_ns"], row["name"]) for row in rows)
        self.assertEqual([name for _, _, name in spans], ["attention", "stir"] * 20)
        self.assertTrue(all(before[1] <= after[0] for before, after in zip(spans, spans[1:])), "kernels of one queue overlap")

    def test_kernels_that_cannot_be_timed_are_counted(self):
        recording = pathlib.Path(SCRATCH.name) / "queues.plumb"
        done = run(PLUMB, recording, [str(PROGRAM), "queues", "1100"], CLEAN, timeout=HANG)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(subprocess.run([PLUMB, "report", recording, "--json"], capture_output=True, text=True, check=True).stdout)
        timed = report["scopes"]
        self.assertLess(timed, 1100)
        self.assertEqual([(loss["reason"], loss["count"]) for loss in report["losses"]], [("device timer refused", 1100 - timed)])

    def test_without_a_wish_to_record_nothing_is_there(self):
        library = PLUMB.parent.parent / "lib/libplumb-attach.so"
        with tempfile.TemporaryDirectory(dir=SCRATCH.name) as here:
            done = subprocess.run([PROGRAM], capture_output=True, text=True, cwd=here, timeout=HANG, check=True,
                                  env={**CLEAN, "OPENCL_LAYERS": str(library)})
            self.assertEqual((os.listdir(here), done.stderr), ([], ""))


def main():
    """77, which ctest shows as skipped, where there is no device, or this plumb cannot run anything."""
    if subprocess.run([PLUMB, "run", "--", "true"], capture_output=True).returncode != 0:
        print("skipped: this plumb has no libplumb-attach.so")
        sys.exit(77)
    tried = subprocess.run([PROGRAM], capture_output=True, text=True, env=CLEAN)
    if tried.returncode == 77:
        print(f"skipped: {tried.stderr}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
