# SPDX-License-Identifier: Apache-2.0
"""A class, struct, union or enum at namespace scope has a name of its own in src, include, cli and decoder, whatever its
namespace: who reads or searches for a name finds one type. Declarations without a body and specialisations of a template name
the type that is there. Not looked at:
  nested types                    they are read with the class around them: NameWords::Entry
  anonymous namespaces of tests   nobody else can see them, and a scene names its parts after what it stands for (Engine, Truth)"""

import re
import sys

import tree
from check_public_types import NAMESPACE, NOISE, TYPE

FOLDERS = ("src/", "include/", "cli/", "decoder/")
SOURCES = (".cpp", ".hpp", ".h", ".c", ".cu", ".mm", ".inc")
OF_TESTS = re.compile(r"_(test|perftest|testing)\.[a-z]+$")
RAW = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
LETTER = re.compile(r"'(?:\\.|[^'\\\n])'")
SPECIALISATION = re.compile(r"^template\s*<\s*>|\b(?:class|struct)\s+[^:]*\w\s*<")


def types_of(text, of_tests):
    """(line, name) of each."""
    text = RAW.sub(lambda found: '""' + "\n" * found[0].count("\n"), text)
    text = LETTER.sub("0", NOISE.sub(lambda found: "\n" * found[0].count("\n") or " ", LETTER.sub("0", text)))
    scopes, statement, line = [], "", 1
    for letter in text:
        line += letter == "\n"
        statement = statement.strip(" \n") if letter in "{};" else statement + letter
        if letter == "{":
            namespace = NAMESPACE.search(statement)
            hidden = any(name is None or (of_tests and not name) for name in scopes)
            if not namespace and not hidden and (found := TYPE.search(statement)) and not SPECIALISATION.search(statement):
                yield line, found[1]
            scopes.append(namespace[1] if namespace else None)
        elif letter == "}":
            scopes.pop()
        if letter in "{};":
            statement = ""


def check(texts):
    """texts: path -> content. Yields 'path:line: reason'."""
    first = {}
    for path, text in sorted(texts.items(), key=lambda item: (not item[0].startswith("include/"), item[0])):
        for line, name in types_of(text, OF_TESTS.search(path) is not None):
            place = f"{path}:{line}"
            if first.setdefault(name, place) != place:
                yield f"{place}: {name} is the name of a type at {first[name]} already: say in the name what this one is"


def self_test():
    one = "namespace plumb::a { class Row; class Row final : public Base<int> { struct Entry { }; }; enum class Kind { x }; }"
    assert not list(check({"src/a.hpp": one})), list(check({"src/a.hpp": one}))
    for more, seen in (
            ("namespace plumb::b { struct Row { }; }", 1), ("namespace {\nenum class Kind : int { y };\n}", 1),
            ("struct Entry { };", 0), ("class Row; struct Row make();", 0), ("// struct Row { };", 0),
            ('const char* text = R"(struct Row { )";', 0), ("char c = '{'; char d = '\"'; struct Row { };", 1),
            ("template <> struct Row<int> { };", 0), ("namespace b { template <class T> struct Row { }; }", 1)):
        found = list(check({"src/a.hpp": one, "src/b.cpp": more}))
        assert len(found) == seen and all(line.startswith("src/b.cpp:") for line in found), (more, found)
    scene = "namespace b { namespace { struct Row { }; } }"
    assert not list(check({"src/a.hpp": one, "src/b_test.cpp": scene}))
    assert len(list(check({"src/a.hpp": one, "src/b_testing.hpp": "namespace b { struct Row { }; }"}))) == 1
    assert list(check({"src/a.hpp": one, "include/plumb/z.hpp": one}))[0].startswith("src/a.hpp:"), "public ones come first"


def main():
    self_test()
    texts = {str(name): (tree.ROOT / name).read_text(encoding="utf-8")
             for name in tree.files() if str(name).startswith(FOLDERS) and str(name).endswith(SOURCES)}
    found = list(check(texts))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
