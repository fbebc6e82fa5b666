#!/usr/bin/env python3
"""Matrix products on a GPU beside cuBLASLt's best heuristic: one line per shape, geometric means at the end.

usage: gemm_table.py [--heddle PATH] [--output FOLDER] [--random N] [--candidates N] TYPE...

Each shape is one run of `heddle kernel gemm --verify --json`; both sides are timed in it, alternating, with a cold L2 and
as CUDA graphs. Exit status 1 where a verification failed.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys

SHAPES = [(1280, 3072, 768), (1280, 768, 768), (1280, 768, 3072), (1280, 2304, 768), (1024, 1024, 1024),
          (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 16384, 4096), (16, 4096, 4096),
          (64, 4096, 14336), (128, 128, 65536), (16384, 64, 576), (16384, 256, 64), (4096, 3072, 768),
          (4096, 768, 3072), (25600, 3072, 768), (6304, 3072, 768)]


def random_shapes(count, seed=5):
    """Log-uniform in 16..16384, a third of them not multiples of 8."""
    draw = random.Random(seed)
    shapes = []
    for i in range(count):
        shape = [round(2 ** draw.uniform(4, 14)) for _ in range(3)]
        shapes.append(tuple(x | 1 if i % 3 == 0 else max(8, x // 8 * 8) for x in shape))
    return shapes


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def measure(heddle, dtype, shape, candidates):
    command = [heddle, "kernel", "gemm", "--dtype", dtype, "--verify", "--json", "--candidates", str(candidates)]
    for name, size in zip("mnk", shape):
        command += [f"--{name}", str(size)]
    failure = {"m": shape[0], "n": shape[1], "k": shape[2], "verified": False}
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return {**failure, "failure": "no answer within 60 s"}
    if run.returncode not in (0, 1) or not run.stdout.strip():
        return {**failure, "failure": run.stderr.strip()}
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("types", nargs="+")
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--output", default="build/gpu")
    parser.add_argument("--random", type=int, default=0, help="random shapes beside the fixed ones")
    parser.add_argument("--candidates", type=int, default=12)
    options = parser.parse_args()
    failed = False
    for dtype in options.types:
        rows = []
        print(f"{dtype}: M,N,K | heddle us | cuBLASLt us | ratio | floor us | first choice / best | configuration")
        for shape in SHAPES + random_shapes(options.random):
            row = measure(options.heddle, dtype, shape, options.candidates)
            rows.append(row)
            failed |= not row["verified"]
            if row.get("us", 0) == 0:
                print(f"{shape}: {row.get('failure') or 'no candidate is right'}", flush=True)
                continue
            ratio = row["library_us"] / row["us"]
            choice = row["pick_us"] / row["best_quick_us"]
            print(f"{shape[0]},{shape[1]},{shape[2]} | {row['us']:.2f} | {row['library_us']:.2f} | {ratio:.3f} | "
                  f"{row['floor_us']:.1f} | {choice:.2f} | {row['best']}{'' if row['verified'] else ' NOT VERIFIED'}",
                  flush=True)
        timed = [r for r in rows if r.get("us", 0) > 0 and r["library_us"] > 0]
        small = [r for r in timed if min(r["m"], r["n"]) <= 128]
        print(f"{dtype}: geometric mean of cuBLASLt / heddle {geomean([r['library_us'] / r['us'] for r in timed]):.3f} "
              f"over {len(timed)} shapes, {geomean([r['library_us'] / r['us'] for r in small]):.3f} over {len(small)} "
              f"with a side of at most 128; first choice at "
              f"{geomean([r['best_quick_us'] / r['pick_us'] for r in timed]):.1%} of the best", flush=True)
        path = pathlib.Path(options.output) / f"gemm_{dtype}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
