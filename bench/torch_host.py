#!/usr/bin/env python3
"""What a call of a compiled graph costs the host beyond Dynamo's guards: graphs of torch.compile(backend="heddle") with 0, 50, 200 weights.

usage: torch_host.py [--weights 0 50 200] [--rounds 15] [--calls 2000]

Kernels work on 16 elements each. Microseconds of processor time per call, the median of rounds that alternate between the
graphs. `packed`: a graph without gradients, whose weights are constants that each call checks. `arguments`: the same with
options={"weights": "arguments"}. `training`: the forward graph, whose weights are arguments.
"""
import argparse
import statistics
import time

import torch

import heddle.torch
from heddle.torch.backend import observed


class Net(torch.nn.Module):
    def __init__(self, weights: int):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.randn(16) for _ in range(weights))

    def forward(self, x):
        for weight in self.weights:
            x = x * weight
        return x + 1


def graph_of(count: int, kind: str):
    torch._dynamo.reset()
    module, x = Net(count), torch.randn(16)
    options = {"weights": "arguments"} if kind == "arguments" else {}
    with observed(keep_arguments=True) as graphs, torch.set_grad_enabled(kind == "training"):
        torch.compile(module, backend=heddle.torch.heddle_backend, options=options)(x)
    graph = graphs[0]
    graph.keeps_arguments = False
    by_value = {one.detach().numpy().tobytes(): one for one in [*module.parameters(), x]}
    return graph, [by_value[one.numpy().tobytes()] for one in graph.last_arguments], module


def seconds(graph, arguments, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        graph([*arguments])
    return (time.process_time() - start) / calls


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", type=int, nargs="*", default=[0, 50, 200])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    graphs = {(count, kind): graph_of(count, kind) for count in options.weights for kind in ("packed", "arguments", "training")}
    times = {key: [] for key in graphs}
    for _ in range(options.rounds):
        for key, (graph, arguments, _) in graphs.items():
            with torch.no_grad():
                times[key].append(seconds(graph, arguments, options.calls))
    for (count, kind), measured in times.items():
        print(f"{count:4} weights, {kind:9}: {statistics.median(measured) * 1e6:6.2f} us a call")


if __name__ == "__main__":
    main()
