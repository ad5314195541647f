# SPDX-License-Identifier: Apache-2.0
"""No source file over 800 lines; a warning over 400."""

import sys

import tree

LIMIT, QUESTION = 800, 400
SOURCES = (".cpp", ".hpp", ".h", ".c", ".cu", ".mm", ".py", ".cmake", ".cmake.in", ".sh", "CMakeLists.txt", "dev", "run")


def main():
    failed = False
    for name in tree.files():
        if not str(name).endswith(SOURCES):
            continue
        lines = (tree.ROOT / name).read_bytes().count(b"\n")
        if lines > LIMIT:
            print(f"{name}: {lines} lines, the limit is {LIMIT}: split it by idea")
            failed = True
        elif lines > QUESTION:
            print(f"warning: {name}: {lines} lines, does it hold more than one idea?")
    return failed


if __name__ == "__main__":
    sys.exit(main())
