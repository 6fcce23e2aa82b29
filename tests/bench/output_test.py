"""Runs a benchmark program with JSON output, on a terminal and off it, and looks at what comes out.

Usage: output_test.py SCRATCH_FILE PROGRAM [OPTION...]
"""
import json
import os
import pty
import subprocess
import sys

KEYS = {"program", "time", "machine", "versions", "options", "ranks", "rows", "skipped", "wrong", "average_busbw_gbps"}


def run_on_terminal(command):
    """What the program writes to its standard error, when that is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.wait() == 0, text
    return text.decode()


def check_object(result, command, table):
    assert set(result) == KEYS, sorted(set(result) ^ KEYS)
    assert result["program"] == os.path.basename(command[0])
    assert result["wrong"] == 0 and result["skipped"] == []
    assert len(result["ranks"]) == result["options"]["threads"] == 2
    assert result["machine"]["cores"] >= 1 and result["machine"]["host"]
    assert result["versions"]["nccl_library"] == result["versions"]["nccl_headers"]
    lines = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(result["rows"]) > 0, table
    for line, row in zip(lines, result["rows"]):
        assert line[:5] == [str(row[key]) for key in ("bytes", "count", "type", "redop", "root")], (line, row)
        assert row["out_of_place"]["wrong"] == 0
        assert row["in_place"]["wrong"] in (0, None)
        for place in ("out_of_place", "in_place"):
            assert row[place]["time_usec"] > 0
            assert row[place]["busbw_gbps"] >= 0
        if row["bytes"]:
            assert abs(row["out_of_place"]["algbw_gbps"] * row["out_of_place"]["time_usec"] * 1e3 / row["bytes"] - 1) < 1e-3


def main():
    path, command = sys.argv[1], sys.argv[2:]
    for option in ("--json", "-J", "--output_file"):
        done = subprocess.run(command + [option, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
        assert "# row" not in done.stderr + done.stdout
        with open(path) as file:
            check_object(json.load(file), command, done.stdout)
        os.remove(path)
    seen = run_on_terminal(command)
    rows = len([line for line in done.stdout.splitlines() if line and not line.startswith("#")])
    for row in range(1, rows + 1):
        assert f"# row {row} of {rows}: " in seen, seen
    assert seen.endswith("\r\033[K"), repr(seen[-40:])


if __name__ == "__main__":
    main()
