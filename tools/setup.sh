#!/usr/bin/env bash
# Makes this machine ready and builds: installs the packages that are missing, picks a CMake preset, configures, builds.
#
#   build=$(tools/setup.sh [target...])       no target: everything
#
# Prints the build folder on stdout and progress on stderr; what the tools say goes to <build folder>/setup.log and is
# shown when a step fails. Environment: TALARIA_PRESET (default: dev where nvcc is found, else cpu), TALARIA_JOBS,
# TALARIA_COMPARE (anything: also what bench/compare_cpu.sh compares us with).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "# $*" >&2; }
has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() { echo "#include <$1>" | g++ -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1; }

# Debian package and how to see that it is not needed. g++ stands first: the headers are looked for with it.
needs=(
  "g++ command g++"
  "cmake command cmake"
  "ninja-build command ninja"
  "python3 command python3"
  "pkg-config command pkg-config"
  "libfmt-dev header fmt/format.h"
  "libcli11-dev header CLI/CLI.hpp"
  "libgtest-dev header gtest/gtest.h"
  "libhwy-dev header hwy/highway.h"
)
if [ -n "${TALARIA_COMPARE:-}" ]; then
  needs+=("libopenmpi-dev command mpicc" "openmpi-bin command mpirun" "libgloo-dev header gloo/allreduce.h")
fi

missing_packages() {
  local package kind what
  for need in "${needs[@]}"; do
    read -r package kind what <<<"$need"
    "has_$kind" "$what" || echo "$package"
  done
}

# Runs a command with its output in the log; shows the end of the log and stops when it fails.
quietly() {
  if ! "$@" >>"$log" 2>&1; then
    say "failed: $*"
    tail -n 60 "$log" >&2
    exit 1
  fi
}

install_packages() {
  local as_root=()
  if ! has_command apt-get; then
    say "missing: $*. These are Debian's names; please install their equivalents and try again."
    exit 1
  fi
  if [ "$(id -u)" != 0 ]; then
    has_command sudo || { say "missing: $*. Please install them as root (apt-get install $*)."; exit 1; }
    as_root=(sudo)
  fi
  say "installing $*"
  # A stale or partly unreachable package list may still hold what we need: the installation decides.
  "${as_root[@]}" apt-get update -qq >>"$log" 2>&1 || true
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then
  install_packages "${missing[@]}"
fi

if ! has_command nvcc && [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; then
  PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
fi
if has_command nvcc; then preset=dev; else preset=cpu; fi
preset=${TALARIA_PRESET:-$preset}

# The preset dev builds for one architecture: that of the GPU which is here, if any.
settings=()
if [ -n "${TALARIA_COMPARE:-}" ]; then settings+=(-DTALARIA_COMPARE=ON); fi
if [ "$preset" = dev ] && has_command nvidia-smi; then
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -dc '0-9' || true)
  if [ "$capability" = 90 ]; then capability=90a; fi
  if [ -n "$capability" ]; then settings+=("-DTALARIA_CUDA_ARCHITECTURES=$capability"); fi
fi

build=build/$preset
mkdir -p "$build"
mv "$log" "$build/setup.log"
trap - EXIT
log=$build/setup.log
say "building in $build"
quietly cmake --preset "$preset" "${settings[@]}"
targets=()
if [ "$#" -gt 0 ]; then targets=(--target "$@"); fi
quietly cmake --build "$build" --parallel "${TALARIA_JOBS:-$(nproc)}" "${targets[@]}"
echo "$PWD/$build"
