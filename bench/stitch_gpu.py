#!/usr/bin/env python3
"""The stitch suite on a GPU: Heddle against torch.compile in a CUDA graph, PyTorch's eager mode in one, and XLA.

usage: stitch_gpu.py [--types f32 f16] [--only CASE...] [--rivals torch eager xla] [--output FILE]

Every figure but XLA's is the median over bursts of a burst's median: one replay of a CUDA graph between two events, after
256 MB of other memory were written; bursts of the contestants alternate, each lives in a process of its own. `empty` is a
graph of one kernel that does next to nothing, timed likewise by each side; the shorter of the two is taken off on both sides
where a time is compared with the floor (inputs and outputs once at --tbps). `copy` is what a kernel takes that reads as much as
the inputs and writes as much as the outputs and does nothing else, the fastest of nine. XLA's figure is
amortised dispatch with warm caches, so below some 40 us it says little."""

import argparse
import datetime
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench/stitch"), str(ROOT / "scripts"), str(ROOT / "bench")]

import make_cases  # noqa: E402
from cpu_models import commit  # noqa: E402


class Worker:
    """A process that answers each line with one JSON object."""

    def __init__(self, *command):
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def answer(self):
        line = self.child.stdout.readline()
        if line:
            return json.loads(line)
        self.errors.seek(0)
        return {"failure": self.errors.read()[-400:] or "the process died"}

    def ask(self, line):
        try:
            self.child.stdin.write(f"{line}\n")
            self.child.stdin.flush()
            return self.answer()
        except BrokenPipeError:
            return {"failure": "the process died"}

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def bytes_in_and_out(name, dtype):
    """Of inputs and of outputs, each once."""
    graph = make_cases.build_case(name, "f32")
    inputs = [text[text.index("[") + 1 : -1].split(",") for text in graph.parameters]
    return [sum(math.prod(map(int, shape)) for shape in shapes) * (4 if dtype == "f32" else 2) for shapes in (inputs, graph.output_shapes)]


def compulsory_bytes(name, dtype):
    return sum(bytes_in_and_out(name, dtype))


def plan_of(name, dtype, options):
    source = ROOT / "bench/stitch" / ("" if dtype == "f32" else dtype) / f"{name}.hir"
    plan = options.plans / f"{dtype}_{name}.plan"
    if options.compile or not plan.exists():
        subprocess.run([options.heddle, "compile", source, "--target", "cuda", "-o", plan], check=True, capture_output=True)
    return plan


def measure(name, dtype, ours, rivals, options):
    times, failures = {}, {}
    plan = plan_of(name, dtype, options)
    copy = f"{options.runs} copy " + " ".join(map(str, bytes_in_and_out(name, dtype)))
    for _ in range(options.bursts):
        for contestant, worker in [("heddle", ours), ("copy", ours), *rivals.items()]:
            line = {"heddle": f"{options.runs} {plan}", "copy": copy}.get(contestant, options.runs)
            answer = worker.ask(line)
            if "failure" in answer:
                failures[contestant] = answer["failure"]
            for key, us in answer.items():
                if key != "failure":
                    times.setdefault(f"{contestant}_{key}", []).append(us)
    row = {"case": name, "type": dtype, "floor_us": compulsory_bytes(name, dtype) / options.tbps * 1e-6}
    row |= {key: round(statistics.median(values), 3) for key, values in times.items()}
    row["spread"] = {key: round(max(values) / min(values) - 1, 3) for key, values in times.items()}
    if failures:
        row["failures"] = failures
    if "heddle_cold_us" in row:
        empty = min(us for key, us in row.items() if key.endswith("empty_us"))
        row["of_floor"] = row["floor_us"] / max(row["heddle_cold_us"] - empty, 1e-3)
        if "torch_cold_us" in row:
            row["over_torch"] = row["torch_cold_us"] / row["heddle_cold_us"]
            if "copy_cold_us" in row:
                row["copy_over_torch"] = row["torch_cold_us"] / row["copy_cold_us"]
            row["over_torch_less_empty"] = (row["torch_cold_us"] - empty) / max(row["heddle_cold_us"] - empty, 1e-3)
    return row


