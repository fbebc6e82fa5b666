#!/usr/bin/env python3
"""Attention on a GPU beside PyTorch's scaled_dot_product_attention (cuDNN, FlashAttention, memory-efficient attention, the
compiler's choice): one line per shape, geometric means by kind at the end. Keys in pages are gathered first by PyTorch.

usage: attention_gpu.py [--heddle PATH] [--output FILE] [--only SUBSTRING...] [--candidates N] [--types f16 bf16]
                        [--rivals cudnn flash efficient compile] [--alone]

Both sides run as CUDA graphs with a cold L2; PyTorch is timed before and after `heddle kernel attention`, each time is the
median of all runs, and the best of PyTorch's backends counts. TFLOP/s of causal attention count half of the square. The
output is written after each shape, so that a run which is cut leaves what it has. Exit status 1 where a result is wrong."""

import argparse
import collections
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

from report_gpu import geometric_mean

RIVALS = ["cudnn", "flash", "efficient", "compile"]
Shape = collections.namedtuple("Shape", "kind batch heads kv_heads m n depth causal window page", defaults=[0])


def shapes():
    table = []
    for depth, heads in (64, 32), (128, 16), (256, 8):
        for length in 512, 1024, 2048, 4096, 8192, 16384:
            batch = 16384 // length
            table.append(Shape("full", batch, heads, heads, length, length, depth, False, 0))
            table.append(Shape("causal", batch, heads, heads, length, length, depth, True, 0))
    for batch, heads, kv_heads, length in (4, 32, 8, 2048), (1, 32, 8, 8192), (2, 64, 8, 4096), (8, 32, 8, 1024):
        table.append(Shape("shared keys", batch, heads, kv_heads, length, length, 128, True, 0))
    table += [Shape("short", batch, heads, heads, length, length, 64, causal, 0) for batch, heads, length, causal in
              ((32, 12, 128, False), (32, 12, 197, False), (32, 12, 384, False), (200, 12, 128, False), (16, 12, 512, True),
               (1, 12, 128, False), (64, 16, 77, True))]
    table += [Shape("window", 2, 16, 16, 8192, 8192, 128, True, window) for window in (512, 2048)]
    for batch, heads, kv_heads, keys in ((8, 32, 8, 8192), (1, 32, 8, 8192), (32, 32, 8, 2048), (1, 64, 8, 65536), (16, 32, 32, 1024),
                                         (4, 32, 1, 16384), (1, 32, 8, 32768), (64, 32, 8, 1024), (2, 32, 4, 16384)):
        table.append(Shape("decode", batch, heads, kv_heads, 1, keys, 128, False, 0))
    for batch, heads, kv_heads, keys, depth in (8, 32, 8, 4096, 64), (4, 16, 16, 8192, 64), (16, 8, 1, 8192, 256):
        table.append(Shape("decode", batch, heads, kv_heads, 1, keys, depth, False, 0))
    table += [Shape("odd heads", batch, heads, heads, length, length, depth, False, 0) for batch, heads, length, depth in
              ((2, 8, 4096, 40), (2, 8, 1024, 80), (8, 12, 1024, 96), (4, 16, 2048, 192), (4, 16, 2048, 112))]
    table += [Shape("wide heads", batch, heads, heads, length, length, depth, False, 0) for batch, heads, length, depth in
              ((1, 1, 4096, 512), (1, 1, 16384, 512), (2, 8, 2048, 320), (1, 16, 1024, 512))]
    table += [Shape("pages", batch, heads, kv_heads, m, keys, 128, m == keys, 0, page) for batch, heads, kv_heads, m, keys, page in
              ((8, 32, 8, 1, 8192, 16), (8, 32, 8, 1, 8192, 64), (32, 32, 8, 1, 2048, 256), (1, 64, 8, 1, 65536, 64),
               (4, 32, 8, 2048, 2048, 64), (1, 32, 8, 512, 8192, 256))]
    return table


def text_of(shape):
    heads = f"{shape.heads}" if shape.heads == shape.kv_heads else f"{shape.heads}({shape.kv_heads})"
    mask = f" window {shape.window}" if shape.window else " causal" if shape.causal else ""
    pages = f" pages {shape.page}" if shape.page else ""
    return f"{shape.batch}x{heads}x{shape.m}x{shape.n}x{shape.depth}{mask}{pages}"


