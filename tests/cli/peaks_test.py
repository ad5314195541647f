# SPDX-License-Identifier: Apache-2.0
"""plumb selftest --peaks from outside: what it measures reaches the recordings of this machine, and of no other.

usage: peaks_test.py PLUMB MAKE_RECORDING SOURCE_DIR"""

import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from shell import HANG, PLUMB, main, schema_problems

MEASURED = {}


class Peaks(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="plumb-peaks-")
        self.folder = pathlib.Path(self.scratch.name)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("PLUMB")}
        self.environment["XDG_CACHE_HOME"] = str(self.folder)

    def tearDown(self):
        self.scratch.cleanup()

    def measured(self):
        """What the command printed, its file in this test's cache folder: measured once, since it takes seconds."""
        if not MEASURED:
            done = self.run_it(PLUMB, "selftest", "--peaks", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            answer = json.loads(done.stdout)
            file = pathlib.Path(answer["file"])
            MEASURED.update(answer=answer, name=file.relative_to(self.folder), content=file.read_text(encoding="utf-8"))
        kept = self.folder / MEASURED["name"]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(MEASURED["content"], encoding="utf-8")
        return copy.deepcopy(MEASURED["answer"]), kept

    def run_it(self, *words):
        return subprocess.run([*map(str, words)], capture_output=True, text=True, env=self.environment, timeout=HANG)

    def report(self, name, *options):
        made = self.run_it(PLUMB, "decode", "--prompt-tokens", 4, "--steps", 40, "--out", self.folder / name, *options)
        self.assertEqual(made.returncode, 0, made.stderr)
        text = self.run_it(PLUMB, "report", self.folder / name)
        data = self.run_it(PLUMB, "report", self.folder / name, "--json")
        self.assertEqual((text.returncode, data.returncode), (0, 0), text.stderr + data.stderr)
        return text.stdout, json.loads(data.stdout)

    def test_T7_peaks_are_measured_kept_and_believed_on_this_machine_only(self):
        before, data = self.report("before.plumb")
        self.assertEqual(data["peaks"], [])
        self.assertIn("plumb selftest --peaks", before)

        answer, kept = self.measured()
        self.assertEqual(answer["schema"], "plumb.peaks/1")
        host = answer["peaks"][0]
        self.assertEqual(host["place"], "host")
        self.assertGreater(host["read_gigabytes_per_second"], 0)
        self.assertGreater(host["f32_teraflops"], 0)

        _, data = self.report("after.plumb")
        self.assertEqual(data["peaks"], answer["peaks"])
        row = next(row for row in data["bricks"] if isinstance(row["gigabytes_per_second"], float))
        self.assertAlmostEqual(row["roofline"]["memory_share"],
                               row["gigabytes_per_second"] / host["read_gigabytes_per_second"])

        self.assertEqual(schema_problems("plumb.peaks.1", answer, json.loads(kept.read_text(encoding="utf-8"))), "")
        del answer["notes"]
        self.assertNotEqual(schema_problems("plumb.peaks.1", answer), "")
        copied = json.loads(kept.read_text(encoding="utf-8"))
        copied["machine"]["host"] += "-another"
        kept.write_text(json.dumps(copied), encoding="utf-8")
        _, data = self.report("copied.plumb")
        self.assertEqual(data["peaks"], [])

    def test_T7_rows_of_a_device_are_held_against_the_peaks_of_that_device(self):
        answer, kept = self.measured()
        device = next((peaks for peaks in answer["peaks"] if peaks["place"] == "opencl:0"), None)
        if device is None:
            self.skipTest("no OpenCL device here")
        for figure in ("read_gigabytes_per_second", "f32_teraflops"):
            self.assertIsInstance(device[figure], float, device)
            self.assertGreater(device[figure], 0)
        self.assertIn("absent", device["bf16_teraflops"])
        # A device twice as fast, so that its peaks cannot be taken for the host's.
        other = json.loads(kept.read_text(encoding="utf-8"))
        for peaks in other["peaks"]:
            if peaks["place"] == "opencl:0":
                peaks["read_gigabytes_per_second"] = 2 * answer["peaks"][0]["read_gigabytes_per_second"]
                fast = peaks["read_gigabytes_per_second"]
        kept.write_text(json.dumps(other), encoding="utf-8")
        _, data = self.report("device.plumb", "--backend", "opencl")
        rows = [row for row in data["bricks"] if isinstance(row["gigabytes_per_second"], float)]
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["source"], "opencl_event")
            self.assertAlmostEqual(row["roofline"]["memory_share"], row["gigabytes_per_second"] / fast)

    def test_a_cache_folder_that_cannot_be_written_is_one_sentence(self):
        (self.folder / "plumb").write_text("in the way", encoding="utf-8")
        done = self.run_it(PLUMB, "selftest", "--peaks")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, r"\Aerror: [^\n]*XDG_CACHE_HOME[^\n]*\n\Z")


if __name__ == "__main__":
    main()
