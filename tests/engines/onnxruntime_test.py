# SPDX-License-Identifier: Apache-2.0
"""What `plumb run` records of a program over the look-alike of onnxruntime (tests/mocks/lookalike_onnxruntime), against what that does.

usage: onnxruntime_test.py PLUMB FOLDER CLASS"""

import collections
import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLUMB, BUILT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
HANG = 300
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "GGML", "LOOKALIKE")) and key != "LD_PRELOAD"}
LAYERS, NODES = 3, 20  # of a run of the look-alike
EACH = "warmup=0,device.every=1"  # each run is profiled


class Run:
    """The program without us, and with us: the report and every scope."""

    def __init__(self, *words, release="1.30.0", spec="", profile=""):
        with tempfile.TemporaryDirectory(prefix="plumb-ort-test-") as folder:
            recording = pathlib.Path(folder) / "run.plumb"
            command = [BUILT / release / "program", *map(str, words)]
            self.alone = subprocess.run(command, capture_output=True, text=True, env=CLEAN, timeout=HANG, cwd=folder)
            memory = pathlib.Path(folder) / "memory"
            memory.mkdir()
            environment = {**CLEAN, "PLUMB": spec, "LOOKALIKE_ORT_PROFILE": profile, "XDG_RUNTIME_DIR": str(memory)}
            self.done = subprocess.run([PLUMB, "run", "--json", "-o", recording, "--", *command], capture_output=True, text=True,
                                       env=environment, timeout=HANG, cwd=folder)
            self.printed, _, _ = self.done.stdout.partition("{")
            self.left = sorted(path.name for path in memory.iterdir()) + [pathlib.Path(path).name for path in glob.glob(folder + "/own_*")]
            self.report, self.rows, self.tracks = None, [], []
            if recording.exists():
                report = subprocess.run([PLUMB, "report", "--json", recording], capture_output=True, text=True, check=True)
                self.report = json.loads(report.stdout)
                lines = subprocess.run([PLUMB, "export", recording, "--format", "jsonl"], capture_output=True, text=True, check=True)
                self.rows = [json.loads(line) for line in lines.stdout.splitlines()]
                self.tracks = {track["id"]: track for track in self.rows[0]["tracks"]}

    @property
    def steps(self):
        return [row for row in self.rows[1:] if row["kind"] == "step"]

    @property
    def nodes(self):
        return [row for row in self.rows[1:] if row["kind"] == "scope" and self.tracks[row["track"]]["source"] == "onnxruntime"]

    def nodes_by_step(self):
        found = collections.defaultdict(list)
        for row in self.nodes:
            found[row["step"]].append(row)
        return found

    @property
    def said(self):
        return [line.removeprefix("note  ") for line in self.done.stderr.splitlines()]

    @property
    def described(self):
        return {row["key"]: row["value"] for row in self.report["description"]}


class Case(unittest.TestCase):
    def notices_nothing(self, run):
        self.assertEqual(run.done.returncode, run.alone.returncode, run.done.stderr)
        self.assertEqual(run.printed, run.alone.stdout)

    def bricks_are_true(self, rows):
        """Of one run: each node once, in its layer, as long as the look-alike said."""
        rows = sorted(rows, key=lambda row: row["begin_ns"])
        wanted = [("embedding", None)]
        for layer in range(LAYERS):
            wanted += [(name, layer) for name in ("rms_norm", "qkv_projection", "attention", "output_projection", "residual_add", "onnx_Cast")]
        wanted.append(("lm_head", None))
        self.assertEqual([(row["name"], row.get("layer")) for row in rows], wanted)
        for number, row in enumerate(rows):
            self.assertAlmostEqual(row["duration_ns"], 1000 * (5 + number), delta=2)
            if number:
                before = rows[number - 1]
                self.assertAlmostEqual(row["begin_ns"] - before["begin_ns"] - before["duration_ns"], 1000, delta=4)


