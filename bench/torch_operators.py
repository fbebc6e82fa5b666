#!/usr/bin/env python3
"""What a call of an operator of heddle.ops costs the host, beside PyTorch's own: tensors of some hundred elements on the CPU, one thread.

usage: torch_operators.py [--rounds 15] [--calls 1000]

Microseconds of processor time per call, the median of rounds that alternate between the two: without gradients, with a
gradient recorded, and with it computed by torch.autograd.grad(). `dispatched` is the operator through PyTorch's dispatcher,
as under modes and in graphs of other backends.
"""
import argparse
import statistics
import time

import torch
from torch.nn import functional as F

import heddle

ops = heddle.ops


def cases():
    """By name: Heddle's operator, what PyTorch's dispatcher calls, PyTorch's operator, and the tensors."""
    of = torch.ops.heddle
    x, w, b = torch.randn(4, 16), torch.randn(16), torch.randn(16)
    image, filters, bias = torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3), torch.randn(4)
    q, k, v = torch.randn(1, 4, 6, 8), torch.randn(1, 4, 6, 8), torch.randn(1, 4, 6, 8)
    return {
        "layer_norm": (lambda x, w, b: ops.layer_norm(x, 16, w, b), lambda x, w, b: of.layer_norm(x, [16], w, b, 1e-5),
                       lambda x, w, b: F.layer_norm(x, (16,), w, b), (x, w, b)),
        "rms_norm": (lambda x, w: ops.rms_norm(x, 16, w), lambda x, w: of.rms_norm(x, [16], w, 1e-6), lambda x, w: F.rms_norm(x, (16,), w), (x, w)),
        "swiglu": (ops.swiglu, of.swiglu, lambda x, y: F.silu(x) * y, (x, torch.randn(4, 16))),
        "convolution": (ops.convolution, lambda x, w, b: of.convolution(x, w, b, [1, 1], [0, 0], [1, 1], 1), F.conv2d, (image, filters, bias)),
        "scaled_dot_product_attention": (ops.scaled_dot_product_attention, lambda q, k, v: of.scaled_dot_product_attention_kept(
            q, k, v, None, False, None)[0], F.scaled_dot_product_attention, (q, k, v)),
    }


def microseconds(functions, rounds: int, calls: int):
    """Of each function, the median of rounds."""
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, times):
            start = time.process_time()
            for _ in range(calls):
                function()
            found.append((time.process_time() - start) / calls * 1e6)
    return [statistics.median(found) for found in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| operator | mode | Heddle | dispatched | PyTorch |\n|---|---|---|---|---|")
    for name, (*functions, tensors) in cases().items():
        leaves = [one.clone().requires_grad_() for one in tensors]
        gradient = torch.randn_like(functions[0](*tensors))

        def differentiated(function):
            return lambda: torch.autograd.grad(function(*leaves), leaves, gradient)
        for mode, calls in (("no gradient", [lambda f=f: f(*tensors) for f in functions]), ("recorded", [lambda f=f: f(*leaves) for f in functions]),
                            ("with gradients", [differentiated(f) for f in functions])):
            print(f"| `{name}` | {mode} | " + " | ".join(f"{one:.1f}" for one in microseconds(calls, options.rounds, options.calls)) + " |", flush=True)


if __name__ == "__main__":
    main()
