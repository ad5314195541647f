# SPDX-License-Identifier: Apache-2.0
"""Nothing of one person's machine in the repository: no absolute path to a home or scratch folder, no private address, no
unfinished-work marks, no stray conflict marks. And none of the words that readers stumbled over."""

import re
import sys

import tree

# Written so that this file does not match itself.
RULES = [
    (re.compile(r"(?<![\w.])/(?:home|Users)/[a-z][\w.-]*/"), "an absolute home path"),
    (re.compile(r"(?<![\w.$}/])/(?:root|wor[k]|mnt|srv)/[\w.-]+"), "an absolute path of one machine"),
    (re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X])\b"), "an unfinished-work mark"),
    (re.compile(r"^(?:<{7} |>{7} )"), "a merge conflict mark"),
    (re.compile(r"\b(?:10|192\.168)\.\d{1,3}\.\d{1,3}(?:\.\d{1,3})?\b(?=[:/])"), "a private network address"),
    (re.compile(r"\b[a-z]*maniet[h]\b", re.I), "no English word: write \"one out of N\""),
    (re.compile(r"\bmood[s]?\b|\bunhear[d]\b|\ba wis[h]\b", re.I), "a machine has none: name the level, the status, the request"),
    (re.compile(r"\b(?:nobody know[s]|whoever ask[s])\b", re.I), "say what is unknown, or to whom"),
    (re.compile(r"\bhi[s]\b", re.I), "a program is \"it\", a reader is \"you\""),
]
BINARY = (".plumb", ".gguf", ".bin", ".png", ".gz", ".zst")


def problems(text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, meaning in RULES:
            if pattern.search(line):
                yield number, meaning


def self_test():
    planted = ["see /hom" + "e/alice/notes", "path /wor" + "k/x", "// TOD" + "O later", "<" * 7 + " HEAD",
               "every so maniet" + "h step", "in two moo" + "ds", "nobody know" + "s how", "whoever ask" + "s", "around hi" + "s calls"]
    for text in planted:
        assert list(problems(text)), f"the rule for {text!r} does not fire"
    assert not list(problems("include/plumb, ${root}/work/x, a framework/b")), "a harmless line is reported"


def main():
    self_test()
    failed = False
    for name in tree.files():
        if str(name).endswith(BINARY) or "/corpus/" in str(name):
            continue
        try:
            text = (tree.ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            print(f"{name}: not UTF-8 text; give binary files one of the endings {' '.join(BINARY)}")
            failed = True
            continue
        for number, meaning in problems(text):
            print(f"{name}:{number}: {meaning}")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
