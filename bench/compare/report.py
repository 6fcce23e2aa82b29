#!/usr/bin/env python3
"""The table and the summary of a comparison: bench/compare/report.py FILE.json [--plot FILE.svg]

A comparison is what bench/compare/compare.py writes: {"rows": [...], "init": [...], "libraries": {...}, ...}. A row is
one operation, number of ranks and size: {"operation", "ranks", "bytes", "usec": {name: median}}; a name is a library
or library/algorithm.
"""
import argparse
import json
import math
import sys

from plot import write_plot

OURS = "talaria"
OTHERS = ("open_mpi", "gloo")
LARGE_BYTES = 1 << 20
TOLERANCE = 1.15  # a row beyond its target by more than this is a serious one


def size_text(size):
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def time_text(usec):
    if usec is None:
        return "-"
    return f"{usec:.0f}" if usec >= 10000 else f"{usec:.1f}" if usec >= 100 else f"{usec:.2f}"


def target(operation, size):
    """The time ratio that a row may have at most."""
    if size < LARGE_BYTES:
        return 1.0
    return 0.67 if operation == "all_reduce" else 0.8


def library_of(name):
    return name.partition("/")[0]


def best_of(row, library):
    """(usec, algorithm) of the library's fastest algorithm; (None, "") when it was not measured."""
    times = [(usec, name.partition("/")[2]) for name, usec in row["usec"].items() if library_of(name) == library]
    return min(times, default=(None, ""))


class Row:
    """A row with what follows from it."""

    def __init__(self, row):
        self.operation, self.ranks, self.bytes = row["operation"], row["ranks"], row["bytes"]
        self.best = {library: best_of(row, library) for library in (OURS, *OTHERS)}
        self.target = target(self.operation, self.bytes)
        rivals = [(self.best[library][0], library) for library in OTHERS if self.best[library][0] is not None]
        self.rival_usec, self.rival = min(rivals, default=(None, ""))
        ours = self.best[OURS][0]
        self.ratio = ours / self.rival_usec if ours is not None and self.rival_usec else None

    def misses(self, tolerance=1.0):
        return self.ratio is not None and self.ratio > self.target * tolerance

    def line(self):
        usec = "".join(f"{time_text(self.best[library][0]):>10}" for library in (OURS, *OTHERS))
        algorithm = self.best["gloo"][1] if self.best["gloo"][0] is not None else ""
        ratio = f"{self.ratio:7.2f}" if self.ratio is not None else f"{'-':>7}"
        mark = "!!" if self.misses(TOLERANCE) else "!" if self.misses() else ""
        return f"{size_text(self.bytes):>8}{usec}{ratio}{self.target:8.2f} {mark:2} {self.rival:9} {algorithm}".rstrip()


def heading(operation, ranks):
    return (f"\n{operation}, {ranks} ranks\n"
            f"{'size':>8}{'Talaria':>10}{'Open MPI':>10}{'Gloo':>10}{'ratio':>7}{'target':>8}    "
            "fastest other, Gloo's algorithm")


def groups_of(rows):
    groups = {}
    for row in rows:
        groups.setdefault((row.operation, row.ranks), []).append(row)
    return groups


def summary_line(name, rows):
    compared = [row for row in rows if row.ratio is not None]
    if not compared:
        return f"{name:28} nothing to compare with"
    mean = math.exp(sum(math.log(row.ratio) for row in compared) / len(compared))
    worst = max(compared, key=lambda row: row.ratio / row.target)
    missed = sum(row.misses() for row in compared)
    serious = sum(row.misses(TOLERANCE) for row in compared)
    place = f"{worst.operation}, {worst.ranks} ranks, {size_text(worst.bytes)}"
    return (f"{name:28} mean ratio {mean:5.2f}  over target {missed:3} of {len(compared):3} "
            f"({100 * missed / len(compared):3.0f} %), by more than 15 %: {serious:3}  "
            f"worst {worst.ratio:5.2f} of {worst.target:4.2f} ({place})")


def init_lines(init):
    lines = []
    for entry in init:
        times = "  ".join(f"{name} {usec / 1000:.1f} ms" for name, usec in entry["usec"].items())
        lines.append(f"init of {entry['ranks']} processes: {times}")
    return lines


def summary(comparison):
    rows = [Row(row) for row in comparison["rows"]]
    groups = groups_of(rows)
    lines = [""]
    lines += [summary_line(f"{operation}, {ranks} ranks", group) for (operation, ranks), group in groups.items()]
    if len(groups) > 1:
        lines.append(summary_line("all", rows))
    return "\n".join(lines + init_lines(comparison["init"]))


def table(comparison):
    lines = []
    for (operation, ranks), group in groups_of([Row(row) for row in comparison["rows"]]).items():
        lines += [heading(operation, ranks)] + [row.line() for row in group]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("comparison", help="what compare.py wrote")
    parser.add_argument("--plot", help="write an SVG there")
    arguments = parser.parse_args()
    with open(arguments.comparison, encoding="utf-8") as file:
        comparison = json.load(file)
    print(table(comparison))
    print(summary(comparison))
    if arguments.plot:
        write_plot(comparison, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
