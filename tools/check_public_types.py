# SPDX-License-Identifier: Apache-2.0
"""The public types are those of docs/internals/public_types.txt: class, struct, union, enum and using at namespace scope of include/plumb,
outside detail. --write writes that list anew; what a user sees then shows in the diff."""

import re
import sys

import tree

LIST = tree.ROOT / "docs" / "internals" / "public_types.txt"
HEADING = """\
# Public types, one a line: header and name. They are the surface that has to stay; fewer is better.
# Written by  python3 tools/check_public_types.py --write
"""
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|"(?:\\.|[^"\\])*"', re.S | re.M)
NAMESPACE = re.compile(r"\bnamespace\s*([\w:]*)\s*$")
TYPE = re.compile(r"""(?:^|[>\s])(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+
    (?:PLUMB_API\s+|alignas\([^)]*\)\s*|\[\[\w+\]\]\s*)*(\w+)\s*(?:<.*>\s*)?(?:final\s*)?(?::(?!:)[^()=]*)?$""", re.X)
ALIAS = re.compile(r"(?:^|[>\s])using\s+(\w+)\s*=|^typedef\b.*?(\w+)$", re.S)


def types_of(text):
    """Names in the order of the header, with each specialisation. A declaration without a body names no type."""
    scopes, statement = [], ""
    for letter in NOISE.sub(" ", text):
        statement = statement.strip(" \n") if letter in "{};" else statement + letter
        public = all(name is not None and "detail" not in name.split("::") for name in scopes)
        if letter == "{":
            namespace = NAMESPACE.search(statement)
            if public and not namespace and (found := TYPE.search(statement)):
                yield found[1]
            scopes.append(namespace[1] if namespace else None)
        elif letter == "}":
            scopes.pop()
        elif letter == ";" and public and (found := ALIAS.search(statement)):
            yield found[1] or found[2]
        if letter in "{};":
            statement = ""


def public_types():
    return [f"{name.relative_to('include/plumb')} {found}" for name in tree.files()
            if str(name).startswith("include/plumb/")
            for found in dict.fromkeys(types_of((tree.ROOT / name).read_text()))]


def differences(listed, found):
    for name in sorted(set(found) - set(listed)):
        yield f"{name}: a new public type; put it into detail or src, or into the list if users need it"
    for name in sorted(set(listed) - set(found)):
        yield f"{name}: in the list, and no public type any more"


def self_test():
    text = """
#define MACRO struct Hidden { \\
    int x; }
namespace plumb { // struct Comment {
inline namespace v1 { class Forward; template <class T> class A final : public B<T> { struct Inner {}; using In = int; };
template <> struct A<int> { int x; }; enum class PLUMB_API E : std::uint8_t { a, b }; using F = void (*)(int);
inline int f(struct Forward& x) { using Local = int; return Local{}; } struct alignas(64) G { G() : x{1} {} int x; };
namespace detail { struct D {}; } } namespace detail::more { struct M {}; } const char* s = "struct S {"; struct H { }; }
struct Vk_T; template <class R, class... A> class Z<R(A...)> { };
"""
    assert list(types_of(text)) == ["A", "A", "E", "F", "G", "H", "Z"], list(types_of(text))
    assert len(list(differences(["x.hpp A", "x.hpp Gone"], ["x.hpp A", "x.hpp New"]))) == 2


def main():
    self_test()
    found = public_types()
    if sys.argv[1:] == ["--write"]:
        LIST.write_text(HEADING + "\n".join(found) + "\n")
    listed = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
    problems = list(differences(listed, found))
    print("\n".join(problems), end="\n" if problems else "")
    print(f"{len(found)} public types in {len({line.split()[0] for line in found})} headers")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
