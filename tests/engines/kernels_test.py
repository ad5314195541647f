# SPDX-License-Identifier: Apache-2.0
"""Kernels of CUDA programs by CUPTI (`plumb run --kernels`, docs/reference/attach.md): what the program computes does not change, each
kernel of a window is in the recording with the time of the virtual GPU's own ledger, and steps in windows are not counted as plain ones.

usage: kernels_test.py PLUMB FOLDER [CLASS…]; FOLDER holds the engine, ../virtual_gpu beside it the stand-in CUPTI"""

import bisect
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import ledger
from recorded import run

PLUMB, BUILT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-kernels-")
FOLDER = pathlib.Path(SCRATCH.name)
CUPTI = FOLDER / "cupti"  # found before one that this machine may have
HANG = 120
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "CUDA_INJECTION", "VIRTUAL_CUDART")) and key != "LD_PRELOAD"}
CLEAN["LD_LIBRARY_PATH"] = f"{CUPTI}:{CLEAN.get('LD_LIBRARY_PATH', '')}"
LAYER = ["rms_norm", "qkv_projection", "rope_embedding", "kv_append", "attention", "output_projection", "rms_norm", "gate_up_projection",
         "activation", "down_projection"]
LAYERS = [(layer, name) for layer in range(4) for name in LAYER]
NEAR_NS = 20_000  # the stand-in reads two clocks one after the other, on a machine that may do much else
WARMUP = 8  # steps
PAUSE_NS = 500_000_000  # between two windows there is more


