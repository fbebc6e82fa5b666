#!/usr/bin/env python3
"""What a step of AdamW over the parameters of BERT-base takes: heddle.torch.optim, PyTorch's fused and foreach kernels, and a copy.

usage: torch_optim.py [--rounds 30] [--layers 12] [--dtype float32]

On a GPU, if there is one. Times are medians of rounds that alternate between the optimisers. Bytes: each parameter, gradient and state is
read once, all but the gradients are written. `host`: the time until step() returns, with parameters of 4 elements each.
"""
import argparse
import statistics
import time

import torch

import heddle.torch


def shapes(layers: int) -> list:
    wide, deep = 768, 3072
    layer = [(wide, wide), (wide,)] * 4 + [(wide,)] * 4 + [(deep, wide), (deep,), (wide, deep), (wide,)]
    return [(30522, wide), (512, wide), (2, wide), (wide,), (wide,), *layer * layers, (wide, wide), (wide,), (wide,), (wide,), (30522,)]


def optimizers(parameters: list) -> dict:
    ours, theirs = heddle.torch.optim.AdamW, torch.optim.AdamW
    return {"heddle": ours(parameters), "heddle, max_norm": ours(parameters, max_norm=1.0), "torch, fused": theirs(parameters, fused=True),
            "torch, foreach": theirs(parameters, foreach=True)}


def parameters_of(extents: list, dtype: torch.dtype, device: str) -> list:
    parameters = [torch.nn.Parameter(torch.randn(one, device=device).to(dtype)) for one in extents]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return parameters


def medians(functions: dict, rounds: int, wait) -> dict:
    times = {name: [] for name in functions}
    for round in range(rounds + 3):
        for name, function in functions.items():
            wait()
            start = time.perf_counter()
            function()
            wait()
            if round >= 3:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    device, wait = ("cuda", torch.cuda.synchronize) if torch.cuda.is_available() else ("cpu", lambda: None)
    parameters = parameters_of(shapes(options.layers), getattr(torch, options.dtype), device)
    count, width = sum(one.numel() for one in parameters), parameters[0].element_size()
    source = torch.empty(count, device=device)
    target = torch.empty_like(source)
    functions = {name: one.step for name, one in optimizers(parameters).items()}
    functions["copy"] = lambda: target.copy_(source)
    bytes = {name: count * (3 * width + 16) for name in functions}
    bytes["heddle, max_norm"] += count * width
    bytes["torch, fused"] = bytes["torch, foreach"] = count * 7 * width
    bytes["copy"] = 8 * count
    print(f"{count / 1e6:.1f} million parameters of {options.dtype} in {len(parameters)} tensors, {device}")
    for name, seconds in medians(functions, options.rounds, wait).items():
        print(f"{name:18} {seconds * 1e3:9.3f} ms  {bytes[name] / seconds / 1e9:8.1f} GB/s")
    small = {name: one.step for name, one in optimizers(parameters_of([(4,)] * len(parameters), torch.float32, device)).items()}
    for name, function in small.items():
        function()
        wait()
        start = time.perf_counter()
        for _ in range(20):
            function()
        print(f"{name:18} {(time.perf_counter() - start) / 20 * 1e6:9.1f} us on the host")
        wait()


if __name__ == "__main__":
    main()
