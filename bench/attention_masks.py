#!/usr/bin/env python3
"""Causal, windowed and prefix masks on a GPU in the forms that exporters write (tests/onnx/mask_forms.py), each beside
`heddle kernel attention` of the same shape: f16, one sequence, 16 heads of 128 elements.

usage: attention_masks.py [--heddle PATH] [--output FILE] [--keys N...] [--only FORM...] [--bursts N] [--jobs N]

The models are compiled first, several at a time. Then each burst times every form of a mask and the kernel in turn, with a cold
L2; a time is the median of its bursts. Exit status 1 where a form is slower than the kernel by over 3% and over 1 us."""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/onnx"))
import mask_forms  # noqa: E402

KERNELS = {"causal": ["--causal"], "window": ["--window", mask_forms.WINDOW], "prefix": ["--prefix", mask_forms.PREFIX]}


def heddle_json(options, *arguments):
    run = subprocess.run([options.heddle, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def compiled(options, form, keys, folder):
    model, plan = (folder / f"{form}_{keys}.{kind}" for kind in ("onnx", "plan"))
    graph = mask_forms.MaskGraph(keys)
    graph.save(model, mask_forms.FORMS[form](graph))
    run = subprocess.run([options.heddle, "compile", model, "--target", "cuda", "-o", plan], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{form}, {keys} keys: {run.stderr.strip()}")
    model.unlink()
    return plan


def kernel_us(options, kind, keys):
    shape = ["--m", keys, "--heads", mask_forms.HEADS, "--depth", mask_forms.DEPTH, *KERNELS[kind]]
    return heddle_json(options, "kernel", "attention", *shape, "--candidates", 4)["us"]


def plan_us(options, plan):
    return heddle_json(options, "bench", plan, "--target", "cuda", "--seconds", 0.05)["device_cold_p50_ms"] * 1e3


def rows(options, kind, keys, plans):
    kernel, forms = [], {form: [] for form in plans}
    for _ in range(options.bursts):
        kernel.append(kernel_us(options, kind, keys))
        for form, plan in plans.items():
            forms[form].append(plan_us(options, plan))
    kernel_time = statistics.median(kernel)
    for form, times in forms.items():
        us = statistics.median(times)
        slow = us > 1.03 * kernel_time and us > kernel_time + 1
        print(f"{form} | {keys} | {us:.1f} | {kernel_time:.1f} | {us / kernel_time:.3f}{' SLOW' if slow else ''}", flush=True)
        yield {"form": form, "keys": keys, "us": us, "kernel_us": kernel_time, "slow": slow}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench/attention_masks.json")
    parser.add_argument("--keys", type=int, nargs="+", default=[512, 2048, 8192])
    parser.add_argument("--only", nargs="+", default=[""], help="forms whose name has one of these")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    forms = [form for form in mask_forms.FORMS if any(word in form for word in options.only)]
    print("form | keys | us | heddle kernel attention us | over it")
    done = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = {(form, keys): pool.submit(compiled, options, form, keys, pathlib.Path(folder)) for keys in options.keys for form in forms}
        plans = {key: job.result() for key, job in work.items()}
        for keys in options.keys:
            for kind in KERNELS:
                done += rows(options, kind, keys, {form: plans[form, keys] for form in forms if form.startswith(kind)})
    document = {"date": datetime.date.today().isoformat(), "rows": done}
    options.output.write_text(json.dumps(document, indent=1))
    sys.exit(any(row["slow"] for row in done))


if __name__ == "__main__":
    main()
