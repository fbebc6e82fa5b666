#!/usr/bin/env python3
"""Seconds to the first call of a compiled module in a first and in a second process, and where they go: Dynamo, AOTAutograd, Heddle.

usage: torch_start.py [--models resnet18 bert-base] [--device cpu] [--training]

Each process is new; the first has an empty cache of Heddle's and of PyTorch's. Needs torchvision and transformers. The import
of torch is not counted. `call`: the first call (with --training a step with its backward pass); `Heddle`: what the compilers of
the backend take in it; `AOTAutograd`: tracing and partitioning around them; `Dynamo`: the rest.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from unittest import mock


def made(name: str):
    import torch

    if name == "resnet18":
        import torchvision

        return torchvision.models.resnet18(), [torch.randn(1, 3, 224, 224)]
    from transformers import BertConfig, BertModel

    config = BertConfig() if name == "bert-base" else BertConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=2, intermediate_size=128)
    return BertModel(config, add_pooling_layer=False), [torch.randint(0, 30000, (1, 128))]


def first_call(name: str, device: str, training: bool) -> dict:
    """In the process that is measured."""
    import torch

    import heddle.torch
    from heddle.torch import backend, graph

    torch.manual_seed(0)
    module, inputs = made(name)
    module, inputs = module.to(device).train(training), [one.to(device) for one in inputs]
    spent = {"Heddle": 0.0, "backend": 0.0, "both": 0.0}

    entered = []

    def timed(function, key):
        def run(*arguments, **words):
            start, inner = time.perf_counter(), dict(spent)
            entered.append(key)
            try:
                return function(*arguments, **words)
            finally:
                entered.pop()
                spent[key] = inner[key] + time.perf_counter() - start
                if key == "Heddle" and "backend" in entered:
                    spent["both"] = inner["both"] + time.perf_counter() - start
        return run
    make_program = graph._Program
    with mock.patch.object(backend, "build_graph", timed(backend.build_graph, "Heddle")), \
            mock.patch.object(backend, "compile_graph", timed(backend.compile_graph, "backend")), \
            mock.patch.object(graph, "_Program", timed(make_program, "Heddle")):
        start = time.perf_counter()
        run = torch.compile(module, backend=heddle.torch.heddle_backend)
        with torch.set_grad_enabled(training):
            result = run(*inputs)
            if training:
                result = result if isinstance(result, torch.Tensor) else result[0]
                result.square().mean().backward()
        whole = time.perf_counter() - start
    return {"call": whole, "Heddle": spent["Heddle"], "AOTAutograd": spent["backend"] - spent["both"],
            "Dynamo": whole - spent["backend"] - spent["Heddle"] + spent["both"]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=["resnet18", "bert-base"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--in-process", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_process:
        print(json.dumps(first_call(options.in_process, options.device, options.training)))
        return
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "HEDDLE_CACHE_DIR": f"{folder}/heddle", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch"}
            command = [sys.executable, __file__, "--device", options.device, "--in-process", name, *["--training"] * options.training]
            for process in ("first", "second"):
                found = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
                print(f"{name:10} {process:6} process: " + ", ".join(f"{key} {value:.2f} s" for key, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
