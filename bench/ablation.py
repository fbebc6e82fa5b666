#!/usr/bin/env python3
"""What each part of stitching brings, on the CPU or a GPU (--target cuda): kernels of zoo models under --fusion none,
basic and stitch, and the time of a run as the parts are added one by one (the table of AStitch's ablation).

Counts are of the plan and, with loop bodies counted as often as they run, of one run. A memory-bound kernel is one of
no contraction; copies are those among them that only move elements."""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

from cpu_models import commit, device, spread  # noqa: E402
from heddle_command import Heddle  # noqa: E402
from stitch_gpu import device as gpu  # noqa: E402

MODELS = ["crnn", "asr", "bert-base", "transformer", "dien"]
MOVES = {"reshape", "transpose", "slice", "broadcast", "reverse", "pad", "concat", "gather", "gather_elements", "gather_nd"}

STEPS = {
    "none": ("--fusion", "none"),
    "basic, one mapping": ("--fusion", "basic", "--disable-stitching", "adaptive-mapping"),
    "+ adaptive mapping": ("--fusion", "basic"),
    "+ stitching with data reuse": ("--fusion", "stitch", "--disable-stitching", "dominant-merging"),
    "+ dominant merging": ("--fusion", "stitch", "--disable-stitching", "global"),
    "+ global (all)": ("--fusion", "stitch"),
}


def count(report):
    """(memory-bound kernels, copies among them, contraction kernels) of the plan, and the first two of one run."""
    trips, plan, run = [1], [0, 0, 0], [0, 0]
    for group in report["groups"]:
        del trips[group["depth"] + 1 :]
        times = trips[-1]
        if group["kind"] == "control":
            trips.append(times * group["trips"])
        if group["view"] or group["kind"] == "control":
            continue
        kernels = max(len(group["kernels"]), 1)  # a reference step counts as one
        if group["kind"] == "contraction":
            plan[2] += kernels
            continue
        ops = {word for word in group["ops"].split() if not word[1:].isdigit()}
        copies = kernels if ops <= MOVES else 0
        plan[0] += kernels
        plan[1] += copies
        run[0] += kernels * times
        run[1] += copies * times
    return plan, run


def count_model(heddle, name, model, target):
    rows = []
    for policy in ("none", "basic", "stitch"):
        report = json.loads(heddle("explain", model, "--fusion", policy, *target, "--json").output)
        plan, run = count(report)
        rows.append(
            {"model": name, "policy": policy, "memory": plan[0], "copies": plan[1], "contractions": plan[2],
             "memory_run": run[0], "copies_run": run[1]}
        )  # fmt: skip
    fewer = {key: 1 - rows[2][key] / rows[1][key] for key in ("memory", "memory_run")}
    for row in rows:
        print(
            f"{name:12} {row['policy']:7} memory-bound kernels {row['memory']:5} (a run {row['memory_run']:6}), "
            f"copies {row['copies']:4} (a run {row['copies_run']:5}), contractions {row['contractions']:4}"
        )
    print(f"{name:12} stitch has {fewer['memory']:.0%} fewer than basic, {fewer['memory_run']:.0%} in a run", flush=True)
    return rows, fewer


def time_steps(heddle, name, model, target, bursts, seconds):
    """On a GPU the device's work alone: inputs and outputs stay in its memory."""
    times = {step: [] for step in STEPS}
    time_of = "device_p50_ms" if "cuda" in target else "p50_ms"
    with tempfile.TemporaryDirectory() as folder:
        plans = {step: pathlib.Path(folder) / f"{number}.plan" for number, step in enumerate(STEPS)}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda step: heddle("compile", model, *STEPS[step], *target, "-o", plans[step]), STEPS))
        for _ in range(bursts):
            for step, plan in plans.items():
                report = heddle("bench", plan, *target, "--seconds", seconds, "--json").output
                times[step].append(json.loads(report)[time_of])
    rows = []
    for step, values in times.items():
        rows.append({"model": name, "step": step, "ms": statistics.median(values), "spread": spread(values)})
        print(f"{name:12} {step:30} {rows[-1]['ms']:9.3f} ms (spread {rows[-1]['spread']:.0%})", flush=True)
    return rows


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=pathlib.Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/bench/models", help="folder of the zoo's files")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--target", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", default="f32", choices=["f32", "tf32", "f16", "bf16"])
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--bursts", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="length of a burst; 0: count kernels only")
    parser.add_argument("--keep", metavar="NAME", help="write bench/results/NAME.json instead of a file in build/bench")
    parser.add_argument("--output", type=pathlib.Path, help="write this file")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    heddle = Heddle(arguments.heddle)
    target = ["--target", arguments.target, "--precision", arguments.precision]
    target += ["--threads", arguments.threads] if arguments.target == "cpu" else []
    result = {
        "kind": "ablation",
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "device": device() if arguments.target == "cpu" else {"gpu": gpu() if arguments.seconds > 0 else "plans for an H200"},
        "precision": arguments.precision,
        "kernels": [],
        "times": [],
    }
    path = ROOT / "bench/results" / f"{arguments.keep}.json"
    if not arguments.keep:
        path = arguments.output or ROOT / "build/bench" / f"ablation-{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    fewer = []
    for name in arguments.only:
        model = heddle.zoo_model(name, arguments.models)
        rows, saved = count_model(heddle, name, model, target)
        result["kernels"] += rows
        fewer.append(saved)
        if arguments.seconds > 0:
            result["times"] += time_steps(heddle, name, model, target, arguments.bursts, arguments.seconds)
        for key in ("memory", "memory_run"):
            result[f"fewer_{key}"] = statistics.mean(saved[key] for saved in fewer)
        path.write_text(json.dumps(result, indent=1) + "\n")  # a run that is cut leaves what it has
    for key, what in (("memory", "the plan"), ("memory_run", "a run")):
        print(f"memory-bound kernels of {what}: stitch has {result[f'fewer_{key}']:.0%} fewer than basic on average")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
