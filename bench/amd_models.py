"""Compiles the models of the zoo for AMD GPUs, without one: amd_models.py HEDDLE [NAME...] [--targets ARCHITECTURE...] [--precision P].

Prints a row for each model and architecture: kernels, those whose registers spill, the processor time of a compilation with an
empty cache, and that for an H200 by NVRTC. Exits with 1 if a model does not compile or a kernel spills."""

import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

SPILL_KEY = b".vgpr_spill_count"


def models_of(heddle):
    rows = subprocess.run([heddle, "zoo"], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    return [row.split()[0] for row in rows]


def number_after(data, at):
    """The unsigned number of MessagePack at an offset."""
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4}.get(data[at], 0)
    return int.from_bytes(data[at + 1:at + 1 + width], "big") if width else data[at]


def spills_of(plan):
    """The numbers of spilled registers of all kernels, from the metadata of the plan's code objects."""
    data = plan.read_bytes()
    return [number_after(data, match.end()) for match in re.finditer(re.escape(SPILL_KEY), data)]


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compiled(heddle, model, target, precision, folder):
    """Processor seconds, the plan's path, and what went wrong ("": nothing)."""
    plan = folder / "model.plan"
    begin = processor_seconds()
    # No GPU is asked: all targets are compiled for as if on another machine.
    result = subprocess.run([heddle, "compile", model, "--target", target, "--precision", precision, "-o", plan],
                            capture_output=True, text=True, env=os.environ | {"HEDDLE_CUDA_DRIVER": "", "HEDDLE_CACHE_DIR": str(folder / target)})
    wrong = "" if result.returncode == 0 else (result.stderr.strip().splitlines() or ["it failed"])[-1]
    return processor_seconds() - begin, plan, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--targets", nargs="+", default=["gfx90a", "gfx942"])
    parser.add_argument("--precision", default="f16")
    parser.add_argument("--zoo", nargs="*", default=[], help="more options of `heddle zoo`, such as width=256")
    arguments = parser.parse_args()
    options = [part for option in arguments.zoo for part in ("--" + option.split("=")[0], option.split("=")[1])]
    bad = 0
    print(f"{'model':18} {'target':8} {'kernels':>7} {'spilling':>8} {'seconds':>8} {'NVRTC':>8}", flush=True)
    for name in arguments.names or models_of(arguments.heddle):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            model = folder / "model.onnx"
            subprocess.run([arguments.heddle, "zoo", name, "-o", model, *options], capture_output=True, check=True)
            nvrtc, _, wrong = compiled(arguments.heddle, model, "cuda", arguments.precision, folder)
            reference = wrong or f"{nvrtc:8.1f}"
            for target in arguments.targets:
                seconds, plan, wrong = compiled(arguments.heddle, model, f"hip-{target}", arguments.precision, folder)
                spills = spills_of(plan) if not wrong else []
                spilling = sum(count > 0 for count in spills)
                bad += bool(wrong) or spilling > 0
                print(f"{name:18} {target:8} " + (wrong or f"{len(spills):7} {spilling:8} {seconds:8.1f} {reference}"), flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
