#!/usr/bin/env python3
"""Checks how libnccl.so.2 fits into other people's processes.

    check_library.py {symbols,needed,glibc,soname,constructors,internal-calls,coverage} --library FILE
                     [--symbols FILE] [--objects FILE ...]

Reads ELF files with nm and readelf. Exits 1 with one line per offence.
"""
import argparse
import re
import subprocess
import sys

ALLOWED_NEEDED = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux[a-z0-9-]*)\.so\.\d+")
NEWEST_GLIBC = (2, 34)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def expected_names(options):
    with open(options.symbols) as file:
        names = file.read().split()
    if len(names) != 83:
        sys.exit(f"{options.symbols} lists {len(names)} names, expected 83")
    return set(names)


def symbols(options):
    """Exactly the listed names, weak, and their pnccl twins, strong."""
    names = expected_names(options)
    wanted = {name: "W" for name in names} | {"p" + name: "T" for name in names}
    found = {}
    for line in output_of("nm", "-D", "--defined-only", options.library).splitlines():
        _, kind, name = line.split()
        found[name] = kind
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            yield f"{name}: expected kind {wanted.get(name)}, found {found.get(name)}"


def needed(options):
    """No dependency beyond the C library's own."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", options.library))
    if not names:
        yield "no NEEDED entry read"
    for name in names:
        if not ALLOWED_NEEDED.fullmatch(name):
            yield f"needs {name}"


def glibc(options):
    """Nothing newer than glibc 2.34."""
    versions = 0
    for line in output_of("readelf", "--dyn-syms", "-W", options.library).splitlines():
        match = re.search(r"(\S+)@+GLIBC_(\d+)\.(\d+)", line)
        if match:
            versions += 1
            if (int(match[2]), int(match[3])) > NEWEST_GLIBC:
                yield f"{match[1]} needs GLIBC_{match[2]}.{match[3]}"
    if versions == 0:
        yield "no versioned symbol read"


def soname(options):
    names = re.findall(r"\(SONAME\).*\[(.*)\]", output_of("readelf", "-dW", options.library))
    if names != ["libnccl.so.2"]:
        yield f"SONAME {names}"


def sections_by_object(path):
    """(object, section names) for an object file or every member of an archive."""
    current, sections = path, []
    for line in output_of("readelf", "-SW", path).splitlines():
        if line.startswith("File: "):
            if sections:
                yield current, sections
            current, sections = line[len("File: "):], []
        match = re.match(r"\s*\[\s*\d+\]\s+(\S+)", line)
        if match:
            sections.append(match[1])
    yield current, sections


def constructors(options):
    """Our objects run nothing when the library is loaded."""
    seen = 0
    for path in options.objects:
        for name, sections in sections_by_object(path):
            seen += 1
            for section in sections:
                if re.match(r"\.(pre)?init_array|\.ctors", section):
                    yield f"{name} has {section}"
    if seen < 10:
        yield f"only {seen} objects read"


def internal_calls(options):
    """Our objects refer to no exported name: a profiler may have replaced it."""
    seen = 0
    for path in options.objects:
        for line in output_of("readelf", "-rW", path).splitlines():
            seen += 1
            match = re.search(r"\b(p?nccl[A-Z]\w+)", line)
            if match and not line.startswith(("File:", "Relocation section")):
                yield f"{path} calls {match[1]}"
    if seen < 100:
        yield f"only {seen} relocation lines read"


def coverage(options):
    """The objects (of a test program) call every listed name."""
    called = set()
    for path in options.objects:
        called |= set(re.findall(r"\bU (nccl\w+)", output_of("nm", "-u", path)))
    for name in sorted(expected_names(options) ^ called):
        yield f"{name}: {'called but not listed' if name in called else 'never called'}"


def main():
    checks = {"symbols": symbols, "needed": needed, "glibc": glibc, "soname": soname, "constructors": constructors,
              "internal-calls": internal_calls, "coverage": coverage}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=checks)
    parser.add_argument("--library")
    parser.add_argument("--symbols")
    parser.add_argument("--objects", nargs="*", default=[])
    options = parser.parse_args()
    offences = list(checks[options.check](options))
    for offence in offences:
        print(offence)
    print(f"{options.check}: {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
