#!/usr/bin/env bash
# Tries the wheel onnxruntime-ep-heddle with releases of ONNX Runtime, each in an environment of its own below
# build/ort-releases: the tests of sessions (test_session.py and test_control_flow.py of tests/ort) on the CPU, with the library of the wheel.
#   scripts/ort_releases.sh WHEEL [RELEASE...]      RELEASE defaults to the newest of each of the three newest minor versions
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=${1:?the wheel is missing}
shift
work=$PWD/build/ort-releases
mkdir -p "$work"
python3 -m venv "$work/pip"
if [ $# -eq 0 ]; then
  # The newest releases come first.
  mapfile -t releases < <("$work/pip/bin/pip" --disable-pip-version-check index versions onnxruntime |
    sed -n 's/^Available versions: //p' | tr -d ' ' | tr ',' '\n' | awk -F. '!seen[$1 "." $2]++' | head -n 3)
else
  releases=("$@")
fi
[ ${#releases[@]} -gt 0 ] || { echo "ort_releases: pip knows no release of onnxruntime" >&2; exit 1; }

failed=0
for release in "${releases[@]}"; do
  python3 -m venv --clear "$work/$release"
  "$work/$release/bin/pip" install --quiet --disable-pip-version-check "onnxruntime==$release" onnx==1.22.0 numpy
  # Neither an index nor dependencies: the wheel needs nothing.
  "$work/$release/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel"
  library=$("$work/$release/bin/python" -c 'import onnxruntime_ep_heddle as ep; print(ep.get_library_path())')
  passed=1
  for tests in session control_flow; do
    HEDDLE_CACHE_DIR=$work/cache "$work/$release/bin/python" tests/ort/test_$tests.py "$library" || passed=0
  done >"$work/$release.log" 2>&1
  if [ $passed -eq 1 ]; then
    echo "onnxruntime $release: $(tail -n 3 "$work/$release.log" | tr '\n' ' ')"
  else
    echo "onnxruntime $release: FAILED, see $work/$release.log"
    failed=1
  fi
done
exit $failed
