# SPDX-License-Identifier: Apache-2.0
"""pip install ./bindings/python, in a clone: CMake builds libplumb and the package (target plumb_python), this takes what it built.
PLUMB_BUILD is the whole path of a build folder to use; else it is build/python of the clone, made with the first install."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
if not (ROOT / "CMakeLists.txt").exists():
    sys.exit("the Python package is built from a clone of Plumbline: pip install CLONE/bindings/python")
GIVEN = os.environ.get("PLUMB_BUILD")
BUILD = pathlib.Path(GIVEN or ROOT / "build/python").resolve()
if GIVEN and not (BUILD / "CMakeCache.txt").exists():
    sys.exit(f"PLUMB_BUILD: {BUILD} is no build folder of CMake; give the whole path of one, or leave it out")
VERSION = re.search(r"project\(plumb VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
OF_LIBRARIES = ("-DCMAKE_BUILD_TYPE=Release", "-DPLUMB_BUILD_TESTS=OFF", "-DPLUMB_BUILD_TOOLS=OFF", "-DPLUMB_BUILD_EXTRAS=OFF")


class Build(build_py):
    def run(self):
        if not (BUILD / "CMakeCache.txt").exists():
            subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, f"-DPython3_EXECUTABLE={sys.executable}", *OF_LIBRARIES], check=True)
        subprocess.run(["cmake", "--build", BUILD, "--parallel", str(os.cpu_count()), "--target", "plumb_python"], check=True)
        package = pathlib.Path(self.build_lib, "plumb")
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(BUILD / "python/plumb", package, ignore=shutil.ignore_patterns("__pycache__"))
        if shutil.which("strip"):  # without what only debuggers read
            subprocess.run(["strip", "--strip-unneeded", *package.glob("*.so*")], check=True)


class Binary(Distribution):
    def has_ext_modules(self):
        return True  # the wheel is of this platform, whether or not the extension is in it


scratch = BUILD / "wheel"  # nothing is written beside the sources
scratch.mkdir(parents=True, exist_ok=True)
setup(version=VERSION, packages=["plumb"], distclass=Binary, cmdclass={"build_py": Build},
      options={"build": {"build_base": str(scratch)}, "egg_info": {"egg_base": str(scratch)},
               "bdist_wheel": {"py_limited_api": "cp310"}})
