# SPDX-License-Identifier: Apache-2.0
"""The answers of the plumb command: divergence, health, comparison, checks, accounts, paths.

usage: answers_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]"""

import json
import random
import shutil
import subprocess
import unittest

from shell import (Case, ENVIRONMENT, FOLDER, HANG, MAKE_RECORDING, PLUMB, SOURCE, check_recording, graph_recording,
                   kineto_trace, main, plumb, recording, recording_with, report, runs, schema_problems)


class Diverge(Case):
    def test_two_runs_that_agree_exit_with_0(self):
        for other in ("clean", "noise"):
            done = plumb("diverge", check_recording(), check_recording(other))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"\ASAME  60 tensors compared, ")

    def test_the_first_wrong_operation_is_named(self):
        done = plumb("diverge", check_recording(), check_recording("fault"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"\AFIRST step 3 layer 1 brick attention ")
        self.assertIn("inputs agree: the operation itself\n", done.stdout)
        said = json.loads(plumb("diverge", check_recording(), check_recording("fault"), "--json").stdout)
        self.assertEqual(said["schema"], "plumb.diverge/1")
        self.assertEqual((said["same"], said["first"]["inputs"]), (False, "agree"))
        self.assertEqual(said["first"]["place"]["brick"], "attention")
        self.assertEqual([row["layer"] for row in said["layers"]], [0, 1, 2])

    def test_T15_each_option_changes_the_verdict(self):
        noise, fault = check_recording("noise"), check_recording("fault")
        self.assertEqual(plumb("diverge", check_recording(), noise, "--tolerance", "1e-12").returncode, 1)
        self.assertEqual(plumb("diverge", check_recording(), noise, "--expect", "exact").returncode, 1)
        self.assertEqual(plumb("diverge", check_recording(), check_recording(), "--expect", "exact").returncode, 0)
        self.assertEqual(plumb("diverge", check_recording(), fault, "--tolerance", "10").returncode, 0)

    def test_T9_steps_that_are_missing_fail(self):
        for pair in ((check_recording(), check_recording("short")), (check_recording("short"), check_recording())):
            done = plumb("diverge", *pair)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stdout, r"\nMISSING 1 step of [AB] \(10 tensors\)")
            self.assertNotIn("SAME", done.stdout)

    def test_T16_recordings_without_checks_are_never_the_same(self):
        none = check_recording("none")
        self.assertEqual(plumb("diverge", check_recording(), none).returncode, 1)
        self.assertEqual(plumb("diverge", none, check_recording()).returncode, 1)
        self.assert_bad_input(plumb("diverge", none, none), "neither recording", 'PLUMB="on,tensors=all"')
        self.assert_bad_input(plumb("diverge", recording(), recording()), "neither recording")
        nonfinite = check_recording("nonfinite")  # plumb health shows what it looked at
        done = plumb("diverge", check_recording(), nonfinite)
        self.assertEqual(done.returncode, 1)
        self.assertIn("note  recording B holds no fingerprints of the tensors it looked at, as with tensors=nonfinite; record with "
                      'PLUMB="on,tensors=all"', done.stdout)
        self.assertNotIn("holds no checks", done.stdout)
        self.assertNotIn("does not have", done.stdout)
        self.assert_bad_input(plumb("diverge", nonfinite, nonfinite), "neither recording holds fingerprints")

    def test_wrong_arguments_are_named(self):
        clean = check_recording()
        self.assert_bad_input(plumb("diverge", clean), "b is required")
        self.assert_bad_input(plumb("diverge", clean, clean, "--tolerance", "much"), "--tolerance")
        self.assert_bad_input(plumb("diverge", clean, clean, "--tolerance", "-1"), "from 0 on")
        self.assert_bad_input(plumb("diverge", clean, clean, "--expect", "same"), "exact")
        self.assert_bad_input(plumb("diverge", clean, clean, "--expect", "exact", "--tolerance", "1"), "one of the two")
        self.assert_bad_input(plumb("diverge", clean, FOLDER / "none.plumb"), "none.plumb")

    def test_files_that_are_no_recordings_are_bad_input(self):
        junk = FOLDER / "junk.plumb"
        junk.write_bytes(random.Random(1).randbytes(4096))
        self.assert_bad_input(plumb("diverge", junk, check_recording()), "junk.plumb")
        self.assert_bad_input(plumb("health", junk), "junk.plumb")
        cut = FOLDER / "cut.plumb"
        cut.write_bytes(check_recording().read_bytes()[:len(check_recording().read_bytes()) // 2])
        self.assertIn(plumb("diverge", check_recording(), cut).returncode, (1, 2))


class Audit(Case):
    def test_a_trace_of_the_same_work_is_read_as_it_is(self):
        before = set(FOLDER.iterdir())
        done = subprocess.run([PLUMB, "audit", graph_recording(), kineto_trace()], capture_output=True, text=True,
                              env={**ENVIRONMENT, "TMPDIR": str(FOLDER)}, timeout=HANG)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^attention +cuda_graph_event +16 +16 +16 +300\.00 +298\.00 +298\.00 +\+2\.00 ")
        self.assertRegex(done.stdout, r"(?m)^audit  all bricks \+[\d.]+ % against kineto; worst sampling by cuda_event \+5\.3 % ")
        self.assertEqual({path.name for path in set(FOLDER.iterdir()) - before} - {kineto_trace().name, graph_recording().name}, set())

    def test_a_folder_for_temporary_files_that_is_missing_is_named(self):
        done = subprocess.run([PLUMB, "audit", graph_recording(), kineto_trace()], capture_output=True, text=True,
                              env={**ENVIRONMENT, "TMPDIR": "/nowhere"}, timeout=HANG)
        self.assert_bad_input(done, " in /nowhere: ", "set TMPDIR")

    def test_what_plumb_import_made_of_it_says_the_same(self):
        imported = FOLDER / "imported.plumb"
        self.assertEqual(plumb("import", kineto_trace(), "-o", imported, "--evidence", "annotation").returncode, 0)
        said = [json.loads(plumb("audit", graph_recording(), trace, "--json").stdout) for trace in (kineto_trace(), imported)]
        self.assertEqual(said[0], said[1])
        self.assertEqual((said[0]["schema"], said[0]["trace"]), ("plumb.audit/1", kineto_trace().name))

    def test_a_gate_exits_with_1(self):
        for percent, code in (("3", 1), ("10", 0)):
            self.assertEqual(plumb("audit", graph_recording(), kineto_trace(), "--max-error", percent).returncode, code)

    def test_a_trace_of_other_work_exits_with_3(self):
        done = plumb("audit", graph_recording(), kineto_trace(longer_ns=3_777))
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertRegex(done.stdout, r"\ANO FIT ")

    def test_of_several_traces_the_one_that_fits_is_taken(self):
        traces = (kineto_trace(longer_ns=3_777), kineto_trace())
        said = json.loads(plumb("audit", graph_recording(), *traces, "--json").stdout)
        self.assertEqual((said["fits"], said["trace"]), (True, traces[1].name))
        self.assertEqual(said["notes"][-1], "Of 2 processes in the traces the one that fits best is taken.")

    def test_bad_input(self):
        junk = FOLDER / "junk.json"
        junk.write_text("{")
        self.assert_bad_input(plumb("audit", graph_recording(), junk))
        self.assert_bad_input(plumb("audit", graph_recording(), FOLDER / "none.json"), "none.json")
        self.assert_bad_input(plumb("audit", recording(), kineto_trace()), "no scope of a device")
        self.assert_bad_input(plumb("audit", graph_recording(), graph_recording()), "of plumb's own")
        self.assert_bad_input(plumb("audit", graph_recording()), "trace is required")
        self.assert_bad_input(plumb("audit", graph_recording(), kineto_trace(), "--max-error", "-1"), "from 0 on")


class Health(Case):
    def test_a_sound_run_exits_with_0_and_shows_its_layers(self):
        done = plumb("health", check_recording())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\AFINITE  60 tensors of 6 steps\n")
        said = json.loads(plumb("health", check_recording(), "--json").stdout)
        self.assertEqual([row.get("layer") for row in said["layers"]], [0, 1, 2, None])
        self.assertAlmostEqual(said["layers"][0]["rms"], 12 ** -0.5, delta=0.02)

    def test_T16_a_nan_fails_and_is_named_with_its_inputs(self):
        done = plumb("health", check_recording("nan"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"\AFIRST step 3 layer 1 brick attention ")
        self.assertIn("1 NaN, 0 Inf, first at index 17 of 256\n", done.stdout)
        self.assertIn("inputs are finite: the operation itself\n", done.stdout)
        self.assertEqual(json.loads(plumb("health", check_recording("nan"), "--json").stdout)["finite"], False)

    def test_T15_against_a_twin_there_are_ratios_and_a_nan_has_none(self):
        said = json.loads(plumb("health", check_recording("noise"), "--against", check_recording(), "--json").stdout)
        self.assertGreater(said["layers"][1]["signal_to_noise_db"], 100)
        self.assertNotIn("signal_to_noise_db", json.loads(plumb("health", check_recording(), "--json").stdout)["layers"][1])
        done = plumb("health", check_recording("nan"), "--against", check_recording(), "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["layers"][1]["signal_to_noise_db"], {"absent": "not finite"})
        self.assertEqual(json.loads(done.stdout)["worst"][0]["difference"], "nonfinite")

    def test_a_run_that_only_looked_for_nan_is_sound_and_one_that_did_not_look_is_bad_input(self):
        done = plumb("health", check_recording("nonfinite"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all finite", done.stdout)
        self.assert_bad_input(plumb("health", check_recording("none")), 'PLUMB="on,tensors=all"')
        self.assert_bad_input(plumb("health", check_recording(), "--against", check_recording("none")), "the twin")
        nonfinite = check_recording("nonfinite")
        for pair, lacking in (((nonfinite, check_recording()), "the recording"), ((check_recording(), nonfinite), "the twin")):
            self.assert_bad_input(plumb("health", pair[0], "--against", pair[1]), lacking + " holds no fingerprints of the tensors it looked at")
        self.assert_bad_input(plumb("health", check_recording(), "--agianst", "x"), "--against")


class Compare(Case):
    """plumb compare and its gates."""

    @classmethod
    def setUpClass(cls):
        cls.runs = [FOLDER / f"compare{i}.plumb" for i in range(6)]
        for path in cls.runs:
            subprocess.run([MAKE_RECORDING, path], check=True, env=ENVIRONMENT, timeout=HANG)

    def compare(self, *words):
        return plumb("compare", *words)

    def sides(self):
        return "--base", *self.runs[:3], "--new", *self.runs[3:]

    def test_F14_one_run_a_side_is_shown_and_exits_with_3(self):
        done = self.compare(self.runs[0], self.runs[1])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("1 run against 1", done.stdout)
        self.assertNotIn("SLOW", done.stdout)
        self.assertEqual(self.compare(self.runs[0], self.runs[1], "--gate", "step.p50=+900%").returncode, 3)

    def test_json_markdown_and_text_say_the_same(self):
        done = self.compare(*self.sides(), "--json", "--gate", "step.mean=+9000%")
        said = json.loads(done.stdout)
        self.assertEqual(said["schema"], "plumb.compare/1")
        self.assertEqual(said["exit_code"], done.returncode)
        self.assertTrue(said["comparable"])
        for attribution in said["attributions"]:
            self.assertAlmostEqual(sum(part["change_ns"] for part in attribution["parts"]),
                                   attribution["change_ns"], places=3)
        markdown = self.compare(*self.sides(), "--markdown").stdout
        self.assertIn("plumb compare: 3 runs against 3", markdown)
        self.assertNotIn(str(FOLDER), markdown, "a pull request is told no paths")

    def test_bad_words_are_one_sentence(self):
        self.assert_bad_input(self.compare(), "--base")
        self.assert_bad_input(self.compare(self.runs[0]), "--new")
        self.assert_bad_input(self.compare(self.runs[0], FOLDER / "none.plumb"), "none.plumb")
        self.assert_bad_input(self.compare(self.runs[0], self.runs[1], "--gate", "step.p50=5%"), "for example")
        self.assert_bad_input(self.compare(self.runs[0], self.runs[0]), "same run")
        self.assert_bad_input(self.compare(self.runs[0], self.runs[1], "--ignore-key", "nonsense"),
                              'no run has the field "nonsense"', "decode.tokens_per_step")
        self.assertEqual(self.compare(self.runs[0], self.runs[1], "--ignore-key", "driver", "cpu").returncode, 3)
        self.assert_bad_input(self.compare("--history", FOLDER / "nowhere"), "nowhere")
        self.assert_bad_input(self.compare("--history", FOLDER, "--ignore-key", "nonsense"),
                              'no run has the field "nonsense"')
        self.assert_bad_input(self.compare(self.runs[0], self.runs[1], "--same", "0"), "SAME")

    def test_T16_a_gate_on_fingerprints_does_not_pass_without_tensors(self):
        done = self.compare(*self.sides(), "--gate", "fingerprint")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("gate UNDECIDED", done.stdout)

    def checked(self, name, *kinds):
        maker = MAKE_RECORDING.parent / "plumb_make_check_recording"
        paths = [FOLDER / f"gate-{name}{i}.plumb" for i in range(len(kinds))]
        for path, kind in zip(paths, kinds):
            subprocess.run([maker, path, kind], check=True, env=ENVIRONMENT, timeout=HANG)
        return paths

    def test_F14_T16_a_gate_on_fingerprints_needs_three_runs_a_side_and_all_their_bits(self):
        base = self.checked("base", "clean", "clean", "clean")
        for code, word, kinds in ((0, "PASSED", ["clean"] * 3), (1, "FAILED", ["clean", "clean", "fault"]),
                                  (3, "UNDECIDED", ["clean"]), (3, "UNDECIDED", ["clean"] * 2),
                                  (3, "UNDECIDED", ["clean", "clean", "nonfinite"])):
            new = self.checked("new", *kinds)
            done = self.compare("--base", *base[:len(new)], "--new", *new, "--gate", "fingerprint")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(f"gate {word}", done.stdout)
            for path in new:
                path.unlink()
        for path in base:
            path.unlink()

    def test_history_lists_the_runs_of_a_folder(self):
        done = self.compare("--history", FOLDER, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said["schema"], "plumb.history/1")
        starts = [run["start_realtime_ns"] for run in said["runs"]]
        self.assertEqual(starts, sorted(starts))
        self.assertGreaterEqual(len(starts), 6)


class Checks(Case):
    """plumb budget, check and layers: what they say, and what they exit with."""

    def test_a_name_in_an_error_commands_no_terminal(self):
        for command in ("\x1b", "\x7f", "\x9b"):
            self.assert_bad_input(plumb("layers", f"absent{command}31m.plumb"), "absent?31m.plumb")

    def json_of(self, code, *words):
        done = plumb(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return json.loads(done.stdout)

    def test_T13_a_budget_is_kept_or_broken_by_the_mean_period(self):
        decode = report("--phase", "decode")["phases"][0]
        ms = decode["period"]["mean_ns"] / 1e6
        within = self.json_of(0, "budget", recording(), "--ms/token", ms * 1.0001)
        self.assertEqual((within["verdict"], within["steps"]), ("pass", decode["steps"]))
        over = self.json_of(1, "budget", recording(), "--tok/s", 1000 / ms * 1.0001)
        self.assertEqual(over["verdict"], "fail")
        self.assertLess(over["room_ns"], 0)
        # 16 tokens in one step: the budget of the step is 16 times as long.
        prefill = report("--phase", "prefill")["phases"][0]["period"]["mean_ns"] / 1e6
        self.json_of(0, "budget", recording(), "--ms/token", prefill / 15.9, "--phase", "prefill")
        self.json_of(1, "budget", recording(), "--ms/token", prefill / 16.1, "--phase", "prefill")

    def test_limits_of_bricks_decide_too_and_a_missing_brick_cannot_be_judged(self):
        head = {row["name"]: row for row in report("--phase", "decode")["bricks"]}["lm_head"]["sum_per_step_ns"]
        self.assertEqual(plumb("budget", recording(), "--ms/token", 1, "--brick", f"head={head + 1:.0f}ns").returncode, 0)
        done = plumb("budget", recording(), "--ms/token", 1, "--brick", f"lm_head={head - 1:.0f}ns/step")
        self.assertEqual(done.returncode, 1)
        self.assertIn("\nOVER  lm_head: ", done.stdout)
        done = plumb("budget", recording(), "--ms/token", 1, "--brick", "lm_head=1s", "--brick", "moe_router=1s")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("\nN/A  moe_router: no brick of this name in the decode steps\n", done.stdout)

    def test_wrong_words_of_a_budget_are_one_sentence(self):
        for words in ([], ["--tok/s", 1, "--ms/token", 1], ["--tok/s", 0], ["--tok/s", "nan"], ["--ms/token", "-1"],
                      ["--tok/s", 1, "--brick", "lm_head"], ["--tok/s", 1, "--brick", "lm_head=4"],
                      ["--tok/s", 1, "--brick", "a=1us", "--brick", "a=2us"]):
            self.assert_bad_input(plumb("budget", recording(), *words))
        for option, range_, inside, outside in (("--tok/s", "1e-6 to 1e12", ("1e-6", "1e12"), ("1e-308", "9e-7", "1.1e12", "1e308")),
                                                ("--ms/token", "1e-9 to 1e9", ("1e-9", "1e9"), ("9e-10", "1.1e9", "1e300"))):
            for target in inside:
                self.assertIn(plumb("budget", recording(), option, target).returncode, (0, 1))
            for target in outside:
                self.assert_bad_input(plumb("budget", recording(), option, target), option, range_)

    def test_T17_counts_are_per_step_and_exact(self):
        good = ["--expect", "lm_head=1/step", "--expect", "rms_norm=3/step", "--expect", "head=1/token"]
        done = plumb("check", recording(), *good)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("PASS  lm_head=1/step  in each of 128 decode steps\n", done.stdout)
        for wrong in ("lm_head=2/step", "lm_head=0/step", "rms_norm=4/step", "sampling=1/step"):
            self.assertEqual(plumb("check", recording(), *good, "--expect", wrong).returncode, 1, wrong)
        self.assertEqual(plumb("check", recording(), "--phase", "prefill", "--expect", "head=1/token").returncode, 1)
        self.assertEqual(plumb("check", recording(), "--phase", "mixed", "--expect", "head=1/step").returncode, 3)

    def test_T16_every_check_can_fail_and_is_undecided_where_nothing_was_measured(self):
        coverage = report("--phase", "decode")["phases"][0]["wall"]["coverage"]
        for code, words in ((0, ["--coverage", coverage - 0.001]), (1, ["--coverage", coverage + 0.001]),
                            (0, ["--drops", 0, "--pending", 0]), (3, ["--node-check"]), (3, ["--cv", 0.1])):
            self.assertEqual(plumb("check", recording(), *words).returncode, code, words)
        self.assertLess(self.json_of(0, "check", *runs(3), "--cv", 0.5)["checks"][0]["found"], 0.5)
        self.assert_bad_input(plumb("check", *[recording()] * 3, "--cv", 0.5))
        self.assertEqual(plumb("check", graph_recording(), "--node-check").returncode, 0)
        self.assertEqual(plumb("check", graph_recording("lost"), "--node-check").returncode, 1)
        other = [*runs(2), graph_recording()]
        self.assertEqual(plumb("check", *other, "--cv", 0.05).returncode, 1)

    def test_T16_a_recording_that_lost_records_fails(self):
        whole = recording().read_bytes()
        (FOLDER / "lossy.plumb").write_bytes(whole[:len(whole) * 3 // 4])
        losses = json.loads(plumb("report", FOLDER / "lossy.plumb", "--json").stdout)["losses"]
        # What is left without its clock is not dropped: it is unresolved, a check of its own.
        lost = [loss for loss in losses if not loss["reason"].startswith("unresolved")]
        self.assertEqual(plumb("check", FOLDER / "lossy.plumb", "--drops", 0).returncode, 1 if lost else 0)
        self.assertEqual(plumb("check", FOLDER / "lossy.plumb", "--pending", 0).returncode, int(len(lost) < len(losses)))
        many = sum(loss["count"] for loss in lost)
        self.assertEqual(plumb("check", FOLDER / "lossy.plumb", "--drops", many).returncode, 0)

    def test_calls_inside_graphs_are_counted_by_replays(self):
        done = plumb("check", graph_recording(), "--expect", "attention=2/step", "--expect", "sampling=1/step")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("attention=2/step  in each of 64 decode steps\n", done.stdout)
        self.assertIn("in each of 8 decode steps (in 56 others its calls are not known)", done.stdout)
        self.assertEqual(plumb("check", graph_recording(), "--expect", "attention=1/step").returncode, 1)

    def test_a_file_of_checks_is_read_whole_and_nothing_in_it_is_ignored(self):
        file = FOLDER / "plumb.checks.json"
        document = (SOURCE / "docs" / "reference" / "checks.md").read_text().split("```json\n")[1].split("```")[0]
        shown = json.loads(document) | {"expect": ["lm_head=1/step"], "coverage": 0.01, "node_check": True, "cv": 0.5}
        file.write_text(json.dumps(shown))
        self.assertEqual(schema_problems("plumb.checks.1", shown), "")
        checks = self.json_of(3, "check", *runs(3), "--file", file)["checks"]
        self.assertEqual(len(checks), 3 * 5 + 1)
        self.assertEqual({check["check"] for check in checks if check["verdict"] == "unknown"}, {"node check"})
        file.write_text(json.dumps({"schema": "plumb.checks/1", "coverage": 0.999}))
        self.assertEqual(plumb("check", recording(), "--file", file).returncode, 1)
        self.assertEqual(plumb("check", recording(), "--file", file, "--coverage", 0.01).returncode, 0)
        file.write_text(json.dumps({"schema": "plumb.checks/1", "expect": ["lm_head=2/step", "sampling=0/step"]}))
        checks = self.json_of(0, "check", recording(), "--file", file, "--expect", "head=1/step")["checks"]
        self.assertEqual([check["check"] for check in checks], ["head=1/step", "sampling=0/step"])
        for wrong in ("", "[]", "{", "{}", '{"schema": "plumb.checks/2"}', '{"schema": "plumb.checks/1"}'):
            file.write_text(wrong)
            self.assert_bad_input(plumb("check", recording(), "--file", file))
        for key, value in (("coverge", 0.9), ("coverage", "0.9"), ("expect", "lm_head=1/step"), ("expect", [1]),
                           ("expect", ["lm_head"]), ("drops", -1), ("pending", 0.5), ("node_check", 1), ("cv", None),
                           ("phase", "all"), ("coverage", [[[[[[[[[[[1]]]]]]]]]]])):
            wrong = {"schema": "plumb.checks/1", "drops": 0, key: value}
            file.write_text(json.dumps(wrong))
            self.assert_bad_input(plumb("check", recording(), "--file", file), "plumb.checks.json")
            self.assertNotEqual(schema_problems("plumb.checks.1", wrong), "", wrong)
        for key, value in (("coverage", 0), ("coverage", 1.5), ("cv", 0)):
            wrong = {"schema": "plumb.checks/1", key: value}
            file.write_text(json.dumps(wrong))
            self.assert_bad_input(plumb("check", recording(), "--file", file))
            self.assertNotEqual(schema_problems("plumb.checks.1", wrong), "", wrong)
        self.assert_bad_input(plumb("check", recording(), "--file", FOLDER / "none.json"), "none.json")

    def test_T16_checking_nothing_is_wrong(self):
        self.assert_bad_input(plumb("check", recording()), "nothing to check")
        for words in (["--coverage", 90], ["--cv", 0], ["--expect", "lm_head=1"], ["--drops", "-1"]):
            self.assert_bad_input(plumb("check", recording(), *words))

    def test_layers_show_the_metric_asked_for(self):
        done = plumb("layers", recording())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("decode, layer", done.stdout)
        self.assertIn("\nnote  There are fewer than 5 layers", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        calls = self.json_of(0, "layers", recording(), "--metric", "calls", "--phase", "decode")
        norms = [row for row in calls["rows"] if row["name"] == "rms_norm"]
        self.assertEqual([cell["value"] for cell in norms[0]["cells"]], [1, 1, 1])
        self.assertEqual({row["phase"] for row in calls["rows"]}, {"decode"})
        self.assert_bad_input(plumb("layers", recording(), "--metric", "median"), "p50")

    def test_tiles_that_were_not_kept_are_said_with_the_key_that_keeps_them(self):
        done = plumb("tiles", recording())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("note  This run kept no tiles; say tiles=on", done.stdout)
        said = self.json_of(0, "tiles", recording(), "--level", "midi")
        self.assertEqual((said["schema"], said["maps"], said["slow"]), ("plumb.tiles/1", [], []))
        self.assert_bad_input(plumb("tiles", recording(), "--level", "mini"), "midi")

    def test_T14_tiles_keep_row_column_and_the_bytes_given(self):
        said = self.json_of(0, "tiles", recording_with("tiles"), "--level", "macro")
        self.assertEqual([(m["name"], m["level"], m["rows"], m["cols"]) for m in said["maps"]],
                         [("up_projection", "macro", 3, 2)])
        self.assertEqual([(t["row"], t["col"], t["calls"]) for t in said["maps"][0]["tiles"]],
                         [(row, col, 129) for row in range(3) for col in range(2)])
        self.assertEqual(said["maps"][0]["bytes"], 129 * 6 * 2048)
        self.assertEqual(said["maps"][0]["intensity"], 2)


class Wall(Case):
    """plumb wall: who was busy, who waited for whom."""

    def wall(self, *words):
        done = plumb("wall", *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_each_phase_begins_with_a_verdict_and_its_parts_add_up(self):
        done = plumb("wall", recording())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("prefill: HOST ONLY. "), done.stdout)
        self.assertIn("\ndecode: HOST ONLY. ", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        for phase in self.wall(recording())["phases"]:
            for lane in phase["lanes"]:
                self.assertEqual(lane["busy_ns"] + lane["idle"]["total_ns"], lane["period_ns"])
                self.assertEqual(lane["bricks_ns"] + lane["unattributed_ns"], lane["busy_ns"])

    def test_phase_step_and_slowest_each_change_the_answer(self):
        self.assertEqual([phase["phase"] for phase in self.wall(recording(), "--phase", "decode")["phases"]], ["decode"])
        one = self.wall(recording(), "--step", "20")
        self.assertEqual(self.wall(recording(), "--step", "020"), one)
        self.assertEqual((one["step"], [phase["steps"] for phase in one["phases"]]), (20, [1]))
        periods = [step["period_ns"] for step in self.wall(recording(), "--slowest", "3")["slowest"]]
        self.assertEqual((len(periods), periods), (3, sorted(periods, reverse=True)))
        self.assert_bad_input(plumb("wall", recording(), "--step", "99999"), "its steps are")
        self.assert_bad_input(plumb("wall", recording(), "--step", "1", "--slowest", "2"), "slowest")

    def test_replayed_graphs_leave_idle_time_absent_with_the_reason(self):
        done = plumb("wall", graph_recording())
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("decode: UNDECIDED. "), done.stdout)
        lanes = self.wall(graph_recording())["phases"][0]["lanes"]
        self.assertIn("captured graphs", lanes[1]["idle"]["total_ns"]["absent"])


class Path(Case):
    def path(self, *words):
        done = plumb("path", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_T10_a_step_on_one_track_is_as_long_as_its_path(self):
        found = self.path(recording())
        self.assertEqual((found["phase"], found["candidates"]), ("decode", 120))
        self.assertGreater(found["path_ns"], 0)
        self.assertAlmostEqual(found["path_ns"], found["span_ns"], delta=0.01 * found["span_ns"])
        self.assertEqual(sum(node["duration_ns"] for node in found["path"]), found["path_ns"])

    def test_the_path_goes_through_the_replay_of_a_graph(self):
        found = self.path(graph_recording(), "--step", 15)
        rows = {(row["name"], row["device"]): row for row in found["rows"]}
        self.assertEqual(rows["attention", True]["path_ns"], 600e3)
        self.assertEqual({row["name"]: row["kernels"] for row in found["kernels"] if row.get("layer") == 1},
                         {"attention": 2, "rms_norm": 1})
        self.assertEqual((found["host_launches"], found["graph_launches"], found["graph_kernels"], found["launches"]),
                         (2, 1, 8, 10))

    def test_F6_kernels_inside_a_captured_graph_are_in_every_form(self):
        for step in (14, 15):  # the second one was sampled
            words = ("path", graph_recording(), "--step", str(step))
            nodes = json.loads(plumb(*words, "--csr").stdout)["nodes"]
            names = [node["name"] for node in nodes if node["kind"] == "kernel"]
            self.assertEqual(sorted(names), sorted(["rms_kernel", "score_kernel", "mix_kernel", "nccl_all_reduce"] * 2))
            tree = plumb(*words, "--tree").stdout
            self.assertEqual(tree.count("score_kernel  kernel on the device  n/a"), 2)
            self.assertIn("grid 64x2x1 block 128x1x1 shared 4096 B", plumb(*words, "--dot").stdout)
            timed = [row["name"] for row in self.path(*words[1:])["slowest_kernels"]]
            self.assertEqual(timed, ["rms_kernel"] * 2 if step == 15 else [])

    def test_a_step_that_is_not_there_names_those_that_are(self):
        self.assert_bad_input(plumb("path", recording(), "--step", "100000"), "no complete step 100000", "its steps are")
        self.assert_bad_input(plumb("path", recording(), "--step", "-1"))
        self.assert_bad_input(plumb("path", recording(), "--tree", "--dot"))
        done = plumb("path", recording(), "--step", "100000", "--json")
        self.assertIn("no complete step", json.loads(done.stdout)["error"])

    def test_every_form_holds_every_node(self):
        nodes = self.path(recording())["nodes"]
        tree = plumb("path", recording(), "--tree").stdout
        self.assertEqual(tree.count("\n"), nodes + 1)
        self.assertEqual(len(json.loads(plumb("path", recording(), "--csr").stdout)["nodes"]), nodes)
        dot = plumb("path", recording(), "--dot").stdout
        self.assertEqual(dot.count("[label="), nodes)

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is not installed: apt-get install graphviz")
    def test_graphviz_accepts_the_graph(self):
        for source in (recording(), graph_recording()):
            dot = plumb("path", source, "--dot").stdout
            drawn = subprocess.run(["dot", "-Tplain"], input=dot, text=True, check=True, capture_output=True, timeout=HANG)
            self.assertEqual(drawn.stderr, "")
            self.assertEqual(sum(line.startswith("node ") for line in drawn.stdout.splitlines()), self.path(source)["nodes"])


if __name__ == "__main__":
    main()
