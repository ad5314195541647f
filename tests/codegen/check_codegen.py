# SPDX-License-Identifier: Apache-2.0
"""Reads generated code: compiled out leaves no instruction, off costs one load, one test and one branch, thread-local
storage needs no call, and a serialised stamp is fenced. x86-64; other machines are told so and skipped."""

import functools
import pathlib
import platform
import re
import subprocess
import sys
import unittest

COMPILER = SOURCE = WORK = LIBRARY = STAMPS = None


@functools.cache
def compile_unit(name, *flags):
    output = WORK / f"{name}.{len(list(WORK.iterdir()))}.o"
    subprocess.run([COMPILER, "-O2", "-fno-exceptions", f"-I{SOURCE / 'include'}", *flags, "-c",
                    str(SOURCE / "tests/codegen" / f"{name}.cpp"), "-o", str(output)], check=True)
    return output


def disassemble(path):
    """{function: [(address, instruction, relocation)]}"""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", "-C", str(path)], check=True, capture_output=True,
                          text=True).stdout
    functions, current = {}, None
    for line in text.splitlines():
        if match := re.match(r"^[0-9a-f]+ <(.*)>:$", line):
            current = functions.setdefault(match[1], [])
        elif match := re.match(r"^\s+[0-9a-f]+: (R_X86\S+)\s+(.*)$", line):
            current[-1][2] = f"{match[1]} {match[2]}"
        elif match := re.match(r"^\s+([0-9a-f]+):\s+(.*?)\s*(#.*)?$", line):
            current.append([int(match[1], 16), match[2], ""])
    return functions


def comparable(function):
    start = function[0][0]
    moved = lambda match: f"+{int(match[1], 16) - start:x}"
    lines = [(re.sub(r"\b([0-9a-f]+) <[^>]*>", moved, text), relocation) for _, text, relocation in function]
    while lines and re.match(r"^(cs |data16 |nop|xchg +%ax,%ax)", lines[-1][0]):
        lines.pop()  # padding behind the function
    return lines


def off_path(function):
    """Instructions executed while the profiler is off: every conditional jump that tests the mode falls to its off side."""
    at = {address: index for index, (address, _, _) in enumerate(function)}
    index, path = 0, []
    while index < len(function):
        address, text, relocation = function[index]
        path.append((text, relocation))
        word = text.split()[0]
        if word in ("ret", "retq") or (word == "jmp" and relocation):
            return path
        if word == "jmp":
            index = at[int(text.split()[1], 16)]
        elif word == "je" and "test" in path[-2][0]:
            index = at[int(text.split()[1], 16)]  # the bit is clear
        else:
            index += 1
    raise AssertionError("the function does not end")


def is_load(text):
    if re.match(r"^(lea|nop|push|pop|call|jmp|cs |data16)", text) or "(" not in text:
        return False
    return "%rsp" not in text and not re.search(r",[^,()]*\([^()]*\)$", text)


