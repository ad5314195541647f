# SPDX-License-Identifier: Apache-2.0
"""Makes the table in docs/internals/gpu.md from the committed result files docs/internals/gpu/*.jsonl of the GPU check.

usage: gpu_table.py           writes the table
       gpu_table.py --check   says whether docs/internals/gpu.md holds it (exit 1: it does not)
       gpu_table.py FILE…     prints the table of these files

Refused: results of the virtual GPU, tiny runs, files of another schema."""

import json
import pathlib
import re
import sys

import tree

PAGE, FOLDER = tree.ROOT / "docs/internals/gpu.md", tree.ROOT / "docs/internals/gpu"
TRUTHS = tree.ROOT / "tools/gpu_check/truths/truth_table.hpp"
BEGIN, END = "<!-- table: tools/gpu_table.py makes it -->", "<!-- end of table -->"
SCHEMA = "plumb.gpu_check/1"
NOT_RUN = "not yet run on hardware"

NODES = (10, 100, 1000)
GROWTH = (10, 30, 100, 300, 1000, 3000)
WAYS = ("event inline", "event leaf", "stamp inline", "stamp leaf", "stamp off",
        "stamp inline, ring in host memory")
MODELS = ("0.5b, 24 layers", "8b, 32 layers")
GRAPHS = ("chain", "two branches", "kernels and memsets", "programmatic edges", "clusters of two", "more scopes than stamps")


class Refused(Exception):
    """A file that may not be shown; its text says why."""


