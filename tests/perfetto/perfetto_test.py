# SPDX-License-Identifier: Apache-2.0
"""plumb trace --format perfetto: what a viewer would draw, against plumb export of the same recording.

usage: perfetto_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]"""

import collections
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from shell import Case, FOLDER, HANG, SOURCE, graph_recording, main, plumb, recording, recording_with  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from trace_reader import Trace  # noqa: E402


def recordings():
    """Of the kinds there are: threads with spans and nodes, replays of graphs, queues whose scopes say what began them."""
    golden = SOURCE / "tests/golden"
    return [recording(), recording_with("nodes"), recording_with("crowd"), graph_recording(),
            *(golden / name for name in ("v1.plumb", "v1_zstd.plumb", "v1_causes.plumb", "v1_launches.plumb", "v1_nodes.plumb",
                                         "v1_graphs.plumb"))]


def perfetto(path, *words):
    out = FOLDER / "out.pftrace"
    done = plumb("trace", "--format", "perfetto", path, "-o", out, *words)
    assert done.returncode == 0, done.stderr
    return out.read_bytes(), done.stderr


def exported(path, *words):
    lines = [json.loads(line) for line in plumb("export", path, *words).stdout.splitlines()]
    return lines[0], lines[1:]


def track_of(name, known):
    """The longest name of a track that a lane's name begins with."""
    return max((each for each in known if name.startswith(each)), key=len, default=name)


class TraceSlices(Case):
    def test_every_slice_is_that_of_the_export(self):
        kinds = collections.Counter()
        for path in recordings():
            with self.subTest(path=path.name):
                kinds += self.compare(path)
        for kind in ("scope", "lap", "span", "layer", "step", "submit", "launch", "kernel", "transfer", "device"):
            self.assertGreater(kinds[kind], 0, f"no {kind} was compared")

    def test_of_a_window_as_well(self):
        self.compare(recording(), "--steps", "40:60")
        self.compare(recording(), "--steps", "40:60", "--layers", "1")

    def compare(self, path, *words):
        trace = Trace(perfetto(path, *words)[0])
        header, lines = exported(path, *words)
        self.assertEqual(trace.problems, [])
        names = {track["id"]: track["name"] for track in header["tracks"]}
        devices = {track["id"] for track in header["tracks"] if track["device"]}
        host, device, kinds = collections.Counter(), collections.Counter(), collections.Counter()
        for line in lines:
            kind = line["kind"]
            if kind in ("check", "dependency", "task") or "duration_ns" not in line:
                continue
            kinds[kind] += 1
            place = (line.get("step"), line.get("layer"))
            when = (line["begin_ns"], line["duration_ns"])
            name = line.get("name", "unnamed")
            track = names.get(line["track"], f"track {line['track']}")
            if kind in ("kernel", "transfer"):
                copies = {"host_to_device": "copy_h2d", "device_to_host": "copy_d2h", "device_to_device": "copy_d2d"}
                device[f"recorded by {track}", copies.get(line.get("direction"), name), *when, *place] += 1
            elif line["track"] in devices:
                kinds["device"] += 1
                device[track, name, *when, *place] += 1
            else:
                called = {"step": f"step {place[0]}", "layer": f"layer {place[1]}", "submit": f"submit {name}",
                          "launch": "launch graph"}.get(kind, name)
                host[track, called, *when, *place] += 1
        drawn = collections.Counter((track_of(s.track, names.values()), s.name, s.begin, s.end - s.begin, s.step, s.layer)
                                    for s in trace.slices)
        self.assertEqual(list((host - drawn).items())[:3], [], "missing on threads")
        self.assertEqual(list((drawn - host).items())[:3], [], "too many on threads")
        queues = [*names.values(), *(f"recorded by {name}" for name in names.values())]
        ran = collections.Counter((track_of(s.queue, queues), s.name, s.begin, s.duration, s.step, s.layer)
                                  for s in trace.device_slices)
        self.assertEqual(list((device - ran).items())[:3], [], "missing on devices")
        self.assertEqual(list((ran - device).items())[:3], [], "too many on devices")
        return kinds

    def test_each_event_on_a_device_has_an_id_of_its_own_and_what_submitted_it_names_it(self):
        for path in (graph_recording(), SOURCE / "tests/golden/v1_causes.plumb"):
            trace = Trace(perfetto(path)[0])
            ids = collections.Counter(s.id for s in trace.device_slices)
            self.assertEqual([i for i, n in ids.items() if n != 1], [])
            begins = {s.id: s.begin for s in trace.device_slices}
            arrows = [(s.begin, begins[i]) for s in trace.slices for i in s.submits if i in begins]
            self.assertGreater(len(arrows), 0, path.name)
            self.assertEqual([a for a in arrows if a[0] > a[1]], [])
            chrome = json.loads(plumb("trace", path).stdout)["traceEvents"]
            self.assertEqual(len(arrows), sum(event["ph"] == "f" for event in chrome), path.name)

    def test_kernels_have_their_launch_shape(self):
        trace = Trace(perfetto(recording_with("nodes"))[0])
        _, lines = exported(recording_with("nodes"))
        shapes = collections.Counter((line["name"], str([line["grid"], line["block"]])) for line in lines
                                     if line["kind"] == "kernel" and "grid" in line and "duration_ns" in line)
        self.assertGreater(sum(shapes.values()), 0)
        self.assertEqual(shapes, collections.Counter((s.name, str(s.launch)) for s in trace.device_slices if s.launch))

    def test_work_of_a_scope_stands_beside_it(self):
        _, lines = exported(recording())
        trace = Trace(perfetto(recording())[0])
        work = collections.Counter((l["begin_ns"], l["name"], l["bytes"]) for l in lines if "bytes" in l)
        self.assertGreater(sum(work.values()), 0)
        self.assertEqual(work, collections.Counter((s.begin, s.name, s.notes["bytes"]) for s in trace.slices if "bytes" in s.notes))


