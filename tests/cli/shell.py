# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: the command itself, and recordings to give it."""

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import unittest

PLUMB, MAKE_RECORDING, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-cli-")
FOLDER = pathlib.Path(SCRATCH.name)
RINGS = tempfile.TemporaryDirectory(prefix="plumb-cli-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)  # of whom tests kill
RECORDING = FOLDER / "run.plumb"
HANG = 300  # seconds: no command takes as long, whatever the build and the machine
HOSTILE = "a\"},{\n\t\x01<b>,;|\ufffd"

ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("PLUMB") and key != "NO_COLOR"}
ENVIRONMENT["XDG_RUNTIME_DIR"] = RINGS.name


def plumb(*words, stdout=subprocess.PIPE, **options):
    return subprocess.run([PLUMB, *map(str, words)], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          env=ENVIRONMENT, timeout=HANG, **options)


def recording():
    if not RECORDING.exists():
        subprocess.run([MAKE_RECORDING, RECORDING], check=True, env=ENVIRONMENT, timeout=HANG)
    return RECORDING


def recording_with(what):
    """The same run with tiles, with nodes recorded one by one, or with a crowd of spans at a time."""
    path = FOLDER / f"{what}.plumb"
    if not path.exists():
        subprocess.run([MAKE_RECORDING, path, what], check=True, env=ENVIRONMENT, timeout=HANG)
    return path


def graph_recording(kind="clean"):
    path = FOLDER / f"graphs-{kind}.plumb"
    if not path.exists():
        maker = MAKE_RECORDING.parent / "plumb_make_graph_recording"
        subprocess.run([maker, path, kind], check=True, env=ENVIRONMENT, timeout=HANG)
    return path


def check_recording(kind="clean"):
    path = FOLDER / f"checks-{kind}.plumb"
    if not path.exists():
        maker = MAKE_RECORDING.parent / "plumb_make_check_recording"
        subprocess.run([maker, path, kind], check=True, env=ENVIRONMENT, timeout=HANG)
    return path


def kineto_trace(longer_ns=0):
    """Of the work of graph_recording(), as the PyTorch profiler would have written it: each scope one kernel, which begins 2 us
    later and, but for `longer_ns`, ends with it."""
    path = FOLDER / f"kineto-{longer_ns}.json"
    if not path.exists():
        events = []
        for line in plumb("export", graph_recording(), "--format", "jsonl").stdout.splitlines():
            scope = json.loads(line)
            if scope.get("kind") == "scope":
                begin, end = scope["begin_ns"] + 2_000, scope["begin_ns"] + scope["duration_ns"] + longer_ns * len(events)
                events.append({"ph": "X", "cat": "kernel", "name": scope["name"] + "_kernel", "pid": 0, "tid": 7,
                               "ts": (9_000_000 + begin) / 1e3, "dur": (end - begin) / 1e3, "args": {"device": 0, "stream": 7}})
        path.write_text(json.dumps({"baseTimeNanoseconds": 1_750_000_000_000_000_000 - 9_000_000, "traceEvents": events}))
    return path


def runs(count):
    """So many recordings of the same run, each with an identity of its own."""
    made = [FOLDER / f"run_{number}.plumb" for number in range(count)]
    for path in made:
        if not path.exists():
            subprocess.run([MAKE_RECORDING, path], check=True, env=ENVIRONMENT, timeout=HANG)
    return made


def report(*words):
    done = plumb("report", recording(), "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def trace():
    return json.loads(plumb("trace", recording()).stdout)


def schema_problems(schema, *documents):
    """A line for each thing that is wrong with the documents under that schema of tests/schema, or with what
    docs/reference/report_schema.md says of their keys."""
    checker = MAKE_RECORDING.parent / "plumb_check_schema"
    done = subprocess.run([checker, SOURCE, schema + ".json"], input="".join(json.dumps(one) + "\n" for one in documents),
                          stdout=subprocess.PIPE, text=True, check=True, timeout=HANG)
    return done.stdout


def decode(case, name, least=1):
    """A decode in a process of its own, that has recorded so many bytes; the test ends it."""
    model = FOLDER / "model.gguf"
    if not model.exists():
        done = plumb("model", "make", "--shape", "test-qwen2", "-o", model)
        assert done.returncode == 0, done.stderr
    path = FOLDER / name
    process = subprocess.Popen([PLUMB, "decode", model, "--steps", "100000", "--threads", "1", "--out", path],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=ENVIRONMENT)
    case.addCleanup(end, process)
    while not path.exists() or path.stat().st_size < least:
        assert process.poll() is None
    return process, path


def stopped(case, name):
    """The recording of a live process that writes no more."""
    process, path = decode(case, name, 20000)
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    return path


def end(process):
    process.kill()
    process.wait(timeout=HANG)


def terminal():
    """Both ends of a pseudo-terminal; the test skips where the system gives none, as in a build container."""
    try:
        return pty.openpty()
    except OSError as problem:
        raise unittest.SkipTest(f"no pseudo-terminal here ({problem})") from None


def main():
    """Exits with 77, which ctest shows as skipped, where no test of the chosen classes could run."""
    result = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], exit=False).result
    for reason in sorted({reason for _, reason in result.skipped}):
        print(f"skipped {sum(1 for _, one in result.skipped if one == reason)} of {result.testsRun}: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun and len(result.skipped) == result.testsRun else 0)


class Case(unittest.TestCase):
    def assert_bad_input(self, done, *parts):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\Aerror: [^\n]+\n\Z")
        for part in parts:
            self.assertIn(part, done.stderr)
