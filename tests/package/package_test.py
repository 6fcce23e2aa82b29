"""Installs the build and uses it as a stranger would.

Usage: package_test.py install|staged|find_package|pkg_config BUILD_FOLDER SCRATCH_FOLDER
Exit code 77 means skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/all_reduce"


def run(*command, **options):
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], check=True, **options)


def run_example(program, libraries):
    environment = {**os.environ, "TALARIA_DEVICE": "host", "LD_LIBRARY_PATH": str(libraries)}
    listed = run("ldd", program, env=environment, capture_output=True, text=True).stdout
    line = next((l.strip() for l in listed.split("\n") if "libnccl.so.2" in l), "")
    assert str(libraries) in line, f"the example does not load the installed library: {line or listed}"
    output = run(program, env=environment, capture_output=True, text=True).stdout
    assert output == "sum ok\n", f"unexpected output: {output!r}"


def library_folder(prefix):
    found = sorted(prefix.rglob("libnccl.so.2"))
    assert len(found) == 1, f"libnccl.so.2 found {len(found)} times under {prefix}"
    return found[0].parent


def install(build, scratch):
    """Installs, then moves the tree: nothing in it may know its first place."""
    shutil.rmtree(scratch, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", scratch / "first", stdout=subprocess.DEVNULL)
    shutil.move(scratch / "first", scratch / "prefix")
    libraries = library_folder(scratch / "prefix")
    assert os.readlink(libraries / "libnccl.so") == "libnccl.so.2"
    assert (scratch / "prefix/include/nccl.h").is_file()
    for file in (scratch / "prefix").rglob("*"):
        if file.suffix in (".cmake", ".pc"):
            text = file.read_text()
            assert str(scratch) not in text and str(build) not in text, f"{file} holds a path of this machine"


def staged(build, scratch):
    """DESTDIR, as packagers use it: the same files below another root."""
    root = scratch.parent / "staged"
    shutil.rmtree(root, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", "/opt/talaria", env={**os.environ, "DESTDIR": str(root)},
        stdout=subprocess.DEVNULL)

    def files(folder):
        return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}

    assert files(root / "opt/talaria") == files(scratch / "prefix"), "DESTDIR and --prefix install different files"
    assert len(files(root)) == len(files(root / "opt/talaria")), "files outside of the prefix"
    shutil.rmtree(root)


def find_package(_, scratch):
    build = scratch / "build-cmake"
    run("cmake", "-G", "Ninja", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={scratch / 'prefix'}")
    run("cmake", "--build", build)
    run_example(build / "all_reduce", library_folder(scratch / "prefix"))


def pkg_config(_, scratch):
    if shutil.which("pkg-config") is None:
        print("skipped: there is no pkg-config")
        sys.exit(77)
    libraries = library_folder(scratch / "prefix")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "nccl >= 2.28", env=environment, capture_output=True,
                text=True).stdout.split()
    run(os.environ.get("CC", "cc"), "-std=c99", EXAMPLE / "all_reduce.c", "-o", scratch / "all_reduce", *flags)
    run_example(scratch / "all_reduce", libraries)


if __name__ == "__main__":
    steps = {function.__name__: function for function in (install, staged, find_package, pkg_config)}
    steps[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
