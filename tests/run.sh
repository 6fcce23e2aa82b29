#!/usr/bin/env bash
# Makes this machine ready, builds, and runs every test; arguments go to ctest (tests/run.sh -L api).
#
# The last line is 'N passed, N failed, N skipped', and the exit code is 0 only when something passed and nothing
# failed. Environment: TALARIA_PRESET and TALARIA_JOBS as in tools/setup.sh.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! build=$(tools/setup.sh); then
  echo "the build failed"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

export LSAN_OPTIONS=suppressions=$PWD/cmake/lsan.supp:print_suppressions=0  # read by AddressSanitizer builds only
results=$build/tests.xml
rm -f "$results"
# Skipped tests are counted, never mistaken for passed ones; a test that cannot be started is a failure.
ctest --test-dir "$build" --parallel "${TALARIA_JOBS:-$(nproc)}" --output-on-failure --no-tests=error \
  --output-junit "$results" "$@" > "$build/tests.log" 2>&1
status=$?
# The log names every test; shown are the failures with their output, and the totals.
grep -vE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .* (Passed|\*\*\*Skipped) |^ *Start +[0-9]+: ' "$build/tests.log"

python3 - "$results" "$status" <<'PYTHON'
import re
import sys

results, status = sys.argv[1], int(sys.argv[2])
try:
    text = open(results, errors="replace").read()
except OSError:
    text = ""
cases = re.findall(r'<testcase name="[^"]*"[^>]* status="(\w+)"', text)
skipped = sum(s in ("notrun", "disabled") for s in cases)
passed = cases.count("run")
failed = len(cases) - passed - skipped
if passed == 0 or (status != 0 and failed == 0):
    failed += 1  # nothing ran, or ctest itself went wrong
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed else 0)
PYTHON
