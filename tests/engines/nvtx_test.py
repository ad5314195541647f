# SPDX-License-Identifier: Apache-2.0
"""What `plumb run` records of a program with NVTX ranges, against what the program marked (tests/engines/nvtx/program.c).

usage: nvtx_test.py PLUMB FOLDER"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLUMB, BUILT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PROGRAM = BUILT / "program"
HANG = 300
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "GGML", "NVTX")) and key != "LD_PRELOAD"}


class Run:
    """The program without us, and with us: the report and every scope."""

    def __init__(self, *words, alone=True, **environment):
        environment = {**CLEAN, **environment}
        with tempfile.TemporaryDirectory(prefix="plumb-nvtx-") as folder:
            recording = pathlib.Path(folder) / "run.plumb"
            command = [PROGRAM, *map(str, words)]
            self.alone = subprocess.run(command, capture_output=True, text=True, env=CLEAN, timeout=HANG) if alone else None
            self.done = subprocess.run([PLUMB, "run", "--json", "-o", recording, "--", *command], capture_output=True, text=True,
                                       env=environment, timeout=HANG)
            self.report, self.rows, self.tracks = None, [], []
            if recording.exists():
                report = subprocess.run([PLUMB, "report", "--json", recording], capture_output=True, text=True, check=True)
                self.report = json.loads(report.stdout)
                lines = subprocess.run([PLUMB, "export", recording, "--format", "jsonl"], capture_output=True, text=True, check=True)
                self.rows = [json.loads(line) for line in lines.stdout.splitlines()]
                self.tracks = self.rows[0]["tracks"]

    def scopes(self, *kinds):
        return [row for row in self.rows[1:] if row["kind"] in (kinds or ("scope", "span"))]

    def names(self):
        return collections.Counter(row["name"] for row in self.scopes())

    @property
    def said(self):
        return [line.removeprefix("note  ") for line in self.done.stderr.splitlines()]


class Engine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = Run("engine")

    def test_the_program_notices_nothing(self):
        self.assertEqual(self.run_.done.returncode, self.run_.alone.returncode)
        self.assertTrue(self.run_.done.stdout.startswith(self.run_.alone.stdout))

    def test_steps_have_their_phase_and_tokens(self):
        steps = [row for row in self.run_.rows[1:] if row["kind"] == "step"]
        self.assertEqual([step["phase"] for step in steps], ["prefill"] + ["decode"] * 20)
        phases = {phase["phase"]: phase for phase in self.run_.report["phases"]}
        self.assertEqual(phases["prefill"]["tokens"], 7)
        self.assertEqual(phases["decode"]["steps"] + phases["decode"]["warmup_steps"], 20)

    def test_each_module_is_its_brick_once_in_its_layer(self):
        bricks = collections.Counter((row["name"], row.get("layer")) for row in self.run_.scopes() if row["phase"] == "decode" and row["leaf"])
        wanted = {("embedding", None): 20, ("lm_head", None): 20, ("sampling", None): 20}
        for layer in range(4):
            for name in ("rms_norm", "qkv_projection", "attention", "output_projection", "gate_up_projection", "activation", "down_projection"):
                wanted[name, layer] = 20
        self.assertEqual(bricks, wanted)

    def test_a_product_has_the_flops_of_its_shapes_and_no_bytes(self):
        for row in self.run_.scopes():
            if row["name"] == "qkv_projection":
                self.assertEqual(row["flops"], 2 * 96 * 64 * (7 if row["phase"] == "prefill" else 1))
                self.assertNotIn("bytes", row)

    def test_the_source_is_nvtx(self):
        self.assertEqual({track["source"] for track in self.run_.tracks}, {"nvtx"})
        self.assertEqual({row["source"] for row in self.run_.report["bricks"]}, {"nvtx"})


class Domains(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".rules") as rules:
            rules.write("kv_append  my_engine  bytes  ^store\n")
            rules.flush()
            cls.run_ = Run("domains", PLUMB_NVTX_RULES=rules.name)

    def test_each_domain_nests_by_itself(self):
        self.assertEqual(self.run_.done.returncode, 3)
        printed = self.run_.done.stdout.split("{")[0]
        self.assertEqual(printed, "domains\n" + "0110\n" * 10)
        names = self.run_.names()
        self.assertEqual(names["kv_append"], 10)
        self.assertEqual(names["my_engine:scores"], 11, "pushed ten times, started once and ended by another thread")

    def test_a_rule_says_what_the_payload_is(self):
        self.assertEqual({row["bytes"] for row in self.run_.scopes() if row["name"] == "kv_append"}, {4096})

    def test_a_category_called_as_one_of_ours_is_that(self):
        rows = [row for row in self.run_.report["bricks"] if row["name"] == "my_engine:scores"]
        self.assertEqual({row["category"] for row in rows}, {"attention"})

    def test_marks_are_moments_with_names_of_their_own(self):
        marks = [row for row in self.run_.scopes() if row["name"].startswith("mark ")]
        self.assertEqual(collections.Counter(row["name"] for row in marks), {"mark evicted": 10, "mark my_engine:scores": 10})
        self.assertEqual({row["duration_ns"] for row in marks}, {0})

    def test_the_step_is_one(self):
        self.assertEqual([row["phase"] for row in self.run_.rows[1:] if row["kind"] == "step"], ["decode"] * 10)


class Bounds(unittest.TestCase):
    def test_what_is_not_balanced_is_counted_and_the_rest_is_right(self):
        run = Run("unbalanced")
        self.assertEqual(run.done.returncode, 3)
        self.assertEqual(run.names(), {"balanced": 1000})
        self.assertIn("1001000 NVTX ranges never ended: not recorded", run.said)
        self.assertIn("1001000 ends of an NVTX range that had not begun: nothing was recorded for it", run.said)

    def test_many_threads_and_shared_objects_are_all_recorded(self):
        run = Run("threads", *sorted(BUILT.glob("part_*.so")))
        self.assertEqual(run.done.returncode, 3)
        names = run.names()
        self.assertEqual(names.pop("common"), 16 * 5000)
        self.assertEqual(names, {f"thread {n}": 5000 for n in range(16)})
        self.assertEqual(len({row["track"] for row in run.scopes()}), 16)
        self.assertIn({"key": "nvtx", "value": "160000 ranges, 17 names, of which no rule knew 17"}, run.report["description"])

    def test_names_without_end_are_one_brick(self):
        run = Run("names", 20000, PLUMB="ring=16MiB")
        names = run.names()
        self.assertEqual(sum(names.values()), 20000)
        self.assertEqual(names["other"], 20000 - 4096)
        self.assertTrue(any('more than 4096 names of NVTX ranges that no rule knows' in line for line in run.said), run.said)

    def test_invalid_texts_and_handles_do_no_harm(self):
        run = Run("invalid")
        self.assertEqual(run.done.returncode, 3)
        names = run.names()
        self.assertEqual(names["unnamed range"], 9, "seven ranges and two marks")
        self.assertEqual(names["wide \u4e16\U0001f600"], 1)
        self.assertEqual(names["not \ufffd\ufffd text [2J "], 1)
        self.assertEqual(names["x" * 128], 1)
        self.assertEqual(names["other:of no domain"], 1)


class Lives(unittest.TestCase):
    def test_a_killed_program_keeps_its_ranges(self):
        run = Run("killed", alone=False)
        self.assertEqual(run.names(), {"attention": 1000})
        self.assertEqual({track["source"] for track in run.tracks}, {"nvtx"})

    def test_a_forked_child_records_nothing_and_goes_on(self):
        run = Run("forked")
        self.assertIn("child 7\n", run.done.stdout)
        self.assertEqual(run.names(), {"parent": 1})

    def test_a_program_without_ranges_has_no_recording(self):
        run = Run("none")
        self.assertIsNone(run.report)
        self.assertTrue(any("no engine was met" in line for line in run.said))

    def test_another_tools_library_is_left_in_its_place(self):
        run = Run("engine", NVTX_INJECTION64_PATH="/nonexistent/tool.so")
        self.assertIsNone(run.report)
        self.assertIn("NVTX_INJECTION64_PATH was set: /nonexistent/tool.so gets the NVTX ranges, for which there can be one library alone, "
                      "and they are not recorded", run.said)

    def test_rules_that_cannot_be_read_are_said_and_nothing_is_recorded(self):
        run = Run("engine", PLUMB_NVTX_RULES="/nonexistent.rules")
        self.assertEqual(run.done.returncode, 3)
        self.assertIsNone(run.report)
        self.assertIn("the rules file /nonexistent.rules cannot be read: check its name; NVTX ranges are not recorded", run.said)


if not PROGRAM.exists():
    print("the headers of NVTX were not found: install a CUDA toolkit, or set CUDA_HOME")
    sys.exit(77)
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
