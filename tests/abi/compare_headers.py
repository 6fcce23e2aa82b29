#!/usr/bin/env python3
"""Compares our nccl.h with NVIDIA's of the same release, as a client's binary sees them.

    compare_headers.py --compiler CXX --ours DIR --official DIR --source layout_emit.cc --work DIR
                       --symbols FILE --later FILE --allowed FILE

Compiles one program with each header, runs both, compares every line: sizes, offsets, values, signatures; compares
the names of the NCCL_ macros too. A difference is an offence unless --allowed lists it with a reason, and so is a
reason without a difference. Exits 77, which ctest counts as skipped, where the official header is absent or is of
another release.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
VERSION = "22809"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def type_of(name):
    """The C++ type of a function; where nccl_device.h overloads it for kernels, of the C function."""
    if name in ("ncclTeamWorld", "ncclTeamLsa", "ncclTeamRail"):
        return f"decltype(static_cast<ncclTeam_t (*)(ncclComm_t)>({name}))"
    if name in ("ncclTeamRankToWorld", "ncclTeamRankToLsa"):
        return f"decltype(static_cast<int (*)(ncclComm_t, ncclTeam_t, int)>({name}))"
    return f"decltype({name})"


def write_signatures(options):
    """Both names of every function that the header of 2.28.9 declares."""
    names = set(pathlib.Path(options.symbols).read_text().split())
    names -= set(pathlib.Path(options.later).read_text().split())
    names.discard("ncclResetDebugInitInternal")  # exported by 2.28.9, declared by no public header
    if len(names) != 52:
        sys.exit(f"{len(names)} functions to compare, expected 52")
    in_device_header = re.compile(r"nccl(Team|DevComm|LLA2A|LsaBarrier|GinBarrier)")  # it declares no twins
    names |= {"p" + name for name in names if not in_device_header.match(name)}
    lines = [f'emit_signature<{type_of(name)}>("{name}");\n' for name in sorted(names)]
    folder = pathlib.Path(options.work)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "signatures.inc").write_text("".join(lines))


def facts_of(options, include, name):
    program = pathlib.Path(options.work) / f"layout_{name}"
    subprocess.run([options.compiler, "-std=c++17", "-w", "-I", include, "-I", options.work, options.source, "-o",
                    program], check=True)
    text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    facts = dict(line.rsplit(" ", 1) for line in text.splitlines())
    if len(facts) < 200:
        sys.exit(f"only {len(facts)} facts from {include}")
    return facts


def macros_of(options, include):
    header = pathlib.Path(include) / "nccl.h"
    text = subprocess.run([options.compiler, "-std=c++17", "-I", include, "-E", "-dM", header], check=True,
                          capture_output=True, text=True).stdout
    return set(re.findall(r"#define (NCCL_\w+)", text))


def differences(options):
    ours = facts_of(options, options.ours, "ours")
    official = facts_of(options, options.official, "official")
    if official["NCCL_VERSION_CODE"] != VERSION:
        skip(f"the official header is {official['NCCL_VERSION_CODE']}, not {VERSION}")
    for key in sorted(ours.keys() | official.keys()):
        if ours.get(key) != official.get(key):
            yield key, f"ours {ours.get(key)}, official {official.get(key)}"
    for name in sorted(macros_of(options, options.ours) ^ macros_of(options, options.official)):
        yield f"macro {name}", "defined by one header only"
    print(f"{len(ours)} facts compared")


def read_allowed(path):
    lines = [line for line in pathlib.Path(path).read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("compiler", "ours", "official", "source", "work", "symbols", "later", "allowed"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    for header in ("nccl.h", "nccl_device.h", "cuda_runtime.h"):
        if not (pathlib.Path(options.official) / header).is_file():
            skip(f"no official {header} in '{options.official}'")
    write_signatures(options)
    allowed = read_allowed(options.allowed)
    offences = 0
    for key, text in differences(options):
        if key in allowed:
            print(f"allowed: {key}: {allowed.pop(key)}")
        else:
            offences += 1
            print(f"differs: {key}: {text}")
    for key in allowed:
        offences += 1
        print(f"no longer differs: {key}")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
