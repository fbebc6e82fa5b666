"""Launches programs that wait for earlier ones again and again, and counts the right results: examples/python/tile/look_back.py.

usage: look_back.py COUNT [--target cpu|cuda] [--threads N] [--size TILES] [--seeds]

--threads sets how many threads run programs on a CPU, --seeds gives the emulated GPU another order of threads each time.
"""
import argparse
import os
import pathlib
import sys


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--target", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--size", type=int, default=64, help="tiles of the scan; the keys are as many as a tenth of its numbers")
    parser.add_argument("--block", type=int, default=4096)
    parser.add_argument("--seeds", action="store_true")
    return parser.parse_args()


def main():
    asked = arguments()
    if asked.threads:
        os.environ["HEDDLE_TILE_THREADS"] = str(asked.threads)
    import heddle
    import numpy as np
    folder = os.environ.get("HEDDLE_EXAMPLES", pathlib.Path(__file__).resolve().parents[2] / "examples" / "python")
    sys.path.insert(0, str(pathlib.Path(folder) / "tile"))
    import look_back
    from waiting import sums_by_flags

    put = np.asarray if asked.target == "cpu" else lambda array: heddle.tensor(array, device="cuda:0")
    get = np.asarray if asked.target == "cpu" else lambda array: array.numpy()
    random = np.random.default_rng(asked.count)
    right = {"flags": 0, "scan": 0, "scan by tickets": 0, "sort": 0}
    for number in range(asked.count):
        if asked.seeds:
            os.environ["HEDDLE_EMULATOR_SEED"] = str(number + 1)
        x = random.integers(-(1 << 31), 1 << 31, asked.size * asked.block - 5, np.int32)
        keys = random.integers(0, 1 << 32, x.size // 10, np.uint32)
        right["flags"] += bool((get(sums_by_flags(x, asked.block, put)) == np.cumsum(x, dtype=np.int32)).all())
        for name, tickets in (("scan", False), ("scan by tickets", True)):
            sums = get(look_back.scan(x, asked.block, tickets=tickets, put=put))
            right[name] += bool((sums == np.cumsum(x, dtype=np.int32)).all())
        right["sort"] += bool((get(look_back.sort(keys, put=put)) == np.sort(keys)).all())
    for name, count in right.items():
        print(f"{name}: {count} of {asked.count} right")
    if any(count < asked.count for count in right.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
