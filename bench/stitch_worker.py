#!/usr/bin/env python3
"""Cases of the stitch suite in torch.compile or XLA for stitch_gpu.py and rows_gpu.py.

usage: stitch_worker.py CASE[,CASE...] TYPE torch|eager|xla

Says on stdout what it prepared, a line for each case, then answers each line on stdin (a number of runs and, of several
cases, which) with medians in microseconds. torch and
eager: a CUDA graph, the L2 overwritten before each run, by events; empty_us is a graph whose kernel writes four
bytes, the same way. Lines that a kernel's loads ask the L2 to keep (evict_last, which torch.compile gives to some) would
outlast what is overwritten: they are made ordinary ones first.
xla: the time between the beginnings of runs that are dispatched one after the other, caches warm."""

import ctypes
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "stitch"))
import make_cases  # noqa: E402

FLUSH = 256 << 20
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # many workers prepare at the same time


def fig7(np, x, p, q):
    a = x + p
    r = a.sum(-1)[..., None]
    m = a / r * (abs(r) + 1) ** 1.7
    return m, (m * q).sum(-1)


def normalised(np, x, eps=1e-5):
    centred = x - x.mean(-1)[..., None]
    return centred * np.rsqrt((centred * centred).mean(-1)[..., None] + eps)


def layer_norms(np, x, r, g, b):
    h = np.gelu(normalised(np, x + r) * g + b)
    return normalised(np, h + x) * g + b


def layer_norm_gradient(np, dy, x, g):
    centred = x - x.mean(-1)[..., None]
    rs = np.rsqrt((centred * centred).mean(-1)[..., None] + 1e-5)
    xh, wdy = centred * rs, dy * g
    c1, c2 = (xh * wdy).mean(-1)[..., None], wdy.mean(-1)[..., None]
    return (wdy - xh * c1 - c2) * rs, (dy * xh).sum(0), dy.sum(0)


def batch_statistics(np, x, g, b):
    centred = x - x.mean(0)
    return np.relu(centred * np.rsqrt((centred * centred).mean(0) + 1e-5) * g + b)


def masked_softmax(np, s, m):
    return np.softmax(s * 0.125 + m)


def group_norm_silu(np, x, g, b):
    y = normalised(np, x.reshape(x.shape[0], 32, -1)).reshape(x.shape)
    y = y * g[:, None, None] + b[:, None, None]
    return y * np.sigmoid(y)


def group_norm_silu_torch(np, x, g, b):
    """The library's own layer where it has one."""
    return np.silu(np.group_norm(x, 32, g, b))


def dien_attention(np, q, k, v, m):
    a = np.softmax(np.sigmoid((q[:, None] * k).sum(-1)) * m)
    z = (a[..., None] * v).sum(1)
    return z, np.concat([q, z, q * z])


def adam(np, *tensors):
    outputs = []
    for i in range(0, len(tensors), 4):
        p, g, m, v = tensors[i : i + 4]
        m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
        outputs += [p - m * 1e-3 / (np.sqrt(v) + 1e-8), m, v]
    return tuple(outputs)


def shapes(name):
    graph = make_cases.build_case(name, "f32")
    return [(text[1 : text.index(":")], [int(n) for n in text[text.index("[") + 1 : -1].split(",")]) for text in graph.parameters]


def row_layer_norm(np, x, g, b):
    return normalised(np, x) * g + b


FUNCTIONS = {
    "softmax:": lambda np, x: np.softmax(x), "layer_norm:": row_layer_norm,
    "row_sum:": lambda np, x: x.sum(-1), "column_sum:": lambda np, x: x.sum(0),
    "fig7": fig7, "lnx2": layer_norms, "lnbwd": layer_norm_gradient, "bnstat": batch_statistics, "softmax": masked_softmax,
    "groupnorm": group_norm_silu, "dien": dien_attention, "adam": adam,
}


def function_of(name):
    return FUNCTIONS[name[: name.index(":") + 1] if ":" in name else name.split("_")[0]]


