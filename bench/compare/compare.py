#!/usr/bin/env python3
"""Measures Talaria, Open MPI and Gloo on CPU ranks, in turns, and writes a table, JSON and a plot.

Run it through bench/compare_cpu.sh, which builds the drivers first. The processes of all libraries are there all the
time; one library works while the others are blocked. Each row is measured in alternations: every library and algorithm
once, in an order that rotates; the median over the alternations counts. The time of a measurement is that of the
slowest rank.
Sizes are those of the larger of a rank's two buffers; where it is divided among ranks, each gets at least one element.
"""
import argparse
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import platform
import statistics
import sys

import report
from drivers import DriverError, Drivers
from plot import write_plot

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall")
PROGRAMS = {"talaria": "compare_nccl", "open_mpi": "compare_mpi", "gloo": "compare_gloo"}
# Where a library offers several algorithms and does not choose itself, its fastest counts.
ALGORITHMS = {("gloo", "all_reduce"): ("ring", "bcube", "halving_doubling")}
QUICK_SIZES = "8,1K,64K,1M,8M"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text):
    unit = UNITS.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def parse_sizes(text):
    """"8,1K,64K", or "8-64M": the powers of two in between."""
    first, dash, last = text.partition("-")
    if not dash:
        return [parse_size(part) for part in text.split(",")]
    sizes = [parse_size(first)]
    while sizes[-1] * 2 <= parse_size(last):
        sizes.append(sizes[-1] * 2)
    return sizes


def parse_arguments():
    parser = argparse.ArgumentParser(prog="compare_cpu.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build folder with the drivers")
    parser.add_argument("--operation", default=",".join(OPERATIONS), help="one or several of %(default)s")
    parser.add_argument("--ranks", default="2,4,8", help="numbers of processes (%(default)s)")
    parser.add_argument("--sizes", help='"8,1K,1M" or "8-64M" (default 8-64M)')
    parser.add_argument("--alternations", type=int, help="measurements of which the median counts (7)")
    parser.add_argument("--milliseconds", type=float, default=20, help="length of a measurement (%(default)s)")
    parser.add_argument("--libraries", default=",".join(PROGRAMS), help="those to measure (%(default)s)")
    parser.add_argument("--quick", action="store_true", help=f"sizes {QUICK_SIZES}, 3 alternations, short measurements")
    parser.add_argument("--output", type=pathlib.Path, help="folder of compare.json, .txt and .svg (BUILD/compare)")
    arguments = parser.parse_args()
    arguments.operation = arguments.operation.split(",")
    arguments.ranks = [int(ranks) for ranks in arguments.ranks.split(",")]
    arguments.libraries = arguments.libraries.split(",")
    arguments.sizes = parse_sizes(arguments.sizes or (QUICK_SIZES if arguments.quick else "8-64M"))
    arguments.alternations = arguments.alternations or (3 if arguments.quick else 7)
    arguments.output = arguments.output or arguments.build / "compare"
    if arguments.quick:
        arguments.milliseconds = min(arguments.milliseconds, 10)
    for given, known in ((arguments.operation, OPERATIONS), (arguments.libraries, PROGRAMS)):
        for name in given:
            if name not in known:
                parser.error(f"'{name}' is none of {', '.join(known)}")
    return arguments


class Contender:
    """A library with one of its algorithms, for one row."""

    def __init__(self, drivers, operation, algorithm, size):
        self.drivers, self.request = drivers, (operation, algorithm, size)
        self.name = drivers.library if algorithm == "default" else f"{drivers.library}/{algorithm}"
        self.samples = []
        self.calls = 1

    def calibrate(self, milliseconds):
        """Checks the results of one call; chooses the number of calls of a measurement."""
        self.drivers.measure(*self.request, 1, checked=True)
        for share in (10, 1):
            self.choose_calls(self.drivers.measure(*self.request, self.calls), milliseconds / share)

    def choose_calls(self, usec, milliseconds):
        self.calls = max(self.calls, min(100_000, round(milliseconds * 1000 / max(usec, 0.01))))

    def sample(self, milliseconds):
        usec = self.drivers.measure(*self.request, self.calls)
        self.samples.append(usec)
        self.choose_calls(usec, milliseconds)  # something may have disturbed the calibration


