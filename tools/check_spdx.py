# SPDX-License-Identifier: Apache-2.0
"""Every source file carries one SPDX line among its first three lines, and nowhere else."""

import sys

import tree

SOURCES = (".cpp", ".hpp", ".h", ".c", ".cu", ".mm", ".py", ".cmake", ".cpp.in", ".cmake.in", ".sh", "CMakeLists.txt")
PROGRAMS = {"dev", ".ci/run"}
LINE = "SPDX-License-Identifier: " + "Apache-2.0"


def main():
    failed = False
    for name in tree.files():
        text = str(name)
        if not (text.endswith(SOURCES) or text in PROGRAMS or (text.startswith("tools/") and "." not in name.name)):
            continue
        head = (tree.ROOT / name).read_text(encoding="utf-8").splitlines()[:3]
        if sum(LINE in line for line in head) != 1:
            print(f"{name}: the first three lines must hold '{LINE}' once")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
