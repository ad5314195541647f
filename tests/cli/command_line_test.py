# SPDX-License-Identifier: Apache-2.0
"""The plumb command from outside: what it prints, where, and how it exits.

usage: command_line_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]"""

import collections
import csv
import io
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import unittest

import trace_reader
from shell import (Case, ENVIRONMENT, FOLDER, HANG, HOSTILE, PLUMB, SOURCE, check_recording, graph_recording, kineto_trace,
                   main, plumb, recording, recording_with, report, terminal, trace)


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

    def test_common_mistakes_are_listed_with_their_fix(self):
        """As docs/reference/errors.md says how sentences begin, … for what differs."""
        page = (SOURCE / "docs/reference/errors.md").read_text().split("\n## Files\n")[1].split("\n## Import")[0]
        listed = [".*".join(map(re.escape, words.removesuffix(" …").split("…")))
                  for row in re.findall(r"(?m)^\| (`.*?`) \| ", page) for words in re.findall(r"`([^`]+)`", row)]
        (FOLDER / "words.txt").write_text("words")
        (FOLDER / "same.plumb").write_bytes(recording().read_bytes())
        nowhere, run = FOLDER / "nowhere", recording()
        for words in [["report", nowhere], ["report", FOLDER / "words.txt"], ["report", FOLDER], ["report", run, run],
                      ["report", run, "--with", "wal"], ["report", run, "--with", "layers:metrc=mean"], ["reprt"], ["help", "reprt"],
                      ["decode", nowhere], ["decode", FOLDER / "words.txt"], ["decode", "/dev/null"],
                      ["model", "make", "--out", FOLDER / "words.txt"], ["trace", run, "-o", nowhere / "t.json"],
                      ["trace", run, "-o", FOLDER], ["trace", run, "--steps", "x"], ["trace", run, "--layers", "x"],
                      ["trace", run, "--tracks", "none"], ["trace", run, "--layers", "99"], ["export", run, "--format", "parquet"],
                      ["wall", run, "--step", "99999"], ["wall", run, "--phase", "mixed"], ["wall", run, "--step", "3", "--phase", "decode"],
                      ["budget", run], ["budget", run, "--tok/s", "0"], ["check", run], ["check", run, "--coverage", "90"],
                      ["compare", run], ["compare", run, FOLDER / "same.plumb"], ["compare", "--history", nowhere],
                      ["compare", run, graph_recording(), "--gate", "x"], ["sql"], ["layers"]]:
            done = plumb(*words)
            self.assert_bad_input(done)
            said = done.stderr.removeprefix("error: ").rstrip("\n")
            self.assertTrue(any(re.match(begin, said) for begin in listed), said)

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
            self.assertEqual((done.wait(HANG), done.stderr.read()), (0, b""), command)
            done.stderr.close()

    def test_a_closed_standard_output_is_an_error_and_harms_no_file(self):
        before = recording().read_bytes()
        done = subprocess.run(["sh", "-c", '"$0" report "$1" >&-', PLUMB, recording()], stderr=subprocess.PIPE,
                              text=True, env=ENVIRONMENT, timeout=HANG)
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
        self.assertEqual(list(FOLDER.glob("t.json.part*")), [])

    def test_a_link_stays_and_what_it_leads_to_is_written(self):
        folder = FOLDER / "links"
        (folder / "far").mkdir(parents=True)
        (folder / "far" / "near").symlink_to("t.json")
        (folder / "link").symlink_to("far/near")
        expected = plumb("trace", recording()).stdout
        for before in (None, "what was there"):  # a link to nothing makes it
            if before:
                (folder / "far" / "t.json").write_text(before)
            self.assertEqual(plumb("trace", recording(), "-o", folder / "link").returncode, 0)
            self.assertEqual((folder / "far" / "t.json").read_text(), expected)
        self.assertTrue((folder / "link").is_symlink() and (folder / "far" / "near").is_symlink())
        self.assertEqual(sorted(file.name for file in folder.rglob("*")), ["far", "link", "near", "t.json"])
        (folder / "round").symlink_to("round")
        self.assert_bad_input(plumb("trace", recording(), "-o", folder / "round"), "round", "symbolic links")
        shutil.rmtree(folder)

    def test_a_link_to_what_is_open_is_written_where_it_stands(self):
        links = [FOLDER / "to_open", "/dev/stdout", "/proc/self/fd/1"]
        links[0].symlink_to("/proc/self/fd/1")
        expected = plumb("trace", recording()).stdout
        out = FOLDER / "open.json"
        for link in links[::2] if os.geteuid() == 0 else links:  # as root a defect would replace /dev/stdout itself
            out.write_text("before\n")
            with open(out, "a") as end:
                self.assertEqual(plumb("trace", recording(), "-o", link, stdout=end).returncode, 0)
            self.assertEqual(out.read_text(), "before\n" + expected)
        self.assertTrue(links[0].is_symlink())
        links[0].unlink()
        out.unlink()

    def test_no_file_beside_the_output_is_harmed(self):
        folder = FOLDER / "beside"
        folder.mkdir()
        here = folder / "t.json.part"
        here.write_bytes(recording().read_bytes())
        self.assertEqual(plumb("trace", here, "-o", folder / "t.json").returncode, 0)
        self.assertEqual(here.read_bytes(), recording().read_bytes())
        self.assertEqual(plumb("trace", here, "--steps", "500:", "-o", folder / "t.json").returncode, 2)
        self.assertEqual(sorted(file.name for file in folder.iterdir()), ["t.json", "t.json.part"])
        shutil.rmtree(folder)

    def test_two_at_once_into_one_file_leave_one_that_is_whole(self):
        folder = FOLDER / "both"
        folder.mkdir()
        expected = plumb("trace", recording()).stdout
        for _ in range(4):
            both = [subprocess.Popen([PLUMB, "trace", recording(), "-o", folder / "t.json"], stderr=subprocess.PIPE,
                                     env=ENVIRONMENT) for _ in range(4)]
            self.assertEqual([(one.communicate(timeout=HANG)[1], one.returncode) for one in both], [(b"", 0)] * 4)
            self.assertEqual((folder / "t.json").read_text(), expected)
            self.assertEqual([file.name for file in folder.iterdir()], ["t.json"])
        shutil.rmtree(folder)

    def test_a_window_that_holds_nothing_is_an_error_and_leaves_no_file(self):
        path = FOLDER / "window.json"
        for command in ("trace", "export"):
            for words, part in ((("--steps", "500:600"), "nothing lies in steps 500 to 599; the steps of this recording are "),
                                (("--steps", "500:"), "nothing lies in steps from 500 on; the steps of this recording are "),
                                (("--layers", 9), "nothing lies in layer 9; the layers there are 0 to 2")):
                self.assert_bad_input(plumb(command, recording(), *words, "-o", path), part)
                said = plumb(command, recording(), *words, "-o", path, "--json")
                self.assertEqual((said.returncode, list(json.loads(said.stdout))), (2, ["error"]))
                self.assertFalse(path.exists())

    def test_tables_go_into_a_folder_and_replace_those_of_an_earlier_export(self):
        folder = FOLDER / "tables"
        export = ("export", "--format", "parquet")
        self.assert_bad_input(plumb(*export, recording()), "parquet is several files", "-o")
        self.assert_bad_input(plumb(*export, recording(), recording(), "-o", folder), "are the same recording")
        self.assert_bad_input(plumb("export", recording(), graph_recording()), "one recording at a time")
        self.assert_bad_input(plumb(*export, FOLDER / "missing.plumb", "-o", folder), "missing.plumb")
        self.assert_bad_input(plumb(*export, recording(), "-o", recording()), "cannot write to")
        for _ in range(2):
            done = json.loads(plumb(*export, recording(), graph_recording(), "-o", folder, "--json").stdout)
            files = [file for file in folder.rglob("*") if file.is_file()]
            self.assertEqual(sorted(file.relative_to(folder).parts[0] for file in files), ["scopes", "scopes", "steps", "steps"])
            self.assertEqual({file.read_bytes()[:4] + file.read_bytes()[-4:] for file in files}, {b"PAR1PAR1"})
            self.assertEqual(done, {"written": str(folder), "bytes": sum(file.stat().st_size for file in files)})

    def test_sql_lists_its_queries_and_says_how_to_get_duckdb(self):
        listed = json.loads(plumb("sql", "--list", "--json").stdout)
        self.assertEqual(len(listed), 8)
        self.assertTrue(all(row["answers"] for row in listed))
        self.assert_bad_input(plumb("sql"), "takes a query and a recording")
        self.assert_bad_input(plumb("sql", "select 1"), "takes a query and a recording")
        self.assert_bad_input(plumb("sql", "--query", "slowest", recording()), "slowest_layers")
        without = subprocess.run([PLUMB, "sql", "select 1", recording()], capture_output=True, text=True, timeout=HANG, env=ENVIRONMENT)
        if without.returncode != 0:  # where DuckDB is installed this is a query
            self.assert_bad_input(without, "npm install @duckdb/node-bindings-linux-x64")

    def test_colour_appears_on_a_terminal_only_and_not_with_no_color(self):
        self.assertNotIn("\x1b", plumb("report", recording()).stdout)
        self.assertIn("\x1b[1m", self.on_terminal({"TERM": "xterm"}))
        self.assertNotIn("\x1b", self.on_terminal({"TERM": "xterm", "NO_COLOR": "1"}))
        self.assertNotIn("\x1b", self.on_terminal({"TERM": "dumb"}))

    def on_terminal(self, environment):
        leader, follower = terminal()
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
        self.assertEqual(done.wait(HANG), 0)
        return text.decode()

    def test_long_work_shows_progress_on_a_terminal(self):
        pipe = FOLDER / "slow"
        os.mkfifo(pipe)
        leader, follower = terminal()
        done = subprocess.Popen([PLUMB, "trace", recording(), "-o", pipe], stderr=follower, env=ENVIRONMENT)
        os.close(follower)
        with open(pipe, "rb") as reader:  # not read until progress shows: the pipe is smaller than the trace
            text = b""
            while b" MB  " not in text and select.select([leader], [], [], 60)[0]:
                text += os.read(leader, 65536)
            self.assertIn(b"writing " + bytes(pipe), text)
            json.loads(reader.read())
        self.assertEqual(done.wait(HANG), 0)
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