def exported(recording):
    done = subprocess.run([PLUMB, "export", recording, "--format", "jsonl"], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Run:
    """One command without us and one with us."""

    def __init__(self, *words, environment=None, together=("--kernels",)):
        command = [str(BUILT / "graph_engine"), *words]
        clean = {**CLEAN, **(environment or {})}
        self.alone = subprocess.run(command, capture_output=True, text=True, env=clean, timeout=HANG)
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        self.recording, truth = folder / "run.plumb", folder / "truth.tsv"
        self.done = run(PLUMB, self.recording, command, {**clean, "VIRTUAL_CUDART_TRUTH": str(truth)}, words=together, timeout=HANG, cwd=folder)
        self.truth = ledger.kernels(truth)
        self.rows = exported(self.recording) if self.recording.exists() else []
        tracks = {track["id"] for track in self.rows[0]["tracks"] if track["source"] == "cupti"} if self.rows else set()
        self.kernels = sorted((row for row in self.rows if row.get("kind") == "scope" and row["track"] in tracks), key=lambda row: row["begin_ns"])
        self.steps = [row for row in self.rows if row.get("kind") == "step"]

    def windows(self):
        """The kernels of each window."""
        made = []
        for row in self.kernels:
            if not made or row["begin_ns"] - made[-1][-1]["begin_ns"] > PAUSE_NS:
                made.append([])
            made[-1].append(row)
        return made

    def report(self):
        done = subprocess.run([PLUMB, "report", self.recording, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


class Case(unittest.TestCase):
    def assert_unchanged(self, case):
        self.assertEqual((case.alone.returncode, case.done.returncode), (0, 0), case.alone.stderr + case.done.stderr)
        self.assertRegex(case.alone.stdout, r"^[0-9a-f]{16}\n$")
        self.assertEqual(case.done.stdout, case.alone.stdout)
        self.assertNotIn("misuse", case.done.stderr)

    def recorded(self, *words, **options):
        case = Run(*words, **options)
        self.assert_unchanged(case)
        self.assertTrue(case.kernels, case.done.stderr)
        return case

    def assert_true(self, case):
        """Each kernel has its time. From the first of each window to the last that is of a whole step or replay none is missing; behind
        those, kernels that still ran when the window closed are."""
        begins = [begin for begin, _, _ in case.truth]

        def is_true(row, kernel):
            begin, end, _ = kernel
            return abs(row["begin_ns"] - begin) < NEAR_NS and abs(row["duration_ns"] - (end - begin)) <= 2

        for window in case.windows():
            at = window[0]["begin_ns"]
            # A window may open in the middle of a replay: which of the kernels near its begin was the first, the others tell.
            near = range(bisect.bisect_left(begins, at - NEAR_NS), bisect.bisect_right(begins, at + NEAR_NS))
            self.assertTrue(near, window[0])
            whole = 1 + max((i for i, row in enumerate(window) if "layer" in row or "step" in row), default=-1)
            first = min(near, key=lambda i: sum(abs(row["begin_ns"] - begin) for row, begin in zip(window[:whole], begins[i:])))
            for row, kernel in zip(window[:whole], case.truth[first:first + whole], strict=True):
                self.assertTrue(is_true(row, kernel), (row, kernel))
            behind = iter(case.truth[first + whole:])
            for row in window[whole:]:
                self.assertTrue(any(is_true(row, kernel) for kernel in behind), row)

    def by_step(self, case):
        steps = collections.defaultdict(list)
        for row in case.kernels:
            if "step" in row:
                steps[row["step"]].append(row)
        return steps

    def assert_whole_steps(self, case):
        """Each step that has kernels has all of them, by their bricks and in their layers."""
        steps = self.by_step(case)
        self.assertTrue(steps, case.done.stderr)
        for rows in steps.values():
            self.assertEqual([(row.get("layer"), row["name"]) for row in rows], LAYERS)


class Kernels(Case):
    def test_of_replays_have_their_times_names_and_layers(self):
        case = self.recorded("steps=800")
        self.assert_true(case)
        whole = [row for row in case.kernels if "layer" in row]  # which is told by its place in a whole replay
        self.assertGreater(len(whole), len(case.kernels) // 2)
        self.assertEqual([(row["layer"], row["name"]) for row in whole], LAYERS * (len(whole) // len(LAYERS)))
        self.assertFalse([row for row in case.rows if row.get("graph") is not None])  # no instrumented copy

    def test_of_steps_that_ranges_tell_are_whole_steps(self):
        case = self.recorded("steps=800", "ranges")
        self.assert_true(case)
        self.assert_whole_steps(case)

    def test_of_an_eager_program_are_whole_steps(self):
        case = self.recorded("steps=800", "ranges", "mode=eager")
        self.assert_true(case)
        self.assert_whole_steps(case)
        self.assertNotIn("work outside of graphs is not recorded", case.done.stderr)

    def test_of_a_program_that_ends_in_its_first_window_are_whole_steps(self):
        case = self.recorded("steps=60", "ranges")
        self.assert_true(case)
        self.assert_whole_steps(case)

    def test_C22_windows_are_far_apart_and_their_steps_are_left_out(self):
        case = self.recorded("steps=8000", "ranges")
        windows = case.windows()
        self.assertGreater(len(windows), 1)
        for window, following in zip(windows, windows[1:]):
            length = window[-1]["begin_ns"] - window[0]["begin_ns"]
            self.assertGreater(following[0]["begin_ns"] - window[-1]["begin_ns"], 10 * length)
        report = case.report()
        decode, = report["phases"]
        self.assertEqual(decode["sampled_steps"] + decode["steps"] + WARMUP, len(case.steps))
        # A window cuts two steps at least. Those of the warm-up are apart.
        self.assertGreaterEqual(decode["sampled_steps"] + WARMUP, len(self.by_step(case)) + 2 * len(windows))
        self.assertLess(decode["sampled_steps"], len(case.steps) // 2)
        attention, = (row for row in report["bricks"] if row["name"] == "attention" and row.get("phase") == "decode")
        self.assertEqual((attention["calls_per_step"], attention["source"]), (4, "cupti"))


class Lives(Case):
    def test_a_forked_child_leaves_the_parent_its_kernels(self):
        case = self.recorded("steps=800", "ranges", "fork")
        self.assert_true(case)
        self.assert_whole_steps(case)

    def test_a_forked_child_of_an_eager_program_says_nothing_of_graphs(self):
        case = self.recorded("steps=800", "ranges", "mode=eager", "fork")
        self.assertNotIn("CUDA was met", case.done.stderr)

    def test_control_c_loses_the_open_window_alone(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        recording = folder / "run.plumb"
        signal.signal(signal.SIGINT, signal.default_int_handler)  # children would inherit that a shell's background job ignores it
        child = subprocess.Popen([PLUMB, "run", "-o", recording, "--kernels", "--", str(BUILT / "graph_engine"), "steps=1000000", "ranges"],
                                 env=CLEAN, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

        def kernels():
            done = subprocess.run([PLUMB, "export", recording, "--format", "jsonl"], capture_output=True, text=True)
            return sum(json.loads(line).get("name") == "attention" for line in done.stdout.splitlines())

        try:
            before = 0
            while before == 0:
                self.assertIsNone(child.poll())
                time.sleep(0.2)
                before = kernels()
            os.killpg(child.pid, signal.SIGINT)
            self.assertEqual(child.wait(HANG), -signal.SIGINT)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        self.assertGreaterEqual(kernels(), before)


class Nothing(Case):
    def test_another_tool_that_holds_cupti_keeps_it(self):
        case = Run("steps=800", "ranges", "tool")
        self.assert_unchanged(case)
        self.assertEqual(case.kernels, [])
        self.assertIn("kernels are not recorded: another tool traces this process already", case.done.stderr)

    def test_another_tool_that_the_driver_loads_stays(self):
        case = Run("steps=800", "ranges", environment={"CUDA_INJECTION64_PATH": "/nowhere/libtool.so"})
        self.assert_unchanged(case)
        self.assertEqual(case.kernels, [])
        self.assertIn("CUDA_INJECTION64_PATH was set: /nowhere/libtool.so traces the kernels", case.done.stderr)

    def test_a_machine_without_cupti_is_told(self):
        none = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        (none / "libcupti.so.13").write_text("not a library")
        for name in ("libcupti.so.12", "libcupti.so.11.8", "libcupti.so"):
            (none / name).symlink_to("libcupti.so.13")
        # One that the machine has elsewhere answers without a real driver, and is refused as well.
        case = Run("steps=800", "ranges", environment={"LD_LIBRARY_PATH": str(none)})
        self.assert_unchanged(case)
        self.assertEqual(case.kernels, [])
        self.assertIn("kernels are not recorded: ", case.done.stderr)

    def test_without_the_option_nothing_is_traced(self):
        case = Run("steps=800", "ranges", together=())
        self.assert_unchanged(case)
        self.assertEqual(case.kernels, [])

    def test_every_step_cannot_be_timed(self):
        done = run(PLUMB, FOLDER / "none.plumb", ["true"], {**CLEAN, "PLUMB": "on,device.every=1"}, words=["--kernels"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--kernels times kernels in some steps only", done.stderr)

    def test_a_recording_without_devices_has_no_kernels(self):
        done = run(PLUMB, FOLDER / "none.plumb", ["true"], {**CLEAN, "PLUMB": "on,sync=none"}, words=["--kernels"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--kernels records what a device does: leave sync=none out of PLUMB", done.stderr)


def main():
    """77, which ctest shows as skipped, where this plumb cannot run anything."""
    if subprocess.run([PLUMB, "run", "--", "true"], capture_output=True).returncode != 0:
        print("skipped: this plumb has no libplumb-attach.so")
        sys.exit(77)
    CUPTI.mkdir()
    (CUPTI / "libcupti.so.13").symlink_to(BUILT.parent / "virtual_gpu" / "libcupti.so")
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


if __name__ == "__main__":
    main()
