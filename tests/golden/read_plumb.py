# SPDX-License-Identifier: Apache-2.0
"""An independent reader of .plumb files, written from docs/reference/plumb_format.md alone: standard library only, and the command
zstd where a plane is compressed. Prints every fact and record as text. Usage: read_plumb.py FILE"""

import struct
import subprocess
import sys

from xxh3 import MASK, xxh3_64

MAGIC = b"PLUMB\r\n\x1a"
CHUNK_MAGIC = b"\x9ePLC"
MASK40, MASK56 = (1 << 40) - 1, (1 << 56) - 1
TIMED, APART, CLOSING, POINT, VALUE = range(5)
CLASSES = {1: TIMED, 17: TIMED, 11: APART, 5: CLOSING, 7: CLOSING, 3: POINT, 6: POINT, 14: POINT, 15: POINT}


def fail(reason):
    print(reason, file=sys.stderr)
    sys.exit(2)


def chunks(data):
    """(type, codec, track, count, first sequence, payload, bounds) of every chunk."""
    at = 64
    while at < len(data):
        header = data[at:at + 64]
        if len(header) < 64 or header[:4] != CHUNK_MAGIC or xxh3_64(header[:56]) != struct.unpack_from("<Q", header, 56)[0]:
            fail(f"chunk header at {at} does not hold")
        kind, codec, _zero, track, count, sequence, size, bounds = struct.unpack_from("<HBBIIQII", header, 4)
        payload = data[at + 64:at + 64 + size]
        if len(payload) < size or xxh3_64(payload) != struct.unpack_from("<Q", header, 48)[0]:
            fail(f"chunk payload at {at} does not hold")
        yield kind, codec, track, count, sequence, payload, payload[size - bounds:]
        at += 64 + size


def fields(data):
    found, at = {}, 0
    while at < len(data):
        number, size = struct.unpack_from("<HI", data, at)
        found.setdefault(number, []).append(data[at + 6:at + 6 + size])
        at += 6 + size
    return found


def entries(data):
    at = 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        yield fields(data[at + 4:at + 4 + size])
        at += 4 + size


def number(entry, field, kind="<Q"):
    return struct.unpack(kind, entry[field][0])[0]


def text(entry, field):
    return entry[field][0].decode()


def unzstd(frame):
    return subprocess.run(["zstd", "-dc"], input=frame, stdout=subprocess.PIPE, check=True).stdout


class Columns:
    def __init__(self, data):
        self.data, self.at = data, 8

    def plane(self, count):
        mode, size = struct.unpack_from("<BI", self.data, self.at)
        content = self.data[self.at + 5:self.at + 5 + size]
        self.at += 5 + size
        if mode == 1:
            return content * count
        if mode == 2:
            content = unzstd(content)
        return content

    def column(self, count):
        planes = self.data[self.at]
        self.at += 1
        values = [0] * count
        for p in range(planes):
            values = [v | byte << 8 * p for v, byte in zip(values, self.plane(count), strict=True)]
        return values


def unzigzag(code):
    return (code >> 1) ^ -(code & 1)