class Codegen(unittest.TestCase):
    def test_compiled_out_leaves_no_instruction(self):
        for standard in ("-std=c++17", "-std=c++20"):
            functions = disassemble(compile_unit("disabled", standard, "-DPLUMB_DISABLE"))
            self.assertEqual(comparable(functions["with_macros"]), comparable(functions["without_macros"]))

    def test_the_comparison_would_see_a_difference(self):
        functions = disassemble(compile_unit("disabled", "-std=c++17"))
        self.assertNotEqual(comparable(functions["with_macros"]), comparable(functions["without_macros"]))

    def test_T5_off_is_one_load_one_test_and_one_branch(self):
        for flags in (["-std=c++17"], ["-std=c++20", "-fPIC"]):
            functions = disassemble(compile_unit("enabled", *flags))
            for name in ("one_brick", "one_brick_with_work", "one_brick_by_text", "one_lap", "one_label", "one_tile", "one_tile_with_work"):
                path = off_path(functions[name])
                texts = [text for text, _ in path]
                jumps = [t for t in texts if re.match(r"^j(?!mp)", t)]
                calls = [r for t, r in path if t.startswith(("call", "jmp")) and r and "operation" not in r]
                self.assertEqual(len(jumps), 1, f"{name}: {texts}")
                self.assertEqual(len([t for t in texts if is_load(t)]), 1, f"{name}: {texts}")
                self.assertEqual(calls, [], f"{name}: {texts}")
                self.assertFalse([t for t in texts if "rdtsc" in t or t.startswith("lock")], name)

    def test_a_layer_and_a_token_that_are_off_call_nothing(self):
        functions = disassemble(compile_unit("enabled", "-std=c++17"))
        path = off_path(functions["one_layer"])
        self.assertFalse([t for t, _ in path if "rdtsc" in t])
        self.assertFalse([r for _, r in path if "Layer::" in r])

    def test_an_operation_that_is_off_reads_its_mode_and_calls_nothing(self):
        for flags in (["-std=c++17"], ["-std=c++20", "-fPIC"]):
            path = off_path(disassemble(compile_unit("enabled", *flags))["one_op"])
            self.assertEqual([r for t, r in path if t.startswith(("call", "jmp")) and r and "operation" not in r], [], path)
            self.assertFalse([t for t, _ in path if "rdtsc" in t or t.startswith(("lock", "rep"))], path)

    def test_a_scope_that_is_on_makes_no_call_on_its_short_path(self):
        for name in ("one_brick", "one_brick_by_text"):
            on = disassemble(compile_unit("enabled", "-std=c++17"))[name]
            self.assertEqual(len([t for _, t, _ in on if "rdtsc" in t]), 2, "two clock reads")
            self.assertFalse([t for _, t, _ in on if t.startswith("lock") or "mfence" in t or re.match(r"xchg.*\(", t)])
            self.assertFalse([r for _, _, r in on if "cxa_guard" in r], "a literal costs one load")

    def test_a_name_that_is_none_is_refused_in_one_sentence(self):
        unit = """#include <plumb/record.hpp>
            void run(plumb::Recorder& prof, const char* text, int n) { (void)n; (void)text; PLUMB_%s; }"""
        cases = {"BRICK(prof, plumb::host, %s)": "a brick is", "LAP(prof, plumb::host, %s)": "a brick is"}
        for macro, sentence in cases.items():
            for name, accepted in {"text": False, "n": False, '"mine"': True, "plumb::Brick::lm_head": True}.items():
                done = subprocess.run([COMPILER, "-std=c++17", f"-I{SOURCE / 'include'}", "-fsyntax-only", "-x", "c++", "-"],
                                      input=unit % (macro % name), text=True, capture_output=True)
                self.assertEqual(done.returncode == 0, accepted, f"{macro % name}: {done.stderr}")
                errors = [line for line in done.stderr.splitlines() if "error:" in line]
                self.assertEqual(len(errors), 0 if accepted else 1, done.stderr)
                self.assertTrue(accepted or sentence in errors[0], done.stderr)

    def test_a_tile_that_is_on_reads_the_clock_twice_and_locks_nothing(self):
        on = disassemble(compile_unit("enabled", "-std=c++17"))["one_tile_with_work"]
        self.assertEqual(len([t for _, t, _ in on if "rdtsc" in t]), 2, "two clock reads")
        self.assertFalse([t for _, t, _ in on if t.startswith("lock") or "mfence" in t or re.match(r"xchg.*\(", t)])

    def test_thread_local_storage_needs_no_call(self):
        relocations = subprocess.run(["objdump", "-r", str(compile_unit("enabled", "-std=c++17", "-fPIC"))], check=True,
                                     capture_output=True, text=True).stdout
        self.assertRegex(relocations, r"GOTTPOFF|GOTPC32_TLSDESC")
        self.assertNotRegex(relocations, r"TLSGD|TLSLD|__tls_get_addr")
        for function, lines in disassemble(LIBRARY).items():
            if function.startswith("plumb::"):
                self.assertFalse([t for _, t, _ in lines if "__tls_get_addr" in t], function)

    def test_serialised_stamps_are_fenced_on_both_sides(self):
        functions = disassemble(STAMPS)
        for name in ("plumb::v1::Recorder::stamp() const", "plumb::v1::Recorder::layer_stamp() const"):
            words = [text.split()[0] for _, text, _ in functions[name]]
            fences = [word for word in words if word in ("mfence", "lfence", "rdtsc")]
            self.assertRegex(" ".join(fences), r"mfence lfence (rdtsc )?lfence", name)


if __name__ == "__main__":
    if platform.machine() not in ("x86_64", "AMD64"):
        print("generated code is read on x86-64 only")
        sys.exit(77)
    COMPILER, SOURCE, WORK, LIBRARY, STAMPS = sys.argv[1], *map(pathlib.Path, sys.argv[2:6])
    WORK.mkdir(parents=True, exist_ok=True)
    for old in WORK.iterdir():
        old.unlink()
    unittest.main(argv=sys.argv[:1] + sys.argv[6:])