class Decode(Case):
    @classmethod
    def setUpClass(cls):
        cls.run_ = Run("decode", 400)
        cls.each = Run("decode", 12, spec=EACH)

    def test_the_program_notices_nothing(self):
        self.notices_nothing(self.run_)
        self.notices_nothing(self.each)

    def test_each_run_is_a_step_with_its_phase_and_tokens(self):
        self.assertEqual([step["phase"] for step in self.run_.steps], ["prefill"] + ["decode"] * 400)
        phases = {phase["phase"]: phase for phase in self.run_.report["phases"]}
        self.assertEqual(phases["prefill"]["tokens"], 7)
        decode = phases["decode"]
        self.assertEqual(decode["steps"] + decode["warmup_steps"] + decode["sampled_steps"], 400)

    def test_where_each_run_is_profiled_each_node_is_a_brick(self):
        by_step = self.each.nodes_by_step()
        self.assertEqual(len(by_step), 13)
        for rows in by_step.values():
            self.bricks_are_true(rows)

    def test_nodes_lie_in_their_step(self):
        steps = {step["step"]: step for step in self.each.steps}
        for row in self.each.nodes:
            step = steps[row["step"]]
            self.assertGreaterEqual(row["begin_ns"], step["begin_ns"] - 2000)

    def test_products_have_the_bytes_of_their_weights(self):
        for row in self.each.nodes:
            if row["name"] in ("qkv_projection", "output_projection", "lm_head"):
                self.assertEqual(row["bytes"], 512 + 64 * 64 * 4)
                self.assertEqual(row["flops"], 2 * 64 * 64)
            elif row["name"] in ("attention", "embedding"):
                self.assertNotIn("bytes", row)
            else:
                self.assertEqual(row["bytes"], 512)

    def test_few_runs_are_profiled_and_those_are_in_no_step_statistics(self):
        by_step = self.run_.nodes_by_step()
        self.assertGreaterEqual(len(by_step), 3)
        self.assertLessEqual(len(by_step), 400 // 8)
        decode = {phase["phase"]: phase for phase in self.run_.report["phases"]}["decode"]
        self.assertEqual(decode["sampled_steps"], len(by_step))
        for rows in by_step.values():
            self.bricks_are_true(rows)

    def test_the_source_is_onnxruntime_and_the_head_says_what_was_met(self):
        self.assertEqual({row["source"] for row in self.each.report["bricks"]}, {"onnxruntime"})
        self.assertEqual(self.each.described["engine"], "onnxruntime 1.30.0, not built for this profiler")
        self.assertEqual(self.each.described["onnxruntime"], f"13 runs, of which 13 profiled, {13 * NODES} nodes")

    def test_nothing_is_left_behind(self):
        self.assertEqual(self.run_.left, [])
        self.assertEqual(self.run_.said, [])


class Older(Case):
    def test_one_that_cannot_profile_runs_has_steps_and_a_sentence(self):
        run = Run("decode", 20, release="1.24.3", spec=EACH)
        self.notices_nothing(run)
        self.assertEqual(len(run.steps), 21)
        self.assertEqual(run.nodes, [])
        self.assertIn("onnxruntime 1.24.3 cannot profile single runs, as it does from 1.25 on: its runs are steps, and have no bricks", run.said)


class Options(Case):
    def test_run_options_of_the_program_are_never_changed(self):
        for what in ("options", "entries"):
            run = Run("decode", 12, what, spec=EACH)
            self.notices_nothing(run)
            self.assertIn("changed by others: 0\n", run.printed)
            self.assertEqual(len(run.nodes), 13 * NODES)

    def test_options_that_cannot_be_repeated_have_steps(self):
        run = Run("decode", 12, "adapter", spec=EACH)
        self.notices_nothing(run)
        self.assertEqual((len(run.steps), run.nodes), (13, []))
        self.assertIn("some runs of onnxruntime have options that cannot be repeated (adapters, a stream): those have no bricks", run.said)

    def test_runs_that_the_program_profiles_are_its_own(self):
        run = Run("decode", 12, "own", spec=EACH)
        self.notices_nothing(run)
        self.assertEqual((len(run.steps), run.nodes), (13, []))
        self.assertIn("the program has onnxruntime profile runs of its own: those have no bricks", run.said)
        self.assertEqual(len(run.left), 1, "the program's own profile, as without us")

    def test_a_session_that_the_program_profiles_is_its_own(self):
        run = Run("session_profile", 12, spec=EACH)
        self.notices_nothing(run)
        self.assertEqual((len(run.steps), run.nodes), (13, []))
        self.assertIn("the program has onnxruntime profile a session of its own: the runs of that are steps, and have no bricks", run.said)

    def test_a_run_that_is_ended_by_another_thread_ends(self):
        run = Run("terminate", spec=EACH)
        self.notices_nothing(run)
        self.assertIn("goes on\n", run.printed)


class Threads(Case):
    def test_runs_of_several_threads_with_the_same_options_are_all_recorded(self):
        run = Run("threads", 4, 25, spec=EACH + ",ring=4MiB")
        self.notices_nothing(run)
        self.assertIn("changed by others: 0\n", run.printed)
        by_step = run.nodes_by_step()
        self.assertEqual(len(by_step), 4 * 26)
        for rows in by_step.values():
            self.assertEqual(len({row["track"] for row in rows}), 1)
            self.bricks_are_true(rows)
        self.assertEqual(len({row["track"] for row in run.nodes}), 4, "each thread has a queue of its own")

    def test_runs_of_its_own_threads_are_counted(self):
        run = Run("async", 5)
        self.notices_nothing(run)
        self.assertEqual(run.steps, [])
        self.assertIn("5 runs of onnxruntime by RunAsync are not recorded: its own threads make them", run.said)


class Bounds(Case):
    """What goes wrong with a profile ends profiling, and nothing else."""

    def ends_profiling(self, profile, sentence, some_nodes=False):
        run = Run("decode", 12, spec=EACH, profile=profile)
        self.notices_nothing(run)
        self.assertEqual(len(run.steps), 13)
        self.assertEqual(run.nodes, [])
        self.assertIn("runs of onnxruntime are no longer profiled: " + sentence, run.said)
        self.assertEqual(run.left, [])

    def test_a_profile_that_is_cut_off(self):
        self.ends_profiling("cut", "onnxruntime's profile of a run is cut off or not as it was known")

    def test_an_empty_profile_as_a_full_disk_leaves_it(self):
        self.ends_profiling("empty", "onnxruntime's profile of a run is cut off or not as it was known")

    def test_no_profile_at_all(self):
        self.ends_profiling("none", "onnxruntime wrote no profile of a run")

    def test_a_refusal(self):
        self.ends_profiling("refused", "it says: no profiles today")

    def test_nodes_of_a_device_whose_times_are_those_of_their_launch(self):
        self.ends_profiling("device", "nodes run on CUDAExecutionProvider, and for those onnxruntime tells how long handing them over took")

    def test_nodes_that_run_at_the_same_time(self):
        self.ends_profiling("parallel", "nodes of one run run on several threads at a time")


class Outcomes(Case):
    def test_a_run_that_fails_is_a_step_and_the_program_goes_on(self):
        run = Run("fails", 12, spec=EACH)
        self.notices_nothing(run)
        self.assertEqual(len(run.steps), 12)
        self.assertEqual(len(run.nodes), 6 * NODES)
        self.assertEqual(run.left, [])

    def test_what_a_node_holds_lies_inside_of_it(self):
        run = Run("decode", 3, spec=EACH, profile="loop")
        for rows in run.nodes_by_step().values():
            self.assertEqual(len(rows), NODES + 2)
            self.assertEqual({row["name"] for row in rows if not row["leaf"]}, {"embedding"})

    def test_a_run_without_an_input_is_refused_as_before(self):
        run = Run("nulls", spec=EACH)
        self.notices_nothing(run)
        self.assertEqual(run.alone.returncode, 3)
        self.assertIn("NULL input supplied for input\ninput name cannot be empty\n", run.printed)

    def test_runs_without_known_inputs_have_no_phase(self):
        for words in (("binding", 20), ("pixels", 20)):
            run = Run(*words, spec=EACH)
            self.notices_nothing(run)
            self.assertEqual({step["phase"] for step in run.steps}, {"none"})
            self.assertEqual(len(run.steps), 20)
            self.assertEqual(len(run.nodes), 20 * NODES)

    def test_a_short_program_shows_nodes(self):
        run = Run("decode", 12)
        self.notices_nothing(run)
        self.assertEqual(len(run.nodes), NODES)

    def test_sessions_that_come_and_go(self):
        run = Run("sessions", 20, spec="warmup=0")
        self.notices_nothing(run)
        self.assertEqual(len(run.steps), 60)
        self.assertEqual(len(run.nodes), 20 * NODES, "the second decode step of each")


class Lives(Case):
    def test_a_forked_child_records_nothing_and_goes_on(self):
        run = Run("fork", 5, spec=EACH)
        self.notices_nothing(run)
        self.assertIn("child ended with 7\n", run.printed)
        self.assertEqual(len(run.steps), 12)
        self.assertEqual(len(run.nodes), 12 * NODES)

    def test_a_killed_program_keeps_its_steps(self):
        run = Run("kill", 20, spec=EACH)
        self.assertEqual(len(run.steps), 21)

    def test_a_program_without_runs_has_no_recording(self):
        run = Run("none")
        self.notices_nothing(run)
        self.assertIsNone(run.report)
        self.assertTrue(any("no engine was met" in line for line in run.said))

    def python(self, *lines):
        with tempfile.TemporaryDirectory(prefix="plumb-ort-test-") as folder:
            return subprocess.run([PLUMB, "run", "-o", f"{folder}/run.plumb", "--", sys.executable, "-c", "\n".join(lines)], capture_output=True,
                                  text=True, env=CLEAN, timeout=HANG, cwd=folder)

    def test_one_that_looks_for_the_function_where_there_is_none_finds_no_table(self):
        done = self.python(
            "import ctypes",
            "get = ctypes.CDLL(None).OrtGetApiBase",
            "get.restype = ctypes.POINTER(ctypes.c_void_p * 2)",
            "table, version = get().contents",
            "print(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(table)(1), ctypes.CFUNCTYPE(ctypes.c_char_p)(version)())")
        self.assertEqual((done.returncode, done.stdout), (0, "None b''\n"), done.stderr)

    def test_a_library_that_asks_for_the_function_is_unloaded_and_loaded_again(self):
        done = self.python(
            "import _ctypes, ctypes, pathlib",
            "for i in range(2):",
            f"    plugin = ctypes.CDLL('{BUILT}/1.30.0/libplugin.so')",
            "    found = plugin.lookalike_ort_plugin()",
            "    _ctypes.dlclose(plugin._handle)",
            "    print(found, *(word in pathlib.Path('/proc/self/maps').read_text() for word in ('libplugin', 'libonnxruntime')))")
        self.assertEqual((done.returncode, done.stdout), (0, 2 * "1 False True\n"), done.stderr)

    def test_one_that_looks_the_function_up_itself_is_not_met(self):
        run = Run("loaded", BUILT / "1.30.0/libonnxruntime.so", 5)
        self.notices_nothing(run)
        self.assertIsNone(run.report)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], sys.argv[3]], verbosity=1)
