# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone. Public ones as C++17 and C++20, with g++ and clang++, without exceptions and RTTI, as
they are and under PLUMB_DISABLE, and with nvcc where there is one; .h files as C99 and C11 too. Those of rooms with one compiler:
the builds include them with both. The doors stay small."""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

import tree

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
# Preprocessed lines at most, as g++ -E -P counts them, and headers of the system that a door must not bring.
LINES = {
    "include/plumb/record.hpp": {"c++17": 6_500, "c++20": 27_000},
    "include/plumb/plumb.hpp": {"c++17": 25_000, "c++20": 45_000},
    "include/plumb/plumb.h": {"c++17": 1_000},
}
# What must be included before, as an engine has it.
BEFORE = {"include/plumb/ggml.h": "tests/mocks/lookalike/ggml.h"}
NOT_BROUGHT = {"include/plumb/plumb.hpp": {"memory", "functional"}}


def compilers(names):
    found = [name for name in names if shutil.which(name)]
    for name in sorted(set(names) - set(found)):
        print(f"note: {name} is not installed, its checks are left out")
    return found


def commands(name):
    """(what, argument list) for every way in which the header must compile."""
    public = name.startswith("include/plumb/")
    include = f"#include <{name.removeprefix('include/')}>\n" if public else f'#include "{tree.ROOT / name}"\n'
    if name in BEFORE:
        include = f'#include "{tree.ROOT / BEFORE[name]}"\n{include}'
    folders = ["include"] if public else ["include", "src", "tests/mocks", "tests"]
    paths = [word for folder in folders for word in ("-I", str(tree.ROOT / folder))]
    if not public:
        yield include, [CXX[0], "-std=c++20", *WARNINGS, "-Wshadow", "-fsyntax-only", *paths, "-x", "c++", "-"]
        return
    for compiler in CXX:
        for standard in ("c++17", "c++20"):
            for define in ([], ["-DPLUMB_DISABLE"]):
                yield include, [compiler, f"-std={standard}", *define, *WARNINGS, "-fno-exceptions", "-fno-rtti",
                                "-fsyntax-only", *paths, "-x", "c++", "-"]
    if public and name.endswith(".h"):
        for compiler in C:
            for standard in ("c99", "c11"):
                yield include, [compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", *paths, "-x", "c", "-"]
    if public and NVCC:
        yield include, [NVCC, "-std=c++17", "-c", "-o", os.devnull, *paths, "-x", "cu"]


def compile_one(job):
    source, command = job
    if command[0] != NVCC:
        done = subprocess.run(command, input=source, text=True, capture_output=True)
    else:  # nvcc reads no standard input
        with tempfile.NamedTemporaryFile("w", suffix=".cu") as file:
            file.write(source)
            file.flush()
            done = subprocess.run([*command, file.name], text=True, capture_output=True)
    if done.returncode:
        return f"{source.strip()}\n  {' '.join(command)}\n{done.stderr.rstrip()}"
    return None


def preprocess(name, standard, *options):
    done = subprocess.run([CXX[0], f"-std={standard}", "-E", *options, "-I", str(tree.ROOT / "include"), "-x", "c++",
                           str(tree.ROOT / name)], text=True, capture_output=True)
    return done.stdout.splitlines()


def too_heavy(name, limits, not_brought):
    """What is wrong with the weight of one header."""
    for standard, limit in limits.items():
        if (lines := len(preprocess(name, standard, "-P"))) > limit:
            yield f"{name}: {lines} preprocessed lines as {standard}, the limit is {limit}"
    markers = {line.split('"')[1] for line in preprocess(name, "c++17") if line.startswith("# ") and '"' in line}
    for header in sorted(not_brought & {marker.rpartition("/")[2] for marker in markers}):
        yield f"{name}: brings <{header}>"


def self_test():
    broken = ("std::string needs_its_include();\n", [CXX[0], "-std=c++17", "-fsyntax-only", "-x", "c++", "-"])
    assert compile_one(broken), "a header that does not compile alone is not reported"
    assert len(list(too_heavy("include/plumb/result.hpp", {"c++17": 100, "c++20": 100}, {"string", "memory"}))) == 3


def main():
    if not CXX:
        print("no C++ compiler is installed: install g++")
        return True
    self_test()
    # -inl.hpp is Highway's word for what one source includes once for each instruction set: it never stands alone.
    headers = [str(name) for name in tree.files()
               if str(name).endswith((".hpp", ".h")) and not str(name).endswith("-inl.hpp")
               and str(name).startswith(("include/plumb/", "src/"))]
    only = sys.argv[1:]
    headers = [name for name in headers if not only or name in only]
    jobs = [job for name in headers for job in commands(name)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [complaint for complaint in pool.map(compile_one, jobs) if complaint]
    for name, limits in LINES.items():
        if name in headers:
            found += too_heavy(name, limits, NOT_BROUGHT.get(name, set()))
    print("\n".join(found), end="\n" if found else "")
    print(f"{len(headers)} headers, {len(jobs)} compilations, {len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    CXX, C = compilers(["g++", "clang++"]), compilers(["gcc"])
    NVCC = shutil.which("nvcc") if os.environ.get("PLUMB_CHECK_NVCC") != "0" else None
    sys.exit(main())