def records(payload, count):
    """(first, second) of every record of a chunk."""
    columns = Columns(payload)
    tags, ids, payloads = columns.column(count), columns.column(count), columns.column(count)
    value_count = sum(CLASSES.get(tag >> 2, VALUE) == VALUE for tag in tags)
    times, values = iter(columns.column(count - value_count)), iter(columns.column(value_count))
    last = open_step = open_layer = struct.unpack_from("<Q", payload)[0]
    last_cpu = 0
    slot_payload, slot_parent, slot_value = [0] * 1024, [False] * 1024, [0] * 1024
    for tag, name, code in zip(tags, ids, payloads):
        kind = tag >> 2
        use = CLASSES.get(kind, VALUE)
        slot = (67 * kind + (0 if kind in (6, 14) else name)) % 1024
        top = tag << 56
        if use == CLOSING:
            last = (last + unzigzag(next(times))) & MASK
            duration = (last - (open_step if kind == 5 else open_layer) + unzigzag(code)) & MASK40
            yield (last - duration) & MASK, top | name << 40 | duration
            continue
        if kind == 14:
            last_cpu = (last_cpu + unzigzag(name << 40 | code)) & MASK56
            amount, second = 0, top | last_cpu
        else:
            amount = slot_payload[slot] = (slot_payload[slot] + unzigzag(code)) & MASK40
            second = top | name << 40 | amount
        if use == VALUE:
            place = (67 * kind + name + 251 * (amount % 4)) % 1024
            slot_value[place] = (slot_value[place] + unzigzag(next(values))) & MASK
            yield slot_value[place], second
            continue
        first = (last + unzigzag(next(times))) & MASK
        if use != POINT and slot_parent[slot]:
            first = (first - amount) & MASK
        if use == POINT:
            last = first
            open_step, open_layer = (first if kind == 3 else open_step), (first if kind == 6 else open_layer)
        elif use == TIMED:
            slot_parent[slot] = (first - last) & MASK >= 1 << 63
            last = (first + amount) & MASK
        yield first, second


def double(entry, field):
    return struct.unpack("<d", entry[field][0])[0] if field in entry else None


def counts(entry, field):
    """[(name, number)] of named numbers."""
    found = []
    for content in entry.get(field, []):
        size = struct.unpack_from("<I", content)[0]
        found.append((content[4:4 + size].decode(), struct.unpack("<Q", content[4 + size:])[0]))
    return found


def print_content(key, entry):
    print("content", key, number_or(entry, 6, 0), number_or(entry, 7, 0))
    for content in entry.get(3, []):
        print("kind", key, *struct.unpack_from("<9I", content), content[36:].decode())
    for field, word, layout in ((4, "node", "<3I"), (5, "edge", "<2I")):
        for content in entry.get(field, []):
            for values in struct.iter_unpack(layout, content):
                print(word, key, *values)


def print_graphs(rows, contents):
    last = {}
    tables = {number(entry, 2): entry for entry in contents}
    for entry in rows:
        key = number(entry, 1)
        if 29 in entry and number(entry, 29) != 0:
            for field in range(30, 35):
                entry[field] = last.get(key, {}).get(field, [])
        last[key] = entry
    for key, entry in last.items():
        totals = [number(entry, field) if field in entry else 0 for field in (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 24)]
        print("graph", key, *totals)
        print("times", key, *("n/a" if double(entry, field) is None else f"{double(entry, field):.6g}"
                              for field in (15, 16, 17, 18, 19, 22, 23, 25, 26, 27, 28)))
        for field in (20, 21):
            if field in entry:
                print("twin", key, text(entry, field))
        for field in (11, 30, 31):
            for name, count in counts(entry, field):
                print("count", key, field, name, count)
        for name, both in counts(entry, 32):
            print("change", key, name, both & 0xFFFFFFFF, both >> 32)
        for content in entry.get(33, []):
            print("baked", key, content.decode())
        for content in entry.get(34, []):
            for at in range(0, len(content), 16):
                print("site", key, *struct.unpack_from("<HHIII", content, at))
        if number_or(entry, 35, 0) in tables:
            print_content(key, tables[number(entry, 35)])


def number_or(entry, field, absent, kind="<Q"):
    return number(entry, field, kind) if field in entry else absent


def words(content):
    return [content[at:at + 8] for at in range(0, len(content), 8)]


