# SPDX-License-Identifier: Apache-2.0
"""Reads a Chrome trace by the rules of that format alone, with none of our code: what a viewer would trip over, and what
the events sum to."""

import collections


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def problems(trace):
    """One sentence for each negative time, unnamed lane, and pair of events that overlaps in a lane without nesting."""
    lanes = collections.defaultdict(list)
    named = {event["tid"] for event in trace["traceEvents"] if event["ph"] == "M" and event["name"] == "thread_name"}
    found = []
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            continue
        begin, duration = nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))
        if begin < 0 or duration < 0:
            found.append(f"negative time: {event}")
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((begin, -(begin + duration), event["name"]))
            if event["tid"] not in named:
                found.append(f"lane {event['tid']} has no name")
    for lane, events in lanes.items():
        open_ends = []
        for begin, negated_end, name in sorted(events):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            if open_ends and open_ends[-1] < -negated_end:
                found.append(f"lane {lane}: {name} at {begin} overlaps without nesting")
            open_ends.append(-negated_end)
    return found


def flow_problems(trace):
    """Every arrow has at most one end, which is no earlier than its start, and each end lies on the begin of an event."""
    begins = {(event["tid"], nanoseconds(event["ts"])) for event in trace["traceEvents"] if event["ph"] == "X"}
    starts, found = {}, []
    for event in trace["traceEvents"]:
        if event["ph"] not in ("s", "f"):
            continue
        at = nanoseconds(event["ts"])
        if (event["tid"], at) not in begins:
            found.append(f"{event} binds to no event")
        if event["ph"] == "s":
            starts[event["id"]] = at
        elif starts.pop(event["id"], at + 1) > at:
            found.append(f"{event} ends no arrow, or one that starts later")
    return found


def sums(trace):
    """(phase, name) -> (count, total ns) of the bricks; warm-up apart, as in a report."""
    totals = collections.defaultdict(lambda: (0, 0))
    for event in trace["traceEvents"]:
        if event["ph"] != "X" or event["cat"] in ("step", "layer", "submit", "launch") or event["args"].get("warmup"):
            continue
        key = event["args"]["phase"], event["name"]
        count, total = totals[key]
        totals[key] = count + 1, total + nanoseconds(event["dur"])
    return dict(totals)


def nesting_problems(trace):
    """Every layer lies in its step and every brick in its layer or step, by time and by lane."""
    places = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in ("step", "layer"):
            places[event["tid"], event["args"]["step"], event["args"].get("layer")] = event
    found = []
    for event in trace["traceEvents"]:
        if event["ph"] != "X" or "step" not in event["args"] or event["cat"] == "step":
            continue
        layer = None if event["cat"] == "layer" else event["args"].get("layer")
        outer = places.get((event["tid"], event["args"]["step"], layer))
        if outer is None:
            continue
        begin, outer_begin = nanoseconds(event["ts"]), nanoseconds(outer["ts"])
        if begin < outer_begin or begin + nanoseconds(event["dur"]) > outer_begin + nanoseconds(outer["dur"]):
            found.append(f"{event} is not inside {outer}")
    return found
