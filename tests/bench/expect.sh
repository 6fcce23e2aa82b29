#!/usr/bin/env bash
# Runs a command and fails unless it ends with the given exit code and prints, on stdout or stderr, what matches every
# given pattern (extended regular expressions, one line each).
#
#   expect.sh <exit code> [pattern...] -- <command...>
set -uo pipefail

wanted_code=$1
shift
patterns=()
while [ "$1" != "--" ]; do
  patterns+=("$1")
  shift
done
shift

output=$("$@" 2>&1)
code=$?
verdict=0
if [ "$code" != "$wanted_code" ]; then
  echo "expect.sh: exit code $code, wanted $wanted_code"
  verdict=1
fi
for pattern in "${patterns[@]}"; do
  if ! grep -Eq -- "$pattern" <<<"$output"; then
    echo "expect.sh: nothing matches: $pattern"
    verdict=1
  fi
done
if [ "$verdict" != 0 ]; then printf '%s\n' "command: $*" "$output"; fi
exit "$verdict"