def print_check(entry):
    (order, step, layer, name, phase, role, level, dtype, occurrence, sequence,
     track) = struct.unpack_from("<QQIHBBBBIII", entry[1][0])
    graph = ["graph", number(entry, 7), number_or(entry, 8, 0)] if 7 in entry else []
    print("check", order, step, layer, name, phase, role, level, dtype, occurrence, sequence, track,
          number_or(entry, 5, -1, "<q"), number_or(entry, 6, 0), *graph)
    print(" ".join(["shape", *(str(struct.unpack("<Q", size)[0]) for size in words(entry.get(4, [b""])[0]))]))
    values = struct.unpack_from("<7Q", entry[2][0])
    print("values", *values[:3], *(number_or(entry, field, 0) for field in (9, 10, 11)), number_or(entry, 12, MASK),
          *(f"{bits:016x}" for bits in values[3:]))
    print("logits", *([number(entry, 13), f"{number(entry, 14):016x}"] if 13 in entry else ["none"]))
    print(" ".join(["sketch", *(f"{struct.unpack('<Q', bucket)[0]:016x}" for bucket in words(entry.get(3, [b""])[0]))]))


def print_launches(queues, streams):
    """Which record submitted each scope of a queue, where the recording says so."""
    for queue in queues:
        cause = None
        for sequence, (first, second) in streams.get(queue, []):
            if second >> 58 == 29:
                cause = (second & MASK40, first)
            elif second >> 58 == 1:
                if cause:
                    print("scope", queue, sequence, "by", *cause)
                cause = None


def main():
    data = open(sys.argv[1], "rb").read()
    if data[:8] != MAGIC or struct.unpack_from("<I", data, 8)[0] != 1 or xxh3_64(data[:56]) != struct.unpack_from("<Q", data, 56)[0]:
        fail("no recording of version 1")
    facts, streams, checks, tiles, generation = {}, {}, [], {}, 0
    bounds_lines = []
    for kind, codec, track, count, sequence, payload, bounds in chunks(data):
        if kind == 1:
            print("host", text(fields(payload), 4))
        elif kind in (2, 3, 4, 12, 14, 19):
            facts.setdefault(kind, []).extend(entries(payload))
        elif kind in (7, 9):
            numbered = ((sequence + i, record) for i, record in enumerate(records(payload, count)))
            streams.setdefault(track, []).extend(numbered)
            if bounds:
                words = struct.unpack_from("<QQQQII", bounds) + struct.unpack(f"<{(len(bounds) - 40) // 8}Q", bounds[40:])
                bounds_lines.append(" ".join(map(str, ("bounds", track, *words))))
        elif kind == 13:
            checks.extend(entries(unzstd(payload[4:]) if codec == 2 else payload))
        elif kind == 18:
            if sequence != generation:
                tiles, generation = {}, sequence
            size = struct.unpack_from("<I", payload)[0]
            for at in range(4, 4 + count * size, size):
                entry = struct.unpack_from("<8Q", payload, at)
                tiles[entry[0]] = entry[1:]
    for entry in facts.get(2, []):
        print("track", number(entry, 1), text(entry, 5), text(entry, 6))
        if 7 in entry or 8 in entry:
            print("device", number(entry, 2), number(entry, 7) if 7 in entry else 1, number(entry, 8) if 8 in entry else 0)
    for entry in facts.get(3, []):
        print("name", number(entry, 1), text(entry, 3))
    for entry in facts.get(4, []):
        print("clock", number(entry, 1), number(entry, 2), number(entry, 3, "<q"))
    print_graphs(facts.get(12, []), facts.get(19, []))
    for entry in facts.get(14, []):
        print("kernel", f"{number(entry, 1):016x}", number(entry, 5), number(entry, 6), f"{number(entry, 7):016x}")
        for field, word in ((2, "called"), (3, "from"), (4, "source")):
            if field in entry and text(entry, field):
                print(word, text(entry, field))
    for entry in checks:
        print_check(entry)
    for key in sorted(tiles):
        print("tile", key >> 62, key >> 46 & 0xffff, key >> 23 & 0x7fffff, key & 0x7fffff, *tiles[key])
    for track in sorted(streams):
        for sequence, (first, second) in streams[track]:
            print("record", track, sequence, f"{first:016x} {second:016x}")
    for line in bounds_lines:
        print(line)
    print_launches([number(entry, 1) for entry in facts.get(2, []) if number_or(entry, 2, 0) == 1], streams)


if __name__ == "__main__":
    main()
