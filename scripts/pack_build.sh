#!/bin/sh
# Packs the programs that bench/gpu.sh runs, stripped, for a GPU machine that does not build them:
#   scripts/pack_build.sh BUILD ARCHIVE.tar.xz      there: tar -xf ARCHIVE.tar.xz -C build/release
# The libraries that they load (fmt, sqlite3) have to be on that machine, or in its LD_LIBRARY_PATH.
set -eu
build=$1
archive=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for program in heddle tests/fuzz/heddle_fuzz_graphs tests/onnx/heddle_node_tests tests/gpu/gpu_tests \
  tests/cuda_runtime/cuda_runtime_tests tests/cuda_stitch/cuda_stitch_tests tests/tile_cuda/tile_cuda_tests \
  tests/cuda_contraction/cuda_contraction_tests tests/ops/emulated/ops_emulated_tests \
  tests/profile/gpu/profile_collector_tests tests/lang/cuda/lang_cuda_tests bench/gpu_worker; do
  [ -x "$build/$program" ] || continue # gpu_worker only with -DHEDDLE_BENCH=ON
  mkdir -p "$folder/$(dirname $program)"
  strip -o "$folder/$program" "$build/$program"
done
# They share most of their code: a window as large as all of them finds it again.
tar -C "$folder" -cf - . | xz -T1 --lzma2=dict=64MiB,mode=fast,mf=hc4 >"$archive"
