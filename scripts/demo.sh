#!/usr/bin/env bash
# Inspects, compiles, runs, verifies, explains and times ResNet-50 and BERT-base from the zoo on the CPU.
# usage: demo.sh HEDDLE
set -euo pipefail
heddle=$(realpath "$1")
work=build/demo
mkdir -p "$work"

step() { printf '\n$ heddle %s\n' "$*"; "$heddle" "$@"; }

step devices
for model in resnet50 bert-base; do
  step zoo "$model" -o "$work/$model.onnx"
  step inspect "$work/$model.onnx"
  step run "$work/$model.onnx" --target cpu --output-dir "$work/$model-outputs"
  step verify "$work/$model.onnx" --target cpu
  step explain "$work/$model.onnx" --target cpu --svg "$work/$model.svg"
  step bench "$work/$model.onnx" --target cpu
done

cat <<END

Your own model next, with $1 in place of heddle or after \`make install\`:
  heddle inspect MODEL.onnx                    # inputs and extents, and whether all of it is supported
  heddle run MODEL.onnx --input NAME=FILE.npy  # your data; --output-dir DIR keeps the results
  heddle bench MODEL.onnx                      # how fast it is; heddle explain MODEL.onnx says why
END
