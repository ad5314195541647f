# SPDX-License-Identifier: Apache-2.0
"""What `plumb run` records of the look-alike engine, against what the look-alike wrote down itself (docs/internals/lookalike.md): in
every way such an engine is built it is the truth, or nothing and one sentence; never a wrong brick.

usage: lookalike_test.py PLUMB LOOKALIKE_FOLDER [CLASS…]"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from recorded import Recorded, run

PLUMB, BUILT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-lookalike-")
FOLDER = pathlib.Path(SCRATCH.name)
SLACK_NS = 10_000  # of two clocks that are fitted to each other
HANG = 120
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "GGML", "LOOKALIKE")) and key != "LD_PRELOAD"}


def engine(way, *words):
    folder = BUILT / way
    return [str(folder / "engine"), f"libs={folder}", *(("noload",) if way == "static" else ()), *words]


def loader(way, load, *words):
    one = ("file=engine.node", "noload") if way == "module" else ()
    return [str(BUILT / "loader"), f"libs={BUILT / way}", f"load={load}", *one, *words]


class Truth:
    def __init__(self, path):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        self.steps = [row for row in rows if "step" in row]
        self.samplings = [row for row in rows if "sampled" in row]


class Run:
    """One command without us and one with us."""

    def __init__(self, command, **environment):
        self.command, self.environment = command, {**CLEAN, **environment}
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            folder = pathlib.Path(folder)
            self.alone = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=HANG, cwd=folder)
            truth, recording = folder / "truth.jsonl", folder / "run.plumb"
            self.done = run(PLUMB, recording, command, {**self.environment, "LOOKALIKE_TRUTH": str(truth)}, timeout=HANG, cwd=folder)
            self.truth = Truth(truth)
            self.recorded = Recorded(PLUMB, recording) if recording.exists() else None
            aside = folder / "run.plumb.1"
            self.recorded_before = Recorded(PLUMB, aside) if aside.exists() else None

    @property
    def said(self):
        """What `plumb run` printed beside the program's own words."""
        return self.done.stdout.removeprefix(self.alone.stdout) + self.done.stderr


class Case(unittest.TestCase):
    def assert_unchanged(self, case):
        self.assertEqual(case.alone.returncode, case.done.returncode, case.done.stderr)
        self.assertIn(case.alone.stdout, case.done.stdout)
        self.assertTrue(case.alone.stdout)

    def assert_node(self, row, node, before, following):
        """It begins behind the barrier of the node before it, and ends before the next one's work."""
        what = f"{node['name']} of step {row.get('step')}"
        self.assertIn(row["name"], node["brick"].split("|"), what)
        self.assertEqual(row.get("layer", -1), node["layer"], what)
        begin, end = row["begin_ns"], row["begin_ns"] + row["duration_ns"]
        self.assertTrue(before - SLACK_NS <= begin <= node["entered"] + SLACK_NS, what)
        self.assertTrue(node["left"] - SLACK_NS <= end <= following + SLACK_NS, what)
        self.assertTrue(0 <= row["barrier_wait_ns"] <= following - node["left"] + SLACK_NS, what)
        for work in ("bytes", "flops"):
            if node[work] > 0:
                self.assertAlmostEqual(row[work] / node[work], 1, delta=0.01, msg=f"{work} of {what}")

    def assert_truth(self, case, steps=None, samplings=None, may_lack=()):
        """Each step has its nodes and no others; the steps with these numbers may have none."""
        recorded, steps = case.recorded, case.truth.steps if steps is None else steps
        self.assertIsNotNone(recorded, case.said)
        by_step = collections.defaultdict(list)
        for row in recorded.nodes:
            inside = [at for at, step in enumerate(steps) if step["tid"] == recorded.thread(row)
                      and step["begin"] - SLACK_NS <= row["begin_ns"] <= step["end"] + SLACK_NS]
            self.assertEqual(len(inside), 1, f"{row} lies in no step")
            by_step[inside[0]].append(row)
        for at, step in enumerate(steps):
            if not by_step[at] and step["step"] in may_lack:
                continue
            self.assertEqual([row["name"] for row in by_step[at]], [
                row["name"] if row["name"] in node["brick"].split("|") else node["brick"] for row, node in zip(by_step[at], step["nodes"])])
            self.assertEqual(len(by_step[at]), len(step["nodes"]), f"step {step['step']} of context {step['context']}")
            begins = [step["nodes"][0]["called"]] + [node["left"] for node in step["nodes"][:-1]]
            ends = [node["entered"] for node in step["nodes"][1:]] + [step["end"]]
            for row, node, before, following in zip(by_step[at], step["nodes"], begins, ends):
                self.assert_node(row, node, before, following)
        phases = collections.defaultdict(list)  # by thread: between two of them nothing is in order
        for row in sorted(recorded.steps, key=lambda row: row["begin_ns"]):
            phases[recorded.thread(row)].append(row["phase"])
        for step in sorted(steps, key=lambda step: step["begin"]):
            self.assertEqual(step["phase"], phases[step["tid"]].pop(0))
        self.assertFalse(any(phases.values()), "steps that were not there")
        self.assertEqual(len(recorded.samplings), len(case.truth.samplings if samplings is None else samplings))

    def assert_truth_or_sentence(self, case):
        self.assert_unchanged(case)
        if case.recorded is not None and case.recorded.nodes:
            self.assert_truth(case)
        else:
            self.assertRegex(case.said, r"(?m)^note  (no engine was met|ggml was met, but)[^\n]{20,}$")


