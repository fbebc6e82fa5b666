#!/usr/bin/env python3
"""Models quantised by onnxruntime.quantization: in Heddle with 8 bits, in Heddle with floats, and on a CPU in ONNX Runtime
with 8 bits. One line a model, a form and an instruction set; geometric means at the end.

usage: quantized_models.py [--heddle PATH] [--models NAME...] [--forms qdq qop dynamic] [--target cpu|cuda] [--batch N]
                           [--isa avx512 avx2] [--threads N...] [--bursts N] [--processor-time] [--folder PATH] [--verify]
                           [--prepare] [--output FILE]

A model is one of `heddle zoo`, or an ONNX file. On a GPU, floats are f16, and times are those of the GPU's work. --prepare only
writes models and compiles them into the cache.

Forms: `qdq` and `qop` are static (QuantizeLinear and DequantizeLinear; QLinearConv, QLinearMatMul, ...), with unsigned
activations and signed weights, those of `qdq` per channel; `dynamic` is MatMulInteger and ConvInteger. Models are
calibrated with random inputs and kept in the folder. ONNX Runtime uses all instruction sets of the machine."""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

import onnx

from cpu_models import OrtWorker
from ort_worker import random_inputs
from report_gpu import geometric_mean


def quantise(source, path, form):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

    class Inputs(CalibrationDataReader):
        def __init__(self):
            self.left = [random_inputs(source, seed) for seed in range(2)]

        def get_next(self):
            return self.left.pop() if self.left else None

    if form == "dynamic":
        quantize_dynamic(source, path, weight_type=QuantType.QInt8)
        return
    quantize_static(source, path, Inputs(), quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
                    per_channel=form == "qdq", activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def model_files(options, name):
    """The f32 model, and the quantised ones by form."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    options.folder.mkdir(parents=True, exist_ok=True)
    given = pathlib.Path(name)
    name = f"{given.stem}-{options.batch}"
    source = options.folder / f"{name}.onnx"
    if not source.exists():
        raw = given if given.suffix == ".onnx" else options.folder / f"{name}.raw.onnx"
        if raw != given:
            subprocess.run([options.heddle, "zoo", given, "--batch", str(options.batch), "-o", raw], check=True, capture_output=True)
        quant_pre_process(str(raw), str(source), skip_symbolic_shape=True)
        ranges = onnx.load(raw).metadata_props
        made = onnx.load(source)
        made.metadata_props.extend(ranges)
        onnx.save(made, source)
    forms = {}
    for form in options.forms:
        forms[form] = options.folder / f"{name}.{form}.onnx"
        if not forms[form].exists():
            quantise(source, forms[form], form)
    return source, forms


def heddle(options, command, path, isa, *more):
    precision = ["--precision", "f16"] if options.target == "cuda" else []
    run = subprocess.run([options.heddle, command, path, "--target", options.target, *precision, *more], capture_output=True,
                         text=True, env={**os.environ, **({"HEDDLE_CPU_ISA": isa} if options.target == "cpu" else {})})
    return run if command == "verify" or run.returncode == 0 else sys.exit(run.stderr)


def burst(options, path, isa, threads):
    result = heddle(options, "bench", path, isa, "--threads", str(threads), "--seconds", "0.5", "--json")
    figure = "device_p50_ms" if options.target == "cuda" else "cpu_ms" if options.processor_time else "p50_ms"
    return json.loads(result.stdout)[figure]


def measure(options, source, path, isa, threads):
    times = {"floats": [], "int8": [], "ort": []}
    with OrtWorker(path, threads) if options.target == "cpu" else contextlib.nullcontext() as worker:
        for _ in range(options.bursts):
            times["floats"].append(burst(options, source, isa, threads))
            times["int8"].append(burst(options, path, isa, threads))
            if worker is not None:
                bursts = worker.burst(0.5)["cpu_times_ms" if options.processor_time else "times_ms"]
                times["ort"].append(statistics.median(bursts))
    return {side: statistics.median(values) for side, values in times.items() if values}


def shown(t):
    ort = [f"{t['ort']:8.3f}", f"{t['ort'] / t['int8']:5.2f}"] if "ort" in t else ["       -", "    -"]
    return f"{t['floats']:8.3f} | {t['int8']:8.3f} | {ort[0]} | {t['floats'] / t['int8']:5.2f} | {ort[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--models", nargs="+", default=["resnet50", "mobilenet-v2", "bert-base"])
    parser.add_argument("--forms", nargs="+", default=["qdq", "qop", "dynamic"])
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--isa", nargs="+", default=["avx512", "avx2"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--processor-time", action="store_true", help="on a CPU that does other work: with --threads 1")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/bench/quantized"))
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/quantized_models.json"))
    options = parser.parse_args()
    if options.target == "cuda":
        options.isa, options.threads = ["cuda"], [0]
    if options.prepare:
        for name in options.models:
            source, forms = model_files(options, name)
            for path in [source, *forms.values()]:
                heddle(options, "compile", path, "", "-o", os.devnull)
        return
    rows = []
    print(f"{'model':28} | isa    | threads | floats ms | int8 ms | ORT ms | floats / int8 | ORT / int8")
    for name in options.models:
        source, forms = model_files(options, name)
        name = pathlib.Path(name).stem
        for form, path in forms.items():
            for isa in options.isa:
                failed = options.verify and heddle(options, "verify", path, isa).returncode != 0
                for threads in options.threads:
                    t = measure(options, source, path, isa, threads)
                    rows.append({"model": name, "form": form, "isa": isa, "threads": threads, **t, "failed": failed})
                    print(f"{name + ' ' + form:28} | {isa:6} | {threads} | {shown(t)}{' FAILED' if failed else ''}", flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rows": rows}, indent=1))
    for isa in options.isa:
        some = [row for row in rows if row["isa"] == isa]
        print(f"{isa}: floats / int8 {geometric_mean([row['floats'] / row['int8'] for row in some]):.2f}")
        if options.target == "cpu":
            print(f"{isa}: ONNX Runtime / int8 {geometric_mean([row['ort'] / row['int8'] for row in some]):.2f}")
    sys.exit(any(row["failed"] for row in rows))


if __name__ == "__main__":
    main()
