"""The processes of one library in a comparison: starts them, tells them what to measure, one measurement at a time."""
import os
import pathlib
import select
import shutil
import socket
import subprocess
import tempfile

ANSWER_SECONDS = 100  # the longest measurement takes a few; beyond this a driver hangs


class DriverError(Exception):
    """A driver ended, hangs, or computes wrong results."""


def mpirun_command(ranks, cores):
    """One host, no network, nothing bound; ranks that are more than the cores must give theirs away while they wait."""
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
    settings = {"plm": "isolated", "pml": "ob1", "btl": "self,vader", "mpi_yield_when_idle": str(int(ranks > cores))}
    for name, value in settings.items():
        command += ["--mca", name, value]
    return command


def commands_of(library, program, folder, ranks, max_bytes):
    """What to run: one command per rank, or one that starts them all."""
    arguments = [str(program), str(folder), str(ranks), str(max_bytes)]
    if library == "open_mpi":
        return [mpirun_command(ranks, len(os.sched_getaffinity(0))) + arguments]
    return [arguments + [str(rank)] for rank in range(ranks)]


class Drivers:
    """The ranks of one library. They wait, blocked, whenever they are not asked."""

    def __init__(self, library, program, ranks, max_bytes):
        self.library = library
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="compare-"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.folder / "socket"))
        listener.listen(ranks)
        commands = commands_of(library, program, self.folder, ranks, max_bytes)
        self.processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for command in commands]
        self.sockets = []
        try:
            self.meet(listener, ranks)
        except BaseException:
            self.stop()
            raise
        finally:
            listener.close()

    def meet(self, listener, ranks):
        for _ in range(ranks):
            self.wait_for(listener)
            self.sockets.append(listener.accept()[0])
        greetings = [self.answer(one).split(" ", 2) for one in self.sockets]
        self.init_usec = max(float(usec) for _, usec, _ in greetings)
        self.version = greetings[0][2]

    def measure(self, operation, algorithm, size, calls, checked=False):
        """Microseconds per call of the slowest rank."""
        request = f"{operation} {algorithm} {size} {calls} {int(checked)}\n".encode()
        for one in self.sockets:
            one.sendall(request)
        answers = [self.answer(one).split() for one in self.sockets]
        wrong = sum(int(count) for _, count in answers)
        if wrong > 0:
            raise DriverError(f"{self.library}: {operation} {algorithm} of {size} bytes: {wrong} wrong elements")
        return max(float(usec) for usec, _ in answers)

    def answer(self, one):
        text = b""
        while not text.endswith(b"\n"):
            self.wait_for(one)
            more = one.recv(4096)
            if not more:
                raise DriverError(f"{self.library}: a rank ended")
            text += more
        return text.decode().strip()

    def wait_for(self, one):
        for _ in range(ANSWER_SECONDS * 2):
            if select.select([one], [], [], 0.5)[0]:
                return
            if any(process.poll() is not None for process in self.processes):
                raise DriverError(f"{self.library}: a process ended early")
        raise DriverError(f"{self.library}: no answer in {ANSWER_SECONDS} seconds")

    def stop(self):
        """Ends the processes: they leave when their connection ends, or are made to."""
        for one in self.sockets:
            one.close()
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
