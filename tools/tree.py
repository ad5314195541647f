# SPDX-License-Identifier: Apache-2.0
"""The files of this repository: tracked or new, never ignored. Used by the checks; as a script, prints the files
whose names end in one of its arguments."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def files(root=ROOT):
    """Paths relative to root, sorted. Without git (a source archive): everything but what is built and what Python keeps."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
        names = {name for name in listed if name}
    except (OSError, subprocess.CalledProcessError):
        names = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        names = {name for name in names if name.split("/")[0] not in ("build", ".git") and "__pycache__" not in name.split("/")}
    return sorted(pathlib.PurePosixPath(name) for name in names if (root / name).is_file())


if __name__ == "__main__":
    endings = tuple(sys.argv[1:])
    print("\n".join(str(name) for name in files() if str(name).endswith(endings)))
