# SPDX-License-Identifier: Apache-2.0
"""Writes the vocabulary of a tokenizer.json as a GGUF file without tensors.

usage: to_gguf.py tokenizer.json RULE out.gguf
RULE: what the file's tokenizer.ggml.pre says; or pieces, or pieces-after-space, for scored pieces."""

import json
import re
import struct
import sys

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
FLAG, TEXT, ARRAY, INT32, FLOAT32 = 7, 8, 9, 5, 6


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key, kind, value):
    return text("tokenizer.ggml." + key) + struct.pack("<I", kind) + value


def array(key, kind, values):
    encoded = {TEXT: text, INT32: struct.Struct("<i").pack, FLOAT32: struct.Struct("<f").pack}[kind]
    return entry(key, ARRAY, struct.pack("<IQ", kind, len(values)) + b"".join(encoded(value) for value in values))


def main():
    source, rule, out = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        stored = json.load(file)
    ids, added = stored["model"]["vocab"], stored["added_tokens"]
    count = max([*ids.values(), *(token["id"] for token in added)]) + 1
    tokens, types = [f"[unused {i}]" for i in range(count)], [UNUSED] * count
    pieces = rule.startswith("pieces")
    for token, i in ids.items():
        tokens[i] = token
        types[i] = BYTE if pieces and re.fullmatch("<0x[0-9A-F]{2}>", token) else NORMAL
    for token in added:
        tokens[token["id"]] = token["content"]
        types[token["id"]] = UNKNOWN if token["content"] == "<unk>" else CONTROL if token["special"] else USER
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in stored["model"]["merges"]]
    entries = [entry("model", TEXT, text("llama" if pieces else "gpt2")), array("tokens", TEXT, tokens),
               array("token_type", INT32, types)]
    if pieces:
        scores = {}
        for rank, merge in enumerate(merges):  # the sooner two pieces are merged, the higher scores what they become
            scores.setdefault(ids[merge.replace(" ", "")], -float(rank))
        entries.append(array("scores", FLOAT32, [scores.get(i, 0.0) for i in range(count)]))
        entries.append(entry("add_space_prefix", FLAG, bytes([rule == "pieces-after-space"])))
    else:
        entries += [array("merges", TEXT, merges), entry("pre", TEXT, text(rule))]
    with open(out, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries))


main()