class OneSource(Case):
    def test_the_document_is_what_the_command_says_about_itself(self):
        said = plumb("help", "--markdown").stdout
        self.assertEqual((SOURCE / "docs" / "reference" / "cli.md").read_text(), said,
                         "run: plumb help --markdown > docs/reference/cli.md")

    def test_the_reference_of_outputs_is_what_the_command_says_about_them(self):
        said = plumb("help", "--reference").stdout
        page = (SOURCE / "docs" / "reference" / "report_schema.md").read_text()
        self.assertEqual(page[page.index(said.splitlines()[0]):], said,
                         "put behind the first part of docs/reference/report_schema.md: plumb help --reference")

    def test_the_page_for_man_has_every_command_and_option(self):
        said = plumb("help", "--man").stdout.replace("\\&", "").replace("\\-", "-")
        self.assertTrue(said.startswith(".TH PLUMB 1 "))
        for line in (SOURCE / "docs" / "reference" / "cli.md").read_text().splitlines():
            if line.startswith("## plumb") or line.startswith("| `--"):
                self.assertIn(line.split("`")[1] if line[0] == "|" else ".SH " + line[3:], said)

    def test_every_command_of_the_readme_runs(self):
        """On recordings of ours in place of its names; exit code 2 would be a word that the command does not take."""
        lines = [line.split("#")[0].split() for line in (SOURCE / "README.md").read_text().splitlines()
                 if line.startswith("plumb ")]
        self.assertGreaterEqual({line[1] for line in lines}, {"report", "trace", "export", "path", "wall", "budget", "layers",
                                                              "check", "recover", "diverge", "health", "compare"})
        names = {"plumb-4711.plumb": recording(), "run.plumb": check_recording("clean"),
                 "eager.plumb": check_recording("clean"), "graph.plumb": check_recording("clean"), "trace.json": FOLDER / "trace.json",
                 "trace.json.gz": kineto_trace(),
                 "a*.plumb": recording(), "r*.plumb": recording(), "b*.plumb": recording_with("nodes"), "./my_chat": "true"}
        for line in lines:
            if "--peaks" in line:
                continue  # takes all cores for seconds: peaks_test.py
            words = [names.get(word, word) for word in line[1:]]
            if line[1] == "import":
                words[-1] = FOLDER / "imported.plumb"
            if line[1] == "audit":
                words[1] = graph_recording()
            if line[1] in ("requests", "ranks"):  # ours has neither: the command is there, and says so
                self.assert_bad_input(plumb(*words), "request" if line[1] == "requests" else "rank")
                continue
            self.assertIn(plumb(*words).returncode, (0, 1, 3), line)

    def test_every_key_of_a_trace_is_documented(self):
        document = (SOURCE / "docs" / "reference" / "report_schema.md").read_text()
        keys = set()
        for source in (recording(), recording_with("nodes"), graph_recording()):
            said = json.loads(plumb("trace", source).stdout)
            keys |= set(said["otherData"]).union(*(event["args"] for event in said["traceEvents"] if event["ph"] in "Xi"))
        self.assertLessEqual({"origin_ns", "layer", "told", "transferred", "graph"}, keys)
        self.assertEqual({key for key in keys if f"`{key}`" not in document}, set())

    def commands(self):
        said = plumb("help", "--markdown").stdout
        return [line.split("`")[1].split()[1] for line in said.splitlines() if line.startswith("| `plumb ")]

    def test_every_command_is_in_every_completion(self):
        self.assertGreaterEqual(set(self.commands()), {"report", "trace", "export", "recover", "selftest"})
        for shell in ("bash", "zsh", "fish"):
            self.assertIn(f"completion {shell} -- ", plumb("completion", shell).stdout)
            said = plumb("completion", shell, "--", "plumb", "")
            self.assertEqual({line.split("\t")[0] for line in said.stdout.splitlines()}, set(self.commands()), said.stderr)

    def complete(self, *words):
        script = ('source <("$0" completion bash); COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _plumb; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, PLUMB, *words], capture_output=True, text=True,
                              env=ENVIRONMENT, timeout=HANG)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete("repo"), ["report"])
        self.assertEqual(set(self.complete("")), set(self.commands()))
        self.assertEqual(self.complete("report", "--ph"), ["--phase"])
        self.assertEqual(self.complete("report", "--phase", ""), ["decode", "prefill", "mixed"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])
        self.assertEqual(self.complete("model", "make", "--ty"), ["--type"])
        self.assertEqual(set(self.complete("export", "x.plumb", "--format", "")),
                         {"jsonl", "csv", "chrome_trace", "perfetto", "otlp", "parquet"})
        self.assertEqual(self.complete("report", "-"), ["-h", *self.complete("report", "x.plumb", "--")])
        self.assertEqual(self.complete("report", "x.plumb", "--lay"), ["--layers"])