class PyTorch:
    """Timed contestants of a shape, each a CUDA graph."""

    def __init__(self, shape, dtype, rivals):
        import torch
        import torch.nn.attention as attention
        self.torch = torch
        kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
        draw = torch.Generator(device="cuda").manual_seed(1)
        tensor = lambda heads, lines: torch.rand((shape.batch, heads, lines, shape.depth), generator=draw, device="cuda",
                                                 dtype=torch.float32).mul_(2).sub_(1).to(kind)
        self.q, self.k, self.v = tensor(shape.heads, shape.m), tensor(shape.kv_heads, shape.n), tensor(shape.kv_heads, shape.n)
        self.flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        backends = {"cudnn": attention.SDPBackend.CUDNN_ATTENTION, "flash": attention.SDPBackend.FLASH_ATTENTION,
                    "efficient": attention.SDPBackend.EFFICIENT_ATTENTION}
        options = {"is_causal": shape.causal, "enable_gqa": shape.heads != shape.kv_heads}
        self.pages = self.in_pages(shape) if shape.page else None
        call = self.call
        self.graphs, self.why = {}, {}
        if shape.window:
            self.add("flex", self.flex(shape))
            return
        for name, backend in backends.items():
            if name not in rivals:
                continue

            def one(backend=backend):
                with attention.sdpa_kernel([backend]):
                    return call(self.q, self.k, self.v, **options)
            self.add(name, one)
        if "compile" not in rivals:
            return
        compiled = torch.compile(lambda q, k, v: call(q, k, v, **options), mode="max-autotune-no-cudagraphs")
        self.add("compile", lambda: compiled(self.q, self.k, self.v))

    def in_pages(self, shape):
        """Keys and values as pools of pages in a random order, and the table."""
        torch, count = self.torch, shape.batch * shape.n // shape.page
        table = torch.randperm(count, device="cuda").view(shape.batch, -1)
        self.k, self.v = (x.view(shape.kv_heads, count, shape.page, shape.depth).permute(1, 2, 0, 3).contiguous()
                          for x in (self.k, self.v))
        return table

    def call(self, q, k, v, **options):
        if self.pages is not None:
            k, v = (x[self.pages].flatten(1, 2).transpose(1, 2) for x in (k, v))
        return self.torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    def flex(self, shape):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        later = shape.n - shape.m
        seen = lambda b, h, row, key: (row + later >= key) & (row + later - key < shape.window)
        mask = create_block_mask(seen, None, None, shape.m, shape.n)
        compiled = self.torch.compile(flex_attention)
        return lambda: compiled(self.q, self.k, self.v, block_mask=mask, enable_gqa=shape.heads != shape.kv_heads)

    def add(self, name, call):
        torch = self.torch
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side), torch.no_grad():
                for _ in range(3):
                    call()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph), torch.no_grad():
                call()
            self.graphs[name] = graph
        except Exception as error:  # a backend that does not take the shape
            self.why[name] = str(error).splitlines()[0][:200]

    def times(self, runs):
        torch, result = self.torch, {name: [] for name in self.graphs}
        for _ in range(runs + 1):
            for name, graph in self.graphs.items():
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                self.flush.zero_()
                start.record()
                graph.replay()
                end.record()
                end.synchronize()
                result[name].append(start.elapsed_time(end) * 1e3)
        return {name: values[1:] for name, values in result.items()}


def heddle_row(options, shape, dtype):
    command = [options.heddle, "kernel", "attention", "--json", "--verify", "--type", dtype, "--candidates", str(options.candidates)]
    for name in "batch", "heads", "kv_heads", "m", "n", "depth":
        command += ["--" + name.replace("_", "-"), str(getattr(shape, name))]
    if shape.causal:
        command.append("--causal")
    if shape.window:
        command += ["--window", str(shape.window)]
    if shape.page:
        command += ["--page", str(shape.page)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    try:
        return json.loads(run.stdout)
    except json.JSONDecodeError:
        return {"us": 0, "failure": (run.stderr or run.stdout).strip()[:500]}


def measure(options, shape, dtype):
    torch_side = None if options.alone else PyTorch(shape, dtype, options.rivals)
    before = torch_side.times(options.runs) if torch_side else {}
    row = heddle_row(options, shape, dtype)
    after = torch_side.times(options.runs) if torch_side else {}
    theirs = {name: statistics.median(before[name] + after[name]) for name in before}
    row.update(kind=shape.kind, shape=text_of(shape), dtype=dtype, pytorch=theirs, pytorch_why=torch_side.why if torch_side else {})
    best = min(theirs.values(), default=0)
    row["ratio"] = best / row["us"] if best and row["us"] else 0
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/attention_gpu.json"))
    parser.add_argument("--only", nargs="+", default=[""], help="shapes whose kind or text has one of these")
    parser.add_argument("--types", nargs="+", default=["f16"], choices=["f16", "bf16"])
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--runs", type=int, default=11, help="of PyTorch, before and after Heddle")
    parser.add_argument("--rivals", nargs="+", default=RIVALS, choices=RIVALS, help="of PyTorch; windows have flex_attention")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    print("batch x heads x queries x keys x depth | heddle us | TFLOP/s | PyTorch us | PyTorch / Heddle | configuration")
    for dtype in options.types:
        for shape in shapes():
            if not any(word in f"{shape.kind} {text_of(shape)}" for word in options.only):
                continue
            rows.append(row := measure(options, shape, dtype))
            theirs = ", ".join(f"{name} {us:.1f}" for name, us in sorted(row["pytorch"].items(), key=lambda x: x[1]))
            wrong = "" if row.get("error", 2) <= 1 else f" NOT RIGHT {row.get('failure', '')}"
            print(f"{dtype} {row['shape']} | {row['us']:.1f} | {row.get('tflops', 0):.0f} | {theirs} | {row['ratio']:.3f} | "
                  f"{row.get('best', '')}{wrong}", flush=True)
            options.output.write_text(json.dumps({"date": datetime.date.today().isoformat(), "rows": rows}, indent=1))
    for kind in dict.fromkeys(row["kind"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["kind"] == kind and row["ratio"]]
        if ratios:
            print(f"{kind}: PyTorch / Heddle {geometric_mean(ratios):.3f} over {len(ratios)} shapes, worst {min(ratios):.3f}")
    sys.exit(0 if all(row.get("error", 2) <= 1 for row in rows) else 1)


if __name__ == "__main__":
    main()
