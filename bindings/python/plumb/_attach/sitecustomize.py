# SPDX-License-Identifier: Apache-2.0
"""What `plumb run` puts first on PYTHONPATH. It waits for torch (_torch.py), and then it is as though it were not there: its folder leaves
sys.path, and the sitecustomize that is there besides is imported in its place. It runs in every Python of the command, of any
version: it is small, and no error of it leaves it."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def recorder():
    """_torch.py, of the package that the program has; else of the one around this file, under a name that nobody else has."""
    import importlib.util

    found = importlib.util.find_spec("plumb")
    for folder in (found and found.submodule_search_locations) or ():
        if os.path.exists(os.path.join(folder, "_torch.py")):
            return importlib.import_module("plumb._torch")
    package = os.path.dirname(HERE)
    if "plumb_of_run" not in sys.modules:
        spec = importlib.util.spec_from_file_location("plumb_of_run", os.path.join(package, "__init__.py"),
                                                      submodule_search_locations=[package])
        module = sys.modules["plumb_of_run"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return importlib.import_module("plumb_of_run._torch")


class Waiting(object):
    """Finds torch as it would be found without it, and is gone when torch is there."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self and hasattr(finder, "find_spec") else None
            if spec is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            del loader.exec_module
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                try:
                    recorder().install(module)
                except Exception as error:  # the program is not to notice
                    sys.stderr.write("plumb: torch is not recorded: %s\n" % (error,))

        loader.exec_module = exec_module


sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
if sys.version_info >= (3, 10) and os.environ.get("PLUMB", "") not in ("", "0", "off"):
    sys.meta_path.insert(0, Waiting())
del sys.modules["sitecustomize"]
import sitecustomize  # where there is none, this error is what Python expects of one that is not there
