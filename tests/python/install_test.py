# SPDX-License-Identifier: Apache-2.0
"""pip installs the Python package, from the source tree and from a wheel, without a network; what it installed is whole.

usage: install_test.py PLUMB SOURCE_TREE BUILD_FOLDER [CLASS…]"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PLUMB, SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-install-")
FOLDER = pathlib.Path(SCRATCH.name)
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "PYTHON", "PIP_"))}
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
OFFLINE = ("--no-build-isolation", "--no-index", "--no-deps")
USES_IT = """
import plumb
with plumb.profiler("on,warmup=0,out=run.plumb"), plumb.step(tokens=1), plumb.brick("attention"):
    pass
assert plumb.read("run.plumb")["bricks"]["name"] == ["attention"]
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libplumb" in line}
print(plumb.__version__, plumb._core.__name__, *sorted(mapped))
"""


def python_that_builds():
    """This Python, or else that of the system, has what `pip install` of a source tree needs."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import setuptools, wheel, pip"], capture_output=True).returncode == 0:
            return python
    print("skipped: no Python here has pip, setuptools and wheel: apt-get install python3-pip python3-setuptools python3-wheel")
    sys.exit(77)


PYTHON = python_that_builds()


class Case(unittest.TestCase):
    def run_python(self, python, *words, **environment):
        done = subprocess.run([python, *words], capture_output=True, text=True, cwd=FOLDER,
                              env={**ENVIRONMENT, "PLUMB_BUILD": str(BUILD), **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def assert_whole(self, package, core, said):
        version, name, *libraries = said.split()
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(name, f"plumb.{core}")
        self.assertEqual({pathlib.Path(library).parent for library in libraries}, {package})
        self.assertEqual({pathlib.Path(library).name.split(".so")[0] for library in libraries}, {"libplumb", "libplumb-analysis"})


class Source(Case):
    def test_a_source_tree_is_installed_and_nothing_is_left_in_it(self):
        site, package = FOLDER / "site", SOURCE / "bindings/python"
        before = set(package.rglob("*"))
        self.run_python(PYTHON, *PIP, "install", *OFFLINE, "--target", str(site), str(package))
        self.assertEqual(set(package.rglob("*")), before)
        has_extension = any((site / "plumb").glob("_extension*"))
        said = self.run_python(PYTHON, "-c", USES_IT, PYTHONPATH=str(site))
        self.assert_whole(site / "plumb", "_extension" if has_extension else "_fallback", said)
        for extension in (site / "plumb").glob("_extension*"):
            extension.unlink()
        self.assert_whole(site / "plumb", "_fallback", self.run_python(PYTHON, "-c", USES_IT, PYTHONPATH=str(site)))


class Wheel(Case):
    def test_a_wheel_is_for_every_python_from_3_10_and_holds_both_libraries(self):
        self.run_python(PYTHON, *PIP, "wheel", *OFFLINE, "--wheel-dir", str(FOLDER), str(SOURCE / "bindings/python"))
        wheel, = FOLDER.glob("*.whl")
        self.assertRegex(wheel.name, r"^plumb-[0-9.]+-cp310-abi3-linux_\w+\.whl$")
        self.run_python(PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", str(FOLDER / "venv"))
        python = FOLDER / "venv/bin/python"
        self.run_python(PYTHON, *PIP, "--python", str(python), "install", "--no-index", str(wheel))
        package, = FOLDER.glob("venv/lib/python3*/site-packages/plumb")
        self.assertNotIn(str(BUILD).encode(), (package / "_build.py").read_bytes())
        core = "_extension" if any(package.glob("_extension*")) else "_fallback"
        self.assert_whole(package, core, self.run_python(python, "-c", USES_IT))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
