# SPDX-License-Identifier: Apache-2.0
"""Outputs that the command itself puts together, and exports, under their schemas in tests/schema.

usage: schema_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]"""

import json
import math
import signal
import struct
import subprocess

from interrupt_test import Running
from shell import (Case, ENVIRONMENT, FOLDER, HANG, MAKE_RECORDING, PLUMB, SOURCE, check_recording, graph_recording,
                   main, plumb, recording, recording_with, schema_problems)


class Schemas(Case):
    def documents(self, *words):
        done = plumb(*words)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[:1000])
        return [json.loads(line) for line in done.stdout.splitlines()] if words[0] == "export" else json.loads(done.stdout)

    def assert_valid(self, schema, *documents):
        self.assertEqual(schema_problems(schema, *documents), "")

    def assert_strict(self, schema, document):
        """Whatever is taken out of the document, or put into it, breaks it."""
        for key in document:
            self.assertIn(f"$ lacks {key}\n", schema_problems(schema, {k: v for k, v in document.items() if k != key}))
        self.assertIn("$.more is not in the schema\n", schema_problems(schema, document | {"more": 1}))
        self.assertIn("$.schema is not one of", schema_problems(schema, document | {"schema": schema[:-1] + "2"}))

    def test_selftest_with_a_device_and_without(self):
        test = self.documents("selftest", "--json")
        self.assertTrue(any(backend["unavailable"] for backend in test["backends"]))
        self.assert_valid("plumb.selftest.1", test)
        self.assert_strict("plumb.selftest.1", test)
        test["backends"][0]["devices"][0]["floor_ns"] = None
        self.assertIn("$.backends[0].devices[0].floor_ns", schema_problems("plumb.selftest.1", test))

    def test_selftest_says_why_a_figure_is_absent(self):
        libraries = MAKE_RECORDING.parent.parent / "virtual_gpu"
        if not libraries.exists():
            self.skipTest("built without the virtual GPU")
        done = subprocess.run([PLUMB, "selftest", "--json"], capture_output=True, text=True, timeout=HANG,
                              env={**ENVIRONMENT, "LD_LIBRARY_PATH": str(libraries)})
        test = json.loads(done.stdout)
        self.assert_valid("plumb.selftest.1", test)
        cuda = {backend["name"]: backend for backend in test["backends"]}["cuda"]
        self.assertIsNone(cuda["unavailable"])
        self.assertIn("absent", cuda["devices"][0]["clock_read_ns"])
        pair = cuda["devices"][0]["clock_pair_ns"]  # absent where a busy machine let no pair through
        self.assertTrue("absent" in pair if isinstance(pair, dict) else pair > 0, pair)

    def test_recover_of_a_sound_file_and_of_a_killed_run(self):
        sound = self.documents("recover", recording(), "--json")
        model = FOLDER / "small.gguf"
        self.documents("model", "make", "--shape", "test-qwen2", "-o", model, "--json")
        killed = FOLDER / "killed.plumb"
        running = Running("decode", model, "--threads", 1, "--out", killed, "--prompt-tokens", 5, "--steps", 200000)
        running.until(b"decode ")
        running.signal(signal.SIGKILL)
        self.assertEqual(running.end()[0], -signal.SIGKILL)
        recovered = self.documents("recover", killed, "--json")
        self.assertEqual((sound["rings"], recovered["rings"]), (0, 1))
        again = self.documents("recover", killed, "--json")
        self.assertEqual((again["rings"], again["records_recovered"]), (0, 0))
        self.assert_valid("plumb.recover.1", sound, recovered, again)
        self.assert_strict("plumb.recover.1", sound)

    def test_a_model_made_and_any_other_file(self):
        made = self.documents("model", "make", "--shape", "test-qwen2", "--type", "f16", "-o", FOLDER / "f16.gguf",
                              "--json")
        shown = self.documents("model", "show", FOLDER / "f16.gguf", "--json")
        self.assertEqual(made, shown)
        odd = FOLDER / "odd.gguf"
        odd.write_bytes(odd_model())
        found = self.documents("model", "show", odd, "--json")
        values = {entry["key"]: entry["value"] for entry in found["metadata"]}
        for key in ("nan", "infinite"):
            self.assertEqual(values[key], {"absent": "not a finite number"})
        self.assertEqual(values["numbers"]["first"], [0.5, {"absent": "not a finite number"}])
        self.assertEqual(values["arrays"]["first"], [{"count": 2, "type": "u8"}])
        self.assertIn("absent", found["tensors"][0]["bytes"])
        self.assertIn("absent", found["types"][0]["bytes"])
        self.assert_valid("plumb.model.1", made, found)
        self.assert_strict("plumb.model.1", made)
        found["tensors"][0]["bytes"] = None
        self.assertIn("$.tensors[0].bytes", schema_problems("plumb.model.1", found))

    def test_every_kind_of_line_of_an_export(self):
        sources = [recording(), recording_with("nodes"), graph_recording(), *map(check_recording, ("clean", "nan", "nonfinite"))]
        exports = [self.documents("export", source) for source in sources]
        self.assert_valid("plumb.samples.1", *[line for lines in exports for line in lines])
        kinds = {line["kind"]: line for lines in exports for line in lines[1:]}
        schema = json.loads((SOURCE / "tests" / "schema" / "plumb.samples.1.json").read_text())
        known = {kind for form in schema["$defs"].values() if "kind" in form.get("properties", {})
                 for kind in form["properties"]["kind"]["enum"]}
        self.assertEqual(set(kinds), known)
        self.assertTrue({"graphs", "kernels"} <= {key for lines in exports for key in lines[0]})
        for line in [exports[0][0], *kinds.values()]:
            self.assertIn("none of the allowed forms", schema_problems("plumb.samples.1", line | {"more": 1}))

    def test_every_kind_of_event_of_a_trace(self):
        sources = [recording(), recording_with("nodes"), recording_with("crowd"), graph_recording()]
        traces = [self.documents("trace", source) for source in sources]
        self.assert_valid("plumb.trace.1", *traces)
        events = {(event["ph"], event.get("cat")): event for one in traces for event in one["traceEvents"]}
        self.assertEqual({shape for shape, _ in events}, set("MXbeisf"))
        self.assertLessEqual({"step", "layer", "submit", "launch", "kernel", "transfer", "task"}, {cat for _, cat in events})
        for event in events.values():
            for broken in (event | {"more": 1}, {key: value for key, value in event.items() if key != "tid"}):
                self.assertIn("$.traceEvents[0] is none of the allowed forms",
                              schema_problems("plumb.trace.1", traces[0] | {"traceEvents": [broken]}))

    def test_the_graph_of_a_step_in_compressed_rows(self):
        graphs = [self.documents("path", source, "--csr", "--step", step)
                  for source, step in ((recording(), 3), (recording_with("nodes"), 129))]
        self.assert_valid("plumb.path_csr.1", *graphs)
        for graph in graphs:
            self.assert_strict("plumb.path_csr.1", graph)
            self.assertEqual(graph["offsets"][-1], len(graph["targets"]))

    def test_the_file_of_checks_in_the_documents(self):
        document = (SOURCE / "docs" / "reference" / "checks.md").read_text().split("```json\n")[1].split("```")[0]
        self.assert_valid("plumb.checks.1", json.loads(document))


def odd_model():
    """A GGUF of what a model need not have: numbers that are none, arrays in arrays, a tensor of an unknown type."""
    def text(word):
        return struct.pack("<Q", len(word)) + word.encode()

    u8, i32, f32, boolean, array, f64 = 0, 5, 6, 7, 9, 12
    entries = [("nan", f32, struct.pack("<f", math.nan)), ("infinite", f64, struct.pack("<d", -math.inf)),
               ("negative", i32, struct.pack("<i", -5)), ("flag", boolean, b"\1"),
               ("numbers", array, struct.pack("<IQff", f32, 2, 0.5, math.inf)),
               ("arrays", array, struct.pack("<IQIQBB", array, 1, u8, 2, 1, 2)),
               ("nothing", array, struct.pack("<IQ", f32, 0))]
    head = struct.pack("<IIQQ", 0x46554747, 3, 1, len(entries))
    head += b"".join(text(key) + struct.pack("<I", kind) + value for key, kind, value in entries)
    head += text("odd") + struct.pack("<IQIQ", 1, 4, 777, 0)
    return head + bytes(-len(head) % 32) + bytes(64)


if __name__ == "__main__":
    main()
