#!/usr/bin/env python3
"""Softmax, layer norm, row sums and column sums on a GPU over rows of 1 to 4,000,000 elements, beside torch.compile and
beside the mappings that the cost model did not pick.

usage: rows_gpu.py [--types f32 f16] [--kinds softmax ...] [--rows N...] [--columns N...] [--only softmax:30x64 ...]
                   [--mappings warp ...] [--alone] [--output FILE]

Timed as stitch_gpu.py does. A point is left out where it has fewer than 1,000 or more than --most elements. `over` is
torch.compile's time over Heddle's, `best other` the least time of a plan with a forced mapping (`heddle compile
--stitch-mapping`) whose kernels are not the model's, and that over Heddle's; mappings that leave the device idle (by
the bytes of a block) are left out. `copy` is the part of --tbps that the bytes which have to be moved came to, without
what an empty graph takes, of points above 64 MB: where the L2 holds other memory that was read, and in brackets where it
holds 256 MB that were written, which the kernel then has to bring to memory first. The output is written after each
point, so that a run which is cut leaves what it has."""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import time

import stitch_gpu
from stitch_gpu import ROOT, Worker, compulsory_bytes

sys.path[:0] = [str(ROOT / "bench/stitch")]
import make_cases  # noqa: E402

MAPPINGS = ["warp", "block", "cluster", "parts"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle")
    parser.add_argument("--worker", default=ROOT / "build/release/bench/gpu_worker", help="built with -DHEDDLE_BENCH=ON")
    parser.add_argument("--plans", type=pathlib.Path, default=ROOT / "build/bench/plans")
    parser.add_argument("--compile-only", action="store_true", help="needs no GPU")
    parser.add_argument("--types", nargs="+", default=["f32", "f16"], choices=["f32", "f16"])
    parser.add_argument("--kinds", nargs="+", default=list(make_cases.ROWS), choices=make_cases.ROWS)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 30, 1000, 30000, 1000000])
    parser.add_argument("--columns", nargs="+", type=int, default=[1, 7, 64, 1000, 16384, 250000, 4000000])
    parser.add_argument("--only", nargs="+", help="these points alone: KIND:ROWSxCOLUMNS")
    parser.add_argument("--most", type=int, default=1 << 26, help="elements of a point")
    parser.add_argument("--mappings", nargs="*", default=MAPPINGS, choices=MAPPINGS, help="timed beside the model's pick")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    parser.add_argument("--runs", type=int, default=15, help="of a burst; a contestant has two, its time is their mean")
    parser.add_argument("--tbps", type=float, default=4.27)
    parser.add_argument("--processes", type=int, default=12, help="that compile, and prepare PyTorch's side")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench/rows_gpu.json")
    return parser.parse_args()


def source_of(name, dtype, options):
    source = options.plans / f"{dtype}_{name.replace(':', '_')}.hir"
    if not source.exists():
        source.write_text(make_cases.text_of(name, dtype))
    return source


def heddle(options, command, source, mapping, *more):
    forced = ["--stitch-mapping", mapping] if mapping else []
    return subprocess.run([options.heddle, command, source, "--target", "cuda", *forced, *more], check=True, capture_output=True)


def is_idle(report):
    """Whether a kernel would take many times what its bytes do, because few blocks have them all."""
    kernels = [kernel for group in report["groups"] for kernel in group["kernels"]]
    us = [kernel["stitch"]["bytes_moved"] / min(kernel["tasks"], 132) / 45e3 for kernel in kernels]
    return max(us, default=0) > 20 + 8 * sum(kernel["stitch"]["bytes_moved"] for kernel in kernels) / 4e6


def plans_of(point, options):
    """Of the model's pick (""), and of each mapping whose kernels are others."""
    source = source_of(*point, options)
    listed = source.with_suffix(".plans")
    if listed.exists():
        found = json.loads(listed.read_text())
        return {mapping: plan for mapping, plan in found.items() if not mapping or mapping in options.mappings}
    plans, seen = {}, []
    for mapping in ["", *options.mappings]:
        report = json.loads(heddle(options, "explain", source, mapping, "--json").stdout)
        kernels = [(kernel["symbol"], kernel["tasks"]) for group in report["groups"] for kernel in group["kernels"]]
        if kernels in seen or (mapping and is_idle(report)):
            continue
        seen.append(kernels)
        plan = source.with_suffix(f".{mapping}.plan" if mapping else ".plan")
        if not plan.exists():
            heddle(options, "compile", source, mapping, "-o", plan)
        plans[mapping] = plan.name
    listed.write_text(json.dumps(plans))
    return plans


