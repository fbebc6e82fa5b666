#!/usr/bin/env python3
"""Matrix products on a GPU beside cuBLASLt's best heuristic: one line per shape, geometric means at the end.

usage: gemm_table.py [--heddle PATH] [--output FOLDER] [--random N] [--candidates N] TYPE...

One run of `heddle kernel gemm --list --verify` compiles the candidates of all shapes at once and then times them shape by
shape; both sides are timed in it, alternating, with a cold L2 and as CUDA graphs. Exit status 1 where a verification failed.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

from report_gpu import geometric_mean

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


def measure(heddle, problems, candidates):
    """One row for each (dtype, shape), in order. After a crash or a hang a new process goes on behind the culprit."""
    rest = list(problems)
    while rest:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as jobs:
            jobs.write("".join(f"{dtype} {m} {n} {k}\n" for dtype, (m, n, k) in rest))
            jobs.flush()
            run = subprocess.Popen([heddle, "kernel", "gemm", "--list", jobs.name, "--verify", "--candidates",
                                    str(candidates)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            watch = threading.Timer(120 + 10 * len(rest), run.kill)
            watch.start()
            for line in run.stdout:
                yield rest.pop(0), json.loads(line)
            failure = run.stderr.read().strip()
            run.wait()
            watch.cancel()
        if rest:
            (dtype, (m, n, k)) = culprit = rest.pop(0)
            yield culprit, {"m": m, "n": n, "k": k, "verified": False, "failure": failure or "no answer"}


def print_row(shape, row):
    if row.get("us", 0) == 0:
        print(f"{shape}: {row.get('failure') or 'no candidate is right'}", flush=True)
        return
    ratio = row["library_us"] / row["us"]
    choice = row["pick_us"] / row["best_quick_us"]
    print(f"{shape[0]},{shape[1]},{shape[2]} | {row['us']:.2f} | {row['library_us']:.2f} | {ratio:.3f} | "
          f"{row['floor_us']:.1f} | {choice:.2f} | {row['best']}{'' if row['verified'] else ' NOT VERIFIED'}", flush=True)


def print_means(dtype, rows):
    timed = [r for r in rows if r.get("us", 0) > 0 and r["library_us"] > 0]
    small = [r for r in timed if min(r["m"], r["n"]) <= 128]
    print(f"{dtype}: geometric mean of cuBLASLt / heddle {geometric_mean([r['library_us'] / r['us'] for r in timed]):.3f} "
          f"over {len(timed)} shapes, {geometric_mean([r['library_us'] / r['us'] for r in small]):.3f} over {len(small)} "
          f"with a side of at most 128; first choice at "
          f"{geometric_mean([r['best_quick_us'] / r['pick_us'] for r in timed]):.1%} of the best", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("types", nargs="+")
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--output", default="build/gpu")
    parser.add_argument("--random", type=int, default=0, help="random shapes beside the fixed ones")
    parser.add_argument("--candidates", type=int, default=12)
    options = parser.parse_args()
    failed = False
    shapes = SHAPES + random_shapes(options.random)
    rows = {dtype: [] for dtype in options.types}
    for (dtype, shape), row in measure(options.heddle, [(t, s) for t in options.types for s in shapes],
                                       options.candidates):
        if not rows[dtype]:
            print(f"{dtype}: M,N,K | heddle us | cuBLASLt us | ratio | floor us | first choice / best | configuration")
        rows[dtype].append(row)
        failed |= not row["verified"]
        print_row(shape, row)
        if len(rows[dtype]) == len(shapes):
            print_means(dtype, rows[dtype])
            path = pathlib.Path(options.output) / f"gemm_{dtype}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows[dtype]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
