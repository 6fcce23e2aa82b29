#!/usr/bin/env python3
"""Checks the rules that keep the tree layered: includes, cycles, budgets, self-contained headers.

    tools/check_layers.py [--root DIR] [--cache FILE] [--cuda-include DIR] [--no-headers]

A layer is a first folder of src/. What a layer may include is the table ALLOWED, the only place that says so.
Prints one line per offence and exits 1 if there is any.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from cpp_outline import functions_of, strip_code

# A whole layer ("base") or one header of it ("schedule/step.h").
ALLOWED = {
    "base": set(),
    "bootstrap": {"base"},
    "topology": {"base"},
    "schedule": {"base", "topology/summary.h"},
    "service": {"base"},
    "transport": {"base", "service", "schedule/step.h"},
    "zerocopy": {"base", "service", "transport", "schedule/step.h"},
    "engine": {"base", "schedule/step.h", "schedule/chunking.h", "schedule/collective.h", "transport/peer.h",
               "transport/cross_memory.h", "transport/put.h", "transport/ready.h", "zerocopy/window_view.h"},
    "runtime": {"base", "bootstrap", "topology", "schedule", "service", "transport", "zerocopy", "engine"},
    "api": {"base", "runtime", "schedule/collective.h"},
}
PURE = {"base", "bootstrap", "topology", "schedule"}
# The pure side does its input and output through base/os.h, except that bootstrap is about sockets.
NO_IO = {"topology", "schedule"}
IO_HEADER = re.compile(r"(unistd|fcntl|fstream|dirent|netdb|poll|filesystem|sys/[a-z_]+|netinet/[a-z]+)(\.h)?")
CUDA_HEADER = re.compile(r"(cuda[a-z_0-9]*|nvml|nvrtc|cooperative_groups|cub/.*|cuda/.*)(\.h|\.hpp|\.cuh)?")

LINES = {".h": 500, ".cc": 500, ".cu": 300, ".cuh": 300}
FUNCTION_LINES = 60
PARAMETERS = 5
# NCCL's entry points have the parameters that NCCL gave them. What else has a shape that others dictate says so in a
# comment on the line above: `// budget: <reason>`.
ABI_NAME = re.compile(r"p?nccl[A-Z]\w*")
EXCUSE = re.compile(r"//.*\bbudget: \w+")
CODE_FOLDERS = ("src", "bench", "tests", "tools", "examples")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


class Tree:
    """The files under one root, with their includes."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = {}
        for folder in CODE_FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in LINES and path.is_file():
                    self.files[path.relative_to(self.root).as_posix()] = path.read_text(errors="replace")
        self.includes = {name: INCLUDE.findall(strip_code(text, keep_strings=True))
                         for name, text in self.files.items()}

    def source_files(self):
        return [name for name in self.files if name.startswith("src/") and name.count("/") >= 2]


def layer_of(name):
    return name.split("/")[1]


def allowed(layer, header):
    target = header.split("/")[0]
    return target == layer or target in ALLOWED[layer] or header in ALLOWED[layer]


def check_includes(tree):
    for name in tree.source_files():
        layer = layer_of(name)
        if layer not in ALLOWED:
            yield f"{name}: '{layer}' is not a layer (tools/check_layers.py, ALLOWED)"
            continue
        for kind, header in tree.includes[name]:
            if header.split("/")[0] in ALLOWED and kind == '"':
                if not allowed(layer, header):
                    yield f"{name}: layer {layer} may not include {header}"
            elif header == "iostream":
                yield f"{name}: <iostream> is not used in the library (it has a global constructor)"
            elif header in ("nccl.h", "talaria.h") and layer != "api":
                yield f"{name}: only api includes {header}"
            elif layer in PURE | {"api"} and CUDA_HEADER.fullmatch(header):
                yield f"{name}: layer {layer} may not include the CUDA header {header}"
            elif layer in NO_IO and IO_HEADER.fullmatch(header):
                yield f"{name}: layer {layer} may not include <{header}>; input and output go through base/os.h"
            if kind == '"' and "/" not in header and header not in ("nccl.h", "talaria.h"):
                yield f"{name}: write \"{layer}/...\" instead of \"{header}\"; paths begin at src/"


def first_cycle(edges):
    """A list of nodes that form a cycle in `edges` (node -> set of nodes), or []."""
    state = {}
    path = []

    def visit(node):
        state[node] = "open"
        path.append(node)
        for target in sorted(edges.get(node, ())):
            if state.get(target) == "open":
                ring = path[path.index(target):]
                first = ring.index(min(ring))
                return ring[first:] + ring[:first + 1]
            if target not in state and (found := visit(target)):
                return found
        path.pop()
        state[node] = "closed"
        return []

    for node in sorted(edges):
        if node not in state and (found := visit(node)):
            return found
    return []


