#!/usr/bin/env python3
"""Runs kernels that others wrote for Triton on Heddle's tile language, with nothing changed but what `triton` names, against PyTorch.

    python tests/conformance/run_kernels.py FOLDER [--device cpu|cuda] [-k WORD] [--time] [--json OUT]

FOLDER holds checkouts of triton (or triton-cpu), Liger-Kernel, FlagGems and flash-linear-attention; nothing of them is stored here. It
needs torch, and `heddle` on the path. --time runs each beside Triton on a GPU: both in a process of their own, bursts in turn, CUDA
graphs where they can be captured and else the time of their kernels alone, the L2 overwritten before each run.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BURSTS, RUNS = 5, 15


class Worker:
    """The kernels on one of the two implementations, in a process that waits for commands."""

    def __init__(self, package, options):
        command = [sys.executable, str(HERE / "public_kernels.py"), package, str(options.folder), options.device]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.captured = True

    def ask(self, *words):
        """The answer to a command: a dictionary; {"error": text} where the process ended."""
        try:
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:  # kernels may print
                if line.startswith('{"answer": '):
                    return json.loads(line)["answer"]
        except BrokenPipeError:
            pass
        return {"error": f"the process ended with status {self.process.wait()}"}

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def timed(workers, case):
    """{package: microseconds}: medians of the bursts of each."""
    times = {package: [] for package in workers}
    for _ in range(BURSTS):
        for package, worker in workers.items():
            answer = worker.ask("time", case, RUNS)
            times[package].append(answer["us"])
            worker.captured = answer["captured"]
    return {package: round(statistics.median(each), 2) for package, each in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("-k", default="", metavar="WORD", help="kernels whose name has it alone")
    parser.add_argument("--time", action="store_true", help="beside Triton, on a GPU")
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT")
    options = parser.parse_args()
    if options.time and options.device == "cpu":
        sys.exit("--time needs --device cuda: Triton runs on a GPU alone")
    packages = ["heddle", "triton"] if options.time else ["heddle"]
    workers = {package: Worker(package, options) for package in packages}
    rows, wrong, cases = [], 0, workers["heddle"].ask("cases")
    if isinstance(cases, dict):
        sys.exit(cases["error"])
    for case in [case for case in cases if options.k in case]:
        row = {"case": case}
        for package, worker in workers.items():
            answer = worker.ask("check", case)
            row[f"{package}_error"] = answer["error"]
            if worker.process.poll() is not None:
                workers[package] = Worker(package, options)
        right = row["heddle_error"] is None
        wrong += not right
        if options.time and right and row["triton_error"] is None:
            row.update({f"{package}_us": us for package, us in timed(workers, case).items()})
            row["ratio"] = round(row["triton_us"] / row["heddle_us"], 3)
            for package in [package for package, worker in workers.items() if not worker.captured]:
                workers[package].end()
                workers[package] = Worker(package, options)
        rows.append(row)
        figures = f"  {row['heddle_us']} us, Triton {row['triton_us']} us, {row['ratio']}" if "ratio" in row else ""
        print(f"{'right' if right else 'FAILED'}  {case}{figures}", *([] if right else [row["heddle_error"]]), sep="\n  ", flush=True)
    for worker in workers.values():
        worker.end()
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"Triton / Heddle: geometric mean {math.prod(ratios) ** (1 / len(ratios)):.3f}, lowest {min(ratios):.3f}")
    print(f"{len(rows) - wrong} of {len(rows)} kernels are right")
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