def rows():
    """(title of a block, [(label, figure, what it depends on, unit of the table, digits)])"""
    def row(label, name, unit, digits=0, **at):
        return label, name, at, unit, digits

    yield "Device", [
        row("event tick", "tick.event", "ns"), row("`%globaltimer` tick", "tick.globaltimer", "ns"),
        row("read peak", "read", "GB/s"),
        row("copy, by a kernel", "copy", "GB/s", by="kernel, bytes read and written"),
        row("copy, by the driver", "copy", "GB/s", by="cuMemcpyDtoDAsync, bytes read and written")]
    yield "Floors", [
        row("empty eager pair", "eager.empty_pair", "ns", nodes=100),
        row("empty kernel, eager", "eager.empty_kernel", "ns", nodes=100),
        *(row(f"one more eager record, {n} kernels", "eager.record_cost", "ns", nodes=n) for n in (10, 100, 400)),
        row("empty pair in a graph, events", "graph.empty_pair", "ns", by="event nodes"),
        row("empty pair in a graph, stamps", "graph.empty_pair", "ns", by="stamp kernels"),
        row("empty kernel in a graph, events", "graph.empty_kernel", "ns", by="event nodes"),
        row("empty kernel in a graph, stamps", "graph.empty_kernel", "ns", by="stamp kernels"),
        *(row(f"one empty kernel of {n} in a graph, its gap included", "graph.kernel", "ns", nodes=n, kernel="empty")
          for n in NODES),
        *(row(f"one {way}, {n} kernels of 5 us", "graph.stamp_cost", "ns", way=way, nodes=n, kernel="5 us")
          for way in WAYS for n in NODES)]
    yield "Host time of a call", [
        row(call, "host.call", "ns", call=call)
        for call in ("cuEventRecord", "cuEventQuery", "cuEventElapsedTime", "cuStreamIsCapturing", "cuLaunchKernel",
                     "eager scope, timed", "eager scope, off")] + [
        row("eager scope with a kernel in it", "host.scope_with_a_kernel", "ns", **{"another thread launches": False}),
        row("the same while another thread launches", "host.scope_with_a_kernel", "ns",
            **{"another thread launches": True})]
    yield "Graphs by number of nodes", [
        row(f"{label}, {n}", name, unit, digits, nodes=n)
        for label, name, unit, digits in (
            ("capture", "capture", "us", 1), ("instantiate", "instantiate", "us", 1),
            ("first upload, until done", "upload.first", "us", 1), ("upload again, until done", "upload.again", "us", 1),
            ("first launch, not uploaded", "launch.not_uploaded", "us", 1),
            ("first launch, uploaded", "launch.uploaded", "us", 1), ("later launch", "launch.later", "us", 1),
            ("launch after an upload each time", "launch.after_upload_again", "us", 1),
            ("device memory of an executable", "exec.bytes", "KiB", 1))
        for n in GROWTH]
    yield "Decode step", [
        row(f"{label}, {model}", name, unit, digits, model=model)
        for model in MODELS
        for label, name, unit, digits in (
            ("replayed step, off", "replayed.step_off", "us", 1), ("replayed step, on", "replayed.step_on", "us", 1),
            ("slower by (mean)", "replayed.slower_mean", "%", 2),
            ("its standard error", "replayed.slower_standard_error", "%", 2),
            ("eager step, off", "eager.step_off", "us", 1), ("eager step, on", "eager.step_on", "us", 1),
            ("eager slower by (mean)", "eager.slower_mean", "%", 2),
            ("sites", "replay.sites", "", 0), ("sites timed", "replay.sites_timed", "", 0),
            ("closure, raw", "replay.closure_raw", "%", 2), ("closure, calibrated", "replay.closure", "%", 2),
            ("nodes in no scope", "replay.nodes_in_no_scope", "", 0),
            ("bandwidth of a plain replay", "replay.bandwidth", "GB/s", 0))]
    yield "Same values", [
        row(f"{label}, {stamps}, {how}", name, "", 0, stamps=stamps, pipelined=how == "pipelined")
        for stamps in ("events", "kernels") for how in ("waited for", "pipelined")
        for label, name in (("replays", "values.replays"), ("all bits equal (1: yes)", "values.same"))]
    yield "Launches", [
        row(f"{label}, {when}", name, "us", 1, when=when)
        for when in ("no profiler", "twins are built", "twins are there")
        for label, name in (("cuGraphLaunch", "launch.host"), ("its 99.9th percentile", "launch.host_p99_9"))]
    yield "Twins by kind of graph", [
        *(row(f"{label}, {graph}, {stamps}", name, unit, digits, graph=graph, stamps=stamps)
          for graph in GRAPHS for stamps in ("events", "kernels")
          for label, name, unit, digits in (
              ("cost of a site", "twin.cost_of_a_site", "ns", 0), ("sites timed", "twin.sites_timed", "", 0),
              ("sum of the sites", "twin.sites_sum", "us", 1), ("closure", "twin.closure", "%", 2))),
        *(row(f"{label} by the clone, {graph}", name, "", 0, graph=graph)
          for graph in GRAPHS
          for label, name in (("edges lost", "clone.edges_lost"), ("attributes lost", "clone.attributes_lost")))]
    yield "Bricks against the tracer", [
        row(f"{label}, {model}", name, unit, digits, model=model)
        for model in MODELS
        for label, name, unit, digits in (
            ("kernel time in scopes", "coverage.kernel_time_in_scopes", "%", 2),
            ("its span that our bricks explain", "coverage.explained", "%", 2),
            ("bricks", "coverage.bricks", "", 0),
            ("bricks off by more than 2 % and 0.5 us a kernel", "coverage.bricks_outside", "", 0))]
    yield "Clock, over a minute", [
        row("published bound of a placed event", "place.bound", "ns"),
        row("its distance from the middle of the host's bracket", "place.off_middle", "ns"),
        row("width of that bracket", "place.host_bracket", "ns"),
        row("events outside of bracket and bound", "place.outside", ""),
        row("distance of events from one line", "fit.residual", "ns"),
        row("drift of events", "drift.events", "ppm", 2), row("drift of `%globaltimer`", "drift.globaltimer", "ppm", 2),
        row("mapped-memory answer, bracket", "ping.bracket", "ns")]
    yield "CUPTI", [
        *(row(f"{label}, {how}", name, unit, digits, how=how)
          for how in ("eager", "replayed")
          for label, name, unit, digits in (
              ("kernels seen", "cupti.kernels", "", 0), ("our time of a kernel", "cupti.our_time", "us", 2),
              ("less its start to next start", "cupti.difference", "ns", 0),
              ("the same in percent", "cupti.difference_percent", "%", 2),
              ("its time of a kernel", "cupti.kernel_time", "us", 2))),
        row("replay slower while it traces", "cupti.slower_mean", "%", 1),
        row("replay slower after it stopped", "cupti.slower_after_stop", "%", 1)]


