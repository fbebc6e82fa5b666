#!/usr/bin/env python3
"""Zoo models on a GPU: Heddle against PyTorch, eager in a CUDA graph and torch.compile with reduce-overhead.

usage: gpu_models.py [--heddle PATH] [--output FOLDER] [--precision f16] [--max-autotune] [--verify] [MODEL[:BATCH[:SEQ]]...]

Times are medians of the device's work with inputs and outputs in its memory, in ms. Heddle's and PyTorch's bursts alternate
(each PyTorch burst is a process that keeps its module while Heddle runs), so that both see the same clock. One JSON object a
model goes to FOLDER/models_<precision>.jsonl; the table and the geometric mean are printed, losing rows too. Without
PyTorch its columns are empty. Exit status 1 where a model failed in Heddle."""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ["resnet18:32", "resnet50:1", "resnet50:32", "vgg16:32", "vgg19:32", "repvgg-a0:32", "repvgg-b0:32", "mobilenet-v2:32",
         "vit-b16:1", "vit-b16:32", "bert-base:1:128", "bert-base:32:128", "bert-base:16:384", "transformer:1:64",
         "transformer:64:64", "asr:1", "crnn:1", "dien:256", "sd-unet:1", "sd-unet:2"]


class Torch:
    """The rival in a process of its own: torch_worker.py answers each line on its input with a burst of times."""

    def __init__(self, spec, precision, autotune):
        command = [sys.executable, str(ROOT / "bench/torch_worker.py"), spec, precision] + ["--max-autotune"] * autotune
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.answer()

    def answer(self):
        line = self.child.stdout.readline()
        return json.loads(line) if line else {"failure": "the worker died"}

    def burst(self):
        try:
            self.child.stdin.write("\n")
            self.child.stdin.flush()
            return self.answer()
        except BrokenPipeError:
            return {}

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def heddle_json(options, *arguments):
    done = subprocess.run([options.heddle, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=1800)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def measure(spec, options, folder):
    name, batch, seq = (spec.split(":") + ["1", "0"])[: 3] if spec.count(":") < 2 else spec.split(":")
    row = {"model": spec, "precision": options.precision}
    path = pathlib.Path(folder) / f"{name}.onnx"
    command = [options.heddle, "zoo", name, "--batch", batch, "-o", str(path)] + (["--seq", seq] if seq != "0" else [])
    subprocess.run(command, check=True, capture_output=True)
    target = ["--target", "cuda", "--precision", options.precision]
    rival = None if options.alone else Torch(spec, options.precision, options.max_autotune)
    try:
        if options.verify:
            row["verified"] = heddle_json(options, "verify", path, *target)["ok"]
        bursts = {}
        for burst in range(options.bursts):
            ours = heddle_json(options, "bench", path, *target, "--seconds", options.seconds)
            bursts.setdefault("heddle", []).append(ours["device_p50_ms"])
            if burst == 0:
                row |= {"compile_s": ours["compile_s"], "cached_s": ours["cached_s"], "with_copies_ms": ours["p50_ms"],
                        "floor_ms": ours["floor_ms"], "device_bytes": ours["device_bytes"]}
            for mode, times in (rival.burst() if rival and "failure" not in rival.ready else {}).items():
                bursts.setdefault(mode, []).append(times)
        if rival:
            row["torch"] = rival.ready
        row["ms"] = {mode: round(statistics.median(times), 4) for mode, times in bursts.items()}
        row["spread"] = {mode: round(max(times) / min(times) - 1, 3) for mode, times in bursts.items()}
    except (RuntimeError, subprocess.TimeoutExpired, KeyError) as error:
        row["failure"] = str(error)[-600:]
    finally:
        if rival:
            rival.close()
    return row


def cell(value):
    return "-" if value is None else f"{value:.3f}"


def print_row(row):
    ms = row.get("ms", {})
    rivals = [value for mode, value in ms.items() if mode != "heddle"]
    ratio = min(rivals) / ms["heddle"] if rivals and ms.get("heddle") else None
    columns = [cell(ms.get(mode)) for mode in ("heddle", "eager_graph", "reduce_overhead", "max_autotune")]
    columns += [cell(ratio), cell(row.get("compile_s")), {True: "yes", False: "NO"}.get(row.get("verified"), "-")]
    print(f"{row['model']:18}" + "".join(f"{column:>17}" for column in columns) + "  " + row.get("failure", "")[:100], flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=TABLE)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--output", default=str(ROOT / "build/gpu"))
    parser.add_argument("--precision", default="f16", choices=["f32", "tf32", "f16", "bf16"])
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--max-autotune", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    options = parser.parse_args()
    output = pathlib.Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    print(f"{'model':18}" + "".join(f"{name:>17}" for name in ("heddle ms", "eager graph ms", "reduce-overhead", "max-autotune", "ratio", "compile s", "verified")))
    ratios, failed = [], False
    with open(output / f"models_{options.precision}.jsonl", "w") as file:
        for spec in options.models:
            with tempfile.TemporaryDirectory() as folder:
                row = measure(spec, options, folder)
            file.write(json.dumps(row) + "\n")
            file.flush()
            ratio = print_row(row)
            if ratio:
                ratios.append(ratio)
            failed = failed or "failure" in row or row.get("verified") is False
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"ratio: best PyTorch mode over Heddle; geometric mean {mean:.3f} of {len(ratios)}, smallest {min(ratios):.3f}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
