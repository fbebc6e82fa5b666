#!/usr/bin/env python3
"""Kernels of the tile language on a GPU, beside Triton where it is installed, and beside PyTorch.

usage: tile_language.py [--cases add,softmax,...] > tile_language.jsonl

One JSON line a case: microseconds of the best configuration of each (alternating, L2 flushed, medians), whether the result
is right, the configuration, and of ours registers, spilled bytes and seconds of compiling. Needs PyTorch.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time

import torch

DEVICE = "cuda"
HERE = pathlib.Path(__file__).resolve().parent
FLUSH = None


def kernels(backend):
    """The kernels for a backend; None where it is not installed."""
    os.environ["TILE_BACKEND"] = backend
    spec = importlib.util.spec_from_file_location(f"tile_kernels_{backend}", HERE / "tile_kernels.py")
    module = importlib.util.module_from_spec(spec)
    try:
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module


def times(functions, count=20):
    """Medians in microseconds, one after the other in turn."""
    found = [[] for _ in functions]
    for f in functions:
        f()
        f()
    for _ in range(count):
        for f, events in zip(functions, found):
            FLUSH.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            f()
            end.record()
            events.append((begin, end))
    torch.cuda.synchronize()
    return [round(statistics.median(a.elapsed_time(b) for a, b in events) * 1e3, 2) for events in found]


def graphed(f):
    """f as a CUDA graph, so that the host's part is not measured; f itself where it cannot be captured."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        f()
        f()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            f()
    except RuntimeError:
        torch.cuda.synchronize()
        return f
    return graph.replay


def best(launch, configurations):
    """The fastest configuration and its launch; configurations that do not compile are passed over."""
    found, errors = [], []
    for c in configurations:
        try:
            run = graphed(lambda c=c: launch(**c))
            found.append((times([run], 5)[0], c, run))
        except Exception as error:  # a configuration that is too large, or a fault to be read in the output
            errors.append(f"{c}: {type(error).__name__}: {error}"[:300])
    if not found:
        return None, None, errors
    _, c, run = min(found, key=lambda x: x[0])
    return c, run, errors


def case(name, launches, rival, configurations, check):
    """`launches`: a function of a kernel's module and a configuration; `check()`: the error of the last result."""
    line = {"case": name}
    runs = {}
    for backend, module in MODULES.items():
        if module is None:
            continue
        begin = time.perf_counter()
        c, run, errors = best(lambda module=module, **c: launches(module, **c), configurations)
        line[f"{backend}_tuning_s"] = round(time.perf_counter() - begin, 1)
        if errors:
            line[f"{backend}_errors"] = errors
        if run is None:
            continue
        launches(module, **c)
        torch.cuda.synchronize()
        line[f"{backend}_error"], line[f"{backend}_config"] = check(), c
        runs[backend] = run
    runs["rival"] = graphed(rival)
    for backend, us in zip(runs, times(list(runs.values()))):
        line[f"{backend}_us"] = us
    print(json.dumps(line), flush=True)


def add():
    n = 1 << 27
    x, y = torch.randn(n, device=DEVICE), torch.randn(n, device=DEVICE)
    z = torch.empty_like(x)
    case("add f32 2^27", lambda m, B, **w: m.add[(m.triton.cdiv(n, B),)](x, y, z, n, B=B, **w), lambda: torch.add(x, y),
         [dict(B=b, num_warps=w) for b, w in ((1024, 4), (2048, 8), (4096, 8))], lambda: float((z - x - y).abs().max()))


ROWS = ((4096, 1024), (8192, 4096), (4096, 32000))


def wide(n):
    b = 1 << (n - 1).bit_length()
    return [dict(B=b, num_warps=w) for w in (4, 8, 16, 32) if b // (32 * w) <= 64]


def softmax():
    for m, n in ROWS:
        x = torch.randn(m, n, device=DEVICE, dtype=torch.float16)
        y = torch.empty_like(x)
        case(f"softmax f16 {m}x{n}", lambda k, **c: k.softmax[(m,)](x, y, n, **c), lambda: torch.softmax(x, 1), wide(n),
             lambda: float((y.float() - torch.softmax(x.float(), 1)).abs().max()))


def layer_norm():
    for m, n in ROWS:
        x = torch.randn(m, n, device=DEVICE, dtype=torch.float16)
        w, b = torch.randn(n, device=DEVICE, dtype=torch.float16), torch.randn(n, device=DEVICE, dtype=torch.float16)
        y = torch.empty_like(x)
        norm = torch.nn.functional.layer_norm
        case(f"layer norm f16 {m}x{n}", lambda k, **c: k.layer_norm[(m,)](x, w, b, y, n, 1e-5, **c), lambda: norm(x, (n,), w, b),
             wide(n), lambda: float((y.float() - norm(x.float(), (n,), w.float(), b.float())).abs().max()))


TILES = ((128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (64, 256, 64, 8, 4), (128, 128, 32, 4, 4), (64, 64, 64, 4, 5),
         (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (32, 64, 128, 4, 4), (16, 128, 128, 4, 4))
PRODUCTS = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (1280, 3072, 768), (16, 4096, 4096),
            (6304, 3072, 768), (1201, 2737, 3963))


def matmul():
    for m, n, k in PRODUCTS:
        a, b = torch.randn(m, k, device=DEVICE, dtype=torch.float16), torch.randn(n, k, device=DEVICE, dtype=torch.float16)
        c = torch.empty(m, n, device=DEVICE, dtype=torch.float16)
        configurations = [dict(BM=x, BN=y, BK=z, G=8, num_warps=w, num_stages=s) for x, y, z, w, s in TILES]
        case(f"matmul f16 {m}x{n}x{k}",
             lambda t, BM, BN, **o: t.matmul[(t.triton.cdiv(m, BM) * t.triton.cdiv(n, BN),)](a, b, c, m, n, k, BM=BM, BN=BN, **o),
             lambda: torch.matmul(a, b.T), configurations,
             lambda: float((c.float() - torch.matmul(a, b.T).float()).abs().max() / k**0.5))


def attention():
    tiles = ((128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3), (128, 32, 4, 4))
    for batch, heads, s, d in ((4, 16, 4096, 128), (4, 32, 4096, 64)):
        q, k, v = (torch.randn(batch, heads, s, d, device=DEVICE, dtype=torch.float16) for _ in range(3))
        o = torch.empty_like(q)
        exact = torch.nn.functional.scaled_dot_product_attention
        for causal in (False, True):
            case(f"attention f16 {batch}x{heads}x{s}x{d}{' causal' if causal else ''}",
                 lambda t, BM, BN, **w: t.attention[(s // BM, batch * heads)](q, k, v, o, d**-0.5, s, D=d, CAUSAL=causal, BM=BM, BN=BN, **w),
                 lambda: exact(q, k, v, is_causal=causal), [dict(BM=m, BN=n, num_warps=w, num_stages=g) for m, n, w, g in tiles],
                 lambda: float((o.float() - exact(q, k, v, is_causal=causal).float()).abs().max()))


CASES = {f.__name__: f for f in (add, softmax, layer_norm, matmul, attention)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    chosen = parser.parse_args().cases.split(",")
    FLUSH = torch.empty(256 << 18, dtype=torch.int32, device=DEVICE)
    torch.manual_seed(0)
    MODULES = {backend: kernels(backend) for backend in ("heddle", "triton")}
    for chosen_case in chosen:
        CASES[chosen_case]()
