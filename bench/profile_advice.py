#!/usr/bin/env python3
"""Whether advice is worth what it says: programs of PyTorch that have a fault, and the same with the fault repaired.

Of each case the faulty program is profiled, and the gain that the advice of the rule estimates is set beside the gain that is
measured: the time of a step of the faulty program less that of the repaired one, both without a profiler, alternating, medians.
Looked at besides: that the repaired program has less of the same advice, or none.

usage: PYTHONPATH=build/release/python python3 bench/profile_advice.py [--only RULE...] [-o FILE]
Needs torch and a GPU. Exit status 1 where an advice did not come, came for the repaired program no less, or where its gain is off by more than a factor of 1.5.
"""
import argparse
import copy
import json
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

import heddle

from advice_rows import MOST_OFF, is_right, row_of

ROUNDS, STEPS = 5, 20
COMPILING = 2  # rounds and steps where each step compiles


def chain(layers=60, width=512, rows=64):
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)]).cuda().half(), torch.randn(rows, width).cuda().half()


def late_launches():
    """Kernels of few microseconds, each launched by itself; as one CUDA graph."""
    model, x = chain()
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            model(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)

    @torch.no_grad()
    def faulty():
        model(x)

    return faulty, graph.replay


def values_looked_at():
    """A value is taken from the GPU after each of ten parts of a step; at the end of the step alone."""
    parts = [chain(4, 4096, 1024) for _ in range(10)]

    @torch.no_grad()
    def step(each):
        for model, x in parts:
            for _ in range(2):
                last = model(x).mean()
                if each:
                    last.item()
        last.item()

    return lambda: step(True), lambda: step(False)


def cache_emptied():
    """The allocator's memory is given back to the driver in each step; it is kept."""
    x = torch.randn(64 << 20, device="cuda")

    def step(empty):
        for _ in range(4):
            y = x * 2 + 1
            del y
            if empty:
                torch.cuda.empty_cache()

    return lambda: step(True), lambda: step(False)


def batches_from_pageable_memory():
    """Batches are copied from pageable memory; from page-locked memory."""
    pageable = torch.randn(64, 3, 224, 224)
    pinned = pageable.pin_memory()
    weight = torch.randn(224, 224, device="cuda")

    def step(batch):
        return batch.to("cuda", non_blocking=True) @ weight

    return lambda: step(pageable), lambda: step(pinned)


def channels_first():
    """Convolutions in f16 on tensors with the channels first; with the channels last."""
    model = nn.Sequential(*[nn.Conv2d(64, 64, 3, padding=1) for _ in range(6)]).cuda().half()
    x = torch.randn(64, 64, 56, 56, device="cuda").half()
    last, x_last = copy.deepcopy(model).to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    @torch.no_grad()
    def step(net, value):
        return net(value)

    return lambda: step(model, x), lambda: step(last, x_last)


def elementwise_one_by_one():
    """An activation written out beside a product, operator by operator; compiled."""
    a, b = torch.randn(4096, 4096, device="cuda").half(), torch.randn(4096, 4096, device="cuda").half()

    def step(a, b):
        x = a @ b
        return x * (x + 3).clamp(0, 6) / 6

    compiled = torch.compile(step)
    return lambda: step(a, b), lambda: compiled(a, b)


def products_without_tensor_cores():
    """Products of f32 as PyTorch does them; with tf32 allowed."""
    a = torch.randn(4096, 4096, device="cuda")

    def step(precision):
        torch.set_float32_matmul_precision(precision)
        return a @ a

    return lambda: step("highest"), lambda: step("high")


def shapes_compiled_one_by_one():
    """torch.compile with a shape that is new in each step; with a dimension that it takes as a variable."""
    torch._dynamo.config.recompile_limit = 1000
    rows = iter(range(64, 1 << 20))

    def norm(x):
        return (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True) + 1e-5).rsqrt()

    static, dynamic = torch.compile(norm, dynamic=False), torch.compile(norm, dynamic=True)
    return (lambda: static(torch.randn(next(rows), 512, device="cuda"))), (lambda: dynamic(torch.randn(next(rows), 512, device="cuda")))


CASES = {"compilation": shapes_compiled_one_by_one, "waits_for_host": late_launches, "synchronisation": values_looked_at,
         "memory_churn": cache_emptied, "pageable_copy": batches_from_pageable_memory, "layout_and_casts": channels_first,
         "unfused_elementwise": elementwise_one_by_one, "low_precision_unused": products_without_tensor_cores}


def seconds(step, steps):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps


def advised(step, steps, rule):
    """Seconds of a step that the rule's advice estimates, all of its rows together, and the first evidence."""
    with heddle.profile() as recording:
        seconds(step, steps)
    advice = [a for a in recording.profile.data.get("advice", []) if a["rule"] == rule]
    return sum(a["gain_ns"] for a in advice) * 1e-9 / steps, advice[0]["evidence"] if advice else None


def measure(rule):
    rounds, steps = (COMPILING, COMPILING) if rule == "compilation" else (ROUNDS, STEPS)
    faulty, repaired = CASES[rule]()
    for step in faulty, repaired:
        seconds(step, steps)
    times = {"faulty": [], "repaired": []}
    for _ in range(rounds):
        times["faulty"].append(seconds(faulty, steps))
        times["repaired"].append(seconds(repaired, steps))
    before, after = (statistics.median(times[which]) for which in ("faulty", "repaired"))
    estimated, evidence = advised(faulty, steps, rule)
    left, _ = advised(repaired, steps, rule)
    return row_of(rule, before, after, estimated, left, evidence)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("-o", "--output")
    parser.add_argument("--worker", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(arguments.worker)))
        return 0
    rows = []
    for rule in arguments.only:  # a process each: what one has set, captured or compiled is no other's
        command = [sys.executable, __file__, "--worker", rule]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            print(f"{rule}: the process ended with status {result.returncode}", flush=True)
            rows.append({"rule": rule, "estimated, over the gain": None})
            continue
        rows.append(json.loads(result.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, file, indent=1)
    right = sum(map(is_right, rows))
    print(f"{right} of {len(rows)} estimates are within a factor of {MOST_OFF} of the gain, and less for the repaired program")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