class Counters(Case):
    def test_counters_are_those_of_the_steps(self):
        trace = Trace(perfetto(recording())[0])
        _, lines = exported(recording())
        ends = {line["step"]: line["begin_ns"] + line["duration_ns"] for line in lines if line["kind"] == "step"}
        self.assertEqual(set(trace.units.items()), {("tokens per second", "tok/s"), ("kv length", "positions"), ("bandwidth", "GB/s")})
        for name, values in trace.counters.items():
            self.assertLessEqual({when for when, _ in values}, set(ends.values()), name)
        self.assertEqual(len(trace.counters["tokens per second"]), len(ends))
        work, lengths = collections.defaultdict(float), {}
        for line in lines:
            if line["kind"] == "step":
                lengths[line["step"]] = line["duration_ns"]
            elif line.get("leaf") and "bytes" in line and "step" in line:
                work[line["step"]] += line["bytes"]
        expected = {ends[step]: amount / lengths[step] for step, amount in work.items()}
        self.assertEqual({when for when, _ in trace.counters["bandwidth"]}, set(expected))
        for when, value in trace.counters["bandwidth"]:
            self.assertAlmostEqual(value, expected[when], delta=1e-9 * expected[when])

    def test_times_are_of_the_monotonic_clock_and_the_calendar_is_given(self):
        trace = Trace(perfetto(recording())[0])
        both = [snapshot for snapshot in trace.snapshots if 3 in snapshot and 64 not in snapshot]
        self.assertGreater(len(both), 0)

    def test_notes_of_the_recording_are_moments_of_a_track(self):
        trace = Trace(perfetto(recording_with("crowd"))[0])
        header, _ = exported(recording_with("crowd"))
        self.assertEqual([n for n in header["notes"] if n not in {name for track, name, _ in trace.instants if track == "notes"}], [])


class Decoded(Case):
    def test_protoc_decodes_it_and_meets_nothing_it_does_not_know(self):
        protoc = shutil.which("protoc")
        if protoc is None:
            self.skipTest("SKIPPED: there is no protoc: apt-get install protobuf-compiler")
        for path in recordings():
            data, _ = perfetto(path)
            done = subprocess.run([protoc, f"--proto_path={SOURCE / 'tests/perfetto'}", "--decode=plumb.perfetto.Trace",
                                   "trace_subset.proto"], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            text = done.stdout.decode()
            unknown = [line for line in text.splitlines() if line.strip().split(":")[0].split(" {")[0].isdigit()]
            self.assertEqual(unknown[:3], [], path.name)
            begins, ends = text.count("type: TYPE_SLICE_BEGIN"), text.count("type: TYPE_SLICE_END")
            self.assertEqual(begins, ends)
            self.assertEqual(begins, len(Trace(data).slices))
            self.assertEqual(text.count("gpu_render_stage_event {"), len(Trace(data).device_slices))


class Thinned(Case):
    def test_a_cut_file_is_no_trace(self):
        data, _ = perfetto(recording())
        with self.assertRaises(ValueError):
            Trace(data[:-3])

    def test_a_recording_that_fits_is_whole_and_nothing_is_said(self):
        data, said = perfetto(recording())
        self.assertEqual(said, "")
        _, lines = exported(recording())
        self.assertEqual(len(Trace(data).slices), sum(line["kind"] in ("scope", "lap", "span", "layer", "step", "submit")
                                                      for line in lines))


if __name__ == "__main__":
    main()