class Lookalike(unittest.TestCase):
    """The engine itself, which needs no profiler."""

    def test_its_tokens_do_not_depend_on_how_it_was_built(self):
        commands = [engine(way) for way in ("plain", "noplt", "relro", "bsymbolic", "hidden", "static")]
        commands += [loader("plain", load) for load in ("global", "local", "deepbind")] + [loader("module", "local")]
        answers = {subprocess.run(command, capture_output=True, text=True, env=CLEAN, timeout=HANG, check=True).stdout for command in commands}
        self.assertEqual(len(answers), 1)

    def test_its_truth_is_in_order(self):
        path = FOLDER / "alone.jsonl"
        subprocess.run(engine("plain", "threads=2", "model=moe,noflash,bias,qknorm"), env={**CLEAN, "LOOKALIKE_TRUTH": str(path)},
                       capture_output=True, timeout=HANG, check=True)
        truth = Truth(path)
        self.assertEqual([step["phase"] for step in truth.steps], ["prefill"] + ["decode"] * 12)
        for step in truth.steps:
            stamps = [step["begin"]]
            for node in step["nodes"]:
                stamps += [node[word] for word in ("called", "entered", "left", "passed")]
                self.assertGreaterEqual(node["left"] - node["entered"], node["planted"])
            self.assertEqual(stamps, sorted(stamps))


class Built(Case):
    def test_shared_libraries_of_the_usual_kind_give_the_truth(self):
        for way in ("plain", "noplt", "relro"):
            with self.subTest(way):
                case = Run(engine(way))
                self.assert_unchanged(case)
                self.assert_truth(case)

    def test_libraries_without_slots_give_the_truth_or_one_sentence(self):
        for way in ("bsymbolic", "hidden", "static"):
            with self.subTest(way):
                self.assert_truth_or_sentence(Run(engine(way)))

    def test_without_a_slot_that_tells_a_step_each_graph_is_one(self):
        case = Run(loader("closed", "local"))
        self.assert_unchanged(case)
        self.assertIn("each graph is taken for a step", case.said)
        self.assertEqual([(row["name"], row["phase"], row.get("layer")) for row in case.recorded.nodes], [
            (row["name"] if row["name"] in node["brick"].split("|") else node["brick"], step["phase"], node["layer"] if node["layer"] >= 0 else None)
            for row, (step, node) in zip(case.recorded.nodes, [(step, node) for step in case.truth.steps for node in step["nodes"]])])
        self.assertEqual([row["phase"] for row in case.recorded.steps], [step["phase"] for step in case.truth.steps])

    def test_libraries_that_a_program_opens_give_the_truth(self):
        for load in ("global", "local", "deepbind"):
            with self.subTest(load):
                case = Run(loader("plain", load))
                self.assert_unchanged(case)
                self.assert_truth(case)

    def test_one_module_with_everything_gives_the_truth_or_one_sentence(self):
        for load in ("local", "deepbind"):
            with self.subTest(load):
                self.assert_truth_or_sentence(Run(loader("module", load)))


