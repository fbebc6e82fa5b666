#!/usr/bin/env python3
"""Gated MLPs' first half, act(x G) * (x U), as one product against two on a GPU: layers of Llama, Gemma and T5 sizes, from one row to
thousands.

usage: gated_products.py [--heddle PATH] [--only SUBSTRING...] [--bursts N] [-o FILE] [--plans FOLDER] [--compile-only]

Each case is compiled twice, as it is and with `--disable-pass gate_dots`, and bursts of `heddle bench` of the two plans alternate. One
line per case: whether it is one kernel, the GPU's own time with a cold L2 of both, and how many times as fast the first is; the
geometric mean at the end. --compile-only needs no GPU; what it leaves in --plans is timed where it is."""

import argparse
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench")]

from two_plans import prepare, run  # noqa: E402

WITHOUT = ["--disable-pass", "gate_dots"]
# Rows; columns of x; columns of the result; activation.
CASES = [(1, 2048, 8192, "silu"), (8, 2048, 8192, "silu"), (64, 2048, 8192, "silu"), (512, 2048, 8192, "silu"), (4096, 2048, 8192, "silu"),
         (2048, 2048, 5632, "silu"), (2048, 4096, 11008, "silu"), (8, 4096, 14336, "silu"), (2048, 2048, 16384, "gelu"), (512, 512, 1024, "gelu"),
         (2048, 1024, 2816, "relu")]


def act(name, dtype, shape):
    """Of %g, as %a."""
    def number(value, label):
        return (f"  %{label}0 = constant {{value = {dtype}[]{{{value}}}}}\n"
                f"  %{label} = broadcast(%{label}0) {{shape = {shape}, dims = []}}\n")
    if name == "relu":
        return number(0, "zero") + "  %a = max(%g, %zero)\n"
    if name == "silu":
        return number(1, "one") + "  %n = neg(%g)\n  %e = exp(%n)\n  %s = add(%one, %e)\n  %a = div(%g, %s)\n"
    return (number(0.5, "half") + number(0.70710678, "root") + "  %r = mul(%g, %root)\n  %e = erf(%r)\n  %h = mul(%g, %half)\n"
            "  %i = mul(%h, %e)\n  %a = add(%h, %i)\n")


def text_of(rows, depth, columns, name, dtype):
    dims = "{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}"
    weights = "".join(f"  %w{which} = constant {{value = {dtype}[{depth},{columns}]{{{value}}}}}\n  %{which} = dot(%x, %w{which}) {dims}\n"
                      for which, value in (("g", 0.011), ("u", 0.023)))
    return (f"graph g(%x: {dtype}[{rows},{depth}]) {{\n{weights}{act(name, dtype, f'[{rows},{columns}]')}"
            f"  %y = mul(%a, %u)\n  return \"y\" = %y\n}}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle", type=pathlib.Path)
    parser.add_argument("--dtype", default="f16")
    parser.add_argument("--only", nargs="+", default=[""], metavar="SUBSTRING")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.15, help="of a burst")
    parser.add_argument("--plans", type=pathlib.Path, default=ROOT / "build/bench/gated_products")
    parser.add_argument("--compile-only", action="store_true", help="needs no GPU")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE", help="the rows as JSON")
    options = parser.parse_args()
    options.plans.mkdir(parents=True, exist_ok=True)
    rows = []
    for m, depth, columns, name in CASES:
        case = f"{options.dtype}_{name}_{m}x{depth}x{columns}"
        if not any(part in case for part in options.only):
            continue
        text = text_of(m, depth, columns, name, options.dtype)
        _, decisions, plans = prepare(options.plans / case, text, "gate", WITHOUT, options.heddle, "cuda")
        one = any(d["fused"] for d in decisions)
        if options.compile_only:
            print(f"{case:32} {'one kernel' if one else 'two kernels'}", flush=True)
            continue
        times = ([], [])
        for _ in range(options.bursts):
            for plan, found in zip(plans, times):
                result = json.loads(run(options.heddle, "bench", plan, "--target", "cuda", "--seconds", options.seconds, "--json"))
                found.append(result["device_cold_p50_ms"] * 1e3)
        us = [statistics.median(found) for found in times]
        rows.append({"case": case, "one_kernel": one, "one_us": round(us[0], 2), "two_us": round(us[1], 2), "gain": round(us[1] / us[0], 3)})
        print(f"{case:32} {'one kernel' if one else 'two kernels':12} {us[0]:9.2f} us {us[1]:9.2f} us {us[1] / us[0]:6.3f}", flush=True)
        if options.output:
            options.output.write_text(json.dumps(rows, indent=1) + "\n")
    gains = [row["gain"] for row in rows if row["one_kernel"]]
    if gains:
        print(f"{len(gains)} gated: {statistics.geometric_mean(gains):.3f} times as fast, least {min(gains):.3f}")


if __name__ == "__main__":
    main()
