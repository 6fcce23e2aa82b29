"""Adds an algorithm to a copy of the tree exactly as docs/adding.md says, then builds it and looks for it.

Usage: add_algorithm_test.py SOURCE_TREE SCRATCH_FOLDER
"""
import filecmp
import pathlib
import re
import shutil
import subprocess
import sys

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(adding LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
include(cmake/layer.cmake)
foreach(layer IN ITEMS base topology schedule)
  if(EXISTS ${PROJECT_SOURCE_DIR}/src/${layer}/CMakeLists.txt)
    add_subdirectory(src/${layer})
  endif()
endforeach()
add_executable(check_catalog check_catalog.cc)
target_link_libraries(check_catalog PRIVATE talaria_schedule)
"""


def insert_after_last(path, pattern, line):
    lines = path.read_text().split("\n")
    places = [i for i, text in enumerate(lines) if re.search(pattern, text)]
    assert places, f"{path}: no line matches {pattern}"
    lines.insert(places[-1] + 1, line)
    path.write_text("\n".join(lines))


def files_under(root):
    return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}


def follow_the_page(tree):
    """Carries out the three numbered steps of docs/adding.md on the copy."""
    page = (tree / "docs/adding.md").read_text()
    steps = re.findall(r"^\*\*\d\.\*\*.*?`(src/[^`]+)`.*?\n```\w+\n(.*?)```", page, re.M | re.S)
    assert len(steps) == 3, f"docs/adding.md has {len(steps)} steps with a file and a code block, not 3"
    (new_file, code), (catalog, lines), (cmake, entry) = steps
    assert not (tree / new_file).exists(), f"{new_file} exists already"
    (tree / new_file).write_text(code)
    declaration, row = lines.rstrip("\n").split("\n")
    insert_after_last(tree / catalog, r"^Algorithm \w+\(\);", declaration)
    insert_after_last(tree / catalog, r"^      \w+_algorithm\(\),", row)
    insert_after_last(tree / cmake, r"^    algorithms/\w+\.cc", entry.rstrip("\n"))
    return pathlib.PurePath(new_file).stem


def main():
    source, scratch = (pathlib.Path(argument) for argument in sys.argv[1:3])
    shutil.rmtree(scratch, ignore_errors=True)
    tree = scratch / "tree"
    for folder in ("src", "cmake", "docs", "include"):
        shutil.copytree(source / folder, tree / folder)
    name = follow_the_page(tree)

    changed = {f for f in files_under(tree)
               if not (source / f).exists() or not filecmp.cmp(source / f, tree / f, shallow=False)}
    print("files touched:", *sorted(changed))
    assert len(changed) == 3, f"{len(changed)} files touched, the page promises 3"

    (tree / "CMakeLists.txt").write_text(PROJECT)
    shutil.copy(source / "tests/adding/check_catalog.cc", tree)
    build = scratch / "build"
    subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", build], check=True)
    subprocess.run(["cmake", "--build", build, "--target", "check_catalog"], check=True)
    subprocess.run([build / "check_catalog", name], check=True)
    # The check itself can fail: a name that nobody added is not found.
    assert subprocess.run([build / "check_catalog", name + "_nobody_added"]).returncode == 1
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
