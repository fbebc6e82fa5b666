#!/usr/bin/env python3
"""Gradients of heddle.ops on a GPU beside PyTorch's: norms, SwiGLU, attention, linear + cross-entropy. One line per case.

usage: training_operators.py [--only SUBSTRING...] [--bursts N] [--output FILE]

All tensors are bf16. A side of norms and SwiGLU is a CUDA graph of the backward pass alone, of attention and of the loss one of both
passes. `torch` is PyTorch's eager operator, `inductor` its compiler's; attention of PyTorch is cuDNN's. Bursts alternate, with a cold L2;
a time is the median of all runs. `of copy` is the bandwidth of a norm's or SwiGLU's backward pass over that of a copy of as many bytes;
its bytes are those of its operands and results, each once. `extra MB` is the peak of memory beyond operands and gradients. Exit status 1
where a result is wrong."""

import argparse
import collections
import datetime
import json
import pathlib
import statistics
import sys

import torch
from torch.nn import functional as F

import heddle.ops
import heddle.torch
from scatters_gpu import burst

SIDES = ("heddle", "torch", "inductor", "copy")

# functions: of each side. Its gradients for `wanted` are computed from a random gradient of the result.
Case = collections.namedtuple("Case", "text functions inputs backward_alone")
# held: what the graph reads, which capturing another would free.
Side = collections.namedtuple("Side", "replay gradients held")


def numbers(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


def norm(kind, rows, width):
    inputs = (numbers(rows, width), *[numbers(width) for _ in range(2 if kind == "layer_norm" else 1)])
    ours, theirs = getattr(heddle.ops, kind), getattr(F, kind)
    return Case(f"{kind} backward [{rows},{width}]", {"heddle": lambda x, *w: ours(x, (width,), *w), "torch": lambda x, *w: theirs(x, (width,), *w)},
                inputs, True)


def swiglu(rows, width):
    inputs = (numbers(rows, width), numbers(rows, width))
    return Case(f"swiglu backward [{rows},{width}]", {"heddle": heddle.ops.swiglu, "torch": lambda gate, up: F.silu(gate) * up}, inputs, True)


def attention(batch, heads, length, width, is_causal):
    def by_cudnn(q, k, v):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    inputs = tuple(numbers(batch, heads, length, width) for _ in range(3))
    text = f"attention {batch}x{heads}x{length}x{width}{' causal' if is_causal else ''}"
    return Case(text, {"heddle": lambda q, k, v: heddle.ops.scaled_dot_product_attention(q, k, v, is_causal=is_causal), "torch": by_cudnn},
                inputs, False)


def loss(rows, width, classes):
    target = torch.randint(classes, (rows,), device="cuda")
    with torch.no_grad():
        inputs = (numbers(rows, width), torch.randn(classes, width, device="cuda", dtype=torch.bfloat16).mul_(width ** -0.5).requires_grad_())
    inputs = tuple(one.detach().requires_grad_() for one in inputs)
    return Case(f"linear_cross_entropy {rows}x{width}x{classes}", {
        "heddle": lambda x, w: heddle.torch.linear_cross_entropy(x, w, target),
        "torch": lambda x, w: F.cross_entropy(F.linear(x, w).float(), target)}, inputs, False)


def cases():
    for kind in ("layer_norm", "rms_norm"):
        for rows, width in ((16384, 1024), (8192, 4096), (65536, 768), (4096, 8192), (16384, 4097)):
            yield lambda kind=kind, rows=rows, width=width: norm(kind, rows, width)
    yield lambda: swiglu(8192, 8192)
    for width in (64, 128):
        for length in (2048, 16384):
            for is_causal in (True, False):
                yield lambda *a, width=width, length=length, c=is_causal: attention(16384 // length, 2048 // width, length, width, c)
    yield lambda: loss(4096, 4096, 128256)
    yield lambda: loss(8192, 768, 50257)


def step(function, inputs, gradient, result=None):
    """The gradients for all inputs. Runs both passes, or the backward pass alone if `result`, that of the forward pass, is given."""
    result = function(*inputs) if result is None else result
    return torch.autograd.grad(result, inputs, gradient, retain_graph=True)


def captured(case, function):
    """A CUDA graph that computes the gradients."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        result = function(*case.inputs)
        torch.manual_seed(1)
        gradient = torch.randn_like(result) if case.backward_alone or result.dim() > 0 else torch.ones_like(result)
        for _ in range(3):
            step(function, case.inputs, gradient, result if case.backward_alone else None)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        made = step(function, case.inputs, gradient, result if case.backward_alone else None)
    graph.replay()
    return Side(graph.replay, made, (graph, result, gradient))


def extra_bytes(case, function):
    """The peak of memory of both passes, without operands and gradients."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    made = step(function, case.inputs, None if case.text.startswith("linear") else torch.ones_like(function(*case.inputs)))
    gradients = sum(one.numel() * one.element_size() for one in made)
    return torch.cuda.max_memory_allocated() - before - gradients


def bytes_of(case):
    inputs = [one.numel() * one.element_size() for one in case.inputs]
    return 2 * sum(inputs) + max(inputs)  # operands, their gradients, and the gradient of the result


def prepared(case):
    functions = dict(case.functions)
    torch._dynamo.reset()
    if not case.text.startswith("attention"):
        functions["inductor"] = torch.compile(functions["torch"], dynamic=False)
    sides = {name: captured(case, function) for name, function in functions.items()}
    if case.backward_alone:
        source = torch.empty(bytes_of(case) // 2, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        sides["copy"] = Side(lambda: target.copy_(source), (), None)
    return sides


def is_wrong(case, sides):
    """Whether a gradient of ours is farther from PyTorch's than roundings of 16 bits explain."""
    for ours, theirs in zip(sides["heddle"].gradients, sides["torch"].gradients):
        if (ours.float() - theirs.float()).norm() > 0.03 * theirs.float().norm():
            return True
    return False


def measure(case, bursts, flush):
    sides, times = prepared(case), collections.defaultdict(list)
    for _ in range(bursts):
        for name, values in burst({name: side.replay for name, side in sides.items()}, flush).items():
            times[name] += values
    row = {"case": case.text, "wrong": is_wrong(case, sides), **{f"{name}_us": statistics.median(values) for name, values in times.items()}}
    if case.backward_alone:
        row["of_copy"] = row["copy_us"] / row["heddle_us"]
    del sides
    if case.text.startswith("linear"):
        row["extra_mb"] = {name: extra_bytes(case, function) / 1e6 for name, function in case.functions.items()}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose text has one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/training_operators.json"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    rows = []
    print("case | " + " | ".join(f"{name} us" for name in SIDES) + " | of copy | extra MB")
    for make in cases():
        case = make()
        if not any(word in case.text for word in options.only):
            continue
        rows.append(row := measure(case, options.bursts, flush))
        figures = " | ".join(f"{row[f'{name}_us']:.1f}" if f"{name}_us" in row else "-" for name in SIDES)
        extra = ", ".join(f"{name} {value:.0f}" for name, value in row.get("extra_mb", {}).items())
        print(f"{row['case']} | {figures} | {row.get('of_copy', 0):.2f} | {extra}{' WRONG' if row['wrong'] else ''}", flush=True)
        document = {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "rows": rows}
        options.output.write_text(json.dumps(document, indent=1))
    sys.exit(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    main()