class Results:
    """One result file."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.lines = []
        for number, text in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                self.lines.append(json.loads(text))
            except json.JSONDecodeError:
                raise Refused(f"{self.path.name}:{number}: not a line of JSON; keep the file as the check wrote it") from None
        heads = [line for line in self.lines if line["record"] == "run"]
        if not heads or heads[0].get("schema") != SCHEMA:
            raise Refused(f"{self.path.name}: not a result file of schema {SCHEMA}")
        self.head = heads[0]
        self.lines = newest_of_each_section(self.lines)
        self.device = next((line["value"] for line in self.lines if line.get("name") == "device"), "")
        if self.device.startswith("Virtual"):
            raise Refused(f"{self.path.name}: made on the virtual GPU, which says nothing about hardware")
        if any(head["tiny"] for head in heads):
            raise Refused(f"{self.path.name}: a tiny run, whose sizes say nothing about the device")
        if not self.device:
            raise Refused(f"{self.path.name}: names no device; its section identity did not run")

    def of(self, record, name=None):
        return [line for line in self.lines if line["record"] == record and (name is None or line.get("name") == name)]

    def text(self, name):
        return next((line["value"] for line in self.of("text", name)), "")

    def cell(self, name, at, unit, digits):
        def fits(line):
            return all(line["at"].get(key) == value for key, value in at.items())
        for line in self.of("figure", name):
            if fits(line):
                return shown(line, unit, digits)
        return "n/a: " + self.why_absent(name, fits)

    def why_absent(self, name, fits):
        for line in self.of("absent", name):
            if fits(line):
                return line["reason"]
        broken = [f"{line['section']} {line['status']}" for line in self.of("end") if line["status"] != "done"]
        return "; ".join(broken) if broken else "not measured"


def newest_of_each_section(lines):
    """A section that ran again counts as it ran last."""
    begun = {line["section"]: index for index, line in enumerate(lines) if line["record"] == "begin"}
    return [line for index, line in enumerate(lines) if index >= begun.get(line["section"], 0)]


def shown(line, unit, digits):
    scale = {"us": 1e-3, "KiB": 1 / 1024}.get(unit, 1)
    value = f"{line['value'] * scale:,.{digits}f}"
    if "p10" in line:
        value += f" ({line['p10'] * scale:,.{digits}f}–{line['p90'] * scale:,.{digits}f})"
    return f"{value} {unit}".strip()


def truths():
    """(id, sentence) of the shared list."""
    text = TRUTHS.read_text(encoding="utf-8")
    found = re.findall(r'X\((\w+),\s*"[^"]*",[\s\\]*"((?:[^"\\]|\\.)*)"\)', text)
    return [(name, sentence) for name, sentence in found]


def truth_rows(results):
    """One row per belief that is not simply held by all."""
    for name, sentence in truths():
        verdicts = []
        for file in results:
            line = next((line for line in file.of("truth") if line["id"] == name), None)
            detail = f": {line['detail']}" if line and line["detail"] else ""
            verdicts.append(line["verdict"] + detail if line else "not asked")
        yield [f"{sentence}", *(verdict.replace("|", "/") for verdict in verdicts)]


def table(head, lines):
    text = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(text) + "\n"


def page_part(results):
    if not results:
        blocks = [[title, str(len(block))] for title, block in rows()] + [["Belief", str(len(truths()))]]
        return f"The check is {NOT_RUN}. With the first result file these tables appear here:\n\n{table(['Table', 'Rows'], blocks)}"
    names = [f"{file.device}, driver {file.text('driver_version') or file.text('driver_cuda')}, {file.head['time'][:10]}"
             for file in results]
    parts = []
    for title, block in rows():
        lines = [[label, *(file.cell(name, at, unit, digits) for file in results)] for label, name, at, unit, digits in block]
        parts.append(table([title, *names], lines))
    parts.append(table(["Belief", *names], truth_rows(results)))
    return "\n".join(parts)


def self_test():
    assert len(truths()) > 50, "the truth table could not be read"
    line = {"value": 1500.0, "p10": 1000.0, "p90": 2000.0}
    assert shown(line, "us", 1) == "1.5 (1.0–2.0) us", shown(line, "us", 1)
    assert page_part([]).count(NOT_RUN) == 1


def whole_page(results):
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or BEGIN in after:
        raise Refused(f"docs/internals/gpu.md must hold the marks {BEGIN} and {END} once each")
    return text, f"{before}{BEGIN}\n\n{page_part(results)}\n{END}{after}"


def main(words):
    self_test()
    check = words == ["--check"]
    files = [pathlib.Path(word) for word in words if not word.startswith("-")]
    try:
        results = [Results(path) for path in (files or sorted(FOLDER.glob("*.jsonl")))]
        if files:
            print(page_part(results))
            return 0
        now, wanted = whole_page(results)
    except Refused as reason:
        print(reason)
        return 1
    if check and now != wanted:
        print("docs/internals/gpu.md does not hold the table of docs/internals/gpu/*.jsonl: run python3 tools/gpu_table.py")
        return 1
    if not check and now != wanted:
        PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
