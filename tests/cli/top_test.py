# SPDX-License-Identifier: Apache-2.0
"""plumb top: its snapshot against what the other commands print, and its live view in real terminals.

usage: top_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]

Nothing sleeps: a test reads what a terminal is given, and looks at the screen after each part of it."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import termios
import unittest

from shell import Case, ENVIRONMENT, FOLDER, HANG, PLUMB, graph_recording, main, plumb, recording, report, terminal


def rows(text, heading):
    """Cells of each line of the table under that heading, by the name in front, which may hold blanks."""
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith(heading))
    found = {}
    for line in lines[first + 1:]:
        match = re.match(r"(.{1,26}?)\s{2,}(.*)", line)
        if not match or re.match(r"n/a|[-+~*@]+ ", line):
            break
        found[match[1].strip()] = match[2].split()
    return found


def decode(name, steps):
    """A decode in a process of its own, that has begun to record."""
    model = FOLDER / "model.gguf"
    if not model.exists():
        done = plumb("model", "make", "--shape", "test-qwen2", "-o", model)
        assert done.returncode == 0, done.stderr
    path = FOLDER / name
    process = subprocess.Popen([PLUMB, "decode", model, "--steps", str(steps), "--threads", "1", "--out", path],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=ENVIRONMENT)
    while not path.exists() or path.stat().st_size == 0:
        assert process.poll() is None
    return process, path


def end(process):
    process.kill()
    process.wait(timeout=HANG)


class TopSnapshot(Case):
    def snapshot(self, path):
        done = plumb("top", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout)
        return done.stdout

    def test_a_closed_recording_shows_the_figures_of_report(self):
        for path in (recording(), graph_recording()):
            with self.subTest(path=path):
                text = self.snapshot(path)
                json_report = json.loads(plumb("report", path, "--json").stdout)
                phase = max((phase for phase in json_report["phases"] if phase["steps"]),
                            key=lambda phase: phase["wall"]["period_ns"])
                self.assertIn("whole run", text)
                shown = rows(text, "brick ")
                bricks = [row for row in json_report["bricks"] if row["phase"] == phase["phase"]]
                self.assertEqual(len(shown) - len([name for name in shown if name.split(": ")[-1] in
                                                   ("overlap", "unattributed", "of it in laps", "idle")]), len(bricks))
                for row in (row for row in bricks if row["name"].isidentifier()):
                    name = next(name for name in shown if name.split(" ")[0] == row["name"][:26])
                    if not isinstance(row["wall_share"], dict) and row["wall_share"] >= 0.0005:
                        self.assertEqual(shown[name][0], f"{100 * row['wall_share']:.1f}", name)
                share = phase["wall"]["idle_ns"] / phase["wall"]["period_ns"]
                idle = next(cells for name, cells in shown.items() if name.endswith("idle"))
                if share >= 0.0005:
                    self.assertEqual(idle[0], f"{100 * share:.1f}")

    def test_a_closed_recording_shows_the_words_of_report_and_wall(self):
        text = self.snapshot(recording())
        printed = plumb("report", recording()).stdout
        headline = next(line for line in text.split("\n") if line.startswith("decode "))
        for part in headline.split("  ")[1:]:
            self.assertIn(part, printed)
        table = printed[printed.index("\nbrick "):] if printed.count("\nbrick ") == 1 else \
            printed[printed.index("\nbrick ", printed.index("\ndecode: ")):]
        theirs = rows(table.lstrip("\n"), "brick ")
        ours = rows(text, "brick ")
        self.assertEqual(set(ours), set(theirs))
        for name, cells in ours.items():
            calls, p50, p90, _, share = theirs[name][:5]
            self.assertEqual(cells[:4], [share, calls, p50, p90], name)
        wall = json.loads(plumb("wall", recording(), "--json").stdout)
        lane = next(phase for phase in wall["phases"] if phase["phase"] == "decode")["lanes"][0]
        idle = re.search(r"idle of the host (\S+) %", text)[1]
        self.assertEqual(idle, f"{100 * lane['idle']['total_ns'] / lane['period_ns']:.1f}")

    def test_what_ended_names_the_report(self):
        self.assertRegex(self.snapshot(recording()), rf"process \d+ ended: plumb report {recording()} shows the whole run\n\Z")

    def test_what_cannot_be_shown_is_one_sentence(self):
        noise = FOLDER / "noise.plumb"
        noise.write_bytes(b"x" * 1000)
        empty = FOLDER / "empty.plumb"
        empty.write_bytes(b"")
        self.assert_bad_input(plumb("top", FOLDER / "nothing.plumb"), "does not exist")
        self.assert_bad_input(plumb("top", noise), "is no plumb recording")
        self.assert_bad_input(plumb("top", empty), "is no plumb recording")
        self.assert_bad_input(plumb("top", FOLDER), "is no ordinary file")
        self.assert_bad_input(plumb("top", "1"), "process 1 is not known to record")

    def test_a_process_is_found_by_its_pid(self):
        process, path = decode("by_pid.plumb", 100000)
        try:
            while True:
                done = plumb("top", process.pid)
                if done.returncode == 0 and "\nbrick " in done.stdout:
                    break
                self.assertIsNone(process.poll())
            self.assertIn(path.name, done.stdout)
            self.assertIn(f"pid {process.pid}", done.stdout)
        finally:
            end(process)
        self.assertIn(f"plumb report {path}", plumb("top", path).stdout)


    def test_several_that_record_are_listed(self):
        one, first = decode("one.plumb", 100000)
        two, second = decode("two.plumb", 100000)
        try:
            self.assert_bad_input(plumb("top"), "name one of them", f"{one.pid} ({first})", f"{two.pid} ({second})")
        finally:
            end(one)
            end(two)


class Tmux:
    """A terminal of its own; `drawn` gives what is on its screen whenever something new was written to it."""

    def __init__(self, columns, lines):
        if shutil.which("tmux") is None:
            raise unittest.SkipTest("tmux is not installed (packages.txt): plumb top was not tried in a real terminal")
        self.socket = FOLDER / f"tmux-{id(self)}"
        self.fifo = FOLDER / f"fifo-{id(self)}"
        os.mkfifo(self.fifo)
        self.call("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines, "env PS1='$ ' sh")
        self.call("pipe-pane", f"cat > {self.fifo}")
        self.news = os.open(self.fifo, os.O_RDONLY)

    def call(self, *words):
        environment = ENVIRONMENT | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        environment.pop("TMUX", None)
        return subprocess.run(["tmux", "-u", "-S", self.socket, *map(str, words)], check=True, stdout=subprocess.PIPE,
                              text=True, env=environment, timeout=HANG).stdout

    def type(self, text):
        self.call("send-keys", "-l", text)

    def enter(self, line):
        self.type(line + "\n")

    def screen(self):
        return self.call("capture-pane", "-p")

    def until(self, holds):
        """The first screen of which that is true."""
        while True:
            screen = self.screen()
            if holds(screen):
                return screen
            if not os.read(self.news, 65536):
                raise AssertionError("the terminal ended with\n" + screen)

    def close(self):
        os.close(self.news)
        self.call("kill-server")


class TopTerminal(Case):
    def test_bricks_appear_and_q_leaves_the_terminal_as_it_was(self):
        tmux = Tmux(80, 24)
        process, path = decode("live.plumb", 100000)
        try:
            before, after = FOLDER / "before", FOLDER / "after"
            tmux.enter(f"stty -g > {before}; echo was he''re")
            tmux.until(lambda screen: "was here" in screen)
            tmux.enter(f"{PLUMB} top {process.pid}")
            screen = tmux.until(lambda screen: "\nbrick " in screen and "attention" in screen and " tok/s  p50 " in screen)
            self.assertIn("q quits", screen)
            self.assertNotIn("was here", screen)
            self.assertIn(path.name, screen.split("\n")[0])
            tmux.until(lambda screen: re.search(r"^tok/s .*[▁-█]{3} ", screen, re.M))  # three looks

            tmux.call("resize-window", "-x", 20, "-y", 24)
            screen = tmux.until(lambda screen: re.search(r"^brick +% wall$", screen, re.M))
            self.assertTrue(all(len(line) <= 20 for line in screen.split("\n")), screen)
            tmux.call("resize-window", "-x", 150, "-y", 40)
            tmux.until(lambda screen: "sum/step ms" in screen)

            tmux.type("q")
            screen = tmux.until(lambda screen: "was here" in screen)
            self.assertNotIn("q quits", screen)
            tmux.enter(f"echo code $?; stty -g > {after}; echo do''ne")
            screen = tmux.until(lambda screen: "\ndone" in screen)
            self.assertIn("\ncode 0", screen)
            self.assertEqual(after.read_text(), before.read_text())
            self.assertEqual(tmux.call("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip(), "0 1")
        finally:
            end(process)
            tmux.close()

    def test_a_run_that_is_killed_leaves_its_last_view_and_the_way_on(self):
        tmux = Tmux(100, 40)
        process, path = decode("killed.plumb", 100000)
        try:
            tmux.enter(f"{PLUMB} top {path}; echo code $?")
            tmux.until(lambda screen: "q quits" in screen and "\nbrick " in screen)
            end(process)
            screen = tmux.until(lambda screen: re.search(r"^code ", screen, re.M)).replace("\n", " ")
            self.assertIn("code 0", screen)
            self.assertIn("ended without closing its recording: plumb report", screen)
            self.assertIn("attention", screen)
        finally:
            end(process)
            tmux.close()


class TopSignals(Case):
    def seen(self, descriptor, part):
        text = b""
        while part not in text:
            text += os.read(descriptor, 65536)
        return text

    def rest(self, descriptor):
        text = b""
        try:
            while more := os.read(descriptor, 65536):
                text += more
        except OSError:  # nobody has it open any more
            pass
        return text

    def test_every_signal_gives_the_terminal_back(self):
        process, path = decode("signals.plumb", 100000)
        try:
            for number, code in ((signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)):
                with self.subTest(signal=number):
                    ours, theirs = terminal()
                    before = termios.tcgetattr(theirs)
                    top = subprocess.Popen([PLUMB, "top", path], stdin=theirs, stdout=theirs, stderr=theirs,
                                           env=ENVIRONMENT | {"TERM": "xterm"})
                    self.seen(ours, b"q quits")
                    self.assertNotEqual(termios.tcgetattr(theirs)[3], before[3])
                    top.send_signal(number)
                    text = self.seen(ours, b"\x1b[?1049l")
                    self.assertEqual(top.wait(timeout=HANG), code)
                    self.assertEqual(termios.tcgetattr(theirs), before)
                    os.close(theirs)
                    self.assertIn(b"\x1b[?25h\x1b[?1049l", text + self.rest(ours))
                    os.close(ours)
        finally:
            end(process)

    def test_a_file_that_becomes_another_ends_the_view_with_one_sentence(self):
        process, path = decode("replaced.plumb", 100000)
        try:
            ours, theirs = terminal()
            top = subprocess.Popen([PLUMB, "top", path], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
                                   env=ENVIRONMENT | {"TERM": "xterm"}, text=True)
            os.close(theirs)
            self.seen(ours, b"q quits")
            os.replace(shutil.copy(recording(), FOLDER / "copy.plumb"), path)
            self.assertIn(b"\x1b[?1049l", self.rest(ours))
            self.assertEqual(top.wait(timeout=HANG), 2)
            self.assertRegex(top.stderr.read(), r"\Aerror: [^\n]*another run[^\n]*\n\Z")
            top.stderr.close()
            os.close(ours)
        finally:
            end(process)


if __name__ == "__main__":
    main()
