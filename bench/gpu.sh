#!/bin/sh
# Everything that needs a GPU, in one command: builds, runs the GPU tests, then the table of matrix products beside
# cuBLASLt. usage: bench/gpu.sh [OUTPUT_FOLDER]; HEDDLE_BUILD names a build folder to use (default build/release).
# Leaves gpu_tests.log and gemm_<type>.jsonl (one object per shape) in the output folder. Exit status 1 where a test or a
# verification failed.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${1:-build/gpu}
build=${HEDDLE_BUILD:-build/release}
mkdir -p "$out"
if [ ! -x "$build/tests/gpu/gpu_tests" ]; then
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release && cmake --build "$build" -j "$(nproc)" --target heddle gpu_tests || exit 2
fi
"$build/heddle" devices
status=0
timeout 300 "$build/tests/gpu/gpu_tests" --gtest_brief=1 >"$out/gpu_tests.log" 2>&1 || status=1
tail -n 15 "$out/gpu_tests.log"
python3 bench/gemm_table.py --heddle "$build/heddle" --output "$out" ${GEMM_TYPES:-f16 bf16} || status=1
exit $status
