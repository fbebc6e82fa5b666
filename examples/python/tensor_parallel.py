#!/usr/bin/env python3
"""A gated layer of a language model whose matrices are divided among processes, trained by torch.compile(backend="heddle").

usage: torchrun --standalone --nproc-per-node 2 tensor_parallel.py [--width 256] [--tokens 128]

Each process has some columns of the first two matrices and the same rows of the last one. PyTorch's parallelize_module puts a sum over
the processes behind the last matrix, and behind the gradient of the input. These sums are operators that PyTorch runs between the parts
that Heddle compiles: by NCCL on GPUs, by gloo on CPUs. The program compares the gradients with those of the whole layer; the exit
status is 1 if they differ. It prints the time of a step and the time of the two sums alone. The share of the sums is the most that
products which overlap with their sums could gain."""

import argparse
import os
import statistics
import sys
import time

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

import heddle.torch

MOST_OFF = 1e-4  # of gradients, relative: sums are added in another order


class Gated(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.RMSNorm(width)
        self.gate, self.up = torch.nn.Linear(width, 4 * width, bias=False), torch.nn.Linear(width, 4 * width, bias=False)
        self.down = torch.nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        x = self.norm(x)
        return self.down(F.silu(self.gate(x)) * self.up(x))


def layer(width, device):
    torch.manual_seed(0)
    return Gated(width).to(device)


def divided(module, mesh):
    return parallelize_module(module, mesh, {"gate": ColwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()})


def take_step(run, x):
    """The gradients of the input and, in the module, of its parameters."""
    x = x.detach().requires_grad_()
    run(x).square().mean().backward()
    return x.grad


def largest_error(module, whole):
    """Of the gradients, relative to the largest gradient of the parameter."""
    errors = []
    for parameter, wanted in zip(module.parameters(), whole.parameters()):
        gradient = parameter.grad.full_tensor() if hasattr(parameter.grad, "full_tensor") else parameter.grad
        errors.append(((gradient - wanted.grad).abs().max() / wanted.grad.abs().max()).item())
    return max(errors)


def train(mesh, width, tokens, **compile_options):
    """(the compiled layer as a function that takes a step, the largest error of its gradients)."""
    device = torch.device(mesh.device_type, torch.cuda.current_device() if mesh.device_type == "cuda" else None)
    whole, module = layer(width, device), divided(layer(width, device), mesh)
    x = torch.randn(tokens, width, device=device)
    run = torch.compile(module, backend=heddle.torch.heddle_backend, **compile_options)
    expected, found = take_step(whole, x), take_step(run, x)
    error = max(largest_error(module, whole), ((found - expected).abs().max() / expected.abs().max()).item())
    return lambda: take_step(run, x), error


def milliseconds(call, device_type, times=20):
    wait = torch.cuda.synchronize if device_type == "cuda" else lambda: None
    found = []
    for _ in range(times):
        torch.distributed.barrier()
        wait()
        start = time.perf_counter()
        call()
        wait()
        found.append(1e3 * (time.perf_counter() - start))
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=128)
    options = parser.parse_args()
    device_type = "cuda" if torch.cuda.is_available() else "cpu"
    if device_type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl" if device_type == "cuda" else "gloo")
    mesh = init_device_mesh(device_type, (torch.distributed.get_world_size(),))
    step, error = train(mesh, options.width, options.tokens)
    step()
    buffer = torch.zeros(options.tokens, options.width, device=device_type)
    taken = milliseconds(step, device_type)
    of_sums = 2 * milliseconds(lambda: torch.distributed.all_reduce(buffer), device_type)
    if torch.distributed.get_rank() == 0:
        print(f"{mesh.size()} processes, {device_type}: gradients within {error:.1e} of those of one process")
        print(f"a step {taken:.2f} ms, its two sums {of_sums:.2f} ms: {of_sums / taken:.0%}")
    torch.distributed.destroy_process_group()
    return 0 if error <= MOST_OFF else 1


if __name__ == "__main__":
    sys.exit(main())
