#!/usr/bin/env python3
"""What an epilogue adds to a matrix product on a GPU: one line per shape and epilogue, beside our plain product, which
is timed again before each of them and after the last: the clock of a GPU under load drifts by more than an epilogue.

usage: gemm_epilogues.py [--heddle PATH] [--output FOLDER] [--candidates N] [--dtype TYPE] [MxNxK...]

All in one run of `heddle kernel gemm --list --verify`, as gemm_table.py does it. Exit status 1 where a verification failed.
"""
import argparse
import json
import pathlib
import sys

import gemm_table

EPILOGUES = ["relu(x + bias)", "gelu(x + bias)", "silu(x + bias)", "hardswish(x + bias)", "softplus(x + bias)",
             "gelu(x + bias + residual)"]


def beside_plain(rows):
    """The rows of one shape, printed: the plain one with the median time, the others with the mean of both beside them."""
    plains = sorted((row for row in rows[::2] if row.get("us")), key=lambda row: row["us"])
    kept = [plains[len(plains) // 2] if plains else rows[0]]
    for before, row, after in zip(rows[::2], rows[1::2], rows[2::2]):
        beside = [plain["us"] for plain in (before, after) if plain.get("us")]
        kept.append({**row, "plain_us": sum(beside) / len(beside) if beside else None})
    for row in kept:
        name = f"{row['m']},{row['n']},{row['k']} {row['epilogue'] or 'plain'}"
        if not row.get("us"):
            print(f"{name}: {row.get('failure') or 'no candidate is right'}", flush=True)
            continue
        plain = row.get("plain_us", row["us"])
        over = f"{row['us'] / plain - 1:+.1%}" if plain else "-"
        print(f"{name} | {row['us']:.2f} | {over} | {row['best']}{'' if row['verified'] else ' NOT VERIFIED'}", flush=True)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=["1280x3072x768", "8192x4096x1024"])
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--output", default="build/gpu")
    parser.add_argument("--candidates", type=int, default=10)
    parser.add_argument("--dtype", default="f16")
    options = parser.parse_args()
    shapes = [tuple(map(int, text.split("x"))) for text in options.shapes]
    each = [""] + [text for epilogue in EPILOGUES for text in (epilogue, "")]
    problems = [(options.dtype, (m, n, f"{k} {epilogue}")) for m, n, k in shapes for epilogue in each]
    measured, of_shape, failed = [], [], False
    print(f"{options.dtype}: M,N,K epilogue | heddle us | over plain | configuration")
    for (_, (_, _, rest)), row in gemm_table.measure(options.heddle, problems, options.candidates):
        of_shape.append({**row, "epilogue": rest.partition(" ")[2]})
        failed |= not row["verified"]
        if len(of_shape) == len(each):
            measured += beside_plain(of_shape)
            of_shape = []
    path = pathlib.Path(options.output) / f"epilogues_{options.dtype}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in measured))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
