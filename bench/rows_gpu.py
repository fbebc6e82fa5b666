#!/usr/bin/env python3
"""Softmax, layer norm, row sums and column sums on a GPU over rows of 1 to 4,000,000 elements, beside torch.compile.

usage: rows_gpu.py [--types f32 f16] [--kinds softmax ...] [--rows N...] [--columns N...] [--alone] [--output FILE]

Timed as stitch_gpu.py does. A point is left out where it has fewer than 1,000 or more than --most elements. `over` is
torch.compile's time over Heddle's, `copy` the part of --tbps that the bytes which have to be moved came to, without what
an empty graph takes, of points above 64 MB."""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

import stitch_gpu
from stitch_gpu import ROOT, Worker, compulsory_bytes

sys.path[:0] = [str(ROOT / "bench/stitch")]
import make_cases  # noqa: E402


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
    parser.add_argument("--most", type=int, default=1 << 26, help="elements of a point")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--tbps", type=float, default=4.27)
    parser.add_argument("--processes", type=int, default=12, help="that prepare PyTorch's side")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench/rows_gpu.json")
    return parser.parse_args()


def plan_of(name, dtype, options):
    plan = options.plans / f"{dtype}_{name.replace(':', '_')}.plan"
    if not plan.exists():
        source = plan.with_suffix(".hir")
        source.write_text(make_cases.text_of(name, dtype))
        subprocess.run([options.heddle, "compile", source, "--target", "cuda", "-o", plan], check=True, capture_output=True)
    return plan


def main():
    options = parse_arguments()
    options.plans.mkdir(parents=True, exist_ok=True)
    points = [(f"{kind}:{rows}x{columns}", dtype) for dtype in options.types for kind in options.kinds
              for columns in options.columns for rows in options.rows if 1000 <= rows * columns <= options.most]
    for point in points:
        plan_of(*point, options)
    if options.compile_only:
        return
    rivals = {}
    if not options.alone:
        for dtype in options.types:
            names = [name for name, kind in points if kind == dtype]
            for k in range(min(options.processes, len(names))):
                part = names[k :: options.processes]
                worker = Worker(sys.executable, ROOT / "bench/stitch_worker.py", ",".join(part), dtype, "torch")
                rivals |= {(name, dtype): (worker, index) for index, name in enumerate(part)}
        for worker, _ in rivals.values():
            worker.answer()
    ours, rows = Worker(options.worker), []
    for name, dtype in points:
        row = {"case": name, "type": dtype, "bytes": compulsory_bytes(name, dtype)}
        row |= {f"heddle_{key}": value for key, value in ours.ask(f"{options.runs} {plan_of(name, dtype, options)}").items()}
        if (name, dtype) in rivals:
            worker, index = rivals[name, dtype]
            row |= {f"torch_{key}": value for key, value in worker.ask(f"{options.runs} {index}").items()}
        text = f"{dtype} {name:30} {row['bytes'] * 1e-6:9.2f} MB"
        if "heddle_cold_us" in row:
            text += f"  heddle {row['heddle_cold_us']:9.2f} us"
            if row["bytes"] > 64e6:
                row["of_copy"] = row["bytes"] / options.tbps * 1e-6 / (row["heddle_cold_us"] - row["heddle_empty_us"])
                text += f"  copy {row['of_copy']:4.0%}"
            if "torch_cold_us" in row:
                row["over_torch"] = row["torch_cold_us"] / row["heddle_cold_us"]
                text += f"  torch {row['torch_cold_us']:9.2f} us  over {row['over_torch']:5.2f}"
        print(text + row.get("heddle_failure", "")[:100], flush=True)
        rows.append(row)
    worst = min((row["over_torch"] for row in rows if "over_torch" in row), default=None)
    slow = min((row["of_copy"] for row in rows if "of_copy" in row), default=None)
    print(f"{len(rows)} points; lowest over torch.compile {worst}, lowest part of the copy bandwidth {slow}")
    result = {"kind": "rows_gpu", "date": datetime.date.today().isoformat(), "commit": stitch_gpu.commit(),
              "device": stitch_gpu.device(), "tbps": options.tbps, "rows": rows}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