def check_cycles(tree):
    layers, headers = {}, {}
    for name in tree.source_files():
        for kind, header in tree.includes[name]:
            target = header.split("/")[0]
            if kind != '"' or target not in ALLOWED:
                continue
            headers.setdefault(name, set()).add("src/" + header)
            # One header of a layer lent as vocabulary (ALLOWED names it) is no edge between the layers.
            if target != layer_of(name) and header not in ALLOWED.get(layer_of(name), ()):
                layers.setdefault(layer_of(name), set()).add(target)
    if found := first_cycle(layers):
        yield "cycle between layers: " + " -> ".join(found)
    if found := first_cycle(headers):
        yield "cycle between headers: " + " -> ".join(found)


def check_budgets(tree):
    for name, text in tree.files.items():
        limit = LINES[pathlib.PurePosixPath(name).suffix]
        lines = text.count("\n")
        if lines > limit:
            yield f"{name}: {lines} lines, at most {limit}"
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > 120:
                yield f"{name}:{number}: {len(line)} columns, at most 120"
        for function in functions_of(text):
            where = f"{name}:{function.line}: {function.name}"
            above = text.split("\n")[max(function.line - 2, 0)]
            if EXCUSE.search(above):
                continue
            if function.lines > FUNCTION_LINES:
                yield f"{where} has {function.lines} lines, at most {FUNCTION_LINES}"
            if function.parameters > PARAMETERS and not ABI_NAME.fullmatch(function.name):
                yield f"{where} has {function.parameters} parameters, at most {PARAMETERS}"


class HeaderCheck:
    """Compiles every header of src/ alone. Results are remembered under a hash of all that the header includes."""

    def __init__(self, tree, cache_file, cuda_include):
        self.tree = tree
        self.cache_file = cache_file
        self.cuda_include = cuda_include
        try:
            self.cache = json.loads(pathlib.Path(cache_file).read_text()) if cache_file else {}
        except (OSError, ValueError):
            self.cache = {}  # a first run, or a run that was cut short while it wrote
        self.compiler = os.environ.get("CXX", "g++")
        version = subprocess.run([self.compiler, "--version"], capture_output=True, text=True, check=True)
        self.salt = version.stdout + str(cuda_include) + pathlib.Path(__file__).read_text()

    def closure(self, name):
        seen, stack = set(), [name]
        while stack:
            current = stack.pop()
            if current in seen:
                continue
            seen.add(current)
            stack += ["src/" + h for _, h in self.tree.includes[current] if "src/" + h in self.tree.files]
        return sorted(seen)

    def key(self, name):
        texts = "".join(self.tree.files[part] for part in self.closure(name))
        return hashlib.sha256((self.salt + name + texts).encode()).hexdigest()

    def needs_cuda(self, name):
        return any(CUDA_HEADER.fullmatch(h) for part in self.closure(name) for _, h in self.tree.includes[part])

    def compile_alone(self, name):
        command = [self.compiler, "-std=gnu++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header",
                   "-I", str(self.tree.root / "src"), "-I", str(self.tree.root / "include"),
                   "-x", "c++", "-"]
        if self.cuda_include:
            command[1:1] = ["-isystem", self.cuda_include]
        # Twice, so that a missing include guard shows as well; an -inl.h is made to be included once per source file.
        text = f'#include "{name[4:]}"\n' * (1 if name.endswith("-inl.h") else 2)
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    def run(self):
        """Yields offences; self.skipped counts headers that need a CUDA toolkit where there is none."""
        headers = [n for n in self.tree.source_files() if n.endswith(".h")]
        skipped = [n for n in headers if not self.cuda_include and self.needs_cuda(n)]
        self.skipped = len(skipped)
        todo = {n: self.key(n) for n in headers if n not in skipped}
        stale = [n for n, key in todo.items() if key not in self.cache]
        self.compiled = len(stale)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, errors in zip(stale, pool.map(self.compile_alone, stale)):
                self.cache[todo[name]] = errors
        for name, key in todo.items():
            if self.cache[key]:
                first = next((l for l in self.cache[key].split("\n") if "error" in l), self.cache[key].split("\n")[0])
                yield f"{name}: does not compile alone: {first}"
        if self.cache_file:
            with open(self.cache_file, "w") as file:
                json.dump({key: self.cache[key] for key in todo.values()}, file)


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=here)
    parser.add_argument("--cache", help="file that remembers which headers compiled alone")
    parser.add_argument("--cuda-include", help="folder of cuda.h; without it headers that need it are skipped")
    parser.add_argument("--no-headers", action="store_true", help="leave out compiling every header alone")
    options = parser.parse_args()
    tree = Tree(options.root)
    if not tree.source_files():
        sys.exit(f"check_layers: no source files under {tree.root}/src")
    offences = [*check_includes(tree), *check_cycles(tree), *check_budgets(tree)]
    note = "headers not compiled"
    if not options.no_headers:
        headers = HeaderCheck(tree, options.cache, options.cuda_include)
        offences += headers.run()
        note = f"{headers.compiled} headers compiled anew, {headers.skipped} skipped for want of CUDA"
    for offence in offences:
        print(offence)
    print(f"check_layers: {len(tree.files)} files, {note}, {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
