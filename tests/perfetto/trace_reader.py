# SPDX-License-Identifier: Apache-2.0
"""Reads a Perfetto trace by the rules of that format alone, with none of our code: packets, sequences with their clocks and names,
and the slices that a viewer would draw."""

import collections
import struct

MONOTONIC = 3
Slice = collections.namedtuple("Slice", "track name begin end step layer notes categories submits")
DeviceSlice = collections.namedtuple("DeviceSlice", "queue name begin duration step layer id gpu context extra launch")


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Field number -> contents, in order; a number for varints and fixed ones, else bytes."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError(f"field {tag >> 3} is longer than what it lies in")
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {kind} in field {tag >> 3}")
        found[tag >> 3].append(value)
    return found


def one(found, number, default=None):
    return found[number][-1] if number in found else default


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


class Sequence:
    def __init__(self):
        self.cleared = False
        self.clocks = {}  # those that count from the packet before: now
        self.default_clock = MONOTONIC
        self.default_track = None
        self.names, self.categories, self.notes, self.specs, self.contexts = {}, {}, {}, {}, {}


class Trace:
    """slices, device_slices, instants (track, name, ns), counters (name -> [(ns, value)]), snapshots, problems."""

    def __init__(self, data):
        self.sequences = collections.defaultdict(Sequence)
        self.tracks, self.units = {}, {}  # by uuid: name, parent
        self.snapshots, self.problems = [], []
        self.device_slices, self.instants, self.counters = [], [], collections.defaultdict(list)
        events, at = [], 0
        while at < len(data):
            tag, at = varint(data, at)
            if tag != 0x0a:
                raise ValueError("a trace consists of packets")
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("the last packet is cut short")
            self.packet(fields(data[at:at + size]), events)
            at += size
        # As a viewer does: by time, and what is of one time in the order of the file.
        events.sort(key=lambda event: event[0])
        self.slices = self.stack(events)

    def packet(self, packet, events):
        sequence = self.sequences[one(packet, 10, 0)]
        flags = one(packet, 13, 0)
        if flags & 1:
            sequence.__init__()
            sequence.cleared = True
        if flags & 2 and not sequence.cleared:
            self.problems.append("a packet needs what its sequence never said")
        for snapshot in packet[6]:
            clocks = [fields(clock) for clock in fields(snapshot)[1]]
            self.snapshots.append({one(c, 1): one(c, 2) for c in clocks})
            for clock in clocks:
                if one(clock, 3):
                    sequence.clocks[one(clock, 1)] = one(clock, 2)
        for defaults in packet[59]:
            said = fields(defaults)
            sequence.default_clock = one(said, 58, MONOTONIC)
            if 11 in said:
                sequence.default_track = one(fields(one(said, 11)), 11)
        for interned in packet[12]:
            self.intern(sequence, fields(interned))
        for descriptor in packet[60]:
            self.describe(fields(descriptor))
        if 11 in packet or 53 in packet:
            when = self.time(packet, sequence)
            if 11 in packet:
                events.append((when, fields(one(packet, 11)), sequence))
            else:
                self.device(when, fields(one(packet, 53)), sequence)

    def time(self, packet, sequence):
        stamp, clock = one(packet, 8, 0), one(packet, 58, sequence.default_clock)
        if clock not in sequence.clocks:
            if clock != MONOTONIC:
                self.problems.append(f"clock {clock} is not known")
            return stamp
        sequence.clocks[clock] += stamp
        return sequence.clocks[clock]

    def intern(self, sequence, interned):
        for number, table in ((1, sequence.categories), (2, sequence.names), (3, sequence.notes), (24, sequence.specs),
                              (23, sequence.contexts)):
            for entry in interned[number]:
                said = fields(entry)
                if one(said, 1) in table:
                    self.problems.append(f"iid {one(said, 1)} of table {number} is said twice")
                table[one(said, 1)] = said if number in (23, 24) else one(said, 2).decode()

    def describe(self, track):
        name = one(track, 2)
        if 4 in track:
            name = one(fields(one(track, 4)), 5)
        elif 3 in track:
            name = one(fields(one(track, 3)), 6)
        if one(track, 1) in self.tracks:
            self.problems.append(f"track {one(track, 1)} is described twice")
        parent = one(track, 5)
        if parent is not None and parent not in self.tracks:
            self.problems.append(f"track {one(track, 1)} has a parent that is not known")
        self.tracks[one(track, 1)] = name.decode()
        if 8 in track:
            self.units[name.decode()] = one(fields(one(track, 8)), 6).decode()

    def device(self, when, event, sequence):
        queue, stage = sequence.specs[one(event, 13)], sequence.specs[one(event, 14)]
        description = one(stage, 3).decode()
        layer = int(description.split()[1].rstrip(",")) if description.startswith("layer ") else None
        extra = {one(e, 1).decode(): one(e, 2).decode() for e in map(fields, event[6])}
        launch = None
        if 21 in event:
            launch = [[one(fields(dim), axis) for axis in (1, 2, 3)]
                      for dim in (one(fields(one(event, 21)), 1), one(fields(one(event, 21)), 2))]
        if one(event, 5) not in sequence.contexts:
            self.problems.append("a device event of no context")
        self.device_slices.append(DeviceSlice(one(queue, 2).decode(), one(stage, 2).decode(), when, one(event, 2, 0),
                                              one(event, 16), layer, one(event, 1), one(event, 11, 0), one(event, 5),
                                              {"stage": description, **extra}, launch))

    def stack(self, events):
        open_slices, done = collections.defaultdict(list), []
        for when, event, sequence in events:
            track = one(event, 11, sequence.default_track)
            if track not in self.tracks:
                self.problems.append(f"an event on track {track}, which is not known")
                continue
            kind = one(event, 9)
            name = sequence.names[one(event, 10)] if 10 in event else one(event, 23, b"").decode()
            stack = open_slices[track]
            if kind == 1:
                notes = {}
                for note in map(fields, event[4]):
                    word = sequence.notes[one(note, 1)]
                    notes[word] = (double(one(note, 5)) if 5 in note else
                                   one(note, 6).decode() if 6 in note else one(note, 3, one(note, 2)))
                above = stack[-1] if stack else None
                step = one(event, 52, above.step if above else None)
                layer = notes.get("layer", above.layer if above else None)
                if name.startswith("layer ") and not event[3]:
                    layer = int(name.split()[1])
                submits = [i for c in event[3000] for i in fields(c)[1]]
                stack.append(Slice(self.tracks[track], name, when, None, step, layer, notes,
                                   [sequence.categories[c] for c in event[3]], submits))
            elif kind == 2:
                if not stack:
                    self.problems.append(f"an end without begin on {self.tracks[track]}")
                    continue
                done.append(stack.pop()._replace(end=when))
                if stack and stack[-1].begin > done[-1].begin:
                    self.problems.append("slices do not nest")
            elif kind == 3:
                self.instants.append((self.tracks[track], name, when))
            elif kind == 4:
                self.counters[self.tracks[track]].append((when, double(one(event, 44))))
            else:
                self.problems.append(f"an event of type {kind}")
        for track, stack in open_slices.items():
            if stack:
                self.problems.append(f"{len(stack)} slices on {self.tracks[track]} never end")
        return done
