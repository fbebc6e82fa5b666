#!/bin/sh
# Everything that needs a GPU, in one command: builds, runs the GPU tests (one process a test, many at a time), random graphs
# and the ONNX node tests on the GPU, a part of the tests under compute-sanitizer's four tools, then the tables of matrix
# products beside cuBLASLt, of epilogues, of layers beside PyTorch, of models and the stitch suite beside PyTorch and XLA, of the
# parts of stitching (ablation), and verifies the zoo.
# usage: bench/gpu.sh [OUTPUT_FOLDER]
#   HEDDLE_BUILD     a build folder to use (default build/release); what it has already is not built again
#   STAGES           "tests python instances fuzz nodes sanitize gemm epilogues layers models stitch rows ablation verify" or a part of it
#   JOBS             processes at a time: by default as many as cores, and as 6 GB of the memory that is available for each
#   FUZZ, SECONDS_OF_FUZZ   random graphs (2000 of any kind, as many memory-bound ones), and after how long no more are begun
#                    (600 for either kind)
#   SEED, BATCH      of the first graph (1); graphs compiled together (42: two minutes on a core; fewer end nearer to the time)
#   NODE_DATA        folder onnx/backend/test/data/node, default: that of Python's package onnx
#   TOOLS            of compute-sanitizer: "memcheck,racecheck,initcheck,synccheck" by default
#   SECONDS_OF_SANITIZERS   after how long no test is begun under them (3600)
#   GEMM_TYPES       "f16 bf16" by default; GEMM_RANDOM random shapes beside the fixed ones (30)
#   MODELS           of bench/gpu_models.py; default: its table
#   PRECISIONS       of the models: "f16" by default
#   RIVALS, ROWS     of models and the stitch suite ("torch xla"); more options for bench/rows_gpu.py
#   TEST_DATA        folder of scripts/fetch_test_data.py: its trained models are verified, too
# Leaves a log of each stage, gemm_<type>.jsonl (one object per shape), epilogues_<type>.jsonl, models_<precision>.jsonl (one
# per model), layers.json, transposed.json, attention.json, scatters.json, stitch.json, rows.json and ablation_<precision>.json in the output folder.
# Exit status 1 where a test, a sanitizer or a verification failed.
set -u
cd "$(dirname "$0")/.." || exit 2
out=${1:-build/gpu}
build=${HEDDLE_BUILD:-build/release}
stages=${STAGES:-tests python instances fuzz nodes sanitize gemm epilogues layers models stitch rows ablation verify}
# Verifying the zoo and the sanitizers take up to 1.5 GB a process, random graphs 0.3 GB, the largest tests more.
room=$(awk '/^MemAvailable/ {print int($2 / 6e6)}' /proc/meminfo)
jobs=${JOBS:-$((room < 1 ? 1 : room < $(nproc) ? room : $(nproc)))}
suites="gpu/gpu_tests cuda_runtime/cuda_runtime_tests cuda_stitch/cuda_stitch_tests tile_cuda/tile_cuda_tests
  cuda_contraction/cuda_contraction_tests ops/emulated/ops_emulated_tests profile/gpu/profile_collector_tests
  lang/cuda/lang_cuda_tests"
mkdir -p "$out"
if [ ! -x "$build/tests/cuda_runtime/cuda_runtime_tests" ]; then
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DHEDDLE_BENCH=ON &&
    cmake --build "$build" -j "$(nproc)" --target heddle heddle_fuzz_graphs heddle_node_tests gpu_worker cuda_tests \
      $(for suite in $suites; do basename "$suite"; done) || exit 2
fi
# What bench/python_call.py takes beside the package.
if [ -d "$build/python/heddle" ] && [ ! -f "$build/tests/ops/libops_stub_driver.so" ]; then
  cmake --build "$build" -j "$(nproc)" --target heddle_shared ops_stub_driver || exit 2
fi
export HEDDLE_ALL_INSTANCES=1 # of templates, where a machine without a GPU takes some
export HEDDLE_CUDA_DRIVER="${HEDDLE_CUDA_DRIVER:-libcuda.so.1}" # suites for the emulator take it unless told otherwise
heddle=$build/heddle
"$heddle" devices
status=0

