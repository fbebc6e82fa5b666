#!/usr/bin/env python3
"""Joules of a run on an NVIDIA GPU: Heddle beside torch.compile's reduce-overhead, and what tuning by energy saves.

usage: energy_gpu.py [--heddle PATH] [--precision f16] [--seconds 5] [--turns 2] [--tune MODEL...] [--tune-seconds 60]
                     [--output FILE] [MODEL[:BATCH[:SEQ]]...]

MODEL is one of the zoo. Both sides prepare every model first; then one at a time runs a model over and over for --seconds,
in turns, and NVML's counter of the device's energy is read at its updates before and after. Inputs stay in the device's memory.
--tune runs `heddle tune --objective energy` for at most --tune-seconds a model: time and energy of each product with the
configuration that the cost model picks and with the one that takes the least energy. FILE gets both tables as JSON."""

import argparse
import concurrent.futures
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["resnet50:32", "bert-base:32:128", "vit-b16:32", "mobilenet-v2:32", "sd-unet:2"]


class Counter:
    """NVML's counter of the energy that the current CUDA device has taken."""

    def __init__(self):
        import torch
        self.nvml, self.handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.check(self.nvml.nvmlInit_v2())
        bus = torch.cuda.get_device_properties(0)
        address = f"{bus.pci_domain_id:08X}:{bus.pci_bus_id:02X}:{bus.pci_device_id:02X}.0".encode()
        self.check(self.nvml.nvmlDeviceGetHandleByPciBusId_v2(address, ctypes.byref(self.handle)))

    @staticmethod
    def check(status):
        if status != 0:
            raise RuntimeError(f"NVML's status is {status}")

    def joules(self):
        millijoules = ctypes.c_ulonglong()
        self.check(self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle, ctypes.byref(millijoules)))
        return millijoules.value * 1e-3


def measure(counter, run, many, seconds):
    """Joules of a run between two updates of the counter; run(n) ends after n runs. The device idles during a look at the
    counter, so there are none until `seconds` are over."""

    runs = 0

    def chunk():
        nonlocal runs
        run(many)
        runs += many

    def wait_for_update():
        before = now = counter.joules()
        while now == before:
            chunk()
            now = counter.joules()
        return now, time.perf_counter()

    first, begin = wait_for_update()
    runs = 0
    while time.perf_counter() - begin < seconds:
        chunk()
    last, end = wait_for_update()
    return {"joules": (last - first) / runs, "watts": (last - first) / (end - begin)}


def worker(spec, precision):
    """Answers each line on stdin (seconds) with the joules of a run of PyTorch's module."""
    import torch
    import torch_worker
    with torch.no_grad():
        calls, ready = torch_worker.prepare(spec, precision, ["reduce_overhead"])
        call, counter = calls["reduce_overhead"], Counter()

        def run(count):
            for _ in range(count):
                call()
            torch.cuda.synchronize()

        run(20)
        start = time.perf_counter()
        run(20)
        many = max(1, int(0.02 / ((time.perf_counter() - start) / 20)))
        print(json.dumps(ready), flush=True)
        for line in sys.stdin:
            print(json.dumps(measure(counter, run, many, float(line))), flush=True)


