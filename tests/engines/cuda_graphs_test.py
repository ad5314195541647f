# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs of a program that knows nothing of us, through the slots of its libcudart (docs/reference/attach.md): what it computes does
not change, and the times inside its replays are those of the virtual GPU's own ledger.

usage: cuda_graphs_test.py PLUMB FOLDER [CLASS…]"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ledger
from recorded import run

PLUMB, BUILT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-cuda-graphs-")
FOLDER = pathlib.Path(SCRATCH.name)
HANG = 120
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "GRAPH_ENGINE", "VIRTUAL_CUDART")) and key != "LD_PRELOAD"}
LAYER = ["rms_norm", "qkv_projection", "rope_embedding", "kv_append", "attention", "output_projection", "rms_norm", "gate_up_projection",
         "activation", "down_projection"]


class Run:
    """One command without us and one with us."""

    def __init__(self, *words, program="graph_engine", environment=None):
        command = [str(BUILT / program), *words]
        clean = {**CLEAN, **(environment or {})}
        self.alone = subprocess.run(command, capture_output=True, text=True, env=clean, timeout=HANG)
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        self.recording, truth = folder / "run.plumb", folder / "truth.tsv"
        self.done = run(PLUMB, self.recording, command, {**clean, "VIRTUAL_CUDART_TRUTH": str(truth)}, timeout=HANG, cwd=folder)
        self.replays = ledger.truth(truth)

    def graphs(self):
        return ledger.graphs_of(PLUMB, self.recording)


class Case(unittest.TestCase):
    def assert_unchanged(self, case):
        self.assertEqual((case.alone.returncode, case.done.returncode), (0, 0), case.alone.stderr + case.done.stderr)
        self.assertRegex(case.alone.stdout, r"^[0-9a-f]{16}\n$")
        self.assertEqual(case.done.stdout, case.alone.stdout)
        self.assertNotIn("misuse", case.done.stderr)

    def run_until(self, enough, *words):
        """A twin is built by a thread of ours, which on a machine that does much else comes late: with more and more steps, until there is
        enough. What the program computes never changes."""
        for steps in (400, 1_600, 6_400, 25_600):
            case = Run(f"steps={steps}", *words)
            self.assert_unchanged(case)
            if enough(case):
                return case, steps
        self.fail(f"not enough was sampled in {steps} steps: {case.done.stderr}")

    def sampled(self, *words):
        return self.run_until(lambda case: ledger.rows_of(PLUMB, case.recording), *words)

    def assert_bricks(self, case, layers=4):
        """Each replay that was sampled has each layer's bricks in their order."""
        rows = ledger.rows_of(PLUMB, case.recording)
        self.assertTrue(rows, case.done.stderr)
        by_layer = collections.defaultdict(list)
        for row in rows:
            by_layer[row["layer"]].append(row["name"])
        self.assertEqual(sorted(by_layer), list(range(layers)))
        for names in by_layer.values():
            self.assertEqual(names, LAYER * (len(names) // len(LAYER)))
        return rows


class Graphs(Case):
    def test_a_graph_that_is_replayed_has_bricks_layers_and_times(self):
        case, steps = self.sampled()
        self.assertGreater(ledger.times_are_true(self.assert_bricks(case), case.replays, lambda row: 1), 0)
        graph, = case.graphs().values()
        self.assertEqual((graph["captures"], graph["replays"]), (1, steps))
        self.assertIn(f"CUDA graphs: 1 instantiated, {steps} launches", case.done.stderr)

    def test_pieces_of_a_step_are_graphs_of_their_own(self):
        case = Run("mode=pieces")
        self.assert_unchanged(case)
        self.assertEqual({key: graph["replays"] for key, graph in case.graphs().items()}, dict.fromkeys((1, 2, 3, 4), 200))

    def test_steps_are_those_that_nvtx_ranges_tell(self):
        def report(case):
            done = subprocess.run([PLUMB, "report", case.recording, "--json"], capture_output=True, text=True, check=True)
            return json.loads(done.stdout)

        def calls(case):
            return {row["name"]: row["calls_per_step"] for row in report(case)["bricks"]}

        case, _ = self.run_until(lambda case: calls(case).get("attention") == 4, "ranges", "mode=pieces")  # each piece was sampled
        decode, = report(case)["phases"]
        self.assertEqual((decode["phase"], calls(case)["rms_norm"]), ("decode", 8))

    def test_an_update_in_place_is_a_new_capture(self):
        case, steps = self.sampled("mode=update")
        self.assert_bricks(case)
        graph, = case.graphs().values()
        self.assertEqual((graph["captures"], graph["replays"]), (5, steps))

    def test_a_graph_that_is_updated_before_each_launch_is_left_alone(self):
        case = Run("mode=hasty")
        self.assert_unchanged(case)
        self.assertIn("CUDA graph 1 is updated before nearly each of its launches: it is launched plainly from now on", case.done.stderr)

    def test_parameters_that_nobody_can_read_back_end_it(self):
        case = Run("mode=change")
        self.assert_unchanged(case)
        self.assertIn("CUDA graph 1 is changed by cudaGraphExecKernelNodeSetParams", case.done.stderr)
        self.assertLess(case.graphs()[1]["replays"], 200)

    def test_a_graph_that_is_made_anew_is_another_one(self):
        case = Run("mode=anew")
        self.assert_unchanged(case)
        self.assertEqual(sorted(case.graphs()), [1, 2, 3, 4, 5])

    def test_a_generator_that_moves_on_before_each_launch(self):
        case, _ = self.sampled("mode=random")
        self.assert_bricks(case)

    def test_a_thread_that_has_no_context_yet(self):
        case = Run("mode=thread")
        self.assert_unchanged(case)
        self.assertEqual(case.graphs()[1]["replays"], 199)  # libcudart makes the context with the first


class Nothing(Case):
    def test_a_runtime_without_slots_is_told(self):
        case = Run(program="graph_engine_static")
        self.assert_unchanged(case)
        self.assertFalse(case.recording.exists())
        self.assertIn("CUDA was met, and nothing that launches graphs of libcudart through a slot", case.done.stderr)

    def test_a_program_without_a_graph_is_told(self):
        case = Run("mode=eager")
        self.assert_unchanged(case)
        self.assertFalse(case.recording.exists())
        self.assertIn("CUDA was met, and no CUDA graph was instantiated", case.done.stderr)

    def test_the_first_error_of_ours_ends_it_and_the_program_goes_on(self):
        case = Run(environment={"GRAPH_ENGINE_FAIL": "cuGraphGetNodes"})
        self.assert_unchanged(case)
        self.assertIn("CUDA graphs are launched plainly from now on: ", case.done.stderr)

    def test_without_a_wish_to_record_nothing_happens(self):
        attach = subprocess.run([PLUMB, "run", "--", "/bin/sh", "-c", "echo $LD_PRELOAD"], capture_output=True, text=True, env=CLEAN, check=True)
        library = attach.stdout.splitlines()[0].split(":")[-1]
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            done = subprocess.run([str(BUILT / "graph_engine")], capture_output=True, text=True, env={**CLEAN, "LD_PRELOAD": library}, cwd=folder,
                                  timeout=HANG, check=True)
            self.assertEqual((done.stderr, os.listdir(folder)), ("", []))


def main():
    """77, which ctest shows as skipped, where this plumb cannot run anything."""
    if subprocess.run([PLUMB, "run", "--", "true"], capture_output=True).returncode != 0:
        print("skipped: this plumb has no libplumb-attach.so")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


if __name__ == "__main__":
    main()
