# SPDX-License-Identifier: Apache-2.0
"""NOTICE is true: it names each library of packages.txt once (those whose package ends in -dev), no other, among those who use it as
docs/internals/dependencies.md says; each is asked for by some CMake file."""

import re
import sys

import tree

ROW = re.compile(r"^  (\S+)\s+(\S+-dev)\s+(\S+)", re.M)
# What a CMake file says where it uses the package.
ASKED_FOR = {
    "libzstd-dev": "zstd", "libxxhash-dev": "xxhash", "libhwy-dev": "hwy/highway.h", "libfmt-dev": "fmt",
    "libcli11-dev": "CLI11", "nlohmann-json3-dev": "nlohmann_json", "libdnnl-dev": "dnnl", "libpcre2-dev": "pcre2",
    "ocl-icd-opencl-dev": "OpenCL", "libgtest-dev": "GTest", "libvulkan-dev": "[Vv]ulkan",
    "python3-dev": "Development.Module",
    "libsqlite3-dev": "SQLite3", "zlib1g-dev": "ZLIB",
}


def complaints(notice, packages, dependencies, cmake):
    parts = re.split(r"^(?=libplumb uses|The plumb command|Tests use)", notice, flags=re.M)
    named = {}  # package -> which part of NOTICE
    for number, part in enumerate(parts):
        for _, package, _ in ROW.findall(part):
            if package in named:
                yield f"NOTICE: {package} stands there twice"
            named[package] = number
    wanted = {word for word in packages.split() if word.endswith("-dev")}
    for package in sorted(wanted - set(named)):
        yield f"NOTICE: {package} of packages.txt is missing"
    for package in sorted(set(named) - wanted):
        yield f"NOTICE: {package} is not in packages.txt, so nothing here uses it"
    users = dict(re.findall(r"^\| (\S+-dev) \| ([^|]*) \|", dependencies, re.M))
    for package, part in sorted(named.items()):
        if package not in users:
            yield f"docs/internals/dependencies.md: no row says who uses {package} and why"
            continue
        said = 1 if re.search(r"libplumb(?!-(?:attach|naming))", users[package]) else 2 if re.search("cli|decoder", users[package]) else 3
        if said != part:
            yield f"NOTICE: {package} stands under the wrong head; docs/internals/dependencies.md says: {users[package]}"
        if not re.search(ASKED_FOR.get(package, re.escape(package)), cmake):
            yield f"NOTICE: no CMake file asks for {package}"


def self_test():
    notice = ("libplumb uses:\n  zstd  libzstd-dev  BSD  linked\nThe plumb command also uses:\n  {fmt}  libfmt-dev  MIT  linked\n"
              "Tests use:\n  GoogleTest  libgtest-dev  BSD\n")
    packages = "libzstd-dev\nlibfmt-dev\nlibgtest-dev\ncmake\n"
    dependencies = "| libzstd-dev | libplumb | x |\n| libfmt-dev | cli, bench | x |\n| libgtest-dev | tests | x |\n"
    cmake = "find_package(zstd) find_package(fmt) find_package(GTest)"
    assert not list(complaints(notice, packages, dependencies, cmake))
    for broken in ((notice + "  BLAS  libblas-dev  BSD\n", packages, dependencies, cmake),
                   (notice, packages + "libhwy-dev\n", dependencies, cmake),
                   (notice, packages, dependencies.replace("cli, bench", "libplumb"), cmake),
                   (notice, packages, dependencies.replace("| libzstd-dev | libplumb | x |\n", ""), cmake),
                   (notice, packages, dependencies, cmake.replace("fmt", ""))):
        assert len(list(complaints(*broken))) >= 1, broken


def main():
    self_test()
    read = lambda name: (tree.ROOT / name).read_text(encoding="utf-8")
    cmake = "\n".join(read(name) for name in tree.files() if str(name).endswith((".cmake", "CMakeLists.txt")))
    found = list(complaints(read("NOTICE"), read("packages.txt"), read("docs/internals/dependencies.md"), cmake))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
