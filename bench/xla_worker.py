#!/usr/bin/env python3
"""One model in XLA for gpu_models.py: xla_worker.py MODEL[:BATCH[:SEQ]] PRECISION.

Says on stdout what it prepared, then answers each line on stdin (seconds) with the ms of a run: calls follow each other
without waiting, so what the host does for one is hidden behind the one before where the device is slower. Of three
bursts the fastest."""

import json
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several workers share the device

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import xla_models  # noqa: E402


def burst(call, seconds):
    def timed(runs):
        start = time.perf_counter()
        for _ in range(runs):
            result = call()
        jax.block_until_ready(result)
        return (time.perf_counter() - start) / runs

    timed(3)
    runs = min(1000, max(5, int(seconds / 3 / timed(1))))
    return min(timed(runs) for _ in range(3)) * 1e3


def prepare(spec, precision):
    name, *sizes = spec.split(":")
    if name not in xla_models.MODELS:
        return None, {"failure": "not among the models in JAX"}
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if precision == "tf32" else "highest")
    kind = {"f16": jnp.float16, "bf16": jnp.bfloat16}.get(precision, jnp.float32)
    function, parameters, inputs = xla_models.make(name, *map(int, sizes))
    move = lambda x: jnp.asarray(x, kind if x.dtype.kind == "f" else None)
    parameters, inputs = {key: move(x) for key, x in parameters.items()}, [move(x) for x in inputs]
    start = time.time()
    compiled = jax.jit(function).lower(parameters, inputs).compile()
    jax.block_until_ready(compiled(parameters, inputs))
    ready = {"version": jax.__version__, "parameters": sum(x.size for x in parameters.values()),
             "compile_s": round(time.time() - start, 1)}
    return lambda: compiled(parameters, inputs), ready


def main():
    try:
        call, ready = prepare(*sys.argv[1:3])
    except Exception as error:  # what a rival cannot do is a result, too
        call, ready = None, {"failure": repr(error)[:300]}
    print(json.dumps(ready), flush=True)
    for line in sys.stdin:
        print(json.dumps({"xla": round(burst(call, float(line)), 4)} if call else {}), flush=True)


if __name__ == "__main__":
    main()