def prepare_torch(name, dtype, compiled):
    import torch
    import torch.nn.functional as F

    class Names:
        rsqrt, sqrt, sigmoid, relu, silu, group_norm = torch.rsqrt, torch.sqrt, torch.sigmoid, F.relu, F.silu, F.group_norm
        gelu = staticmethod(F.gelu)
        softmax = staticmethod(lambda x: torch.softmax(x, -1))
        concat = staticmethod(lambda parts: torch.cat(parts, -1))

    torch.manual_seed(0)
    kind = {"f32": torch.float32, "f16": torch.float16}[dtype]
    arguments = [torch.randn(*shape, device="cuda", dtype=kind) for _, shape in shapes(name)]
    if name.startswith("adam"):
        arguments = [abs(a) if i % 4 == 3 else a for i, a in enumerate(arguments)]
    function = group_norm_silu_torch if name.startswith("groupnorm") else function_of(name)
    layer = lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b)
    if name.startswith("layer_norm:"):
        function = lambda np, x, g, b: layer(x, g, b)
    if name.startswith("lnx2"):
        function = lambda np, x, r, g, b: layer(np.gelu(layer(x + r, g, b)) + x, g, b)
    call = lambda *values: function(Names, *values)
    start = time.time()
    if compiled:
        call = torch.compile(call, dynamic=False)
    with torch.no_grad():
        outputs = call(*arguments)
    ready = {"version": torch.__version__, "compile_s": round(time.time() - start, 1)}
    flush = torch.empty(FLUSH, dtype=torch.int8, device="cuda")
    word = torch.empty(1, dtype=torch.int32, device="cuda")

    # As gpu_worker does it: by the driver, with another word each time.
    driver = ctypes.CDLL("libcuda.so.1")
    overwrite = driver.cuMemsetD32Async
    overwrite.argtypes = ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p
    reset = driver.cuCtxResetPersistingL2Cache

    def captured(f):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(3):
                f()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            f()
        return graph

    def median(graph, runs):
        times = []
        for i in range(runs + 3):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            if reset() != 0:
                raise RuntimeError("cuCtxResetPersistingL2Cache failed")
            overwrite(flush.data_ptr(), i, FLUSH // 4, torch.cuda.current_stream().cuda_stream)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3)
        return statistics.median(times[3:])

    graph, empty = captured(lambda: call(*arguments)), captured(lambda: word.zero_())
    # A graph does not hold what it reads.
    keep = call, arguments
    return ready, lambda runs, _=keep: {"cold_us": median(graph, runs), "empty_us": median(empty, runs)}


def prepare_xla(name, dtype):
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp
    import numpy

    class Names:
        rsqrt, sqrt, sigmoid, relu = jax.lax.rsqrt, jnp.sqrt, jax.nn.sigmoid, jax.nn.relu
        gelu = staticmethod(lambda x: jax.nn.gelu(x, approximate=False))
        softmax = staticmethod(lambda x: jax.nn.softmax(x, -1))
        concat = staticmethod(lambda parts: jnp.concatenate(parts, -1))

    random = numpy.random.default_rng(0)
    kind = {"f32": jnp.float32, "f16": jnp.float16}[dtype]
    arguments = [jnp.asarray(random.standard_normal(shape, dtype=numpy.float32), dtype=kind) for _, shape in shapes(name)]
    if name.startswith("adam"):
        arguments = [abs(a) if i % 4 == 3 else a for i, a in enumerate(arguments)]
    call = jax.jit(lambda *values: function_of(name)(Names, *values))
    start = time.time()
    jax.block_until_ready(call(*arguments))
    ready = {"version": jax.__version__, "compile_s": round(time.time() - start, 1)}

    def burst(runs):
        best = []
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(runs):
                result = call(*arguments)
            jax.block_until_ready(result)
            best.append((time.perf_counter() - start) / runs * 1e6)
        return {"dispatch_us": min(best)}

    return ready, burst


def main():
    names, dtype, rival = sys.argv[1:4]
    bursts = []
    for name in names.split(","):
        try:
            ready, burst = prepare_xla(name, dtype) if rival == "xla" else prepare_torch(name, dtype, rival == "torch")
        except Exception as error:  # what a rival cannot do is a result, too
            ready, burst = {"failure": repr(error)[:300]}, lambda runs: {}
        bursts.append(burst)
        print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        runs, which = (line.split() + ["0"])[:2]
        print(json.dumps({key: round(us, 3) for key, us in bursts[int(which)](int(runs)).items()}), flush=True)


if __name__ == "__main__":
    main()
