#!/usr/bin/env python3
"""One model in PyTorch for gpu_models.py: torch_worker.py MODEL[:BATCH[:SEQ]] PRECISION [--max-autotune].

Says on stdout what it prepared, then answers each line on stdin with the median ms of a burst per mode. Each mode is one
CUDA graph: eager captured by hand, torch.compile by itself."""

import json
import statistics
import sys
import time

import torch

import torch_models


def captured(call):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def compiled(call, mode):
    torch._dynamo.reset()
    result = torch.compile(call, mode=mode, dynamic=False)
    for _ in range(3):
        result()
    torch.cuda.synchronize()
    return result


def burst(call, runs=20):
    for _ in range(3):
        call()
    times = []
    for _ in range(runs):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def prepare(spec, precision, modes):
    name, *sizes = spec.split(":")
    model, inputs = torch_models.make(name, *map(int, sizes))
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    move = lambda t: (t.to(kind) if t.is_floating_point() else t).cuda()
    model, inputs = model.to(kind).cuda(), tuple(move(t) for t in inputs)
    if any(t.dim() == 4 for t in inputs):
        model = model.to(memory_format=torch.channels_last)
        inputs = tuple(t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t for t in inputs)
    calls, ready = {}, {"parameters": sum(p.numel() for p in model.parameters()), "compile_s": {}}
    for mode in modes:
        start = time.time()
        try:
            call = lambda: model(*inputs)
            calls[mode] = captured(call) if mode == "eager_graph" else compiled(call, mode.replace("_", "-"))
            ready["compile_s"][mode] = round(time.time() - start, 1)
        except Exception as error:  # a mode that PyTorch cannot do is a result, too
            ready[f"{mode}_failure"] = str(error)[:200]
    return calls, ready


def main():
    modes = ["eager_graph", "reduce_overhead"] + (["max_autotune"] if "--max-autotune" in sys.argv else [])
    with torch.inference_mode():
        try:
            calls, ready = prepare(sys.argv[1], sys.argv[2], modes)
        except Exception as error:
            calls, ready = {}, {"failure": repr(error)[:300]}
        print(json.dumps(ready), flush=True)
        for _ in sys.stdin:
            print(json.dumps({mode: round(burst(call), 4) for mode, call in calls.items()}), flush=True)


if __name__ == "__main__":
    main()
