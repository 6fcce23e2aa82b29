#!/usr/bin/env bash
# Measures Talaria, Open MPI and Gloo on CPU ranks in one run and compares them: a table, JSON and a plot.
#
#   bench/compare_cpu.sh                                        the whole comparison: about half an hour
#   bench/compare_cpu.sh --quick [--operation all_reduce] [--ranks 2] [--sizes 8,1K,1M]     something to tune with
#   bench/compare_cpu.sh --build build/cpu ...                  build nothing, use the drivers that are there
#
# --help lists all options. Installs Open MPI and Gloo (Debian's packages) where they are missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=()
case " $* " in
  *" --build"*) ;;
  *) build=(--build "$(TALARIA_COMPARE=1 TALARIA_PRESET=${TALARIA_PRESET:-cpu} tools/setup.sh compare_drivers)") ;;
esac
exec python3 -B bench/compare/compare.py "${build[@]}" "$@"