class Models(Case):
    def test_every_kind_of_layer(self):
        for model in ("layers=3", "noflash", "bias,qknorm", "moe", "moe,noflash,bias,qknorm,layers=4"):
            with self.subTest(model):
                case = Run(engine("plain", f"model={model}"))
                self.assert_unchanged(case)
                self.assert_truth(case)

    def test_a_prompt_in_pieces_is_one_step(self):
        for model in ("layers=2", "noflash"):
            for prompt, piece in ((20, 8), (600, 256)):  # in one view of the cache, and in views that grow
                self.assert_truth(Run(engine("plain", f"prompt={prompt}", f"ubatch={piece}", f"model={model}")))

    def test_nodes_that_are_not_fused(self):
        self.assert_truth(Run(engine("plain"), GGML_CPU_DISABLE_FUSION="1"))

    def test_sequences_in_one_batch(self):
        case = Run(engine("plain", "sequences=3", "late=5"))
        self.assertIn("mixed", {step["phase"] for step in case.truth.steps})
        self.assert_truth(case)

    def test_a_team_of_threads(self):
        case = Run(engine("plain", "threads=2", "steps=6"), LOOKALIKE_IMBALANCE="1.5")
        self.assert_truth(case)
        truth = sum(node["passed"] - node["left"] for step in case.truth.steps for node in step["nodes"])
        self.assertGreater(sum(row["barrier_wait_ns"] for row in case.recorded.nodes), 0.7 * truth)
        self.assertIn("% barrier", case.done.stderr)