wanted() { case " $stages " in *" $1 "*) echo "== $1" ;; *) return 1 ;; esac; }

# Tests by ctest would need the paths of the machine that built them.
run_tests() { python3 scripts/run_tests.py --jobs "$jobs" "$@" || status=1; }

if wanted tests; then
  run_tests --limit "${LIMIT:-120}" --slowest 5 --log "$out/tests.log" $(for suite in $suites; do echo "$build/tests/$suite"; done)
fi

# The Python package of the build folder, where it has one, and what its calls and launches cost.
if wanted python; then
  export PYTHONPATH="$PWD/$build/python" HEDDLE_EXAMPLES="$PWD/examples/python"
  case $build in /*) PYTHONPATH="$build/python" ;; esac
  if [ ! -d "$build/python/heddle" ]; then
    echo "$build has no Python package: configure it with -DHEDDLE_PYTHON_PACKAGE=ON"
  elif python3 -c 'import heddle' 2>"$out/python.log"; then
    for test in device tile_device tile_operator tile_export examples torch profile_device; do
      HEDDLE_TEST_TARGET=cuda python3 tests/python/test_$test.py >"$out/python_$test.log" 2>&1 || status=1
      echo "$test: $(tail -n 1 "$out/python_$test.log")"
    done
    python3 bench/python_call.py --build "$build" --json >"$out/python_call.json" || status=1
    for figures in tile_launch tile_compile; do python3 bench/$figures.py >"$out/$figures.jsonl" || status=1; done
  else
    cat "$out/python.log"
    status=1
  fi
fi

# Every instance of the templates by the compiler of this machine; no GPU takes part.
if wanted instances; then
  run_tests --limit "${LIMIT:-600}" --slowest 5 --log "$out/instances.log" "$build/tests/cuda/cuda_tests@*Nvrtc*"
fi

# random_graphs LOG OPTION...: a core for each process: its NVRTC then compiles few units with many kernels, and parses the
# headers less often.
random_graphs() {
  log=$1
  shift
  each=$(((${FUZZ:-2000} + jobs - 1) / jobs))
  seq 0 $((jobs - 1)) | xargs -P "$jobs" -I{} sh -c "taskset -c \$(({} % $(nproc))) '$build/tests/fuzz/heddle_fuzz_graphs' \
    --target cuda --batch ${BATCH:-42} --seconds ${SECONDS_OF_FUZZ:-600} $* --seed \$((${SEED:-1} + {} * $each)) \
    --count $each >'$out/fuzz_{}.txt' 2>&1" || status=1
  cat "$out"/fuzz_*.txt >"$out/$log"
  rm -f "$out"/fuzz_*.txt
  grep '^FAILED' "$out/$log" | cut -c 1-300
  awk -v options="$*" '/ graphs, .* failures$/ {n += $1; k += $5; f += $(NF - 1)}
    END {print n + 0 " random graphs " options ", " k + 0 " kernels, " f + 0 " failures"}' "$out/$log"
}

if wanted fuzz; then
  random_graphs fuzz.log
  random_graphs fuzz_memory_bound.log --memory-bound
fi

if wanted nodes; then
  data=${NODE_DATA:-$(python3 -c 'import onnx, os; print(os.path.dirname(onnx.__file__) + "/backend/test/data/node")')}
  parts=37 # of 48 tests, which share a compilation
  seq 1 $parts | xargs -P "$jobs" -I{} sh -c "taskset -c \$(({} % $(nproc))) '$build/tests/onnx/heddle_node_tests' \
    --data '$data' --mode cuda --part {} $parts >'$out/nodes_{}.txt' 2>&1" || true
  cat "$out"/nodes_*.txt >"$out/nodes.log"
  rm -f "$out"/nodes_*.txt
  grep '^[wec] ' "$out/nodes.log" | cut -c 1-300 && status=1
  awk '/ tests \(cuda\): / {n += $1; p += $4} END {print n + 0 " node tests, " p + 0 " passed"}' "$out/nodes.log"
fi

# Of each family of kernels something; what provokes errors on purpose and what needs no GPU is left out.
if wanted sanitize; then
  if command -v compute-sanitizer >/dev/null; then
    export HEDDLE_TEST_CANDIDATES="${HEDDLE_TEST_CANDIDATES:-3}"
    run_tests --tools "${TOOLS:-memcheck,racecheck,initcheck,synccheck}" --limit "${LIMIT:-300}" --slowest 5 \
      --seconds "${SECONDS_OF_SANITIZERS:-3600}" --log "$out/sanitize.log" \
      "$build/tests/cuda_contraction/cuda_contraction_tests@-*AtRandom*:*Refus*:*ShortEpilogues" \
      "$build/tests/gpu/gpu_tests@Shapes/GemmOnGpu*/7:Shapes/GemmOnGpu*/14:Types/GemmOnGpu*/4:Types/GemmOnGpu*/9:Epilogues/GemmOnGpu*/9" \
      "$build/tests/ops/emulated/ops_emulated_tests@*Computes*:*Batches*:*Empty*:*AWorkspace*" \
      "$build/tests/cuda_stitch/cuda_stitch_tests@CudaStitch.*:Stitch.*Reductions:*.Scans:*.Layout:*.Indexing-*Suite*" \
      "$build/tests/tile_cuda/tile_cuda_tests" \
      "$build/tests/cuda_runtime/cuda_runtime_tests@*Loops*:*Counters*:*OneGraph:*Recurren*/*:*WholeGrid*-*LongLoops*"
  else
    echo "no compute-sanitizer on PATH"
    status=1
  fi
fi

if wanted gemm; then
  python3 bench/gemm_table.py --heddle "$heddle" --output "$out" --random "${GEMM_RANDOM:-30}" ${GEMM_TYPES:-f16 bf16} || status=1
fi

if wanted epilogues; then
  python3 bench/gemm_epilogues.py --heddle "$heddle" --output "$out" || status=1
fi

if wanted layers; then
  python3 bench/layers_gpu.py --heddle "$heddle" --output "$out/layers.json" || status=1
  python3 bench/transposed_conv.py --heddle "$heddle" --output "$out/transposed.json" || status=1
  python3 bench/conv_gradients.py --heddle "$heddle" --output "$out/conv_gradients.json" || status=1
  python3 bench/attention_gpu.py --heddle "$heddle" --rivals cudnn flash --candidates 6 --output "$out/attention.json" || status=1
  if [ -d "$build/python/heddle" ]; then
    PYTHONPATH=$build/python python3 bench/scatters_gpu.py --output "$out/scatters.json" || status=1
  fi
fi

if wanted models; then
  for precision in ${PRECISIONS:-f16}; do
    python3 bench/gpu_models.py --rivals ${RIVALS:-torch xla} --heddle "$heddle" --output "$out" --precision "$precision" ${MODELS:-} || status=1
  done
fi

worker=$build/bench/gpu_worker
if wanted stitch; then
  python3 bench/stitch_gpu.py --heddle "$heddle" --worker "$worker" --types f32 f16 --rivals ${RIVALS:-torch xla} \
    --output "$out/stitch.json" || status=1
fi

if wanted rows; then
  python3 bench/rows_gpu.py --heddle "$heddle" --worker "$worker" --output "$out/rows.json" ${ROWS:-} || status=1
fi

if wanted ablation; then
  for precision in ${PRECISIONS:-f16}; do
    python3 bench/ablation.py --heddle "$heddle" --models "$out/zoo" --target cuda --precision "$precision" --bursts 3 \
      --seconds 0.2 --output "$out/ablation_$precision.json" || status=1
  done
  rm -rf "$out/zoo"
fi

if wanted verify; then
  python3 tests/zoo/verify_models.py "$heddle" --target cuda --jobs "$jobs" ${TEST_DATA:+--data "$TEST_DATA"} \
    >"$out/verify.log" 2>&1 || status=1
  tail -n 80 "$out/verify.log"
fi
exit $status
