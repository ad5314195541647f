# SPDX-License-Identifier: Apache-2.0
"""The plumb command from outside: what it prints, where, and how it exits.

usage: command_line_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]"""

import collections
import csv
import io
import json
import os
import pathlib
import pty
import random
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

import trace_reader

PLUMB, MAKE_RECORDING, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-cli-")
FOLDER = pathlib.Path(SCRATCH.name)
RECORDING = FOLDER / "run.plumb"
HOSTILE = "a\"},{\n\t\x01<b>,;|\ufffd"

ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("PLUMB") and key != "NO_COLOR"}


def plumb(*words, stdout=subprocess.PIPE, **options):
    return subprocess.run([PLUMB, *map(str, words)], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          env=ENVIRONMENT, timeout=60, **options)


def recording():
    if not RECORDING.exists():
        subprocess.run([MAKE_RECORDING, RECORDING], check=True, env=ENVIRONMENT, timeout=60)
    return RECORDING


def tile_recording():
    path = FOLDER / "tiles.plumb"
    if not path.exists():
        subprocess.run([MAKE_RECORDING, path, "tiles"], check=True, env=ENVIRONMENT, timeout=60)
    return path


def runs(count):
    """So many recordings of the same run, each with an identity of its own."""
    made = [FOLDER / f"run_{number}.plumb" for number in range(count)]
    for path in made:
        if not path.exists():
            subprocess.run([MAKE_RECORDING, path], check=True, env=ENVIRONMENT, timeout=60)
    return made


def report(*words):
    done = plumb("report", recording(), "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def trace():
    return json.loads(plumb("trace", recording()).stdout)


class Case(unittest.TestCase):
    def assert_bad_input(self, done, *parts):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Aerror: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, done.stderr)


