#!/usr/bin/env python3
"""Zoo models on the CPU: Heddle against ONNX Runtime, same machine, same threads, f32, short bursts in turn.

For each model and thread count the time of a run is the median over bursts of each burst's median. Compile time and
peak memory of every zoo model come from processes of their own."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from heddle_command import Heddle  # noqa: E402

# Models that are timed against ONNX Runtime, and options that make a model small enough for the compile measurement.
TIMED = ["resnet50", "vgg16", "mobilenet-v2", "bert-base", "crnn", "vit-b16"]
COMPILED = {
    name: ()
    for name in [
        "resnet18",
        "resnet50",
        "vgg16",
        "vgg19",
        "repvgg-a0",
        "repvgg-b0",
        "mobilenet-v2",
        "vit-b16",
        "bert-base",
        "transformer",
        "asr",
        "crnn",
        "dien",
    ]
}
COMPILED["sd-unet"] = ("--size", "32")


class OrtWorker:
    """ONNX Runtime in a child process, idle between bursts."""

    def __init__(self, model, threads, *library):
        script = pathlib.Path(__file__).with_name("ort_worker.py")
        self.child = subprocess.Popen(
            [sys.executable, script, str(model), str(threads), *library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.loaded = self.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait()

    def read(self):
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError("ONNX Runtime's process ended")
        return json.loads(line)

    def burst(self, seconds):
        self.child.stdin.write(f"{seconds}\n")
        self.child.stdin.flush()
        return self.read()


def spread(values):
    """How far apart the bursts lay: (largest - smallest) / median."""
    return (max(values) - min(values)) / statistics.median(values)


def time_model(heddle, name, model, threads, bursts, seconds):
    """One row of the table: median milliseconds of both, and their ratio (above 1: Heddle is faster)."""
    ours, theirs, best, their_best, floor = [], [], [], [], None
    with tempfile.TemporaryDirectory() as folder, OrtWorker(model, threads) as worker:
        plan = pathlib.Path(folder) / "model.plan"
        heddle.compile(model, plan, threads)
        for _ in range(bursts):
            result = heddle.bench(plan, threads, seconds)
            ours.append(result["p50_ms"])
            best.append(result["p10_ms"])
            floor = result.get("floor_ms")
            times = sorted(worker.burst(seconds)["times_ms"])
            theirs.append(statistics.median(times))
            their_best.append(times[len(times) // 10])
    row = {
        "model": name,
        "threads": threads,
        "heddle_ms": statistics.median(ours),
        "ort_ms": statistics.median(theirs),
        "floor_ms": floor,
        "heddle_spread": spread(ours),
        "ort_spread": spread(theirs),
    }
    row["ratio"] = row["ort_ms"] / row["heddle_ms"]
    # The best tenths of the best bursts: what is left of a measurement on a machine that does other work too.
    row["best_ratio"] = min(their_best) / min(best)
    print(
        f"{name:14} {threads} thread(s): heddle {row['heddle_ms']:8.2f} ms, ort {row['ort_ms']:8.2f} ms, "
        f"ratio {row['ratio']:.2f}, of the best {row['best_ratio']:.2f} "
        f"(spread {row['heddle_spread']:.0%}, {row['ort_spread']:.0%})",
        flush=True,
    )
    return row


def measure_compile(command, name, model, threads):
    """Compile seconds with an empty and with a filled cache, and the peak memory of one run of each side."""
    with tempfile.TemporaryDirectory() as folder:
        heddle = Heddle(command, cache=pathlib.Path(folder) / "cache")
        outputs = pathlib.Path(folder) / "outputs"
        arguments = ("run", model, "--target", "cpu", "--threads", threads, "--output-dir", outputs)
        cold = heddle(*arguments)
        cached = heddle(*arguments)
        result = heddle.bench(model, threads, 0)
    with OrtWorker(model, threads) as worker:
        ort_peak = worker.burst(0)["peak_bytes"]
        ort_load = worker.loaded["load_s"]
    row = {
        "model": model.stem,
        "name": name,
        "cold_s": result["compile_s"],
        "cached_s": result["cached_s"],
        "first_run_s": cold.seconds,
        "later_run_s": cached.seconds,
        "ort_load_s": ort_load,
        "peak_bytes": cached.peak_bytes,
        "peak_cold_bytes": cold.peak_bytes,
        "ort_peak_bytes": ort_peak,
    }
    row["memory_ratio"] = row["peak_bytes"] / row["ort_peak_bytes"]
    print(
        f"{model.stem:14} compile cold {row['cold_s']:.2f} s, cached {row['cached_s']:.3f} s; peak "
        f"{row['peak_bytes'] / 2**20:.0f} MiB against {row['ort_peak_bytes'] / 2**20:.0f} MiB "
        f"({row['memory_ratio']:.2f})",
        flush=True,
    )
    return row


def attempt(problems, name, function, *arguments):
    """A row, or None with the failure noted: one model that fails does not lose the others."""
    try:
        return function(*arguments)
    except (RuntimeError, KeyError, ValueError) as error:
        problems.append({"model": name, "error": str(error)})
        print(f"{name:14} failed: {error}", flush=True)
        return None


def device():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return {
                "cpu": line.split(":")[1].strip(),
                "cores": len(os.sched_getaffinity(0)),
                "system": platform.platform(),
            }
    return {"cpu": platform.processor(), "cores": len(os.sched_getaffinity(0)), "system": platform.platform()}


def commit():
    """Of this checkout, `+` where it was changed; HEDDLE_COMMIT says it on a machine that has the files alone."""
    if os.environ.get("HEDDLE_COMMIT"):
        return os.environ["HEDDLE_COMMIT"]

    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout

    return git("rev-parse", "--short=12", "HEAD").strip() + ("+" if git("status", "--porcelain", "-uno") else "")


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", type=pathlib.Path, default=ROOT / "build/release/heddle")
    parser.add_argument(
        "--models", type=pathlib.Path, default=ROOT / "build/bench/models", help="folder of the zoo's files"
    )
    parser.add_argument("--only", nargs="+", metavar="MODEL[:BATCH]", help="these models alone")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--bursts", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a burst")
    parser.add_argument("--skip", choices=["speed", "compile"], help="leave one half out")
    parser.add_argument(
        "--keep", metavar="NAME", help="write bench/results/NAME.json instead of a dated file in build/bench"
    )
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    heddle = Heddle(arguments.heddle)
    import onnxruntime  # only for its version

    result = {
        "kind": "cpu_models",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "device": device(),
        "load_before": os.getloadavg()[0],
        "onnxruntime": onnxruntime.__version__,
        "speed": [],
        "compile": [],
        "problems": [],
    }
    problems = result["problems"]
    for name in (arguments.only or TIMED) if arguments.skip != "speed" else []:
        zoo, _, batch = name.partition(":")
        model = heddle.zoo_model(zoo, arguments.models, ("--batch", batch) if batch else ())
        for threads in arguments.threads:
            result["speed"].append(
                attempt(problems, name, time_model, heddle, name, model, threads, arguments.bursts, arguments.seconds)
            )
    for name, options in COMPILED.items() if arguments.skip != "compile" else []:
        if arguments.only and name not in arguments.only:
            continue
        model = heddle.zoo_model(name, arguments.models, options)
        result["compile"].append(
            attempt(problems, name, measure_compile, arguments.heddle, name, model, max(arguments.threads))
        )
    for part in ("speed", "compile"):
        result[part] = [row for row in result[part] if row]
    result["geometric_mean"] = geometric_mean([row["ratio"] for row in result["speed"]])
    if result["geometric_mean"]:
        print(f"geometric mean {result['geometric_mean']:.3f}, lowest {min(r['ratio'] for r in result['speed']):.2f}")

    path = ROOT / "bench/results" / f"{arguments.keep}.json"
    if not arguments.keep:
        path = ROOT / "build/bench" / f"cpu_models-{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {path}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
