# SPDX-License-Identifier: Apache-2.0
"""The workflow of a hosted runner runs on a bare Debian 12 what is there: its run lines are commands of ./dev, or programs of this
tree. With --print: for each job the commands, as one line (tools/check_bare_debian --workflow runs those)."""

import os
import re
import sys

import tree

WORKFLOW = ".github/workflows/ci.yml"


def jobs(text):
    """name -> (container, run lines), of the plain YAML that is written there."""
    found = {}
    for job in re.split(r"^  (?=\S)", text.partition("\njobs:\n")[2], flags=re.M)[1:]:
        container = re.search(r"^    container: (\S+)$", job, re.M)
        found[job.partition(":")[0]] = (container and container[1], re.findall(r"\brun: (.+)$", job, re.M))
    return found


def problems(text, known, executable):
    """known: the commands of ./dev; executable: whether a path is a program here."""
    found = jobs(text)
    if not found:
        yield "has no job"
    for name, (container, commands) in found.items():
        if container != "debian:12":
            yield f"the job {name} does not say container: debian:12"
        if not commands:
            yield f"the job {name} runs nothing"
        for command in commands:
            program, *words = command.split()
            if program == "./dev" and words[:1] and words[0] not in known:
                yield f"the job {name} runs ./dev {words[0]}, which ./dev does not know"
            elif program != "./dev" and not executable(program):
                yield f"the job {name} runs {program}, which is no program of this tree"


def self_test():
    good = "name: ci\njobs:\n  test:\n    container: debian:12\n    steps:\n      - run: ./dev test\n      - run: tests/check\n"
    check = lambda text: list(problems(text, {"test"}, {"tests/check"}.__contains__))
    assert not check(good), check(good)
    for broken in (good.replace("debian:12", "debian:13"), good.replace("./dev test", "./dev tset"), good.replace("tests/check", "tests/chekc"),
                   good.replace("run:", "say:"), good.split("jobs:")[0]):
        assert check(broken), broken


def main():
    self_test()
    text = (tree.ROOT / WORKFLOW).read_text(encoding="utf-8")
    if sys.argv[1:] == ["--print"]:
        print("\n".join(" && ".join(commands) for _, commands in jobs(text).values()))
        return 0
    known = set(re.search(r"^  ([a-z |-]+)\) \"cmd_", (tree.ROOT / "dev").read_text(encoding="utf-8"), re.M)[1].split(" | "))
    found = list(problems(text, known, lambda name: os.access(tree.ROOT / name, os.X_OK)))
    for problem in found:
        print(f"{WORKFLOW}: {problem}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
