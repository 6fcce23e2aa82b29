"""Checks the files that docs/adding.md names for a datatype, a reduction and an operation: those that name one which
is there already, and no others.

Usage: touches_test.py SOURCE_TREE
"""
import pathlib
import re
import sys

# Of each kind, those that are like a new one: no code elsewhere is about them alone.
TYPES = ["int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float8e4m3", "float8e5m2"]
REDUCTIONS = ["Prod", "Max", "Min"]
OPERATIONS = ["Scatter"]


def files_on_page(page, what):
    """The paths in the row of the page's table that begins with `what`."""
    row = re.search(rf"^\| {re.escape(what)} \|(.*)\|$", page, re.M)
    assert row, f"docs/adding.md has no row for {what}"
    return re.findall(r"`(src/[^`]+)`", row.group(1))


def files_that_match(tree, pattern):
    return {path.relative_to(tree).as_posix() for path in (tree / "src").rglob("*")
            if path.is_file() and re.search(pattern, path.read_text())}


def check(tree, what, name, pattern):
    listed = set()
    for path in files_on_page((tree / "docs/adding.md").read_text(), what):
        matches = [f.relative_to(tree).as_posix() for f in tree.glob(path.replace("<name>", name))]
        assert matches, f"docs/adding.md, {what}: {path} does not exist for {name}"
        listed.update(matches)
    found = files_that_match(tree, pattern)
    assert found == listed, f"{name}: docs/adding.md and the sources differ in {sorted(found ^ listed)}"
    print(f"{what}: {name}: {len(found)} files")


def main():
    tree = pathlib.Path(sys.argv[1])
    for name in TYPES:
        check(tree, "a datatype", name, rf"\bk{name.capitalize()}\b|(?<![a-z]){name}(?![_0-9a-z])")
    for name in REDUCTIONS:
        check(tree, "a reduction", name, rf"\bk{name}\b")
    for name in OPERATIONS:
        check(tree, "an operation", name, rf'\bk{name}\b|"{name}"')


if __name__ == "__main__":
    main()
