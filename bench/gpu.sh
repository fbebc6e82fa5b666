#!/bin/sh
# Everything that needs a GPU, in one command: builds, runs the GPU tests, once more under compute-sanitizer, then the tables
# of matrix products beside cuBLASLt and of models beside PyTorch.
# usage: bench/gpu.sh [OUTPUT_FOLDER]
#   HEDDLE_BUILD     a build folder to use (default build/release); what it has already is not built again
#   STAGES           "tests sanitize gemm models verify" or a part of it
#   GEMM_TYPES       "f16 bf16" by default
#   MODELS           of bench/gpu_models.py; default: its table
#   PRECISIONS       of the models: "f16" by default
# Leaves a log of each stage, gemm_<type>.jsonl (one object per shape) and models_<precision>.jsonl (one per model) in the
# output folder. Exit status 1 where a test, a sanitizer or a verification failed.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${1:-build/gpu}
build=${HEDDLE_BUILD:-build/release}
stages=${STAGES:-tests sanitize gemm models verify}
tests="gpu_tests cuda_runtime_tests"
mkdir -p "$out"
if [ ! -x "$build/tests/cuda_runtime/cuda_runtime_tests" ]; then
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$build" -j "$(nproc)" --target heddle heddle_fuzz_graphs $tests || exit 2
fi
heddle=$build/heddle
"$heddle" devices
status=0

wanted() { case " $stages " in *" $1 "*) echo "== $1" ;; *) return 1 ;; esac; }

if wanted tests; then
  # Not by ctest: a build folder that was carried here has the paths of another machine in it.
  for test in "$build"/tests/gpu/gpu_tests "$build"/tests/cuda_runtime/cuda_runtime_tests; do
    timeout 600 "$test" --gtest_brief=1 >"$out/$(basename "$test").log" 2>&1 || status=1
    tail -n 8 "$out/$(basename "$test").log"
  done
  timeout 600 "$build/tests/fuzz/heddle_fuzz_graphs" --target cuda --count "${FUZZ:-200}" --seed 1 >"$out/fuzz.log" 2>&1 || status=1
  tail -n 5 "$out/fuzz.log"
fi

if wanted sanitize; then
  if command -v compute-sanitizer >/dev/null; then
    # What provokes errors on purpose is left out.
    for tool in memcheck racecheck initcheck synccheck; do
      timeout 900 compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 \
        "$build/tests/cuda_runtime/cuda_runtime_tests" --gtest_brief=1 --gtest_filter='-*Lost*:*TooLittle*' \
        >"$out/$tool.log" 2>&1 || status=1
      timeout 900 compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 \
        "$build/tests/gpu/gpu_tests" --gtest_brief=1 >>"$out/$tool.log" 2>&1 || status=1
      echo "$tool: $(grep -h 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/$tool.log" | tr '\n' ' ')"
    done
  else
    echo "no compute-sanitizer on PATH"
    status=1
  fi
fi

if wanted gemm; then
  python3 bench/gemm_table.py --heddle "$heddle" --output "$out" ${GEMM_TYPES:-f16 bf16} || status=1
fi

if wanted models; then
  for precision in ${PRECISIONS:-f16}; do
    python3 bench/gpu_models.py --heddle "$heddle" --output "$out" --precision "$precision" ${MODELS:-} || status=1
  done
fi

if wanted verify; then
  python3 tests/zoo/verify_models.py "$heddle" --target cuda >"$out/verify.log" 2>&1 || status=1
  tail -n 60 "$out/verify.log"
fi
exit $status
