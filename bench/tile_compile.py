#!/usr/bin/env python3
"""Seconds until a matrix product of the tile language first runs, and until twelve configurations of it are tuned, with an empty cache.

On a GPU with tensors of PyTorch. Without one nothing is timed by tuning: the configurations are compiled for sm_90a, for which
NVRTC alone is needed.

usage: PYTHONPATH=build/release/python build/venv/bin/python bench/tile_compile.py
"""
import json
import os
import sys
import tempfile
import time

TILES = ((128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 128, 64, 8, 4), (64, 256, 64, 8, 4),
         (128, 128, 32, 4, 4), (64, 64, 64, 4, 5), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (32, 64, 128, 4, 4), (16, 128, 128, 4, 4))
SIZE = 4096


def tell(what, seconds, **more):
    print(json.dumps({"what": what, "seconds": round(seconds, 2), "processor_seconds": round(time.process_time(), 2),
                      "cores": len(os.sched_getaffinity(0)), **more}), flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEDDLE_CACHE_DIR"] = folder
        begin = time.perf_counter()
        import heddle.tile as triton
        import tile_kernels

        tell("import heddle.tile", time.perf_counter() - begin)
        configs = [triton.Config({"BM": m, "BN": n, "BK": k, "G": 8}, num_warps=warps, num_stages=stages) for m, n, k, warps, stages in TILES]
        try:
            import torch
        except ImportError:
            torch = None
        if torch is None or not torch.cuda.is_available():
            from heddle.tile.runtime.kernel import Options
            import concurrent.futures

            kernel = tile_kernels.matmul
            known = [("pointer", "*fp16", True)] * 3 + [("number", "i32", True)] * 3
            begin = time.perf_counter()
            made = [kernel.instance((*known, *(("known", value) for value in config.kwargs.values())),
                                    Options(num_warps=config.num_warps, num_stages=config.num_stages), "cuda-sm_90a") for config in configs]
            tell("twelve configurations in the typed form", time.perf_counter() - begin)
            begin = time.perf_counter()
            made[0].load()
            tell("the first compilation", time.perf_counter() - begin)
            begin = time.perf_counter()
            with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
                list(threads.map(lambda kernel: kernel.load(), made[1:]))
            tell("eleven more compilations", time.perf_counter() - begin)
            return 0
        a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty_like(a)
        torch.cuda.synchronize()
        grid = lambda words: (triton.cdiv(SIZE, words["BM"]) * triton.cdiv(SIZE, words["BN"]),)  # noqa: E731
        begin = time.perf_counter()
        tile_kernels.matmul[grid](a, b, c, SIZE - 16, SIZE, SIZE, **configs[0].all_kwargs())
        torch.cuda.synchronize()
        tell("the first launch", time.perf_counter() - begin)
        os.environ["HEDDLE_CACHE_DIR"] = os.path.join(folder, "empty")
        tile_kernels.matmul.instances.clear()
        tuned = triton.autotune(configs, key=["M", "N", "K"])(tile_kernels.matmul)
        begin = time.perf_counter()
        tuned[grid](a, b, c, SIZE, SIZE, SIZE)
        torch.cuda.synchronize()
        tell("the first tuned launch", time.perf_counter() - begin, best=str(tuned.best_config), refused=len(tuned.failures))
        begin = time.perf_counter()
        again = triton.autotune(configs, key=["M", "N", "K"])(tile_kernels.matmul)
        again[grid](a, b, c, SIZE, SIZE, SIZE)
        torch.cuda.synchronize()
        tell("the same from the tuning database", time.perf_counter() - begin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