class Lives(Case):
    TWO_COPIES = """
import ctypes as c, sys
Params = type("Params", (c.Structure,), {"_fields_": [("room", c.c_ubyte * 512)]})
Batch = type("Batch", (c.Structure,), {"_fields_": [("n_tokens", c.c_int32), *((name, c.c_void_p) for name in "abcdef")]})
for path, steps in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    copy = c.CDLL(path)
    for name, result, *of in (("llama_model_default_params", Params), ("llama_context_default_params", Params),
                              ("llama_model_load_from_file", c.c_void_p, c.c_char_p, Params),
                              ("llama_init_from_model", c.c_void_p, c.c_void_p, Params), ("llama_decode", c.c_int32, c.c_void_p, Batch)):
        getattr(copy, name).restype, getattr(copy, name).argtypes = result, of
    model = copy.llama_model_load_from_file(b"layers=2", copy.llama_model_default_params())
    context = copy.llama_init_from_model(model, copy.llama_context_default_params())
    token = c.c_int32(3)
    for _ in range(steps):
        print(copy.llama_decode(context, Batch(1, c.addressof(token))))
"""

    def test_two_copies_in_one_process_are_counted_together(self):
        other = FOLDER / "other.node"
        shutil.copy(BUILT / "module/engine.node", other)
        case = Run([sys.executable, "-c", self.TWO_COPIES, str(BUILT / "module/engine.node"), "10", str(other), "5"])
        self.assert_unchanged(case)
        nodes = sum(step["graph_nodes"] for step in case.truth.steps)
        self.assertIn(f" {nodes} of {nodes} nodes seen in 15 graphs", case.said)

    def test_each_model_of_a_process_is_named(self):
        case = Run(engine("plain", "model=layers=3", "draft=layers=1", "steps=4"))
        self.assert_unchanged(case)
        self.assert_truth(case)
        self.assertIn("lookalike layers=1 + lookalike layers=3 · 1 + 3 layers · llama.cpp", case.said)

    def test_two_contexts_in_two_threads(self):
        case = Run(engine("plain", "contexts=2"))
        self.assert_unchanged_lines(case)
        self.assert_truth(case)

    def assert_unchanged_lines(self, case):
        alone, done = (sorted(line for line in text.splitlines() if line.startswith("context")) for text in (case.alone.stdout, case.done.stdout))
        self.assertEqual(alone, done)

    def test_a_step_that_is_stopped_between_two_nodes(self):
        case = Run(engine("plain", "abort=4:9"))
        self.assert_unchanged(case)
        self.assertEqual([step["status"] for step in case.truth.steps].count(1), 1)
        self.assert_truth(case, may_lack=(4,))

    def test_callbacks_of_the_engine_are_called_as_before(self):
        for word in ("eval", "stop"):
            with self.subTest(word):
                self.assert_truth_or_sentence(Run(engine("plain", word, "steps=5")))

    def test_backends_that_are_closed_and_opened_again(self):
        case = Run(engine("plain", "reload=5"))
        self.assert_unchanged(case)
        self.assert_truth(case)

    def test_a_fork_leaves_the_parent_its_recording(self):
        case = Run(engine("plain", "fork=5"))
        self.assert_unchanged_lines(case)
        parent = case.truth.steps[0]["pid"]
        self.assertEqual(len({step["pid"] for step in case.truth.steps}), 2)
        self.assert_truth(case, [step for step in case.truth.steps if step["pid"] == parent],
                          [row for row in case.truth.samplings if row["pid"] == parent])

    def test_a_program_that_executes_itself_is_recorded_to_its_end(self):
        began = time.time()
        case = Run(engine("plain", "exec=5"))
        self.assert_unchanged(case)
        last = next(at for at, step in enumerate(case.truth.steps) if at > 0 and step["step"] == 0)
        self.assert_truth(case, case.truth.steps[last:], case.truth.samplings[last:])
        self.assertEqual(re.findall(r"(?m)^recording .*/(run\.plumb\S*)$", case.said), ["run.plumb.1", "run.plumb"])
        folder = pathlib.Path(os.environ.get("XDG_RUNTIME_DIR") or "/dev/shm")
        left = [ring for ring in folder.glob(f"plumb-{case.truth.steps[0]['pid']}-*.ring") if ring.stat().st_mtime >= began - 1]  # not another's
        self.assertEqual(left, [], "memory that nobody needs any more")
        case.recorded = case.recorded_before
        self.assert_truth(case, case.truth.steps[:last], case.truth.samplings[:last])

    def test_a_killed_program_leaves_what_it_did(self):
        case = Run(engine("plain", "kill=8"))
        self.assertEqual((case.alone.returncode, case.done.returncode), (-9, -9))
        self.assertEqual(len(case.truth.steps), 8)
        self.assert_truth(case)