COLUMNS = ["floor_us", "copy_cold_us", "heddle_cold_us", "heddle_warm_us", "torch_cold_us", "eager_cold_us", "xla_dispatch_us", "heddle_empty_us",
           "torch_empty_us", "over_torch", "copy_over_torch", "over_torch_less_empty", "of_floor"]


def print_row(row):
    print(f"{row['type']:4} {row['case']:27}" + "".join(f"{row[c]:>11.2f}" if c in row else f"{'-':>11}" for c in COLUMNS), flush=True)
    for contestant, failure in row.get("failures", {}).items():
        print(f"     {contestant}: {failure}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle")
    parser.add_argument("--worker", default=ROOT / "build/release/bench/gpu_worker", help="built with -DHEDDLE_BENCH=ON")
    parser.add_argument("--plans", type=pathlib.Path, default=ROOT / "build/bench/plans")
    parser.add_argument("--compile", action="store_true", help="compile what --plans has already")
    parser.add_argument("--compile-only", action="store_true", help="needs no GPU")
    parser.add_argument("--only", nargs="+", choices=make_cases.CASES, help="these cases alone")
    parser.add_argument("--types", nargs="+", default=["f32"], choices=["f32", "f16"])
    parser.add_argument("--rivals", nargs="*", default=["torch", "xla"], choices=["torch", "eager", "xla"])
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--runs", type=int, default=40, help="of a burst")
    parser.add_argument("--tbps", type=float, default=4.2, help="copy bandwidth, bytes read and written, TB/s")
    parser.add_argument("--together", type=int, default=12, help="cases whose rivals are prepared at the same time")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench/stitch_gpu.json")
    return parser.parse_args()


def device():
    done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    return done.stdout.strip()


def main():
    options = parse_arguments()
    options.plans.mkdir(parents=True, exist_ok=True)
    cases = [(name, dtype) for dtype in options.types for name in options.only or make_cases.CASES]
    for name, dtype in cases:
        plan_of(name, dtype, options)
    if options.compile_only:
        return
    options.compile = False
    result = {"kind": "stitch_gpu", "date": datetime.date.today().isoformat(), "commit": commit(), "device": device(),
              "tbps": options.tbps, "rows": [], "rivals": {}}
    print(f"{'':32}" + "".join(f"{c.removesuffix('_us')[-10:]:>11}" for c in COLUMNS))
    ours = Worker(options.worker)
    for first in range(0, len(cases), options.together):
        part = cases[first : first + options.together]
        workers = {case: {r: Worker(sys.executable, ROOT / "bench/stitch_worker.py", *case, r) for r in options.rivals} for case in part}
        for case in part:
            for rival, worker in workers[case].items():
                ready = worker.answer()
                result["rivals"].setdefault(rival, {})[" ".join(case)] = ready
                if "failure" in ready:
                    print(f"     {rival} on {case}: {ready['failure']}", flush=True)
        for case in part:
            result["rows"].append(measure(*case, ours, workers[case], options))
            print_row(result["rows"][-1])
            for worker in workers[case].values():
                worker.close()
    ours.close()
    for dtype in options.types:
        ratios = [row["over_torch"] for row in result["rows"] if row["type"] == dtype and "over_torch" in row]
        if ratios:
            result[f"geometric_mean_{dtype}"] = statistics.geometric_mean(ratios)
            copies = [row["copy_over_torch"] for row in result["rows"] if row["type"] == dtype and "copy_over_torch" in row]
            beside = f"; of copies of as many bytes {statistics.geometric_mean(copies):.3f}" if copies else ""
            print(f"{dtype}: geometric mean over torch.compile {statistics.geometric_mean(ratios):.3f}, lowest {min(ratios):.3f}{beside}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