def start_rivals(points, options):
    """Processes that prepare some points each, and which one of which answers for a point."""
    rivals = {}
    for dtype in options.types:
        names = [name for name, kind in points if kind == dtype]
        count = max(1, min(options.processes // len(options.types), len(names)))
        for k in range(count):
            part = names[k::count]
            worker = Worker(sys.executable, ROOT / "bench/stitch_worker.py", ",".join(part), dtype, "torch")
            rivals |= {(name, dtype): (worker, index) for index, name in enumerate(part)}
    return rivals


def measure(point, plans, ours, rivals, options):
    name, dtype = point
    row = {"case": name, "type": dtype, "bytes": compulsory_bytes(name, dtype)}
    times = {}

    def ask(contestant, worker, line):
        for key, value in worker.ask(line).items():
            if key == "failure":
                row[f"{contestant}_failure"] = value
            else:
                times.setdefault(f"{contestant}_{key}", []).append(value)

    for turn in range(2):
        ask("heddle", ours, f"{options.runs} {options.plans / plans['']}")
        if point in rivals:
            worker, index = rivals[point]
            ask("torch", worker, f"{options.runs} {index}")
        for mapping in list(plans) if turn == 0 else []:
            if mapping:
                ask(mapping, ours, f"{options.runs} {options.plans / plans[mapping]}")
    row |= {key: round(statistics.mean(values), 3) for key, values in times.items()}
    if "heddle_cold_us" not in row:
        return row
    us = row["heddle_cold_us"]
    if row["bytes"] > 64e6:
        floor = row["bytes"] / options.tbps * 1e-6
        row["of_copy"] = floor / (row["heddle_clean_us"] - row["heddle_empty_us"])
        row["of_copy_overwritten"] = floor / (us - row["heddle_empty_us"])
    if "torch_cold_us" in row:
        row["over_torch"] = row["torch_cold_us"] / us
    others = [(row[f"{mapping}_cold_us"], mapping) for mapping in plans if mapping and f"{mapping}_cold_us" in row]
    if others:
        row["other"] = min(others)[1]
        row["over_other"] = min(others)[0] / us
    return row


def text_of(row):
    text = f"{row['type']} {row['case']:24} {row['bytes'] * 1e-6:8.2f} MB"
    if "heddle_cold_us" in row:
        text += f" {row['heddle_cold_us']:8.2f} us"
    text += f"  copy {row['of_copy']:4.0%} ({row['of_copy_overwritten']:4.0%})" if "of_copy" in row else 18 * " "
    if "over_torch" in row:
        text += f"  torch {row['torch_cold_us']:8.2f} over {row['over_torch']:5.2f}"
    if "over_other" in row:
        text += f"  best other {row['other']:7} {row['over_other']:5.2f}"
    low = row.get("over_torch", 1) < 0.9 or row.get("over_other", 1) < 0.9 or row.get("of_copy", 1) < 0.85
    return text + ("  <--" if low else "") + "".join(f"  {key}: {value[:80]}" for key, value in row.items() if key.endswith("failure"))


def main():
    options = parse_arguments()
    options.plans.mkdir(parents=True, exist_ok=True)
    names = options.only or [f"{kind}:{rows}x{columns}" for kind in options.kinds for columns in options.columns
                             for rows in options.rows if 1000 <= rows * columns <= options.most]
    points = [(name, dtype) for dtype in options.types for name in names]
    begin = time.time()
    with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
        plans = dict(zip(points, pool.map(lambda point: plans_of(point, options), points)))
    print(f"{len(points)} points, {sum(map(len, plans.values()))} plans after {time.time() - begin:.0f} s", flush=True)
    if options.compile_only:
        return
    rivals = {} if options.alone else start_rivals(points, options)
    for point, (worker, _) in rivals.items():
        if failure := worker.answer().get("failure"):
            print(f"torch on {point}: {failure}", flush=True)
    print(f"ready after {time.time() - begin:.0f} s", flush=True)
    ours, rows = Worker(options.worker), []
    result = {"kind": "rows_gpu", "date": datetime.date.today().isoformat(), "commit": stitch_gpu.commit(),
              "device": stitch_gpu.device(), "tbps": options.tbps, "rows": rows}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for point in points:
        rows.append(measure(point, plans[point], ours, rivals, options))
        print(text_of(rows[-1]), flush=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    for key, what in [("over_torch", "over torch.compile"), ("over_other", "over another mapping"), ("of_copy", "part of a copy")]:
        for dtype in options.types:
            for kind in make_cases.ROWS:
                of_kind = [row for row in rows if row["type"] == dtype and row["case"].startswith(kind) and key in row]
                if of_kind:
                    worst = min(of_kind, key=lambda row: row[key])
                    print(f"{dtype} {kind:10} {len(of_kind):3} points, lowest {what} {worst[key]:.3f}: {worst['case']}")
    print(f"{len(rows)} points after {time.time() - begin:.0f} s, written: {options.output}")


if __name__ == "__main__":
    main()
