#!/usr/bin/env python3
"""Scatters that add, on a GPU, beside PyTorch's: gradients of embeddings, index_put, index_add, scatter_add. One line per case.

usage: scatters_gpu.py [--only SUBSTRING...] [--bursts N] [--output FILE]

Each side is a CUDA graph: PyTorch's operator, PyTorch's compiler, `torch.compile(backend="heddle")`, and the last once more under
`torch.use_deterministic_algorithms(True)`. Bursts alternate, with a cold L2; a time is the median of all runs. The floor is the
time in which an H200 reads the updates and writes the result once, at 4.3 TB/s. Exit status 1 where a result is wrong."""

import argparse
import collections
import datetime
import json
import pathlib
import statistics
import sys

import torch

import heddle.torch.backend
from torch_worker import captured

BYTES_PER_US = 4.3e6
SIDES = ("eager", "inductor", "heddle", "deterministic")

Case = collections.namedtuple("Case", "text function inputs expected")


def anywhere(rows, *shape):
    return torch.randint(rows, shape, device="cuda")


def numbers(*shape):
    return torch.randn(shape, device="cuda")


def sums(rows, indices, updates):
    """The reference: each row's sum in float64."""
    updates = updates.double().reshape(indices.numel(), -1)
    return torch.zeros(rows, updates.shape[1], dtype=torch.float64, device="cuda").index_add(0, indices.flatten(), updates)


def embedding(name, rows, width, indices):
    gradient = numbers(indices.numel(), width)
    call = lambda g, at: torch.ops.aten.embedding_dense_backward(g, at, rows, -1, False)
    return Case(f"embedding {name} [{rows},{width}] {indices.numel()}", call, (gradient, indices), lambda g, at: sums(rows, at, g))


def bias_table(name, rows, heads, indices):
    call = lambda at, u: torch.zeros(rows, heads, device="cuda").index_put((at,), u, accumulate=True)
    inputs = (indices, numbers(indices.numel(), heads))
    return Case(f"index_put {name} [{rows},{heads}] {indices.numel()}", call, inputs, lambda at, u: sums(rows, at, u))


def index_add(rows, width, count):
    call = lambda at, u: torch.zeros(rows, width, device="cuda").index_add(0, at, u)
    return Case(f"index_add [{rows},{width}] {count}", call, (anywhere(rows, count), numbers(count, width)), lambda at, u: sums(rows, at, u))


def scatter_add(dim, shape, count):
    updates = [count if d == dim else n for d, n in enumerate(shape)]
    call = lambda at, u: torch.zeros(shape, device="cuda").scatter_add(dim, at, u)
    expected = lambda at, u: torch.zeros(shape, dtype=torch.float64, device="cuda").scatter_add(dim, at, u.double())
    return Case(f"scatter_add {list(shape)} {count} along {dim}", call, (anywhere(shape[dim], *updates), numbers(*updates)), expected)


def cases():
    zeros = lambda count: torch.zeros(count, dtype=torch.long, device="cuda")
    window = torch.arange(49, device="cuda")
    relative = ((window[:, None] // 7 - window // 7 + 6) * 13 + window[:, None] % 7 - window % 7 + 6).flatten()
    apart = (torch.arange(512, device="cuda")[:, None] - torch.arange(512, device="cuda")).abs().clamp(max=31).flatten()
    return [
        lambda: embedding("BERT words", 30522, 768, anywhere(30522, 4096)),
        lambda: embedding("BERT positions", 512, 768, torch.arange(128, device="cuda")),
        lambda: embedding("BERT types, one row", 2, 768, zeros(4096)),
        lambda: embedding("words, one row", 30522, 768, zeros(4096)),
        lambda: embedding("GPT-2 words", 50257, 768, anywhere(50257, 8192)),
        lambda: embedding("Llama words", 32000, 2048, anywhere(32000, 4096)),
        lambda: embedding("DIEN items", 100000, 64, anywhere(100000, 102400)),
        lambda: embedding("DIEN items, one row", 100000, 64, zeros(102400)),
        lambda: embedding("odd width", 30522, 769, anywhere(30522, 4096)),
        lambda: bias_table("Swin", 169, 24, relative),
        lambda: bias_table("T5", 32, 12, apart),
        lambda: index_add(10000, 64, 100000),
        lambda: index_add(1000, 1, 1 << 20),
        lambda: scatter_add(0, (1000, 64), 100000),
        lambda: scatter_add(1, (4096, 3136), 784),
    ]


def compiled(case, backend, deterministic=False):
    torch._dynamo.reset()
    torch.use_deterministic_algorithms(deterministic)
    try:
        call = torch.compile(case.function, backend=backend, dynamic=False)
        result = call(*case.inputs).clone()
        return captured(lambda: call(*case.inputs)), result
    finally:
        torch.use_deterministic_algorithms(False)


def prepared(case):
    """A CUDA graph and a result of each side."""
    return {"eager": (captured(lambda: case.function(*case.inputs)), case.function(*case.inputs)), "inductor": compiled(case, "inductor"),
            "heddle": compiled(case, heddle.torch.heddle_backend), "deterministic": compiled(case, heddle.torch.heddle_backend, True)}


def burst(graphs, flush):
    times = {name: [] for name in graphs}
    for _ in range(12):
        for name, replay in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            start.record()
            replay()
            end.record()
            end.synchronize()
            times[name].append(start.elapsed_time(end) * 1e3)
    return {name: values[1:] for name, values in times.items()}


def measure(case, bursts, flush):
    expected = case.expected(*case.inputs)
    sides = prepared(case)
    # Of f32 sums of n terms in some order, beside the largest sum.
    bound = 3e-5 * max(1.0, expected.abs().max().item())
    wrong = [name for name, (_, result) in sides.items() if (result.double() - expected).abs().max().item() > bound]
    times = collections.defaultdict(list)
    for _ in range(bursts):
        for name, values in burst({name: replay for name, (replay, _) in sides.items()}, flush).items():
            times[name] += values
    moved = expected.numel() * 4 + sum(t.numel() * t.element_size() for t in case.inputs)
    return {"case": case.text, "floor_us": moved / BYTES_PER_US, "wrong": wrong, **{f"{name}_us": statistics.median(times[name]) for name in SIDES}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose text has one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/scatters_gpu.json"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    rows = []
    print("case | floor us | " + " | ".join(f"{name} us" for name in SIDES))
    for make in cases():
        case = make()
        if not any(word in case.text for word in options.only):
            continue
        rows.append(row := measure(case, options.bursts, flush))
        figures = " | ".join(f"{row[f'{name}_us']:.1f}" for name in SIDES)
        print(f"{row['case']} | {row['floor_us']:.1f} | {figures}{' WRONG ' + ', '.join(row['wrong']) if row['wrong'] else ''}", flush=True)
        document = {"date": datetime.date.today().isoformat(), "device": torch.cuda.get_device_name(), "rows": rows}
        options.output.write_text(json.dumps(document, indent=1))
    sys.exit(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    main()
