#!/usr/bin/env python3
"""One model in PyTorch for gpu_models.py: torch_worker.py MODEL[:BATCH[:SEQ]] PRECISION [--max-autotune] [--backend].

Says on stdout what it prepared, then answers each line on stdin (seconds) with the median ms of a burst per mode. Each mode
is one CUDA graph: eager and torch.compile(backend="heddle") captured by hand, torch.compile's own by itself."""

import json
import statistics
import sys
import time

import torch

import published_models
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


def compiled(model, inputs, mode):
    result = torch.compile(model, mode=mode, dynamic=False)
    for t in inputs:
        torch._dynamo.mark_static_address(t)  # else each run begins with copies of the inputs
    for _ in range(4):
        result(*inputs)
    torch.cuda.synchronize()
    return lambda: result(*inputs)


def through_backend(model, inputs, ready):
    """Also the seconds of its first call, the graphs, and the operators that fell back to PyTorch's."""
    import heddle.torch.backend
    torch._dynamo.reset()
    result = torch.compile(model, backend=heddle.torch.heddle_backend, dynamic=False)
    start = time.time()
    with heddle.torch.backend.observed() as graphs:
        result(*inputs)
    torch.cuda.synchronize()
    ready["backend"] = {"first_call_s": round(time.time() - start, 1), "graphs": len(graphs),
                        "fallbacks": [str(one.node.target) for graph in graphs for one in graph.division.fallbacks]}
    return captured(lambda: result(*inputs))


def burst(call, seconds):
    """Runs are queued: what the host does for one is hidden behind the one before, where the device is slower."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    start = time.time()
    call()
    torch.cuda.synchronize()
    runs = min(1000, max(5, int(seconds / (time.time() - start))))
    marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
    for before, after in marks:
        before.record()
        call()
        after.record()
    torch.cuda.synchronize()
    return statistics.median(before.elapsed_time(after) for before, after in marks)


def prepare(spec, precision, modes):
    if published_models.is_published(spec):
        model, inputs = published_models.make(spec)
    else:
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
            if mode == "eager_graph":
                calls[mode] = captured(lambda: model(*inputs))
            elif mode == "heddle_backend":
                calls[mode] = through_backend(model, inputs, ready)
            else:
                calls[mode] = compiled(model, inputs, mode.replace("_", "-"))
            ready["compile_s"][mode] = round(time.time() - start, 1)
        except Exception as error:  # a mode that PyTorch cannot do is a result, too
            ready[f"{mode}_failure"] = str(error)[:200]
    return calls, ready


def main():
    modes = ["eager_graph", "reduce_overhead"] + (["max_autotune"] if "--max-autotune" in sys.argv else [])
    modes += ["heddle_backend"] if "--backend" in sys.argv else []
    with torch.no_grad():
        try:
            calls, ready = prepare(sys.argv[1], sys.argv[2], modes)
        except Exception as error:
            calls, ready = {}, {"failure": repr(error)[:300]}
        print(json.dumps(ready), flush=True)
        for line in sys.stdin:
            print(json.dumps({mode: round(burst(call, float(line)), 4) for mode, call in calls.items()}), flush=True)


if __name__ == "__main__":
    main()
