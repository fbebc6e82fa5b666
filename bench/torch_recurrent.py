#!/usr/bin/env python3
"""What LSTM and GRU take in PyTorch, by torch.nn and by heddle.torch.prepare(): forward alone, and forward with backward.

usage: torch_recurrent.py [--rounds 15] [--dtype bfloat16] [--only GRU]

On a GPU, if there is one; on a CPU in float32. Milliseconds, medians of rounds that alternate between both, and beside them the processor
time of the host. The modules run without torch.compile. Cases are layers of DIEN and of a CRNN, and others around them.
"""
import argparse
import copy
import statistics
import time

import torch

import heddle.torch

# module, inputs, units, layers, both directions, sequences, steps
CASES = (("GRU", 64, 64, 1, False, 1024, 100), ("LSTM", 512, 256, 2, True, 64, 64), ("LSTM", 128, 128, 1, False, 64, 50),
         ("GRU", 128, 200, 1, True, 64, 50), ("LSTM", 256, 256, 1, False, 512, 64))


def run(module: torch.nn.Module, x: torch.Tensor, trains: bool) -> None:
    with torch.set_grad_enabled(trains):
        y = module(x)[0]
    if trains:
        y.sum().backward()


def measured(modules: dict, x: torch.Tensor, trains: bool, rounds: int, wait) -> dict:
    times = {name: [] for name in modules}
    for round in range(rounds + 3):
        for name, module in modules.items():
            wait()
            wall, own = time.perf_counter(), time.process_time()
            run(module, x, trains)
            wait()
            if round >= 3:
                times[name].append((time.perf_counter() - wall, time.process_time() - own))
    return {name: [statistics.median(column) * 1e3 for column in zip(*values)] for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    device, wait = ("cuda", torch.cuda.synchronize) if on_gpu else ("cpu", lambda: None)
    dtype = getattr(torch, options.dtype) if on_gpu else torch.float32
    for kind, inputs, units, layers, both, sequences, steps in CASES:
        if options.only not in kind:
            continue
        module = getattr(torch.nn, kind)(inputs, units, layers, batch_first=True, bidirectional=both, device=device, dtype=dtype)
        modules = {"torch": module, "heddle": heddle.torch.prepare(copy.deepcopy(module))}
        x = torch.randn(sequences, steps, inputs, device=device, dtype=dtype)
        print(f"{kind} {inputs} -> {units}, {layers} layers, {'two directions' if both else 'one direction'}, {sequences} x {steps}, {dtype}")
        for trains in (False, True):
            for name, (wall, own) in measured(modules, x, trains, options.rounds, wait).items():
                print(f"  {'forward, backward' if trains else 'forward':18} {name:7} {wall:9.2f} ms  {own:9.2f} ms of the host", flush=True)


if __name__ == "__main__":
    main()
