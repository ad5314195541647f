# SPDX-License-Identifier: Apache-2.0
"""A Vulkan program that knows nothing of us, through our layer (docs/reference/attach.md): each dispatch has its debug label's name, else it
is one of its pipeline's, and their times lie inside those of the submissions.

usage: vulkan_test.py PLUMB PROGRAM"""

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
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-vulkan-")
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "VK_")) and key != "LD_PRELOAD"}
HANG = 120
SUBMISSIONS = 20


class Vulkan(unittest.TestCase):
    def record(self, *words, environment=None):
        recording = pathlib.Path(SCRATCH.name) / ("-".join(words) + ".plumb")
        recording.unlink(missing_ok=True)
        done = run(PLUMB, recording, [str(PROGRAM), *words], {**CLEAN, **(environment or {})}, timeout=HANG)
        self.assertEqual(done.returncode, 0, done.stderr)
        return recording, int(done.stdout.split()[0]), done.stderr

    def rows(self, recording):
        done = subprocess.run([PLUMB, "export", recording, "--format", "jsonl"], capture_output=True, text=True, check=True)
        return [row for row in map(json.loads, done.stdout.splitlines()) if row.get("kind") == "scope"]

    def test_labels_are_scopes_and_what_has_none_is_one(self):
        for use in ("once", "again"):
            with self.subTest(use):
                recording, took, _ = self.record(use)
                rows = self.rows(recording)
                self.assertEqual(collections.Counter(row["name"] for row in rows), {
                    "attention": SUBMISSIONS, "ffn": SUBMISSIONS, "gate_projection": SUBMISSIONS, "vulkan_dispatch": SUBMISSIONS})
                leaves = sum(row["duration_ns"] for row in rows if row["name"] != "ffn")
                self.assertLessEqual(leaves, took)
                spans = collections.defaultdict(list)
                for row in sorted(rows, key=lambda row: row["begin_ns"]):
                    spans[row["name"]].append((row["begin_ns"], row["begin_ns"] + row["duration_ns"]))
                for ffn, gate, attention, other in zip(*(spans[name] for name in ("ffn", "gate_projection", "attention", "vulkan_dispatch"))):
                    self.assertTrue(attention[1] <= ffn[0] <= gate[0] < gate[1] <= ffn[1] <= other[0], (attention, ffn, gate, other))

    def test_a_label_of_what_is_given_up_hides_nothing_that_follows(self):
        for word in ("abandoned", "handed"):
            with self.subTest(word):
                rows = self.rows(self.record(word)[0])
                self.assertEqual(collections.Counter(row["name"] for row in rows), {"vulkan_dispatch": SUBMISSIONS})

    def test_names_that_count_up_are_one_brick_from_the_4097th_on(self):
        recording, _, said = self.record("labels")
        names = collections.Counter(row["name"] for row in self.rows(recording))
        self.assertEqual((len(names), names["other"]), (4097, 4200 - 4096))
        self.assertIn("has more than 4,096 names of labels and pipelines", said)

    def test_layers_of_the_user_stay(self):
        _, _, said = self.record("once", environment={"VK_INSTANCE_LAYERS": "VK_LAYER_nobody_has", "VK_LAYER_PATH": SCRATCH.name})
        self.assertIn("attention", said)

    def test_without_a_wish_to_record_the_layer_is_not_there(self):
        folder = PLUMB.parent.parent / "lib"
        with tempfile.TemporaryDirectory(dir=SCRATCH.name) as here:
            done = subprocess.run([PROGRAM, "once"], capture_output=True, text=True, cwd=here, timeout=HANG, check=True,
                                  env={**CLEAN, "VK_INSTANCE_LAYERS": "VK_LAYER_PLUMB_attach", "VK_ADD_LAYER_PATH": str(folder)})
            self.assertEqual(os.listdir(here), [])
            self.assertGreater(int(done.stdout), 0)


def main():
    """77, which ctest shows as skipped, where there is no device, or this plumb cannot run anything."""
    if subprocess.run([PLUMB, "run", "--", "true"], capture_output=True).returncode != 0:
        print("skipped: this plumb has no libplumb-attach.so")
        sys.exit(77)
    tried = subprocess.run([PROGRAM, "once"], capture_output=True, text=True, env=CLEAN)
    if tried.returncode == 77:
        print(f"skipped: {tried.stderr}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
