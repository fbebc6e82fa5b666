#!/usr/bin/env python3
"""What an epilogue adds to a matrix product on a GPU: one line per shape and epilogue, beside our plain product.

usage: gemm_epilogues.py [--heddle PATH] [--output FOLDER] [--candidates N] [--dtype TYPE] [MxNxK...]

All in one run of `heddle kernel gemm --list --verify`, as gemm_table.py does it. Exit status 1 where a verification failed.
"""
import argparse
import json
import pathlib
import sys

import gemm_table

EPILOGUES = ["", "relu(x + bias)", "gelu(x + bias)", "silu(x + bias)", "hardswish(x + bias)", "softplus(x + bias)",
             "gelu(x + bias + residual)"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=["1280x3072x768", "8192x4096x1024"])
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--output", default="build/gpu")
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--dtype", default="f16")
    options = parser.parse_args()
    shapes = [tuple(map(int, text.split("x"))) for text in options.shapes]
    problems = [(options.dtype, (m, n, f"{k} {epilogue}")) for m, n, k in shapes for epilogue in EPILOGUES]
    rows, plain, failed = [], 0, False
    print(f"{options.dtype}: M,N,K epilogue | heddle us | over plain | configuration")
    for (_, (m, n, rest)), row in gemm_table.measure(options.heddle, problems, options.candidates):
        k, _, epilogue = rest.partition(" ")
        rows.append({**row, "epilogue": epilogue})
        failed |= not row["verified"]
        if row.get("us", 0) == 0:
            print(f"{m},{n},{k} {epilogue}: {row.get('failure') or 'no candidate is right'}", flush=True)
            continue
        if not epilogue:
            plain = row["us"]
        over = f"{row['us'] / plain - 1:+.1%}" if plain else "-"
        print(f"{m},{n},{k} {epilogue or 'plain'} | {row['us']:.2f} | {over} | {row['best']}"
              f"{'' if row['verified'] else ' NOT VERIFIED'}", flush=True)
    path = pathlib.Path(options.output) / f"epilogues_{options.dtype}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
