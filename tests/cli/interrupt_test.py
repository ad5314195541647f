# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while plumb decode loads, reads the prompt, decodes and prints, while plumb export writes, and while plumb import
reads: what is said, how it exits, what is kept. And what plumb import says of several ranks.

usage: interrupt_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]

Nothing sleeps: the signal is sent once the progress on the terminal, or what was said, shows where the command is, with far
more work before it than it could finish. An export gets it from the kernel as it writes its first bytes."""

import fcntl
import json
import os
import pathlib
import resource
import signal
import subprocess

from shell import Case, ENVIRONMENT, FOLDER, HANG, MAKE_RECORDING, PLUMB, main, plumb, terminal


def little_room():
    """A file that may not grow is as a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


class Running:
    """A command with a terminal as its standard error; what it printed there is `seen`."""

    def __init__(self, *words, **options):
        self.terminal, theirs = terminal()
        self.process = subprocess.Popen([PLUMB, *map(str, words)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=theirs, env=ENVIRONMENT, **options)
        os.close(theirs)
        self.seen = b""

    def until(self, part):
        while part not in self.seen:
            self.more()

    def more(self):
        try:
            said = os.read(self.terminal, 4096)
        except OSError:  # a terminal that nobody has open any more
            said = b""
        if not said:
            raise AssertionError(f"it ended before: {self.seen}")
        self.seen += said

    def signal(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def end(self):
        """Exit code and standard output."""
        out = self.process.stdout.read().decode()
        self.process.wait(timeout=HANG)
        try:
            while True:
                self.more()
        except AssertionError:
            pass
        os.close(self.terminal)
        self.process.stdout.close()
        return self.process.returncode, out

    def sentences(self):
        """What stays on the terminal: progress is wiped out."""
        lines = self.seen.decode().replace("\r\n", "\n").split("\n")
        return [line.rsplit("\x1b[K", 1)[-1] for line in lines if line.rsplit("\x1b[K", 1)[-1]]


class Interrupts(Case):
    LONG = 200000  # prompt tokens or steps: minutes

    @classmethod
    def setUpClass(cls):
        cls.model = FOLDER / "small.gguf"
        done = plumb("model", "make", "--shape", "test-qwen2", "-o", cls.model)
        assert done.returncode == 0, done.stderr

    def start(self, name, *words, model=None):
        self.out = FOLDER / name
        return Running("decode", model or self.model, "--threads", 1, "--out", self.out, *words)

    def steps_kept(self, phase):
        """Steps of a phase in the finished recording."""
        done = plumb("report", self.out, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return sum(one["steps"] + one["warmup_steps"] for one in json.loads(done.stdout)["phases"]
                   if one["phase"] == phase)

    def test_while_loading_it_is_one_sentence_and_nothing_is_recorded(self):
        model = FOLDER / "long.gguf"
        model.write_bytes(self.model.read_bytes())
        os.truncate(model, 8 << 30)  # a hole takes no space, and is read all the same
        running = self.start("load.plumb", model=model)
        running.until(b"loading ")
        running.signal()
        code, out = running.end()
        model.unlink()
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(running.sentences(),
                         [f"error: {model}: loading was interrupted and nothing was run; start again"])
        self.assertFalse(self.out.exists())

    def test_in_the_prompt_the_report_is_of_what_was_read_of_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            running = self.start("prompt.plumb", "--prompt-tokens", self.LONG, "--chunk", 1, "--batch", 2, "--json")
            running.until(b"prefill ")
            running.signal(number)
            code, out = running.end()
            self.assertEqual(code, 0, running.seen)
            phases = {phase["phase"]: phase for phase in json.loads(out)["phases"]}
            read = phases["prefill"]["tokens"]
            self.assertGreater(read, 0)
            self.assertEqual(running.sentences()[1], f"stopped after {read} of {2 * self.LONG} prompt tokens")
            self.assertEqual((self.steps_kept("prefill"), self.steps_kept("decode")), (read, 0))

    def test_while_decoding_the_report_is_of_the_steps_done(self):
        running = self.start("decode.plumb", "--prompt-tokens", 5, "--steps", self.LONG, "--json")
        running.until(b"decode ")
        running.signal()
        code, out = running.end()
        self.assertEqual(code, 0, running.seen)
        done = self.steps_kept("decode")
        self.assertGreater(done, 0)
        self.assertEqual(running.sentences()[1], f"stopped after {done} of {self.LONG} decode steps")
        self.assertIn("the model was made for", running.sentences()[0])
        self.assertEqual(json.loads(out)["schema"], "plumb.report/2")

    def test_a_second_one_ends_it_at_once_and_the_recording_can_be_read(self):
        running = self.start("twice.plumb", "--prompt-tokens", 5, "--steps", self.LONG, "--json")
        # The report does not fit the pipe, which nobody reads: it cannot have ended before the second signal.
        fcntl.fcntl(running.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        running.until(b"decode ")
        running.signal()
        while self.caught(running, signal.SIGINT):
            pass
        running.signal()
        running.process.wait(timeout=HANG)
        self.assertEqual(running.process.returncode, -signal.SIGINT)
        running.end()
        kept = self.steps_kept("decode")  # whatever had reached the file by then
        done = plumb("recover", self.out)  # and the rest, which its rings hold until somebody asks
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(self.steps_kept("decode"), kept)

    @staticmethod
    def caught(running, number):
        """Whether the process still has a handler of its own for the signal."""
        status = pathlib.Path(f"/proc/{running.process.pid}/status").read_text()
        mask = next(line.split()[1] for line in status.split("\n") if line.startswith("SigCgt:"))
        return int(mask, 16) >> (number - 1) & 1


class Exports(Case):
    def test_an_interrupt_is_one_sentence_and_leaves_nothing(self):
        run, folder = FOLDER / "exported.plumb", FOLDER / "exported"
        out = folder / "exported.jsonl"
        folder.mkdir()
        subprocess.run([MAKE_RECORDING, run], check=True, env=ENVIRONMENT, timeout=HANG)
        self.assertGreater(len(plumb("export", run, "--format", "jsonl").stdout), 1 << 16)  # several writes
        watched = os.open(folder, os.O_RDONLY)

        def signal_at_the_first_write():  # from the kernel, to whoever this process becomes
            fcntl.fcntl(watched, fcntl.F_SETSIG, signal.SIGINT)
            fcntl.fcntl(watched, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(watched, fcntl.F_NOTIFY, fcntl.DN_MODIFY)

        running = Running("export", run, "--format", "jsonl", "-o", out, preexec_fn=signal_at_the_first_write,
                          pass_fds=[watched])
        os.close(watched)
        code, said = running.end()
        self.assertEqual((code, said), (2, ""))
        self.assertEqual(running.sentences(), [f"error: interrupted; {out} was not written"])
        self.assertEqual(list(folder.iterdir()), [])
        done = plumb("export", run, "--format", "jsonl", "-o", out, preexec_fn=little_room)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"error: cannot write to {out}: File too large; raise the limit on the size of files (ulimit -f)\n")
        self.assertEqual(list(folder.iterdir()), [])
        folder.rmdir()
        run.unlink()


class Imports(Case):
    KERNEL = '{"ph": "X", "cat": "kernel", "name": "kernel%d", "pid": 0, "tid": 7, "ts": %d, "dur": 1, "args": {"stream": 7}}'

    def trace(self, kernels):
        path = FOLDER / "trace.json"
        path.write_text("[" + ",\n".join(self.KERNEL % (at, 10 * at) for at in range(kernels)) + "]")
        return path

    def left(self):
        return sorted(path.name for path in FOLDER.glob("imported*"))

    def test_progress_is_shown_and_an_interrupt_is_one_sentence_and_leaves_nothing(self):
        trace = self.trace(100)
        os.truncate(trace, trace.stat().st_size - 1)  # the end of the array
        os.truncate(trace, 60 << 30)  # a hole takes no space, and is read all the same
        for number in (signal.SIGINT, signal.SIGTERM):
            running = Running("import", trace, "-o", FOLDER / "imported.plumb")
            running.until(b" MB  ")
            running.signal(number)
            code, out = running.end()
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"importing {trace}", running.seen.decode())
            self.assertEqual(running.sentences(),
                             [f"error: {trace}: the import was interrupted and nothing of it is kept; start again"])
            self.assertEqual(self.left(), [])
        trace.unlink()

    def test_what_holds_for_all_ranks_is_said_once_and_other_notes_name_theirs(self):
        folder = FOLDER / "ranks"
        folder.mkdir()
        for rank, kernels in enumerate((3, 3, 4)):
            self.trace(kernels).rename(folder / f"rank{rank}.json")
        (folder / "README.md").write_text("one step\n")
        done = plumb("import", folder, "-o", FOLDER / "imported.plumb")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.left(), [f"imported-{rank}.plumb" for rank in range(3)])
        lines = done.stdout.splitlines()
        self.assertEqual(lines.count("note  times are multiples of 1000 ns"), 1)
        self.assertIn("note  imported-0.plumb, imported-1.plumb: 3 operations: had no launch in the trace; with other figures: "
                      "imported-2.plumb", lines)
        self.assertEqual(len(lines), len(set(lines)))
        skipped = [line for line in lines if line.startswith("skipped  ")]
        self.assertEqual(len(skipped), 1)
        self.assertIn("README.md is no trace that plumb knows", skipped[0])
        for made in FOLDER.glob("imported*"):
            made.unlink()

    def test_a_full_disk_is_one_sentence_and_leaves_nothing(self):
        trace = self.trace(50000)
        out = FOLDER / "imported.plumb"

        done = plumb("import", trace, "-o", out, preexec_fn=little_room)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, rf"\Aerror: [^\n]*{out}[^\n]*\n\Z")
        self.assertEqual(self.left(), [])
        done = plumb("import", trace, "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(out.stat().st_size, 20000)
        self.assertEqual(self.left(), ["imported.plumb"])
        out.unlink()


if __name__ == "__main__":
    main()
