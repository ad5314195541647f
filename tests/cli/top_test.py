# SPDX-License-Identifier: Apache-2.0
"""The snapshot of plumb top, against what the other commands print.

usage: top_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]"""

import json
import os
import re

from shell import Case, FOLDER, decode, end, graph_recording, kineto_trace, main, plumb, recording, stopped


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
        process, path = decode(self, "by_pid.plumb")
        done = None
        while done is None or "\nbrick " not in done.stdout:
            done = plumb("top", process.pid)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(path.name, done.stdout)
        self.assertIn(f"pid {process.pid}", done.stdout)
        end(process)
        self.assertIn(f"plumb report {path}", plumb("top", path).stdout)

    def test_several_that_record_are_listed(self):
        (one, first), (two, second) = decode(self, "one.plumb"), decode(self, "two.plumb")
        self.assert_bad_input(plumb("top"), "name one of them", f"{one.pid} ({first})", f"{two.pid} ({second})")

    def device_recordings(self):
        imported = FOLDER / "imported.plumb"
        done = plumb("import", kineto_trace(), "-o", imported, "--phase", "decode")
        self.assertEqual(done.returncode, 0, done.stderr)
        return graph_recording(), graph_recording("eager"), imported

    def test_lanes_of_devices_show_the_figures_of_wall(self):
        figures = 0
        for path in self.device_recordings():
            phase = next(phase for phase in json.loads(plumb("wall", path, "--json").stdout)["phases"]
                         if phase["phase"] == "decode")
            self.assertEqual([lane["device"] for lane in phase["lanes"]], [False, True])
            for lane in phase["lanes"]:
                name = lane["name"] if lane["device"] else "the host"
                with self.subTest(path=path.name, lane=name):
                    line = re.search(rf"^idle of {re.escape(name)} (.*)$", self.snapshot(path), re.M)[1]
                    idle = lane["idle"]
                    if isinstance(idle["total_ns"], dict):
                        self.assertEqual(line[:5], "n/a: ")
                        self.assertTrue(idle["total_ns"]["absent"].startswith(line[5:].rstrip("\u2026")), line)
                        continue

                    def shown(ns):
                        return "n/a" if isinstance(ns, dict) else f"{100 * ns / lane['period_ns']:.1f}"
                    parts = [f"exposed launch {shown(idle['exposed_launch_ns'])}", f"host work {shown(idle['host_work_ns'])}"]
                    if not lane["device"]:
                        parts = [f"a device was busy {shown(idle['for_device_ns'])}"]
                    parts += [f"unknown {shown(idle['unknown_ns'])}"]
                    parts += [f"in {scope['name']} {shown(scope['self_ns'])}" for scope in idle["scopes"][:3]]
                    self.assertEqual(line, f"{shown(idle['total_ns'])} %: " + ", ".join(parts))
                    figures += len(parts)
        self.assertGreater(figures, 8)

    def test_bricks_of_devices_show_the_figures_of_report(self):
        for path in self.device_recordings():
            with self.subTest(path=path.name):
                shown = rows(self.snapshot(path), "brick ")
                said = json.loads(plumb("report", path, "--json").stdout)
                bricks = {row["name"]: row for row in said["bricks"] if row["phase"] == "decode"}
                self.assertTrue({"attention", "sampling"} <= set(bricks))
                cells = {name.split(" ")[0]: cells for name, cells in shown.items()}
                for name, row in bricks.items():
                    self.assertEqual(cells[name][0], f"{100 * row['wall_share']:.1f}", name)
                    for cell, key in ((2, "p50_ns"), (3, "p90_ns")):
                        known = not isinstance(row["time"][key], dict)
                        self.assertEqual(cells[name][cell] != "n/a", known, name)
                        if known:
                            self.assertAlmostEqual(float(cells[name][cell]), row["time"][key] / 1e3, delta=0.051)
                wall = next(phase for phase in said["phases"] if phase["phase"] == "decode")["wall"]
                for name, key in (("unattributed", "unattributed_ns"), ("idle", "idle_ns")):
                    cell = next(cells for row, cells in shown.items() if row.split(": ")[-1] == name)[0]
                    self.assertEqual(cell, f"{100 * wall[key] / wall['period_ns']:.1f}")

    def test_an_imported_recording_is_of_no_process(self):
        path = self.device_recordings()[-1]
        text = self.snapshot(path)
        self.assertNotIn("pid", text)
        self.assertTrue(text.endswith(f"\nthe run ended: plumb report {path} shows the whole run\n"), text)

    def test_what_is_not_read_or_not_written_is_no_crash(self):
        fifo, loop = FOLDER / "pipe", FOLDER / "loop"
        os.mkfifo(fifo)
        loop.symlink_to(loop)
        for path, part in ((fifo, "is no ordinary file"), ("/dev/null", "is no ordinary file"), (loop, "could not be read")):
            self.assert_bad_input(plumb("top", path), part)
        with open("/dev/full", "w") as full:
            self.assert_bad_input(plumb("top", recording(), stdout=full), "No space left on device")
        reading, writing = os.pipe()
        os.close(reading)
        for path in (recording(), stopped(self, "unread.plumb")):
            done = plumb("top", path, stdout=writing)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        os.close(writing)


if __name__ == "__main__":
    main()