class Arguments(Case):
    def test_no_arguments_show_help_and_are_wrong(self):
        done = plumb()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("report", done.stderr)

    def test_help_and_version_are_right(self):
        for words in (["--help"], ["report", "--help"], ["help"], ["help", "trace"], ["export", "-h"]):
            done = plumb(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            self.assertIn("Usage: plumb", done.stdout)
        self.assertRegex(plumb("--version").stdout, r"\Aplumb \d+\.\d+\.\d+\n\Z")

    def test_help_of_a_command_is_the_same_both_ways(self):
        self.assertEqual(plumb("help", "report").stdout, plumb("report", "--help").stdout)

    def test_a_mistyped_command_names_the_nearest(self):
        self.assert_bad_input(plumb("repotr", "x"), '"repotr"', "did you mean report?")
        self.assert_bad_input(plumb("xyzzy"), '"xyzzy"', "see plumb --help")
        self.assert_bad_input(plumb("help", "traec"), "did you mean trace?")

    def test_a_mistyped_option_names_the_nearest(self):
        self.assert_bad_input(plumb("report", "--phse", "x", "y"), "no option --phse", "did you mean --phase?")
        self.assert_bad_input(plumb("trace", "x", "--frob"), "no option --frob", "see plumb trace --help")

    def test_a_wrong_value_names_the_right_ones(self):
        self.assert_bad_input(plumb("report", "x", "--phase", "decod"), "decode, prefill or mixed",
                              "did you mean decode?")
        self.assert_bad_input(plumb("report", "x", "--warmup", "many"), "--warmup")
        self.assert_bad_input(plumb("export", "x", "--format", "xml"), "jsonl or csv")

    def test_commands_below_a_command_are_treated_alike(self):
        if "model" not in plumb("--help").stdout:
            self.skipTest("built without the decoder")
        self.assert_bad_input(plumb("model"), "plumb model needs a command: make or show")
        self.assert_bad_input(plumb("model", "mkae"), '"mkae"', "did you mean make?")
        self.assert_bad_input(plumb("model", "make", "--type", "f33", "-o", FOLDER / "m"), "q8_0, not \"f33\"")
        self.assert_bad_input(plumb("model", "show", FOLDER / "none.gguf"), "none.gguf")
        self.assert_bad_input(plumb("decode", FOLDER / "none.gguf"), "none.gguf")
        for words in (["model", "show"], ["decode"]):
            done = plumb(*words, FOLDER / "none.gguf", "--json")
            self.assertEqual((done.returncode, list(json.loads(done.stdout))), (2, ["error"]))

    def test_a_missing_or_extra_argument_is_named(self):
        self.assert_bad_input(plumb("report"), "recording is required")
        self.assert_bad_input(plumb("recover", "a", "b"), '"b"')

    def test_errors_are_json_when_asked(self):
        for words in (["repotr", "--json"], ["report", "--json"], ["report", "--frob", "--json"],
                      ["report", FOLDER / "none", "--json"], ["recover", FOLDER / "none", "--json"],
                      ["trace", FOLDER / "none", "--json", "-o", FOLDER / "t"], ["trace", "x", "--json"]):
            done = plumb(*words)
            self.assertEqual((done.returncode, done.stderr), (2, ""), words)
            self.assertEqual(list(json.loads(done.stdout)), ["error"], words)


class BadInput(Case):
    COMMANDS = (["report"], ["trace"], ["export"], ["export", "--format", "csv"], ["recover"], ["layers"], ["tiles"],
                ["budget", "--tok/s", "1"], ["check", "--drops", "0", "--expect", "lm_head=1/step"], ["path"],
                ["path", "--dot"], ["wall"])

    def test_a_missing_file_is_one_sentence(self):
        for command in self.COMMANDS:
            self.assert_bad_input(plumb(*command, FOLDER / "none.plumb"), "none.plumb")

    def test_a_folder_an_empty_file_and_other_bytes_are_one_sentence(self):
        (FOLDER / "empty").write_bytes(b"")
        (FOLDER / "noise").write_bytes(random.Random(1).randbytes(5000))
        for command in self.COMMANDS:
            for name in (".", "empty", "noise"):
                self.assert_bad_input(plumb(*command, FOLDER / name))

    def test_a_recording_cut_short_is_read_with_its_loss_stated_or_refused(self):
        whole = recording().read_bytes()
        for size in range(0, len(whole), max(1, len(whole) // 40)):
            (FOLDER / "short.plumb").write_bytes(whole[:size])
            done = plumb("report", FOLDER / "short.plumb")
            if done.returncode == 0:
                self.assertRegex(done.stdout, r"\n(note|lost)  ", size)
            else:
                self.assert_bad_input(done)

    def test_damaged_recordings_never_end_a_command_by_a_signal(self):
        random_numbers = random.Random(7)
        whole = recording().read_bytes()
        for _ in range(25):
            damaged = bytearray(whole)
            for _ in range(random_numbers.randint(1, 8)):
                damaged[random_numbers.randrange(len(damaged))] = random_numbers.randrange(256)
            (FOLDER / "damaged.plumb").write_bytes(damaged)
            for command in self.COMMANDS:
                self.assertIn(plumb(*command, FOLDER / "damaged.plumb").returncode, (0, 1, 2, 3))

    def test_a_failed_trace_leaves_no_file(self):
        plumb("trace", FOLDER / "noise", "-o", FOLDER / "none.json")
        self.assertEqual(list(FOLDER.glob("none.json*")), [])


class Output(Case):
    COMMANDS = (["report"], ["report", "--json"], ["trace"], ["export"], ["export", "--format", "csv"])

    def test_a_full_disk_is_one_sentence_never_a_silent_cut(self):
        for command in self.COMMANDS:
            with open("/dev/full", "w") as full:
                self.assert_bad_input(plumb(*command, recording(), stdout=full), "No space left")
        self.assert_bad_input(plumb("trace", recording(), "-o", "/dev/full"), "/dev/full", "No space left")
        for words in (["--help"], ["help", "--markdown"], ["completion", "bash"], ["selftest"]):
            with open("/dev/full", "w") as full:
                self.assert_bad_input(plumb(*words, stdout=full), "No space left")

    def test_a_reader_that_leaves_ends_the_command_quietly(self):
        for command in self.COMMANDS:
            done = subprocess.Popen([PLUMB, *command, recording()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=ENVIRONMENT)
            done.stdout.close()
            self.assertEqual((done.wait(60), done.stderr.read()), (0, b""), command)
            done.stderr.close()

    def test_a_closed_standard_output_is_an_error_and_harms_no_file(self):
        before = recording().read_bytes()
        done = subprocess.run(["sh", "-c", '"$0" report "$1" >&-', PLUMB, recording()], stderr=subprocess.PIPE,
                              text=True, env=ENVIRONMENT, timeout=60)
        self.assert_bad_input(done, "standard output")
        self.assertEqual(recording().read_bytes(), before)

    def test_the_recording_is_never_overwritten_by_its_own_trace(self):
        before = recording().read_bytes()
        self.assert_bad_input(plumb("trace", recording(), "-o", recording()), "the recording itself")
        (FOLDER / "link.plumb").unlink(missing_ok=True)
        (FOLDER / "link.plumb").symlink_to(recording())
        self.assert_bad_input(plumb("export", recording(), "-o", FOLDER / "link.plumb"), "the recording itself")
        self.assertEqual(recording().read_bytes(), before)

    def test_a_place_that_cannot_be_written_is_named(self):
        self.assert_bad_input(plumb("trace", recording(), "-o", FOLDER / "no" / "t.json"), "t.json")
        self.assert_bad_input(plumb("trace", recording(), "-o", FOLDER), "is a folder")

    def test_a_file_appears_whole_and_is_described_when_asked(self):
        done = plumb("trace", recording(), "-o", FOLDER / "t.json", "--json")
        described = json.loads(done.stdout)
        self.assertEqual(described, {"written": str(FOLDER / "t.json"), "bytes": (FOLDER / "t.json").stat().st_size})
        self.assertEqual((FOLDER / "t.json").read_text(), plumb("trace", recording()).stdout)
        self.assertEqual(list(FOLDER.glob("t.json.part")), [])

    def test_colour_appears_on_a_terminal_only_and_not_with_no_color(self):
        self.assertNotIn("\x1b", plumb("report", recording()).stdout)
        self.assertIn("\x1b[1m", self.on_terminal({"TERM": "xterm"}))
        self.assertNotIn("\x1b", self.on_terminal({"TERM": "xterm", "NO_COLOR": "1"}))
        self.assertNotIn("\x1b", self.on_terminal({"TERM": "dumb"}))

    def on_terminal(self, environment):
        leader, follower = pty.openpty()
        done = subprocess.Popen([PLUMB, "report", recording()], stdout=follower, stderr=subprocess.DEVNULL,
                                env={**ENVIRONMENT, **environment})
        os.close(follower)
        text = b""
        try:
            while part := os.read(leader, 65536):
                text += part
        except OSError:  # how a terminal says that the other side is gone
            pass
        os.close(leader)
        self.assertEqual(done.wait(60), 0)
        return text.decode()

    def test_long_work_shows_progress_on_a_terminal(self):
        pipe = FOLDER / "slow"
        os.mkfifo(pipe)
        leader, follower = pty.openpty()
        done = subprocess.Popen([PLUMB, "trace", recording(), "-o", pipe], stderr=follower, env=ENVIRONMENT)
        os.close(follower)
        with open(pipe, "rb") as reader:  # not read until progress shows: the pipe is smaller than the trace
            text = b""
            while b" MB  " not in text and select.select([leader], [], [], 60)[0]:
                text += os.read(leader, 65536)
            self.assertIn(b"writing " + bytes(pipe), text)
            json.loads(reader.read())
        self.assertEqual(done.wait(60), 0)
        os.close(leader)


class Recording(Case):
    def test_report_shows_phases_bricks_and_the_account(self):
        text = plumb("report", recording()).stdout
        for part in ("a model made for tests", "3 layers", "prefill 16 tok", "decode 120 steps (8 warm-up apart)",
                     "\nblock +", "\nrope_embedding ~", "\nunattributed ", "\nidle ", "coverage ", "   caller\n"):
            self.assertIn(part, text)
        self.assertNotIn("\x01", text)
        self.assertNotIn("mean us per call, by layer", text)

    def test_phase_layers_and_warmup_each_change_the_report(self):
        self.assertEqual([phase["phase"] for phase in report("--phase", "decode")["phases"]], ["decode"])
        self.assertEqual({row["phase"] for row in report("--phase", "prefill")["bricks"]}, {"prefill"})
        self.assertEqual(report()["brick_layers"], [])
        self.assertEqual({row["layer"] for row in report("--layers")["brick_layers"]} - {0, 1, 2}, set())
        self.assertIn("mean us per call, by layer", plumb("report", recording(), "--layers").stdout)
        counted = {phase["phase"]: phase["steps"] for phase in report("--warmup", "28")["phases"]}
        self.assertEqual(counted["decode"], 100)

    def test_calls_per_step_are_exact(self):
        calls = {row["name"]: row["calls_per_step"] for row in report("--phase", "decode")["bricks"]}
        expected = {"lm_head": 1, "rms_norm": 3, "up_projection": 3, "block": 3, "attention": 3, "rope_embedding": 3,
                    HOSTILE: 1}
        self.assertEqual({name: calls.get(name) for name in expected}, expected)

    def test_T8_names_that_try_to_break_out_arrive_as_they_are(self):
        self.assertIn(HOSTILE, {row["name"] for row in report()["bricks"]})
        self.assertIn(HOSTILE, {event["name"] for event in trace()["traceEvents"]})
        lines = plumb("export", recording()).stdout.splitlines()
        self.assertIn(HOSTILE, {json.loads(line).get("name") for line in lines})
        rows = csv.DictReader(io.StringIO(plumb("export", recording(), "--format", "csv").stdout, newline=""))
        self.assertIn(HOSTILE, {row["name"] for row in rows})

    def test_F4_no_lane_of_the_trace_overlaps_and_no_time_is_negative(self):
        events = trace()
        self.assertEqual(trace_reader.problems(events), [])
        self.assertEqual(trace_reader.nesting_problems(events), [])
        self.assertEqual(trace_reader.flow_problems(events), [])
        self.assertEqual(events["otherData"]["left_out"], 0)
        spans = [event for event in events["traceEvents"] if event["name"] in ("copy_h2d", "copy_d2h")]
        self.assertEqual(len({event["tid"] for event in spans}), 2)

    def test_sums_of_the_trace_equal_the_report(self):
        rows = collections.defaultdict(lambda: (0, 0))
        for row in report()["bricks"]:
            count, total = rows[row["phase"], row["name"]]
            rows[row["phase"], row["name"]] = count + row["time"]["count"], total + round(row["time"]["total_ns"])
        self.assertEqual(trace_reader.sums(trace()), dict(rows))

    def test_exports_hold_the_same_samples_in_both_formats(self):
        lines = [json.loads(line) for line in plumb("export", recording()).stdout.splitlines()]
        self.assertEqual(lines[0]["schema"], "plumb.samples/1")
        rows = list(csv.DictReader(io.StringIO(plumb("export", recording(), "--format", "csv").stdout, newline="")))
        self.assertEqual(len(lines) - 1, len(rows))
        for sample, row in zip(lines[1:], rows):
            for key, text in row.items():
                value = sample.get(key, "")
                self.assertEqual(text, str(int(value)) if isinstance(value, (bool, float)) else str(value))

    def test_a_finished_run_has_nothing_to_recover(self):
        self.assertIn("nothing to recover", plumb("recover", recording()).stdout)
        self.assertEqual(json.loads(plumb("recover", recording(), "--json").stdout)["records_recovered"], 0)

    def test_selftest_measures_the_cpu(self):
        test = json.loads(plumb("selftest", "--json").stdout)
        cpu = {backend["name"]: backend for backend in test["backends"]}["cpu"]
        self.assertGreater(cpu["devices"][0]["floor_ns"], 0)
        self.assertIn("floor (empty scope)", plumb("selftest").stdout)


def graph_recording(kind="clean"):
    path = FOLDER / f"graphs-{kind}.plumb"
    if not path.exists():
        maker = MAKE_RECORDING.parent / "plumb_make_graph_recording"
        subprocess.run([maker, path, kind], check=True, env=ENVIRONMENT, timeout=60)
    return path


class Graphs(Case):
    def test_the_report_has_rows_inside_graphs_and_leaves_sampled_steps_out(self):
        report_of = json.loads(plumb("report", graph_recording(), "--json", "--warmup", "0").stdout)
        decode = report_of["phases"][0]
        self.assertEqual((decode["steps"], decode["sampled_steps"]), (55, 9))
        rows = {row["name"]: row for row in report_of["bricks"]}
        self.assertEqual(rows["attention"]["source"], "cuda_graph_event")
        self.assertEqual(rows["attention"]["calls_per_step"], 2)
        self.assertAlmostEqual(rows["attention"]["sum_per_step_ns"], 600e3, delta=1)
        self.assertEqual(rows["sampling"]["device"]["basis"], "timed_steps")
        self.assertEqual(rows["sampling"]["calls_per_step"], 1)
        self.assertEqual(report_of["graph_bricks"][0]["graph"], 64)
        self.assertEqual(report_of["graphs"][0]["replays"], 55)
        self.assertIn("absent", decode["device"]["in_graph_idle_per_step_ns"])
        self.assertTrue(any("nccl_all_reduce" in note for note in report_of["notes"]))
        self.assertTrue(any("closure +0.00 % calibrated" in note for note in report_of["notes"]))

    def test_T18_a_graph_that_lost_kernels_is_named_and_fails(self):
        clean, lost = plumb("replays", graph_recording()), plumb("replays", graph_recording("lost"))
        self.assertEqual(clean.returncode, 0, clean.stderr)
        self.assertIn("\nNODES agree", clean.stdout)
        self.assertNotIn("differ", clean.stdout)
        self.assertEqual(lost.returncode, 1, lost.stderr)
        self.assertIn("\nNODES differ  graph 64: lost rope_kernel 2 -> 0", lost.stdout)
        self.assertEqual(json.loads(plumb("replays", graph_recording("lost"), "--json").stdout)["node_check"], "differ")

    def test_F11_each_key_has_its_life_and_the_time_of_the_device(self):
        done = plumb("replays", graph_recording(), "--json")
        graphs = {row["graph"]: row for row in json.loads(done.stdout)["graphs"]}
        self.assertEqual(graphs[64]["replays"], 64)
        self.assertAlmostEqual(graphs[64]["device_ns"], 700e3, delta=1)
        self.assertAlmostEqual(graphs[64]["raw_device_ns"], 704e3, delta=1)
        self.assertEqual(graphs[128]["device_ns"], {"absent": "it was never replayed"})
        never = json.loads(done.stdout)["never_replayed"]
        self.assertEqual((never["graphs"], never["host_ns"]), ([128], 4e6))

    def test_arrows_of_the_trace_lead_from_the_host_to_the_device(self):
        events = json.loads(plumb("trace", graph_recording()).stdout)
        self.assertEqual(trace_reader.problems(events), [])
        self.assertEqual(trace_reader.flow_problems(events), [])
        ends = [event for event in events["traceEvents"] if event["ph"] == "f"]
        self.assertEqual(len(ends), 16)  # eight scopes on the stream, eight instrumented replays

    def test_exports_carry_the_graph_key(self):
        lines = [json.loads(line) for line in plumb("export", graph_recording(), "--format", "jsonl").stdout.splitlines()]
        self.assertEqual(lines[0]["graphs"][0]["graph"], 64)
        kinds = collections.Counter(line["kind"] for line in lines[1:])
        self.assertEqual((kinds["launch"], kinds["submit"]), (64, 8))
        rows = list(csv.DictReader(io.StringIO(plumb("export", graph_recording(), "--format", "csv").stdout)))
        self.assertEqual(len(rows), len(lines) - 1)
        self.assertEqual({row["graph"] for row in rows if row["name"] == "attention"}, {"64"})


def check_recording(kind="clean"):
    path = FOLDER / f"checks-{kind}.plumb"
    if not path.exists():
        maker = MAKE_RECORDING.parent / "plumb_make_check_recording"
        subprocess.run([maker, path, kind], check=True, env=ENVIRONMENT, timeout=60)
    return path


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
        self.assert_bad_input(plumb("diverge", none, none), "neither recording", 'PLUMB="on,check=all"')
        self.assert_bad_input(plumb("diverge", recording(), recording()), "neither recording")

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
        self.assert_bad_input(plumb("health", check_recording("none")), 'PLUMB="on,check=all"')
        self.assert_bad_input(plumb("health", check_recording(), "--against", check_recording("none")), "the twin")
        self.assert_bad_input(plumb("health", check_recording(), "--agianst", "x"), "--against")


class Compare(Case):
    """plumb compare and its gates."""

    @classmethod
    def setUpClass(cls):
        cls.runs = [FOLDER / f"compare{i}.plumb" for i in range(6)]
        for path in cls.runs:
            subprocess.run([MAKE_RECORDING, path], check=True, env=ENVIRONMENT, timeout=60)

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
        self.assert_bad_input(self.compare("--history", FOLDER / "nowhere"), "nowhere")
        self.assert_bad_input(self.compare(self.runs[0], self.runs[1], "--same", "0"), "SAME")

    def test_T16_a_gate_on_fingerprints_does_not_pass_without_tensors(self):
        done = self.compare(*self.sides(), "--gate", "fingerprint")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("gate UNDECIDED", done.stdout)

    def checked(self, name, *kinds):
        maker = MAKE_RECORDING.parent / "plumb_make_check_recording"
        paths = [FOLDER / f"gate-{name}{i}.plumb" for i in range(len(kinds))]
        for path, kind in zip(paths, kinds):
            subprocess.run([maker, path, kind], check=True, env=ENVIRONMENT, timeout=60)
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
        lost = json.loads(plumb("report", FOLDER / "lossy.plumb", "--json").stdout)["losses"]
        self.assertEqual(plumb("check", FOLDER / "lossy.plumb", "--drops", 0).returncode, 1 if lost else 0)
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
        document = (SOURCE / "docs" / "checks.md").read_text().split("```json\n")[1].split("```")[0]
        shown = json.loads(document) | {"expect": ["lm_head=1/step"], "coverage": 0.01, "node_check": True, "cv": 0.5}
        file.write_text(json.dumps(shown))
        checks = self.json_of(3, "check", *runs(3), "--file", file)["checks"]
        self.assertEqual(len(checks), 3 * 5 + 1)
        self.assertEqual({check["check"] for check in checks if check["verdict"] == "unknown"}, {"node check"})
        file.write_text(json.dumps({"schema": "plumb.checks/1", "coverage": 0.999}))
        self.assertEqual(plumb("check", recording(), "--file", file).returncode, 1)
        self.assertEqual(plumb("check", recording(), "--file", file, "--coverage", 0.01).returncode, 0)
        for wrong in ("", "[]", "{", "{}", '{"schema": "plumb.checks/2"}', '{"schema": "plumb.checks/1"}'):
            file.write_text(wrong)
            self.assert_bad_input(plumb("check", recording(), "--file", file))
        for key, value in (("coverge", 0.9), ("coverage", "0.9"), ("expect", "lm_head=1/step"), ("expect", [1]),
                           ("expect", ["lm_head"]), ("drops", -1), ("pending", 0.5), ("node_check", 1), ("cv", None),
                           ("phase", "all"), ("coverage", [[[[[[[[[[[1]]]]]]]]]]])):
            file.write_text(json.dumps({"schema": "plumb.checks/1", "drops": 0, key: value}))
            self.assert_bad_input(plumb("check", recording(), "--file", file), "plumb.checks.json")
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
        said = self.json_of(0, "tiles", tile_recording(), "--level", "macro")
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
            drawn = subprocess.run(["dot", "-Tplain"], input=dot, text=True, check=True, capture_output=True, timeout=300)
            self.assertEqual(drawn.stderr, "")
            self.assertEqual(sum(line.startswith("node ") for line in drawn.stdout.splitlines()), self.path(source)["nodes"])


class OneSource(Case):
    def test_the_document_is_what_the_command_says_about_itself(self):
        said = plumb("help", "--markdown").stdout
        self.assertEqual((SOURCE / "docs" / "cli.md").read_text(), said,
                         "run: plumb help --markdown > docs/cli.md")

    def test_every_key_of_every_output_is_documented(self):
        document = (SOURCE / "docs" / "report_schema.md").read_text()
        lines = plumb("export", recording()).stdout.splitlines()
        outputs = [json.loads(lines[0]), json.loads(lines[1]), trace()["otherData"], trace()["traceEvents"][-1]["args"],
                   json.loads(plumb("selftest", "--json").stdout),
                   json.loads(plumb("recover", recording(), "--json").stdout)]
        keys = set()
        while outputs:
            value = outputs.pop()
            keys |= set(value) if isinstance(value, dict) else set()
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            outputs.extend(inner)
        self.assertGreater(len(keys), 30)
        self.assertEqual({key for key in keys if f"`{key}`" not in document}, {"absent"} & keys)

    def commands(self):
        said = plumb("help", "--markdown").stdout
        return [line.split("`")[1].split()[1] for line in said.splitlines() if line.startswith("| `plumb ")]

    def test_every_command_is_in_every_completion(self):
        self.assertGreaterEqual(set(self.commands()), {"report", "trace", "export", "recover", "selftest"})
        for shell in ("bash", "zsh", "fish"):
            script = plumb("completion", shell).stdout
            for command in self.commands():
                self.assertIn(command, script)

    def complete(self, *words):
        script = ('source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _plumb; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, PLUMB, "plumb", *words], capture_output=True, text=True,
                              env=ENVIRONMENT, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete("repo"), ["report"])
        self.assertEqual(set(self.complete("")), set(self.commands()))
        self.assertEqual(self.complete("report", "--ph"), ["--phase"])
        self.assertEqual(self.complete("report", "--phase", ""), ["decode", "prefill", "mixed"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])
        self.assertEqual(self.complete("report", "x.plumb", "--lay"), ["--layers"])


class DecodeText(Case):
    """Text in, text out, with the tokenizer of the model's file."""

    @classmethod
    def setUpClass(cls):
        cls.model = FOLDER / "text.gguf"
        done = plumb("model", "make", "--shape", "tiny-llama", "--type", "f32", "-o", cls.model)
        assert done.returncode == 0, done.stderr

    def decode(self, *words):
        return plumb("decode", self.model, "--threads", 1, "--out", FOLDER / "text.plumb", *words, errors="replace")

    def test_a_text_is_tokens_and_what_comes_out_is_text(self):
        text = self.decode("-p", "h\u00e9llo", "--steps", 6, "--print-tokens")
        self.assertEqual(text.returncode, 0, text.stderr)
        said, rest = text.stdout.split("\n\n", 1)
        ids = [int(word) for word in rest.split("\n")[0].split()[1:]]
        self.assertEqual(len(ids), 7)
        same = self.decode("--tokens", ",".join(map(str, self.bytes_as_ids("h\u00e9llo"))), "--steps", 6, "--print-tokens")
        self.assertEqual([int(word) for word in same.stdout.split("\n")[0].split()[1:]], ids)
        self.assertIn(" %d" % next(id for id in ids if id > 256), said)

    @staticmethod
    def bytes_as_ids(text):
        return list(text.encode())

    def test_standard_output_holds_json_alone_where_it_is_asked_for(self):
        done = self.decode("-p", "a", "--steps", 2, "--json")
        self.assertEqual(json.loads(done.stdout)["schema"], "plumb.report/1")
        self.assertNotEqual(done.stderr, "")

    def test_the_same_seed_says_the_same_and_each_way_to_choose_changes_it(self):
        def ids(*words):
            done = self.decode("-p", "abc", "--steps", 24, "--print-tokens", "--temperature", 1.5, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return next(line for line in done.stdout.split("\n") if line.startswith("tokens "))
        plain = ids()
        self.assertEqual(plain, ids())
        for words in (("--seed", 2), ("--top-k", 2), ("--top-p", 0.2), ("--min-p", 0.7), ("--repeat-penalty", 40)):
            self.assertNotEqual(plain, ids(*words), words)

    def test_what_cannot_be_said_is_one_sentence(self):
        for words, part in ((("-p", ""), "prompt is empty"), (("-p", "a", "--min-p", 2), "--min-p"),
                            (("-p", "a", "--repeat-penalty", 0), "--repeat-penalty"),
                            (("-p", "a", "--ctx", 1), "--ctx")):
            done = self.decode(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
            self.assertIn(part, done.stderr)



if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
