#!/usr/bin/env python3
"""Contractions back to back against a kernel for each of them: Bolt's products and convolutions (Xing et al. 2022, tables 1
and 2) and the blocks of MobileNetV2.

usage: back_to_back.py [--heddle PATH] [--target cpu|cuda] [--types f16 bf16] [--only SUBSTRING...] [-o FILE]

Each case is compiled twice, as it is and with `--disable-fusion back-to-back`, and bursts of the two alternate: on a GPU by
bench/gpu_worker (built with -DHEDDLE_BENCH=ON), which overwrites the L2 before each run; on a CPU by `heddle bench`. One
line per case: whether the rule fused it, both times and how many times as fast the first is; on a GPU the same ratio
with the time of an empty graph taken off both, and with a warm L2; geometric means over the cases that are fused at the
end. --compile-only needs no GPU; what it
leaves in --plans is timed without compiling where it is."""

import argparse
import collections
import json
import math
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench")]

from compare_builds import Worker  # noqa: E402
from two_plans import prepare, run  # noqa: E402

Case = collections.namedtuple("Case", "kind name text")
WITHOUT = ["--disable-fusion", "back-to-back"]


class Graph:
    """Textual IR, line by line; every value is of one type."""

    def __init__(self, dtype, shape):
        self.dtype, self.lines, self.count, self.inputs = dtype, [], 0, [f"%x: {self.type(dtype, shape)}"]
        self.value, self.shape = "%x", shape

    @staticmethod
    def type(dtype, shape):
        return f"{dtype}[{','.join(map(str, shape))}]"

    def constant(self, shape, number=None):
        name = f"%c{len(self.lines)}"
        # A few values in turn: results stay small, and nothing can be folded.
        self.lines.append(f"{name} = constant {{value = {self.type(self.dtype, shape)}{{{number if number is not None else values(shape)}}}}}")
        return name

    def emit(self, text, shape):
        self.count += 1
        self.value, self.shape = f"%v{self.count}", shape
        self.lines.append(f"{self.value} = {text} : {self.type(self.dtype, shape)}")
        return self.value

    def broadcast(self, name, dims):
        before, shape = self.value, self.shape
        wide = self.emit(f"broadcast({name}) {{shape = [{','.join(map(str, shape))}], dims = [{dims}]}}", shape)
        self.value = before
        return wide

    def bias(self):
        columns = self.constant([self.shape[-1]])
        wide = self.broadcast(columns, len(self.shape) - 1)
        self.emit(f"add({self.value}, {wide})", self.shape)

    def clip(self, high=None):
        low = self.broadcast(self.constant([], 0), "")
        self.emit(f"max({self.value}, {low})", self.shape)
        if high is not None:
            top = self.broadcast(self.constant([], high), "")
            self.emit(f"min({self.value}, {top})", self.shape)

    def dot(self, columns):
        weight = self.constant([self.shape[-1], columns])
        self.emit(f"dot({self.value}, {weight}) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}",
                  [self.shape[0], columns])
        self.bias()

    def conv(self, channels, window, stride=1, groups=1):
        images, height, width, before = self.shape
        weight = self.constant([channels, before // groups, window, window])
        pad = window // 2
        out = [images, (height - 1) // stride + 1, (width - 1) // stride + 1, channels]
        self.emit(f"conv({self.value}, {weight}) {{strides = [{stride},{stride}], low = [{pad},{pad}], high = [{pad},{pad}], "
                  f"dilations = [1,1], lhs_dilations = [1,1], groups = {groups}, layout = \"nhwc\"}}", out)
        self.bias()

    def text(self):
        body = "\n  ".join(self.lines)
        return f"graph g({', '.join(self.inputs)}) {{\n  {body}\n  return \"y\" = {self.value}\n}}\n"


def values(shape):
    count = math.prod(shape)
    return ",".join(f"{((i * 2654435761 >> 7) % 15 - 7) / 32:g}" for i in range(count))


def gemm(dtype, m, k, n0, n1):
    graph = Graph(dtype, [m, k])
    graph.dot(n0), graph.clip()
    graph.dot(n1), graph.clip()
    return Case("gemm", f"{m}x{k} -> {n0} -> {n1}", graph.text())


def conv(dtype, size, channels, out, stride):
    graph = Graph(dtype, [32, size, size, channels])
    graph.conv(out, 3, stride), graph.clip()
    graph.conv(out, 1), graph.clip()
    return Case("conv", f"{size}x{size}x{channels} -> {out} s{stride}", graph.text())


def block(dtype, size, channels, expansion, out, stride):
    """An inverted residual: 1x1, depthwise 3x3, 1x1."""
    graph = Graph(dtype, [32, size, size, channels])
    wide = channels * expansion
    if expansion > 1:
        graph.conv(wide, 1), graph.clip(6)
    graph.conv(wide, 3, stride, wide), graph.clip(6)
    graph.conv(out, 1)
    if stride == 1 and channels == out:
        graph.emit(f"add({graph.value}, %x)", graph.shape)
    return Case("mobilenet", f"{size}x{size}x{channels} t{expansion} -> {out} s{stride}", graph.text())


def cases(dtype):
    gemms = [(2464, 4, 1, 4), (16384, 256, 64, 16), (32768, 576, 128, 64), (128320, 96, 32, 96)]
    convs = [(224, 3, 48, 2), (112, 48, 48, 2), (56, 48, 48, 1), (224, 3, 64, 2), (112, 64, 64, 2), (56, 64, 64, 1)]
    blocks = [(112, 32, 1, 16, 1), (112, 16, 6, 24, 2), (56, 24, 6, 24, 1), (28, 32, 6, 32, 1), (14, 64, 6, 64, 1), (14, 64, 6, 96, 1),
              (14, 96, 6, 96, 1), (7, 160, 6, 160, 1)]
    return [gemm(dtype, *c) for c in gemms] + [conv(dtype, *c) for c in convs] + [block(dtype, *c) for c in blocks]


def compiled(case, dtype, options):
    stem = options.plans / f"{dtype}_{case.kind}_{case.name.translate(str.maketrans(' >', '__', '-'))}"
    return prepare(stem, case.text, "back_to_back", WITHOUT, options.heddle, options.target, options.compile)


def time_cpu(options, source, flags):
    result = json.loads(run(options.heddle, "bench", source, "--threads", options.threads, "--seconds", options.seconds, "--json", *flags))
    return {"us": result["p50_ms"] * 1e3}


def time_gpu(options, worker, plan):
    answer = worker.ask(f"{options.runs} {plan}")
    return {"us": answer["cold_us"], "kernels_us": answer["cold_us"] - answer["empty_us"], "warm_us": answer["warm_us"]}


def measure(case, dtype, worker, options):
    source, decisions, plans = compiled(case, dtype, options)
    row = {"kind": case.kind, "case": case.name, "type": dtype, "fused": any(d["fused"] for d in decisions),
           "reasons": [d["reason"] for d in decisions]}
    times = {"one": [], "two": []}
    for _ in range(options.bursts):
        for (name, found), plan, flags in zip(times.items(), plans, [[], WITHOUT]):
            try:
                found.append(time_cpu(options, source, flags) if worker is None else time_gpu(options, worker, plan))
            except RuntimeError as error:
                return row | {"failure": str(error)}
    for name, found in times.items():
        for key in found[0]:
            row[f"{name}_{key}"] = round(statistics.median(f[key] for f in found), 3)
    for key in ("us", "kernels_us", "warm_us"):
        if f"one_{key}" in row:
            row["gain" + key[:-2].replace("kernels_", "_of_kernels").replace("warm_", "_warm")] = round(row[f"two_{key}"] / row[f"one_{key}"], 3)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle", type=pathlib.Path)
    parser.add_argument("--worker", default=ROOT / "build/release/bench/gpu_worker", help="built with -DHEDDLE_BENCH=ON")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--types", nargs="+", help="f16 on a GPU, f32 on a CPU")
    parser.add_argument("--only", nargs="+", default=[""], metavar="SUBSTRING", help="of kind and name")
    parser.add_argument("--bursts", type=int, default=5)
    parser.add_argument("--runs", type=int, default=40, help="of a burst on a GPU")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a burst on a CPU")
    parser.add_argument("--threads", type=int, default=0, help="of a CPU; 0: as many as cores")
    parser.add_argument("--plans", type=pathlib.Path, default=ROOT / "build/bench/back_to_back")
    parser.add_argument("--compile", action="store_true", help="compile what --plans has already")
    parser.add_argument("--compile-only", action="store_true", help="needs no GPU")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE", help="the rows as JSON")
    options = parser.parse_args()
    options.plans.mkdir(parents=True, exist_ok=True)
    chosen = [(case, dtype) for dtype in options.types or ["f32" if options.target == "cpu" else "f16"] for case in cases(dtype)
              if any(part in f"{case.kind} {case.name}" for part in options.only)]
    if options.compile_only:
        for case, dtype in chosen:
            decisions = compiled(case, dtype, options)[1]
            print(f"{dtype} {case.kind:9} {case.name:28}", *(f"{'fused' if d['fused'] else 'apart'}: {d['reason']}" for d in decisions), sep="  ")
        return
    worker = None if options.target == "cpu" else Worker(options.worker)
    rows = []
    for case, dtype in chosen:
        row = measure(case, dtype, worker, options)
        rows.append(row)
        if "failure" in row:
            print(f"{dtype} {case.kind:9} {case.name:28} {row['failure']}", flush=True)
        else:
            print(f"{dtype} {case.kind:9} {case.name:28} {'fused' if row['fused'] else 'apart'} {row['one_us']:9.2f} us {row['two_us']:9.2f} us "
                  + "  ".join(f"{row[key]:6.3f}" for key in ("gain", "gain_of_kernels", "gain_warm") if key in row), flush=True)
        if options.output:
            options.output.write_text(json.dumps(rows, indent=1) + "\n")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        gains = [row["gain"] for row in rows if row["kind"] == kind and row["fused"] and "gain" in row]
        if gains:
            print(f"{kind}: {len(gains)} fused, {statistics.geometric_mean(gains):.3f} times as fast, least {min(gains):.3f}")


if __name__ == "__main__":
    main()