class Run(Case):
    """plumb run, of a command in which there is no engine."""

    @classmethod
    def setUpClass(cls):
        cls.library = PLUMB.parent.parent / "lib" / "libplumb-attach.so"
        if not cls.library.exists():
            raise unittest.SkipTest("built without the attach library")

    def run_plumb(self, *words, of=PLUMB):
        return subprocess.run([of, "run", *words], capture_output=True, text=True, env=ENVIRONMENT, timeout=HANG, cwd=FOLDER)

    def installed(self, name):
        """The command and its attach library, as they lie where they were installed."""
        root = FOLDER / name
        (root / "bin").mkdir(parents=True)
        (root / "lib").mkdir()
        shutil.copy(PLUMB, root / "bin")
        os.symlink(self.library, root / "lib" / "libplumb-attach.so")
        return root

    def test_the_command_ignores_no_signal_that_plumb_ignores(self):
        status = self.run_plumb("--", "grep", "SigIgn", "/proc/self/status").stdout
        ignored = int(status.split("SigIgn:")[1].split()[0], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            self.assertFalse(ignored >> number - 1 & 1, status)

    def test_without_a_recording_json_says_why_and_the_command_has_its_exit_code(self):
        for command, code in (("true", 0), ("false", 1)):
            done = self.run_plumb("--json", "--", command)
            self.assertEqual(done.returncode, code)
            why = json.loads(done.stdout)["error"]
            self.assertIn("no engine was met", why)
            self.assertEqual(done.stderr, f"note  {why}\n")

    def test_a_recording_takes_only_the_placeholders_there_are(self):
        done = self.run_plumb("-o", "run-%z.plumb", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, 'error: -o "run-%z.plumb" does not fit; -o takes path with %p (pid), %h (host), %r (rank), '
                                      '%% (a percent sign), or none\n')

    def test_a_recording_in_memory_is_refused_as_nobody_could_read_it(self):
        self.assert_bad_input(self.run_plumb("-o", "none", "--", "true"), "out=none keeps the recording in the memory of the command")
        self.assertFalse((FOLDER / "none").exists())

    def test_a_percent_sign_in_the_working_folder_is_itself(self):
        folder = FOLDER / "50%off"
        folder.mkdir()
        done = subprocess.run([PLUMB, "run", "--", "sh", "-c", "echo $PLUMB"], capture_output=True, text=True, env=ENVIRONMENT, timeout=HANG,
                              cwd=folder)
        self.assertIn("50%%off/plumb-%p.plumb,", done.stdout, done.stderr)

    def test_torch_was_not_looked_for_where_the_python_package_is_not_there(self):
        root = self.installed("alone")
        said = self.run_plumb("--", "true", of=root / "bin" / "plumb").stderr
        self.assertNotIn("for torch in Python", said)
        self.assertIn("Not for torch: plumb's Python package does not lie where this plumb was installed; install python3-plumb",
                      said)
        (root / "lib" / "python3" / "dist-packages" / "plumb" / "_attach").mkdir(parents=True)
        said = self.run_plumb("--", "true", of=root / "bin" / "plumb").stderr
        self.assertIn("for torch in Python 3.10 or later", said)
        self.assertNotIn("Not for torch", said)

    def test_what_cannot_be_started_has_the_exit_codes_of_a_shell(self):
        for command, code in (("/no/such/program", 127), (FOLDER, 126)):
            done = self.run_plumb("--", command)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertRegex(done.stderr, r"\Aerror: cannot start [^\n]+\n\Z")

    def test_only_a_folder_that_is_missing_is_to_be_made(self):
        self.assert_bad_input(self.run_plumb("-o", FOLDER / "no" / "run.plumb", "--", "true"), "; make that folder, or name")
        self.assert_bad_input(self.run_plumb("-o", pathlib.Path(os.devnull) / "run.plumb", "--", "true"),
                              "Not a directory; name another one with -o")


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

    @staticmethod
    def stop_key(token):
        """The id of the model's stop token as it lies in the file, and with another token in its place."""
        key = b"tokenizer.ggml.eos_token_id" + (4).to_bytes(4, "little")
        return key + (256).to_bytes(4, "little"), key + token.to_bytes(4, "little")

    def test_standard_output_holds_json_alone_where_it_is_asked_for(self):
        done = self.decode("-p", "a", "--steps", 2, "--json")
        self.assertEqual(json.loads(done.stdout)["schema"], "plumb.report/2")
        self.assertNotEqual(done.stderr, "")

    def test_without_a_profiler_json_says_that_there_is_no_report(self):
        none = FOLDER / "none.gguf"  # refused before a model is looked for
        for words, spec in ((("--no-profile",), "on"), ((), "off")):
            done = subprocess.run([PLUMB, "decode", none, "--json", *words], capture_output=True, text=True, timeout=HANG,
                                  env={**ENVIRONMENT, "PLUMB": spec})
            self.assertEqual((done.returncode, done.stderr), (2, ""))
            self.assertIn("profiling is off: there is no report; leave --json out", json.loads(done.stdout)["error"])

    def test_random_weights_on_the_cpu_come_from_a_file(self):
        self.assert_bad_input(plumb("decode", "--random-weights", "test"), "say --backend cuda, or plumb model make --shape")

    def test_the_same_seed_says_the_same_and_each_way_to_choose_changes_it(self):
        def ids(*words):
            done = self.decode("-p", "abc", "--steps", 24, "--print-tokens", "--temperature", 1.5, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return next(line for line in done.stdout.split("\n") if line.startswith("tokens "))
        plain = ids()
        self.assertEqual(plain, ids())
        for words in (("--seed", 2), ("--top-k", 2), ("--top-p", 0.2), ("--min-p", 0.7), ("--repeat-penalty", 40)):
            self.assertNotEqual(plain, ids(*words), words)

    def test_sequences_of_a_batch_are_those_of_runs_alone(self):
        def lines(*words):
            done = self.decode("-p", "abc", "--steps", 6, "--print-tokens", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [line for line in done.stdout.split("\n") if line.startswith("tokens ")]
        self.assertEqual(lines("--batch", 3), 3 * lines())
        for count in (0, 1025):
            self.assert_bad_input(self.decode("--batch", count), "--batch")

    def test_the_text_of_a_sequence_ends_with_it_and_its_stop_token_is_no_text(self):
        plain = self.decode("-p", "abc", "--steps", 24, "--temperature", 1.5, "--seed", 3, "--print-tokens")
        ids = [int(word) for word in plain.stdout.split("\ntokens ")[1].split("\n")[0].split()]
        stop = next(id for id in ids[2:] if id > 256 and id not in ids[:2])  # a token whose text is its number
        model = FOLDER / "stop.gguf"
        model.write_bytes(self.model.read_bytes().replace(*self.stop_key(stop)))
        for batch in (1, 2):
            done = plumb("decode", model, "--threads", 1, "--out", FOLDER / "stop.plumb", "-p", "abc", "--steps", 24,
                         "--temperature", 1.5, "--seed", 3, "--batch", batch, "--print-tokens", errors="replace")
            self.assertEqual(done.returncode, 0, done.stderr)
            said, rest = done.stdout.split("\n\ntokens ", 1)
            self.assertEqual([int(word) for word in rest.split("\n")[0].split()], ids[:ids.index(stop) + 1])
            self.assertNotIn(" %d" % stop, said)
            self.assertTrue(plain.stdout.startswith(said))

    def test_more_positions_than_the_model_was_made_for_are_warned_of(self):
        model = FOLDER / "short.gguf"
        plumb("model", "make", "--shape", "test", "-o", model)
        for steps, warned in ((511, 0), (512, 1)):
            done = plumb("decode", model, "--out", FOLDER / "short.plumb", "--tokens", "1", "--steps", steps)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("warning: prompt and steps take %d positions, and the model was made for 512"
                                               % (steps + 1)), warned, done.stderr)

    def test_what_cannot_be_said_is_one_sentence(self):
        for words, part in ((("-p", ""), "prompt is empty"), (("-p", "a", "--min-p", 2), "--min-p"),
                            (("-p", "a", "--repeat-penalty", 0), "--repeat-penalty"),
                            (("-p", "a", "--ctx", 1), "--ctx"), (("--prompt-tokens", -1), "--prompt-tokens"),
                            (("--tokens", ""), '"" is no token id'), (("--tokens", "1,2,x"), '"x" is no token id'),
                            (("--tokens", "1,512"), "token 512"), (("--temperature", "warm"), '"warm" is no number'),
                            (("--tiles", "--backend", "opencl"), "cpu backend keeps tiles"),
                            (("--prompt-tokens", 1 << 40), "--prompt-tokens"), (("--steps", (1 << 64) - 1), "--steps")):
            done = self.decode(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(len(done.stderr.strip().split("\n")), 1, done.stderr)
            self.assertIn(part, done.stderr)

    def test_what_is_refused_leaves_the_recording_that_is_there(self):
        self.assertEqual(self.decode("--prompt-tokens", 8, "--steps", 2).returncode, 0)
        runs = {path: path.read_bytes() for path in FOLDER.glob("text.plumb*")}
        self.assertTrue(runs[FOLDER / "text.plumb"])
        for words in (("--tokens", "1,2,99999"), ("--ctx", 3), ("--prompt-tokens", 0), ("--steps", 100000, "--ctx", 4000)):
            self.assert_bad_input(self.decode(*words))
            self.assertTrue({path: path.read_bytes() for path in FOLDER.glob("text.plumb*")} == runs, words)

    def test_a_model_that_cannot_run_is_refused_for_that_and_not_for_its_tokenizer(self):
        def text(key, value):
            return key + b"\x08\0\0\0" + len(value).to_bytes(8, "little") + value
        stored = self.model.read_bytes()
        other = FOLDER / "other.gguf"
        kind = next(kind for kind in (b"gpt2", b"llama") if text(b"tokenizer.ggml.model", kind) in stored)
        unknown = stored.replace(text(b"tokenizer.ggml.model", kind), text(b"tokenizer.ggml.model", b"?" * len(kind)))
        other.write_bytes(unknown)
        self.assert_bad_input(plumb("decode", other, "-p", "a"), "give the prompt's token ids with --tokens")
        other.write_bytes(unknown.replace(text(b"general.architecture", b"llama"), text(b"general.architecture", b"other")))
        self.assert_bad_input(plumb("decode", other, "-p", "a"), "has the architecture 'other'")

    def test_settings_are_named_as_they_were_typed(self):
        none = FOLDER / "none.gguf"  # wrong options are said before a model is looked for
        for words, begin in ((("--tensors", "foo"), '--tensors "foo" does not fit; --tensors takes off, nonfinite, all'),
                             (("--tensors", ""), '--tensors "" does not fit; --tensors takes '),
                             (("--tensors", "all+every=0"), '--tensors "all+every=0" does not fit; '),
                             (("--dump", ""), '--dump "" does not fit; --dump takes folder'),
                             (("--tensors", "nonfinite", "--dump", FOLDER), "a dump keeps the tensors that are looked at whole"),
                             (("--out", ""), '--out "" does not fit; --out takes path')):
            done = plumb("decode", none, *words)
            self.assert_bad_input(done, f"error: {begin}")
            self.assertNotIn("PLUMB", done.stderr)
        for value, part in (("on,tensors=foo", 'PLUMB: "tensors=foo" does not fit; tensors= takes '),
                            ("on,check=foo", 'PLUMB: "check=foo" does not fit; check= takes '), ("yes", 'unknown key "yes"')):
            done = subprocess.run([PLUMB, "decode", none], capture_output=True, text=True, timeout=HANG,
                                  env={**ENVIRONMENT, "PLUMB": value})
            self.assert_bad_input(done, part)

    def test_a_place_that_cannot_be_used_is_named_without_a_key_of_the_spec(self):
        for out in ("/dev/null", FOLDER / "no" / "run.plumb"):
            done = plumb("decode", self.model, "--steps", 1, "--out", out)
            self.assert_bad_input(done, str(out))
            self.assertNotIn("out=", done.stderr)
        folder = FOLDER / "a,b"  # commas part the words of PLUMB, not an option's
        done = self.decode("--steps", 1, "--dump", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"cannot write {folder}/", done.stderr)
        self.assertIn("; make its folder first\n", done.stderr)
        folder.mkdir()
        done = self.decode("--steps", 1, "--dump", folder, "--tensors", "bricks=lm_head")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({path.suffix for path in folder.iterdir()}, {".npy"})

    def test_check_is_what_the_option_tensors_was_called(self):
        specs = {}
        for option in ("--tensors", "--check"):
            done = self.decode("--steps", 1, option, "bricks=lm_head", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("--check is called --tensors now" in done.stderr, option == "--check", done.stderr)
            lines = [json.loads(line) for line in
                     plumb("export", FOLDER / "text.plumb", "--format", "jsonl").stdout.splitlines()]
            specs[option] = lines[0]["comparability"], sum(line.get("kind") == "check" for line in lines)
        self.assertEqual(specs["--check"], specs["--tensors"])
        self.assertNotEqual(specs["--check"][1], 0)
        self.assertNotIn("--check", plumb("decode", "--help").stdout)


if __name__ == "__main__":
    main()