class Case:
    """A model: its plan, and the process that holds PyTorch's module."""

    def __init__(self, spec, options, folder):
        import gpu_models
        self.spec, self.options = spec, options
        case = gpu_models.Case(spec, types.SimpleNamespace(heddle=options.heddle, precision=options.precision), folder)
        command = [sys.executable, __file__, "--worker", spec, "--precision", options.precision]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        case.prepare()
        if "failure" in case.row:
            raise RuntimeError(f"{spec}: {case.row['failure']}")
        self.plan = case.plan
        if not self.child.stdout.readline():
            raise RuntimeError(f"{spec}: PyTorch's worker died")
        self.rows = {"heddle": [], "torch": []}

    def turn(self):
        command = [self.options.heddle, "bench", self.plan, "--target", "cuda", "--seconds", self.options.seconds, "--json"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        if "joules" not in told["energy"]:
            raise RuntimeError(told["energy"]["why_not"])
        self.rows["heddle"].append({"joules": told["energy"]["joules"], "watts": told["energy"]["watts"]})
        self.child.stdin.write(f"{self.options.seconds}\n")
        self.child.stdin.flush()
        self.rows["torch"].append(json.loads(self.child.stdout.readline()))

    def row(self):
        """Means of the turns; the spread is the largest difference between two turns of a side over its mean."""
        row = {"model": self.spec, "spread": 0.0}
        for side, turns in self.rows.items():
            joules = [turn["joules"] for turn in turns]
            row[side] = {key: statistics.fmean(turn[key] for turn in turns) for key in ("joules", "watts")}
            row["spread"] = max(row["spread"], (max(joules) - min(joules)) / row[side]["joules"])
        row["over_torch"] = row["torch"]["joules"] / row["heddle"]["joules"]
        print(f"{self.spec:20} Heddle {row['heddle']['joules'] * 1e3:8.1f} mJ, PyTorch {row['torch']['joules'] * 1e3:8.1f} mJ, "
              f"{row['over_torch']:.2f} times, spread {row['spread']:.1%}", flush=True)
        return row


def tuned(spec, options, folder):
    """A model's products, each with time and energy of the cost model's pick and of the winner by energy."""
    import gpu_models
    name, batch, seq = gpu_models.parse(spec)
    path = pathlib.Path(folder) / f"tune_{name}.onnx"
    command = [options.heddle, "zoo", name, "--batch", str(batch), "-o", path] + (["--seq", str(seq)] if seq else [])
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    command = [options.heddle, "tune", path, "--target", "cuda", "--precision", options.precision, "--objective", "energy", "--seconds",
               options.tune_seconds, "--json"]
    told = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)
    keys = ("label", "uses", "candidates", "pick", "winner", "pick_us", "winner_us", "pick_uj", "winner_uj")
    problems = [{key: problem[key] for key in keys} for problem in told["problems"] if problem["winner_uj"]]
    print(f"{spec}: {len(problems)} of {len(told['problems'])} products in {told['seconds']:.0f} s: "
          f"{told['pick_uj'] * 1e-3:.2f} -> {told['winner_uj'] * 1e-3:.2f} mJ, "
          f"{told['pick_us']:.0f} -> {told['winner_us']:.0f} us", flush=True)
    return {"model": spec, "seconds": told["seconds"], "problems": problems, **{key: told[key] for key in ("pick_us", "winner_us", "pick_uj", "winner_uj")}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL[:BATCH[:SEQ]]", help=f"default: {' '.join(MODELS)}, none with --tune")
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle", type=pathlib.Path)
    parser.add_argument("--precision", default="f16")
    parser.add_argument("--seconds", type=float, default=5, help="of each figure")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--tune", nargs="+", default=[], metavar="MODEL[:BATCH[:SEQ]]")
    parser.add_argument("--tune-seconds", type=float, default=60)
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--worker", metavar="MODEL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker, options.precision)
    try:
        run(options)
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr.strip() or str(error))
    except RuntimeError as error:
        sys.exit(str(error))
    return 0


def run(options):
    """Measures and prints; writes the file after each table, so that what was measured survives a time limit."""
    models = options.models or ([] if options.tune else MODELS)
    result = {"kind": "gpu_energy", "precision": options.precision, "seconds": options.seconds, "turns": options.turns, "rows": [], "tuned": []}

    def write():
        if options.output:
            options.output.write_text(json.dumps(result, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with concurrent.futures.ThreadPoolExecutor(max(1, len(models))) as pool:
            cases = list(pool.map(lambda spec: Case(spec, options, folder), models))
        for _ in range(options.turns):
            for case in cases:
                case.turn()
        result["rows"] = [case.row() for case in cases]
        write()
        for case in cases:
            case.child.stdin.close()
            case.child.wait()
        for spec in options.tune:
            result["tuned"].append(tuned(spec, options, folder))
            write()


if __name__ == "__main__":
    sys.exit(main())
