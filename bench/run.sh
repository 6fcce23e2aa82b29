#!/usr/bin/env bash
# Builds Talaria and runs an all-reduce sweep on what this machine has: its GPUs, else 8 CPU ranks in 8 processes.
#
#   bench/run.sh [options of all_reduce_perf]          later options win, e.g. bench/run.sh -e 1G -d half
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=$(tools/setup.sh bench)
program=$build/bin/all_reduce_perf
gpus=$("$program" --devices)
if [ "$gpus" -gt 0 ]; then
  options=(-g "$gpus" -b 8 -e 64M -f 2)
else
  echo "# No usable GPU: 8 ranks in 8 processes over host memory" >&2
  options=(-p 8 -b 8 -e 16M -f 2 -n 10 -w 2)
fi
exec "$program" "${options[@]}" "$@"
