# SPDX-License-Identifier: Apache-2.0
"""One sample, followed by a debugger from PLUMB_BRICK to the printed row: it stops where docs/internals/architecture.md says, in that
order, and what it is at each stop is what it was at the one before.

usage: trail_test.py RECORD_ONE PLUMB SOURCE_DIR

Exits with 77, which ctest shows as skipped, where there is no debugger or it may not follow a process."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RECORD_ONE, PLUMB, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
HEADING = "## One sample, from macro to row"
MOST = 30
NAME = "a brick to follow"
HANG = 280  # seconds; two are enough on a machine that has nothing else to do
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("PLUMB") and key != "DEBUGINFOD_URLS"}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def fail(*problems):
    print(*problems, sep="\n")
    sys.exit(1)


def documented():
    """[(where, [[file, function], …]), …]: the rows of the table, a new leg wherever `where` changes."""
    page = (SOURCE / "docs/internals/architecture.md").read_text()
    section = page.split(HEADING + "\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| `([^`:]+):([^`:]+)` \| [^|]+ \|$", section, re.M)
    if [int(number) for number, *_ in rows] != list(range(1, len(rows) + 1)) or len(rows) != section.count("\n| ") - 1:
        fail(f"the stops of docs/internals/architecture.md are not numbered 1 to {len(rows)}, or a row is no stop")
    if not 0 < len(rows) <= MOST:
        fail(f"docs/internals/architecture.md lists {len(rows)} stops; at most {MOST} can be kept in mind")
    legs = []
    for _, where, file, function in rows:
        if not re.search(rf"\b{function}\(", (SOURCE / file).read_text()):
            fail(f"docs/internals/architecture.md: {file} has no {function}")
        if not legs or legs[-1][0] != where:
            legs.append((where, []))
        legs[-1][1].append([file, function])
    return legs


def follow(legs, scratch, *command):
    """What follow.py writes, and what the command printed."""
    out = scratch / "followed.json"
    out.unlink(missing_ok=True)
    task = json.dumps({"legs": [stops for _, stops in legs], "unit": "tests/trail/record_one.cpp", "out": str(out)})
    done = subprocess.run(["gdb", "-nx", "-batch", "-x", pathlib.Path(__file__).with_name("follow.py"), "--args", *command],
                          env={**ENVIRONMENT, "FOLLOW": task}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=HANG, start_new_session=True)
    if not out.exists():
        said = " ".join((done.stderr + done.stdout).split())
        if re.search(r"ptrace|Operation not permitted|During startup program", said):
            skip(f"gdb may not follow a process here: {said[-300:]}")
        if "Python scripting is not supported" in said:
            skip("this gdb has no Python; install the package gdb")
        fail(f"gdb wrote nothing: {said[-2000:]}")
    followed = json.loads(out.read_text())
    if followed["exit"] == 77:
        skip(done.stderr.strip().splitlines()[-1])
    if followed["absent"]:
        fail(*(f"docs/internals/architecture.md: no code is {stop}; was it renamed, or is it in line now?"
               for stop in followed["absent"]))
    wanted = [f"{file}:{function}" for _, stops in legs for file, function in stops]
    hit = [one["stop"] for one in followed["hits"]]
    if hit != wanted:
        fail("docs/internals/architecture.md says (left) what the debugger did not see (right):",
             *(f"{'  ' if left == right else '! '}{left:<60}{right}" for left, right in
               zip(wanted, hit + ["-"] * (len(wanted) - len(hit)))))
    if followed["exit"] != 0:
        fail(f"{command} ended with {followed['exit']}: {done.stderr}")
    return {one["stop"].rsplit("/", 1)[1]: one["facts"] for one in followed["hits"]}, done.stdout


def main():
    legs = documented()
    if shutil.which("gdb") is None:
        skip("gdb is not installed: apt-get install gdb")
    with tempfile.TemporaryDirectory(prefix="plumb-trail-") as folder:
        recording = pathlib.Path(folder) / "one.plumb"
        before = [leg for leg in legs if leg[0] != "`plumb report`"]
        recorded, _ = follow(before, recording.parent, RECORD_ONE, recording)
        read, text = follow(legs[len(before):], recording.parent, PLUMB, "report", recording)
        report = json.loads(subprocess.run([PLUMB, "report", recording, "--json"], env=ENVIRONMENT, check=True,
                                           capture_output=True, timeout=HANG).stdout)

    pushed, sample = recorded["thread_recorder.hpp:push"], read["row_table.cpp:add"]
    cells = read["text_table.cpp:add_row"]["cells"]
    row = next(line for line in text.splitlines() if line.startswith(NAME))
    ns = pushed["ticks"] * 1e9 / report["clock"]["ticks_per_second"]
    milliseconds = cells[4]
    checks = {
        "the drain writes the record that was pushed": recorded["writer.cpp:append"]["records"].count(pushed["record"]) == 1,
        "the resolver reads that record": read["track_resolver.cpp:scope"]["record"] == pushed["record"],
        "its name is the sample's": sample["name_id"] == pushed["name_id"],
        "its ticks are the sample's nanoseconds": abs(sample["ns"] - ns) <= 1,
        "the row has the name of the macro": cells[0] == NAME,
        "the row has the sample's time": milliseconds == f"{sample['ns'] / 1e6:.{len(milliseconds.split('.')[1])}f}",
        "the row is printed": row.split() == " ".join(cells).split(),
    }
    broken = [what for what, holds in checks.items() if not holds]
    if broken:
        fail(*(f"not so: {what}" for what in broken), f"recorded: {recorded}", f"read: {read}", f"printed: {row}")
    print(f"{sum(len(stops) for _, stops in legs)} stops, {pushed['ticks']} ticks, {sample['ns']} ns: {row}")


main()
