# SPDX-License-Identifier: Apache-2.0
"""The C ABI is that of docs/reference/c_abi.txt: functions of include/plumb/plumb.h, sizes and offsets of its structs, values of its
constants, as gcc lays them out here. --write writes that list anew. --library FILE: that libplumb.so exports these functions,
and no other name that begins with plumb_."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tree

HEADER = tree.ROOT / "include" / "plumb" / "plumb.h"
LIST = tree.ROOT / "docs" / "reference" / "c_abi.txt"
HEADING = """\
# The C ABI: what programs compiled with plumb/plumb.h rely on, on a 64-bit machine. Append; never change or take away.
# function: its declaration. struct: its size; below, the offset and size of each member. constant: its value.
# Written by  python3 tools/check_c_abi.py --write
"""
FUNCTION = re.compile(r"\bPLUMB_C_API\s+([^;{}#]+?\([^;{}#]*\))\s*;")
STRUCT = re.compile(r"\btypedef\s+struct\s+(\w+)\s*\{(.*?)\}\s*\1\s*;", re.S)
ENUM = re.compile(r"\benum\s*\{(.*?)\}\s*;", re.S)
MEMBER = re.compile(r"\(\s*\*\s*(?:\(\s*\*\s*)?(\w+)\s*\)|(\w+)\s*(?:\[[^]]*\])?\s*$")


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)


def functions_of(text):
    return [" ".join(found.split()) for found in FUNCTION.findall(without_comments(text))]


def name_of(function):
    return re.search(r"(\w+)\s*\(", function)[1]


def questions_of(text):
    """(line of the list, C expressions of its numbers), in the order of the header."""
    text = without_comments(text)
    for name, body in STRUCT.findall(text):
        yield f"struct {name} %zu", [f"sizeof({name})"]
        for member in filter(None, (" ".join(one.split()) for one in body.split(";"))):
            found = MEMBER.search(member)
            member_name = found[1] or found[2]
            yield (f"  %zu %zu {member}",
                   [f"offsetof({name}, {member_name})", f"sizeof((({name}*)0)->{member_name})"])
    for body in ENUM.findall(text):
        for constant in filter(None, (one.split("=")[0].strip() for one in body.split(","))):
            yield f"constant {constant} %zu", [f"(size_t){constant}"]


def lines_of(header):
    """What the list holds for a header."""
    text = header.read_text()
    prints = "".join(f'    printf("{line}\\n", {", ".join(numbers)});\n' for line, numbers in questions_of(text))
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "abi"
        source = f'#include <stdio.h>\n#include "{header}"\nint main(void) {{\n{prints}    return 0;\n}}\n'
        subprocess.run(["gcc", "-std=c11", "-x", "c", "-o", program, "-"], input=source, text=True, check=True)
        laid_out = subprocess.run([program], text=True, capture_output=True, check=True).stdout.splitlines()
    return [f"function {found}" for found in functions_of(text)] + laid_out


def keyed(lines):
    """Each line with the struct it belongs to, so that members of different structs differ."""
    owner = ""
    for line in lines:
        owner = line.split()[1] if line.startswith("struct ") else owner
        yield f"{owner}:{line}" if line.startswith("  ") else line


def differences(listed, found):
    listed, found = list(keyed(listed)), list(keyed(found))
    for line in found:
        if line not in listed:
            yield f"{line}: not in docs/reference/c_abi.txt; an addition goes there with --write"
    for line in listed:
        if line not in found:
            yield f"{line}: programs that are compiled already rely on it, and it is no more"


def wrong_exports(library, functions):
    exported = subprocess.run(["nm", "-D", "--defined-only", library], text=True, capture_output=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in exported.splitlines()}
    exported = {name for name in exported if name.startswith("plumb_")}
    wanted = {name_of(function) for function in functions}
    for name in sorted(wanted - exported):
        yield f"{library} does not export {name}"
    for name in sorted(exported - wanted):
        yield f"{library} exports {name}, which plumb.h does not declare"


def self_test():
    text = """
PLUMB_C_API int plumb_a(void); // PLUMB_C_API int plumb_comment(void);
PLUMB_C_API const char* plumb_b(const one* x,
                                int y);
typedef struct one { uint32_t struct_size; int32_t many[3]; double d; void (*(*get)(void* i, const char* n))(void); } one;
enum { first = 0, second = 7 };
"""
    assert functions_of(text) == ["int plumb_a(void)", "const char* plumb_b(const one* x, int y)"]
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder) / "one.h"
        header.write_text("#include <stddef.h>\n#include <stdint.h>\n#define PLUMB_C_API\n"
                          + text.replace("PLUMB_C_API const", "typedef struct one one; PLUMB_C_API const"))
        lines = lines_of(header)
    assert "struct one 32" in lines and "  4 12 int32_t many[3]" in lines and "constant second 7" in lines, lines
    assert any(line.startswith("  24 8 void (*(*get)") for line in lines), lines
    moved = [line.replace("  4 12", "  8 12") for line in lines]
    assert len(list(differences(lines, lines))) == 0 and len(list(differences(lines, moved))) == 2


def main():
    if not shutil.which("gcc"):
        print("note: gcc is not installed, the C ABI is not checked")
        return False
    self_test()
    found = lines_of(HEADER)
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(HEADING + "\n".join(found) + "\n")
    problems = list(differences([line for line in LIST.read_text().splitlines() if not line.startswith("#")], found))
    functions = functions_of(HEADER.read_text())
    if sys.argv[1:2] == ["--library"]:
        problems += wrong_exports(sys.argv[2], functions)
    print("\n".join(problems), end="\n" if problems else "")
    print(f"{len(functions)} functions in the C ABI")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
