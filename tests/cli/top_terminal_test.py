# SPDX-License-Identifier: Apache-2.0
"""The live view of plumb top, in real terminals and in pseudo-terminals.

usage: top_terminal_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]

Nothing sleeps: a test reads what a terminal is given, and looks at the screen after each part of it."""

import fcntl
import itertools
import os
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

from shell import Case, ENVIRONMENT, FOLDER, HANG, PLUMB, decode, end, main, plumb, recording, stopped, terminal


class Tmux:
    """A terminal of its own; `until` looks at its screen whenever something new was written to it."""

    made = itertools.count()

    def __init__(self, columns, lines):
        if shutil.which("tmux") is None:
            raise unittest.SkipTest("tmux is not installed (packages.txt): plumb top was not tried in a real terminal")
        for end_of_one in terminal():  # tmux needs one too
            os.close(end_of_one)
        number = next(self.made)
        self.socket = FOLDER / f"tmux-{number}"
        self.fifo = FOLDER / f"fifo-{number}"
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
        """Types it once the shell has asked for a line: what it prints then begins a line of its own."""
        self.until(asks)
        self.type(line + "\n")

    def screen(self):
        return self.call("capture-pane", "-p")

    def modes(self):
        """Whether the other screen is shown, and whether the cursor is."""
        return self.call("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip()

    def until(self, holds):
        """The first screen of which that is true."""
        news = reads(self.news)
        while True:
            screen = self.screen()
            if holds(screen):
                return screen
            if not next(news):
                raise AssertionError("the terminal ended with\n" + screen)

    def close(self):
        os.close(self.news)
        self.call("kill-server")


def asks(screen):
    return screen.rstrip().split("\n")[-1] == "$"


def reads(descriptor):
    """What comes, part by part. A test that waits in vain ends here, with what it saw, and not by the clock of ctest."""
    last = time.monotonic() + HANG / 3
    while select.select([descriptor], [], [], max(0, last - time.monotonic()))[0]:
        yield os.read(descriptor, 65536)
    yield b""


class TopTerminal(Case):
    def tmux(self, columns, lines):
        tmux = Tmux(columns, lines)
        self.addCleanup(tmux.close)
        return tmux

    def test_bricks_appear_and_q_leaves_the_terminal_as_it_was(self):
        tmux = self.tmux(80, 24)
        process, path = decode(self, "live.plumb")
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
        self.assertIn("\ncode 0\n", screen)
        self.assertEqual(after.read_text(), before.read_text())
        self.assertEqual(tmux.modes(), "0 1")

    def test_a_run_that_is_killed_leaves_its_last_view_and_the_way_on(self):
        tmux = self.tmux(100, 40)
        process, path = decode(self, "killed.plumb")
        tmux.enter(f"{PLUMB} top {path}; echo co''de $?")
        tmux.until(lambda screen: "q quits" in screen and "\nbrick " in screen)
        end(process)
        screen = tmux.until(lambda screen: re.search(r"^code \d+$", screen, re.M)).replace("\n", " ")
        self.assertIn("code 0", screen)
        self.assertIn("ended without closing its recording: plumb report", screen)
        self.assertIn("attention", screen)

    def test_ctrl_z_gives_the_terminal_back_and_fg_shows_the_view_again(self):
        tmux = self.tmux(80, 24)
        _, path = decode(self, "paused.plumb")
        before, paused, after = FOLDER / "unpaused", FOLDER / "paused", FOLDER / "ended"
        tmux.enter(f"stty -g > {before}; echo was he''re")
        tmux.enter(f"{PLUMB} top {path}")
        for _ in range(2):
            tmux.until(lambda screen: "q quits" in screen and "\nbrick " in screen)
            self.assertEqual(tmux.modes(), "1 0")
            tmux.call("send-keys", "C-z")
            self.assertIn("was here", tmux.until(asks))
            self.assertEqual(tmux.modes(), "0 1")
            tmux.enter(f"stty -g > {paused}; jobs; echo fir''st")
            self.assertRegex(tmux.until(lambda screen: "\nfirst" in screen), r"(?m)^\[1\].*(Stopped|Suspended)")
            self.assertEqual(paused.read_text(), before.read_text())
            tmux.enter("clear; echo was he''re; fg")
        tmux.until(lambda screen: "q quits" in screen and "\nbrick " in screen)
        tmux.type("q")
        tmux.enter(f"echo co''de $?; stty -g > {after}; echo do''ne")
        self.assertIn("\ncode 0\n", tmux.until(lambda screen: "\ndone" in screen))
        self.assertEqual(after.read_text(), before.read_text())


class Watched:
    """plumb top on a pseudo-terminal that the test holds both ends of."""

    def __init__(self, case, path, **options):
        self.ours, self.theirs = terminal()
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen([PLUMB, "top", path], stdin=self.theirs, stdout=self.theirs, stderr=subprocess.PIPE,
                                        env=ENVIRONMENT | {"TERM": "xterm"}, text=True, **options)
        case.addCleanup(self.close)
        self.text = b""

    def until(self, part):
        """What was drawn up to the next one of these."""
        news = reads(self.ours)
        while part not in self.text:
            more = next(news)
            assert more, self.text
            self.text += more
        taken, self.text = self.text[:self.text.index(part) + len(part)], self.text[self.text.index(part) + len(part):]
        return taken

    def drawn_anew(self):
        """The second whole picture from now on: the first may have been in the making."""
        self.text = b""
        self.until(b"q quits")
        return self.until(b"q quits")

    def resize(self, columns, lines):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def modes(self):
        return termios.tcgetattr(self.theirs)

    def ended(self):
        """Exit code and the words on standard error; the screen was given back before."""
        self.until(b"\x1b[?25h\x1b[?1049l")
        assert self.modes() == self.before
        return self.process.wait(timeout=HANG), self.process.stderr.read()

    def close(self):
        end(self.process)
        self.process.stderr.close()
        os.close(self.theirs)
        os.close(self.ours)


class TopSignals(Case):
    def test_every_signal_gives_the_terminal_back(self):
        _, path = decode(self, "signals.plumb")
        for number, code in ((signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)):
            with self.subTest(signal=number):
                top = Watched(self, path)
                top.until(b"q quits")
                self.assertNotEqual(top.modes()[3], top.before[3])
                top.process.send_signal(number)
                self.assertEqual(top.ended(), (code, ""))

    def test_after_a_stop_that_nobody_can_catch_the_view_is_drawn_again(self):
        top = Watched(self, stopped(self, "frozen.plumb"))
        top.until(b"q quits")
        ours = top.modes()
        top.process.send_signal(signal.SIGSTOP)
        os.waitpid(top.process.pid, os.WUNTRACED)
        termios.tcsetattr(top.theirs, termios.TCSANOW, top.before)  # as a shell does
        top.process.send_signal(signal.SIGCONT)
        top.until(b"\x1b[?1049h")
        self.assertEqual(top.modes(), ours)
        top.until(b"q quits")
        os.write(top.ours, b"xyq")
        self.assertEqual(top.ended(), (0, ""))

    def test_where_no_shell_could_let_it_go_on_ctrl_z_stops_nothing(self):
        top = Watched(self, stopped(self, "alone.plumb"), start_new_session=True)
        top.until(b"q quits")
        top.process.send_signal(signal.SIGTSTP)
        top.until(b"\x1b[?1049l")
        top.until(b"\x1b[?1049h")
        top.until(b"q quits")
        top.process.send_signal(signal.SIGTERM)
        self.assertEqual(top.ended(), (-signal.SIGTERM, ""))


class TopHostile(Case):
    def test_a_file_that_becomes_another_ends_the_view_with_one_sentence(self):
        def another(path):
            os.replace(shutil.copy(recording(), FOLDER / "copy.plumb"), path)

        def link_to(target):
            def link(path):
                (FOLDER / "link").symlink_to(target)
                os.replace(FOLDER / "link", path)
            return link

        def noise(path):
            (FOLDER / "noise").write_bytes(b"x" * 1000)
            os.replace(FOLDER / "noise", path)

        os.mkfifo(FOLDER / "pipe")
        for number, (change, part) in enumerate((
                (another, "another run"), (link_to(recording()), "another run"), (noise, "is no plumb recording"),
                (link_to(FOLDER / "pipe"), "is no ordinary file"), (link_to("/dev/null"), "is no ordinary file"),
                (link_to(FOLDER / "nowhere"), "was removed"), (os.unlink, "was removed"),
                (lambda path: os.truncate(path, 1000), "became shorter"))):
            with self.subTest(number=number, part=part):
                path = stopped(self, f"changed_{number}.plumb")
                top = Watched(self, path)
                top.until(b"q quits")
                change(path)
                code, said = top.ended()
                self.assertEqual(code, 2)
                self.assertRegex(said, rf"\Aerror: [^\n]*{part}[^\n]*\n\Z")

    def test_damage_and_a_chunk_that_never_ends_leave_the_view(self):
        foreign = recording().read_bytes()
        for number, more in enumerate((random.Random(7).randbytes(300_000), foreign[:-1000], 2 * foreign[64:-1000],
                                       bytes(1 << 20))):
            with self.subTest(number=number):
                path = stopped(self, f"grows_{number}.plumb")
                top = Watched(self, path)
                top.until(b"q quits")
                with open(path, "ab") as file:
                    file.write(more)
                self.assertIn(path.name.encode(), top.drawn_anew())
                os.write(top.ours, b"q")
                self.assertEqual(top.ended(), (0, ""))
                done = plumb("top", path)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_windows_of_any_size_and_a_storm_of_them(self):
        top = Watched(self, stopped(self, "sizes.plumb"))
        top.until(b"q quits")
        for columns, lines in ((1, 1), (200, 1), (1, 200), (3, 2), (0, 0), (65535, 65535)):
            top.resize(columns, lines)
            top.until(b"\x1b[H\x1b[K")
        for number in range(2000):  # which nobody reads meanwhile
            top.resize(1 + number % 211, 1 + number % 97)
        top.resize(20, 24)
        self.assertNotRegex(top.drawn_anew(), rb"[^H\n]\x1b\[K")  # behind a full line it erases the last character
        os.write(top.ours, b"q")
        self.assertEqual(top.ended(), (0, ""))


if __name__ == "__main__":
    main()