class Doors(Case):
    """One way in at a time, and those that are taken."""
    library = PLUMB.parent.parent / "lib/libplumb-attach.so"

    def setUp(self):
        if not self.library.exists():
            self.skipTest("libplumb-attach.so was not built")

    def through(self, variable, *words):
        path = FOLDER / f"{self.id()}.jsonl"
        recording = path.with_suffix(".plumb")
        done = subprocess.run(engine("plain", *words), capture_output=True, text=True, timeout=HANG, env={
            **CLEAN, variable: str(self.library), "PLUMB": f"on,out={recording}", "LOOKALIKE_TRUTH": str(path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done, Truth(path), Recorded(PLUMB, recording) if recording.exists() else None

    def test_each_way_in_alone_gives_the_truth(self):
        for variable in ("GGML_BACKEND_PATH", "LD_PRELOAD"):
            with self.subTest(variable):
                _, truth, recorded = self.through(variable)
                for path in FOLDER.glob(f"{self.id()}.*"):
                    path.unlink()
                self.assertEqual([len(step["nodes"]) for step in truth.steps], list(collections.Counter(
                    row["step"] for row in recorded.nodes).values()))

    def test_a_tool_that_stands_before_the_engine_is_called_as_before(self):
        for way in ("plain", "relro"):
            with self.subTest(way):
                counted = FOLDER / "counted"
                case = Run(engine(way), LD_PRELOAD=str(BUILT / "libtool.so"), LOOKALIKE_TOOL=str(counted))
                self.assertEqual(int(counted.read_text()), len(case.truth.steps))
                self.assert_truth(case)
                self.assertIn("ggml_backend_sched_graph_compute_async led to libtool.so already", case.said)

    def test_a_backend_of_the_user_is_still_loaded(self):
        theirs = str(BUILT / "plain/libggml-cpu-x64.so")
        case = Run(engine("plain", "backends"), GGML_BACKEND_PATH=theirs)
        self.assertIn("backends 2\n", case.alone.stdout)
        self.assert_unchanged(case)
        self.assert_truth(case)

    def test_what_is_told_goes_into_the_file_of_plumb_run_and_no_other(self):
        for numbers, told in (("right", True), ("wrong", False), ("", False)):
            with self.subTest(numbers), tempfile.TemporaryFile() as notes:
                known = os.fstat(notes.fileno())
                words = {"right": f":{known.st_dev}:{known.st_ino}", "wrong": f":{known.st_dev}:{known.st_ino + 1}", "": ""}[numbers]
                with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                    done = subprocess.run(engine("plain", "steps=2"), capture_output=True, text=True, timeout=HANG, cwd=folder, env={
                        **CLEAN, "GGML_BACKEND_PATH": str(self.library), "PLUMB": "on,out=run.plumb",
                        "PLUMB_RUN": f"/proc/{os.getpid()}/fd/{notes.fileno()}{words}"})
                    self.assertEqual(done.returncode, 0, done.stderr)
                    notes.seek(0)
                    kinds = [line.split(b"\t")[0] for line in notes.read().split(b"\0")[:-1]]
                    self.assertEqual(kinds, [b"recording", b"engine"] if told else [])
                    self.assertEqual("`plumb run` cannot be told of the recording" in done.stderr, not told, done.stderr)

    def test_a_library_of_the_same_ending_is_not_ours(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        other = pathlib.Path(f"{folder}{self.library}")
        other.parent.mkdir(parents=True)
        shutil.copy(BUILT / "libtool.so", other)
        done = run(PLUMB, folder / "run.plumb", ["printenv", "LD_PRELOAD"], {**CLEAN, "LD_PRELOAD": str(other)})
        self.assertEqual(done.stdout, f"{other}:{self.library}\n")

    def test_64_bytes_of_thread_local_storage_are_enough(self):
        hogs = FOLDER / "hogs"
        hogs.mkdir()
        for size in (512, 64):  # as many as fit, of the small ones one less
            for copy in range(32):
                shutil.copy(BUILT / f"hogs/libplumb_lookalike_hog_{size}.so", hogs / f"{999 - size}_{copy:02}.so")
        command = engine("plain", "steps=3", f"hogs={hogs}")
        tried = subprocess.run(command, capture_output=True, text=True, env=CLEAN, timeout=HANG, check=True).stdout
        answers = [line for line in tried.splitlines() if line.startswith("hog")]
        files = sorted(hogs.iterdir())
        kept = [file for file, answer in zip(files, answers) if answer == "hog fits"][:-1]
        for file in set(files) - set(kept):
            file.unlink()
        done, truth, recorded = self.through("GGML_BACKEND_PATH", "steps=3", f"hogs={hogs}")
        self.assertEqual(done.stdout.count("hog fits"), len(kept))
        self.assertIsNotNone(recorded, "the library was not loaded")
        self.assertEqual(len(recorded.nodes), sum(len(step["nodes"]) for step in truth.steps))


class Adapter(Case):
    """plumb/ggml.h, through ggml's eval callback (examples/llama_cpp.c)."""

    EVERY = 2

    def recorded(self, language, model, spec=f"on,warmup=0,device.every={EVERY}"):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            folder = pathlib.Path(folder)
            truth, recording = folder / "truth.jsonl", folder / "run.plumb"
            command = [str(BUILT / f"plain/adapter_{language}"), str(BUILT / "plain"), model, "9"]
            alone = subprocess.run(command, capture_output=True, text=True, env=CLEAN, timeout=HANG)
            done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, env={
                **CLEAN, "PLUMB": f"{spec},out={recording}", "LOOKALIKE_TRUTH": str(truth)})
            self.assertEqual((alone.returncode, alone.stdout), (done.returncode, done.stdout), done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = subprocess.run([PLUMB, "report", recording, "--json"], capture_output=True, text=True, check=True).stdout
            return Truth(truth).steps, Recorded(PLUMB, recording), json.loads(report)

    def assert_bricks(self, steps, recorded):
        self.assertEqual([row["phase"] for row in recorded.steps], [step["phase"] for step in steps])
        timed = [step for number, step in enumerate(steps, 1) if number % self.EVERY == 0]
        nodes = [node for step in timed for node in step["nodes"]]
        self.assertEqual(len(recorded.nodes), len(nodes))
        ends = [node["called"] for node in nodes[1:]] + [timed[-1]["end"]]
        for row, node, following in zip(recorded.nodes, nodes, ends):
            what = f"{node['name']}: {row}"
            self.assertIn(row["name"], node["brick"].split("|"), what)
            self.assertEqual(row.get("layer", -1), node["layer"], what)
            self.assertLessEqual(row["begin_ns"], node["entered"] + SLACK_NS, what)
            end = row["begin_ns"] + row["duration_ns"]
            self.assertTrue(node["left"] - SLACK_NS <= end <= following + SLACK_NS, what)
            for work in ("bytes", "flops"):
                if node[work] > 0:
                    self.assertAlmostEqual(row[work] / node[work], 1, delta=0.01, msg=f"{work} of {what}")

    def test_timed_steps_have_the_bricks_that_the_engine_planted(self):
        for language, model in (("c99", "layers=3"), ("c11", "noflash,bias,qknorm"), ("cxx17", "moe,noflash,bias,qknorm,layers=4")):
            with self.subTest(language, model=model):
                steps, recorded, _ = self.recorded(language, model)
                self.assert_bricks(steps, recorded)

    def test_timed_steps_are_apart_from_the_others(self):
        steps, _, report = self.recorded("c11", "layers=3")
        phase = next(row for row in report["phases"] if row["phase"] == "decode")
        decoded = len([step for step in steps if step["phase"] == "decode"])
        self.assertEqual((phase["steps"], phase["sampled_steps"]), (decoded - decoded // self.EVERY - 1, decoded // self.EVERY + 1))
        calls = {row["name"]: row["calls_per_step"] for row in report["bricks"] if row["phase"] == "decode"}
        self.assertEqual((calls["lm_head"], calls["qkv_projection"]), (1, 9))

    def test_steps_that_are_not_timed_go_in_one_piece(self):
        steps, recorded, _ = self.recorded("c11", "layers=3", "on,device.every=1000")
        self.assertEqual(recorded.nodes, [])
        self.assertEqual(len(recorded.steps), len(steps))

    def test_it_is_small_enough_for_somebody_elses_tree(self):
        header = pathlib.Path(__file__).resolve().parents[2] / "include/plumb/ggml.h"
        self.assertLessEqual(len(header.read_text().splitlines()), 150)


class Nothing(Case):
    def test_programs_without_an_engine_are_as_before(self):
        for command in (["/bin/true"], ["/bin/sh", "-c", "echo words; exit 3"], [sys.executable, "-c", "print('words')"]):
            with self.subTest(command[0]), tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                alone = subprocess.run(command, capture_output=True, text=True, env=CLEAN)
                recording = pathlib.Path(folder) / "run.plumb"
                done = run(PLUMB, recording, command, CLEAN)
                self.assertEqual((alone.returncode, alone.stdout), (done.returncode, done.stdout))
                self.assertIn("no engine was met", done.stderr)
                self.assertEqual(os.listdir(folder), [])

    def test_a_script_that_names_no_interpreter_is_run_as_a_shell_runs_it(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            script = pathlib.Path(folder) / "script"
            script.write_text("echo words $1\nexit 3\n")
            script.chmod(0o755)
            done = run(PLUMB, pathlib.Path(folder) / "run.plumb", [script, "and"], CLEAN)
            self.assertEqual((done.returncode, done.stdout), (3, "words and\n"))

    def test_such_a_script_is_found_by_path(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            script = pathlib.Path(folder) / "a-script-of-mine"
            script.write_text("echo words $1\nexit 3\n")
            script.chmod(0o755)
            done = run(PLUMB, pathlib.Path(folder) / "run.plumb", [script.name, "and"], {**CLEAN, "PATH": f"{folder}:{os.environ['PATH']}"})
            self.assertEqual((done.returncode, done.stdout), (3, "words and\n"))

    def test_a_folder_in_place_of_a_file_is_one_sentence(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            for name in (folder, f"{folder}/new/"):
                done = run(PLUMB, name, ["true"], CLEAN)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, r"\Aerror: a recording is a file, and [^\n]* is a folder: name a file in it with -o\n\Z")

    def test_a_folder_that_is_not_there_is_one_sentence_before_the_command_starts(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            began = pathlib.Path(folder) / "began"
            done = run(PLUMB, pathlib.Path(folder) / "none" / "run.plumb", ["touch", str(began)], CLEAN, timeout=HANG, cwd=folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Aerror: no recording can be written to [^\n]*none: No such file[^\n]*\n\Z")
            self.assertFalse(began.exists())

    def test_a_command_that_is_not_there_is_one_sentence(self):
        done = run(PLUMB, FOLDER / "none.plumb", ["/no/such/program"], CLEAN)
        self.assertEqual((done.returncode, done.stdout), (127, ""))
        self.assertEqual(done.stderr, "error: cannot start /no/such/program: No such file or directory\n")

    def test_signals_that_were_ignored_stay_ignored_in_the_command(self):
        show = [sys.executable, "-c", "from signal import *; print(int(getsignal(SIGHUP)), int(getsignal(SIGUSR1)))"]
        ignore = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]
        done = subprocess.run([*ignore, PLUMB, "run", "--", *show], capture_output=True, text=True, env=CLEAN)
        alone = subprocess.run([*ignore, *show], capture_output=True, text=True, env=CLEAN)
        self.assertEqual(done.stdout, alone.stdout)
        self.assertEqual(alone.stdout, "1 0\n")


    def test_whoever_ignores_any_signal_has_a_command_that_ignores_it_and_its_end(self):
        for signal, number in (("PIPE", 13), ("XFSZ", 25), ("CHLD", 17), ("TERM", 15)):
            with self.subTest(signal):
                ignore = [sys.executable, "-c", f"import os, sys; from signal import *; signal(SIG{signal}, SIG_IGN); "
                          "os.execvp(sys.argv[1], sys.argv[1:])"]
                show = ["grep", "SigIgn", "/proc/self/status"]
                done, alone = (subprocess.run([*ignore, *words, *show], capture_output=True, text=True, env=CLEAN)
                               for words in ((PLUMB, "run", "--"), ()))
                self.assertEqual(done.stdout, alone.stdout)
                self.assertTrue(int(alone.stdout.split()[1], 16) >> number - 1 & 1)
                for command, code in (("exit 3", 3), ("kill -KILL $$", -9)):
                    done = subprocess.run([*ignore, PLUMB, "run", "--", "sh", "-c", command], capture_output=True, text=True, env=CLEAN)
                    self.assertEqual(done.returncode, code)


class Told(Case):
    """What `plumb run` says of recordings."""

    def test_an_engine_without_a_recording_was_met(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            done = run(PLUMB, "none-%p/run.plumb", engine("plain", "steps=2"), CLEAN, timeout=HANG, cwd=folder)
            self.assertEqual(done.returncode, 0)
            self.assertNotIn("no engine was met", done.stderr)
            self.assertRegex(done.stderr, r"(?m)^note  [^\n]+ was met, and nothing of it was recorded$")
            self.assertRegex(done.stderr, r"(?m)^note  [^\n]*/run\.plumb could not be created: ")

    def test_a_recording_of_which_nobody_could_tell_is_found_by_its_name(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            for i in range(2):  # the second leaves the first aside
                done = run(PLUMB, "run.plumb", ["env", "-u", "PLUMB_RUN", *engine("plain", "steps=2")], CLEAN, timeout=HANG, cwd=folder)
                self.assertIn("qkv_projection", done.stderr)
                self.assertNotIn("no engine was met", done.stderr)
            done = run(PLUMB, "run.plumb", ["true"], CLEAN, timeout=HANG, cwd=folder)
            self.assertIn("no engine was met", done.stderr)

    def test_a_folder_may_have_any_name(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            odd = pathlib.Path(folder) / "two\nlines"
            odd.mkdir()
            done = run(PLUMB, "run.plumb", engine("plain", "steps=2"), CLEAN, timeout=HANG, cwd=odd)
            self.assertIn("qkv_projection", done.stderr)

    def test_a_percent_sign_makes_no_ranks_and_a_variable_does(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            done = run(PLUMB, "a%%r.plumb", engine("plain", "steps=2"), CLEAN, timeout=HANG, cwd=folder)
            self.assertIn("qkv_projection", done.stderr)
            self.assertNotIn("plumb ranks", done.stderr)
            for out, all_of_them in (("rk%r.plumb", "rk*.plumb"), ("%%%p-%r.plumb", "%*-*.plumb")):
                done = subprocess.run([PLUMB, "run", "--", *engine("plain", "steps=2")], capture_output=True, text=True, timeout=HANG,
                                      cwd=folder, env={**CLEAN, "PLUMB": f"out={out}", "RANK": "0", "WORLD_SIZE": "2"})
                self.assertIn(f", of one rank; of all: plumb ranks {all_of_them}\n", done.stderr)


class Launchers(Case):
    """Ranks as their launchers start them: one `plumb run` for each, or one around the launcher. They meet, as ranks do: those of
    which one ended before the other began are of two jobs."""

    SAYS = {"torchrun": ("RANK", "WORLD_SIZE"), "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
            "mpiexec": ("PMI_RANK", "PMI_SIZE"), "srun": ("SLURM_PROCID", "SLURM_NTASKS")}

    def ranks(self, folder):
        done = subprocess.run([PLUMB, "ranks", folder, "--json"], capture_output=True, text=True, env=CLEAN)
        self.assertEqual(done.returncode, 0, done.stdout)
        said = json.loads(done.stdout)
        for row in said["ranks"][1:]:
            self.assertIn(row["clock"], ("same clock", "same counter"))
        return said["world"], [row["rank"] for row in said["ranks"]]

    def test_a_launcher_that_starts_plumb_run_for_each_rank(self):
        for launcher, (rank, world) in self.SAYS.items():
            with self.subTest(launcher), tempfile.TemporaryDirectory(dir=FOLDER) as folder, tempfile.TemporaryDirectory() as met:
                started = [subprocess.Popen([PLUMB, "run", "-o", "r%r.plumb", "--", *engine("plain", f"meet=2:{met}")], cwd=folder, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**CLEAN, rank: str(i), world: "2"})
                           for i in range(2)]
                for i, one in enumerate(started):
                    said = one.communicate(timeout=HANG)[1]
                    self.assertEqual(one.returncode, 0, said)
                    self.assertIn(f"/r{i}.plumb, of one rank; of all: plumb ranks r*.plumb\n", said)
                self.assertEqual(sorted(os.listdir(folder)), ["r0.plumb", "r1.plumb"])
                self.assertEqual(self.ranks(folder), (2, [0, 1]))

    def test_plumb_run_around_a_launcher(self):
        launcher = "for i in 0 1 2; do RANK=$i WORLD_SIZE=3 \"$@\" & done; wait"
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder, tempfile.TemporaryDirectory() as met:
            command = ["/bin/sh", "-c", launcher, "sh", *engine("plain", f"meet=3:{met}")]
            done = run(PLUMB, "r%r.plumb", command, CLEAN, timeout=HANG, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["r0.plumb", "r1.plumb", "r2.plumb"])
            self.assertIn("\n3 of 3 ranks · 0 collectives matched · one clock, exact\n", done.stderr)
            self.assertEqual(self.ranks(folder), (3, [0, 1, 2]))


def main():
    """77, which ctest shows as skipped, where this plumb cannot run anything."""
    if sys.argv[3:] not in (["Lookalike"], ["Adapter"]) and subprocess.run([PLUMB, "run", "--help"], capture_output=True).returncode != 0:
        print("skipped: this plumb has no command run")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


if __name__ == "__main__":
    main()
