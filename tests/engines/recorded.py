# SPDX-License-Identifier: Apache-2.0
"""A recording as `plumb export` tells it, for tests of programs that were recorded from outside."""

import collections
import json
import subprocess


class Recorded:
    """Steps, and the leaf scopes of each thread in the order in which they began."""

    def __init__(self, plumb, path):
        done = subprocess.run([plumb, "export", path, "--format", "jsonl"], capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.threads = {track["id"]: track["os_thread"] for track in rows[0]["tracks"]}
        self.steps = [row for row in rows[1:] if row["kind"] == "step"]
        self.scopes = sorted((row for row in rows[1:] if row["kind"] == "scope" and row["leaf"]), key=lambda row: row["begin_ns"])
        self.nodes = [row for row in self.scopes if row["name"] != "sampling"]
        self.samplings = [row for row in self.scopes if row["name"] == "sampling"]

    def thread(self, row):
        return self.threads[row["track"]]

    def by_step(self, phase):
        """The nodes of each step of that phase."""
        found = collections.defaultdict(list)
        for row in self.nodes:
            if row["phase"] == phase and "step" in row:
                found[row["step"]].append(row)
        return found


def run(plumb, recording, command, environment=None, words=(), **options):
    """The command under `plumb run`. What it printed itself comes first; the report goes nowhere."""
    return subprocess.run([plumb, "run", "-o", recording, *words, "--", *command], capture_output=True, text=True, env=environment,
                          **options)