def measure_row(all_drivers, operation, ranks, size, arguments):
    contenders = [Contender(drivers, operation, algorithm, size) for drivers in all_drivers
                  for algorithm in ALGORITHMS.get((drivers.library, operation), ("default",))]
    for contender in contenders:
        contender.calibrate(arguments.milliseconds)
    for alternation in range(arguments.alternations):
        first = alternation % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            contender.sample(arguments.milliseconds)
    return {"operation": operation, "ranks": ranks, "bytes": size,
            "usec": {one.name: statistics.median(one.samples) for one in contenders},
            "samples": {one.name: one.samples for one in contenders},
            "calls": {one.name: one.calls for one in contenders}}


def start(library, ranks, arguments):
    # A block has at least one element even where a small size is divided among the ranks.
    max_bytes = max(*arguments.sizes, 4 * ranks)
    return Drivers(library, arguments.build / "bin" / PROGRAMS[library], ranks, max_bytes)


def measure_init(ranks, arguments):
    """The median of several starts, in turns; the slowest rank of each counts."""
    samples = {library: [] for library in arguments.libraries}
    for _ in range(1 if arguments.quick else arguments.alternations):
        for library in arguments.libraries:
            with start(library, ranks, arguments) as drivers:
                samples[library].append(drivers.init_usec)
    return {"ranks": ranks, "usec": {library: statistics.median(times) for library, times in samples.items()},
            "samples": samples}


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe(drivers):
    """What was measured: the version, and for a library that says where it lies, its hash."""
    version, _, path = drivers.version.partition(" /")
    entry = {"version": version}
    if drivers.library == "open_mpi":
        entry["command"] = " ".join(drivers.processes[0].args[:-4])
    if path:
        entry["sha256"] = hashlib.sha256(pathlib.Path("/" + path).read_bytes()).hexdigest()
    return entry


def new_comparison(arguments):
    settings = {name: value for name, value in sorted(os.environ.items()) if name.startswith(("NCCL_", "TALARIA_"))}
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release()},
        "options": {"alternations": arguments.alternations, "milliseconds": arguments.milliseconds,
                    "sizes": arguments.sizes, "time": "slowest rank, median over the alternations",
                    "type": "float", "reduction": "sum"},
        "environment": settings, "libraries": {}, "init": [], "rows": []}


def run(arguments, comparison):
    for ranks in arguments.ranks:
        comparison["init"].append(measure_init(ranks, arguments))
        with contextlib.ExitStack() as stack:
            all_drivers = [stack.enter_context(start(library, ranks, arguments)) for library in arguments.libraries]
            comparison["libraries"].update({drivers.library: describe(drivers) for drivers in all_drivers})
            for operation in arguments.operation:
                print(report.heading(operation, ranks), flush=True)
                for size in arguments.sizes:
                    row = measure_row(all_drivers, operation, ranks, size, arguments)
                    comparison["rows"].append(row)
                    print(report.Row(row).line(), flush=True)


def main():
    arguments = parse_arguments()
    os.environ["TALARIA_DEVICE"] = "host"
    comparison = new_comparison(arguments)
    try:
        run(arguments, comparison)
    except DriverError as error:
        print(f"compare_cpu.sh: {error}", file=sys.stderr)
        return 1
    print(report.summary(comparison))
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "compare.json").write_text(json.dumps(comparison, indent=1) + "\n", encoding="utf-8")
    text = report.table(comparison) + "\n" + report.summary(comparison) + "\n"
    (arguments.output / "compare.txt").write_text(text, encoding="utf-8")
    write_plot(comparison, arguments.output / "compare.svg")
    print(f"\n# {arguments.output}/compare.json, compare.txt, compare.svg", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
