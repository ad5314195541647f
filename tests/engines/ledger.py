# SPDX-License-Identifier: Apache-2.0
"""What the virtual GPU itself knows of the kernels that ran in replays, and the recording's bricks of those held against it."""

import bisect
import collections
import json
import subprocess

# A brick's time holds the gap before its first kernel (1,000 ns there) and, until it is calibrated, an event node (800); events tick in 32 ns.
NEAR_NS = 1_000 + 800 + 64
TOGETHER_NS = 100_000  # of two clocks that are fitted to each other; replays here take longer


def rows_of(plumb, recording):
    """Bricks inside of replays, in the order in which they began."""
    done = subprocess.run([plumb, "export", recording, "--format", "jsonl"], capture_output=True, text=True, check=True)
    return [row for row in map(json.loads, done.stdout.splitlines()) if row.get("kind") == "scope" and row.get("graph") is not None]


def graphs_of(plumb, recording):
    done = subprocess.run([plumb, "replays", recording, "--json"], capture_output=True, text=True, check=True)
    return {row["graph"]: row for row in json.loads(done.stdout)["graphs"]}


def truth(path):
    """The kernels of each replay, as (begin, end)."""
    replays = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        graph, replay, start, end, name = line.split("\t")
        if graph != "0" and not name.startswith("plumb_"):
            replays[graph, replay].append((int(start), int(end)))
    return sorted(sorted(kernels) for kernels in replays.values())


def kernels(path):
    """Every kernel of the program, in replays or not, as (begin, end, name), by its begin."""
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return sorted((int(start), int(end), name) for _, _, start, end, name in rows if not name.startswith("plumb_"))


def times_are_true(rows, replays, kernels_of):
    """Each replay that was sampled has so many kernels for each of its bricks, and their times. Returns how many there were."""
    size = len(replays[0])
    bricks = 0
    while bricks < len(rows) and sum(kernels_of(row) for row in rows[:bricks]) < size:
        bricks += 1
    assert bricks and len(rows) % bricks == 0, f"{len(rows)} bricks in replays of {bricks}"
    for first in range(0, len(rows), bricks):
        begin = rows[first]["begin_ns"]
        kernels = replays[bisect.bisect_left(replays, [(begin - TOGETHER_NS, 0)])]
        assert abs(kernels[0][0] - begin) < TOGETHER_NS, f"no replay began near {begin}"
        at = 0
        for row in rows[first:first + bricks]:
            following = at + kernels_of(row)
            true = kernels[following - 1][1] - kernels[at][0]
            assert abs(row["duration_ns"] - true) <= NEAR_NS, f"{row}, and truly {true} ns"
            at = following
    return len(rows) // bricks
